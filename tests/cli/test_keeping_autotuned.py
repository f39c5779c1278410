"""What a recording says of autotuned kernels: how many configurations there are, and which were compiled."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from irscope.cli.keeping import autotuning_notes
from irscope.model.capture import Autotuning, Capture
from irscope.store.shelf import StoredCaptures
from tests.cli.conftest import Run
from tests.report_browser.captures import softmax

SCRIPT = Path(__file__).parents[1] / "record" / "scripts" / "autotuned.py"
PRUNED = "square_kernel is autotuned: its own pruning (prune_configs_by) leaves 3 of 4 configurations"


def captures(*indices: int, count: int = 4, kept: int | None = None) -> list[Capture]:
    return [tuned(index, f"BLOCK: {16 << index}, num_warps: 4", count=count, kept=kept) for index in indices]


def tuned(index: int, config: str, *, count: int, kept: int | None = None) -> Capture:
    one = softmax()
    return one.with_(launch=replace(one.launch, autotuning=Autotuning(index, count, config, kept=kept)))


@pytest.mark.parametrize(
    ("found", "asked", "note"),
    [
        (captures(), "first", []),
        (captures(0, 1, 2, 3), "first", []),
        (captures(0), "first", ["1 of 4 configurations compiled; --config all takes every one."]),
        (captures(0, 2), "all", ["2 of 4 configurations compiled."]),
        # Two that the script's pruning made itself have no index.
        ([tuned(-1, "BLOCK: 32", count=2), tuned(-1, "BLOCK: 128", count=2)], "first", []),
        (captures(2), "BLOCK=64", ["1 of 4 configurations compiled; --config all takes every one."]),
        (
            captures(2, kept=3),
            "first",
            [
                "its own pruning (prune_configs_by) leaves 3 of 4 configurations; 1 compiled; --config all takes "
                "every one."
            ],
        ),
        (
            captures(1, 2, kept=2),
            "all",
            ["its own pruning (prune_configs_by) leaves 2 of 4 configurations; 2 compiled."],
        ),
        (
            captures(2, kept=3),
            "0",
            [
                "its own pruning (prune_configs_by) leaves 3 of 4 configurations, and --config 0 is not one of them; "
                "configuration 2 (BLOCK: 64, num_warps: 4) was compiled in its place."
            ],
        ),
        (
            captures(0),
            "BLOCK=6",
            [
                "--config BLOCK=6 is not one of its 4 configurations; configuration 0 (BLOCK: 16, num_warps: 4) was "
                "compiled in its place."
            ],
        ),
    ],
)
def test_what_is_said(found: list[Capture], asked: str, note: list[str]) -> None:
    assert list(autotuning_notes(StoredCaptures.of(found), asked)) == [f"softmax is autotuned: {text}" for text in note]


@pytest.mark.triton
@pytest.mark.parametrize(
    ("asked", "notes"),
    [
        ("all", [f"{PRUNED}; 3 compiled."]),
        pytest.param(
            "BLOCK=64",
            [f"{PRUNED}; 1 compiled; --config all takes every one.", "copy_kernel is autotuned: --config"],
            marks=pytest.mark.exhaustive,
        ),
        # The first that is left needs more shared memory than the part has.
        ("0", [f"{PRUNED}, and --config 0 is not one of them; configuration 2 (BLOCK: 32, num_warps: 2"]),
    ],
)
def test_a_script_that_prunes(
    irscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, notes: list[str]
) -> None:
    if find_spec("torch") is None:
        pytest.skip("the script uses torch")
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path))
    code, _, said = irscope("dump", SCRIPT, "--stage", "ttir", "--config", asked)
    assert code == 0
    for note in notes:
        assert note in said
    assert "stopped" not in said
