"""`upgrade --time`: which launches are made by whom, what is said of those that are not, and what it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.upgrade.model import Upgrade, UpgradeRow
from irscope.api import gpu as timing
from irscope.api.gpu import PairTimer, require_gpu
from irscope.errors import MissingTool, NoDevice
from irscope.model.capture import Artifact, Capture, Failure
from irscope.record.gpu.session import device_session
from irscope.record.process.requests import RecordRequest
from tests.cli.product import Run

FAKE = Path(__file__).parents[1] / "record" / "device" / "fake_child.py"
Environment = Callable[..., str]


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Makes a "Python" that runs the fake process on the GPU, with some variables."""

    def made(name: str, **variables: str) -> str:
        path = tmp_path / name
        given = {"FAKE_STARTS": str(tmp_path / "starts"), **variables}
        lines = "".join(f"export {one}={value}\n" for one, value in given.items())
        path.write_text(f'#!/bin/sh\n{lines}exec "{sys.executable}" "{FAKE}" "$@"\n')
        path.chmod(0o755)
        return str(path)

    return made


def with_binary(capture: Capture, data: bytes) -> Capture:
    return replace(capture, artifacts=(*capture.artifacts[:-1], Artifact("cubin", data)))


def test_each_pair_is_measured_by_both_or_says_why_not(environment: Environment, tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    script.write_text("")
    pythons = environment("old"), environment("new", FAKE_FACTOR="2", FAKE_LEAVES="different")
    with device_session(RecordRequest(mode="script", path=str(script), interpreter=pythons[0]), 1) as session:
        before = session.baseline
    after = with_binary(before, b"of the other")
    failed = replace(after, status="failed", failure=Failure("pass", "no"), artifacts=after.artifacts[:1])
    moved = replace(before, artifacts=(Artifact("source", "other"), *before.artifacts[1:]))
    rows = (
        UpgradeRow(before, after),
        UpgradeRow(before, before),
        UpgradeRow(before, failed),
        UpgradeRow(before, None),
    )
    first, second = (RecordRequest(mode="script", path=str(script), interpreter=python) for python in pythons)
    timer = PairTimer((first, second), ([before], [after]), 6, True)
    done: list[int] = []
    found = timer.measured(Upgrade(("1", "2"), rows), lambda what, count, total: done.append(count))
    assert found.device == "Fake GPU"
    measured, *others = found.rows
    assert measured.measured is not None
    assert measured.measured.ratio is not None
    assert measured.measured.ratio.value == 2.0
    assert [(one.name, one.before, one.after) for one in measured.changes] == [
        ("result", "", "different"),
        ("time_us", 100.0, 200.0),
    ]
    assert [one.why_not_measured for one in others] == [
        "both run the same machine code",
        "it does not compile with both",
        "",
    ]
    assert all(one.measured is None for one in others)
    assert done == [1, 2, 3, 4]
    # A script that launches something else when it runs again.
    timer = replace(timer, recorded=([moved], [after]))
    (other,) = timer.measured(Upgrade(("1", "2"), (UpgradeRow(moved, after),)), lambda *_: None).rows
    assert "launched another kernel, or with other arguments" in other.why_not_measured


def test_an_environment_without_torch_or_a_gpu_is_named(irscope: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(error: Exception | None, found: dict[str, object]) -> None:
        def ask(*_: object, **__: object) -> dict[str, object]:
            if error is not None:
                raise error
            return found

        monkeypatch.setattr(timing, "ask_child", ask)

    answers(MissingTool("ModuleNotFoundError: No module named 'torch'"), {})
    with pytest.raises(MissingTool, match="--to /new/bin/python has no torch, which launches need"):
        require_gpu("/new/bin/python", "--to")
    answers(MissingTool("it fell over"), {})
    with pytest.raises(MissingTool, match="launches none: it fell over"):
        require_gpu("/new/bin/python", "--to")
    answers(None, {"devices": 1, "why": ""})
    require_gpu(None, "--from")
    answers(None, {"devices": 0, "why": "this torch is built without CUDA and ROCm"})
    with pytest.raises(NoDevice, match="--from, which is this environment, has none: this torch is built without"):
        require_gpu(None, "--from")
    # Before anything is compiled: what would compile is not there.
    monkeypatch.setattr("irscope.cli.upgrade._upgraded", None)
    code, _, said = irscope("upgrade", __file__, "--to", sys.executable, "--time")
    assert code == 1
    assert "has none: this torch is built without CUDA and ROCm" in " ".join(said.split())
    code, _, said = irscope("upgrade", __file__, "--to", sys.executable, "--time", "--target", "cuda:90")
    assert code == 2
    assert "leave out --target" in " ".join(said.split())
