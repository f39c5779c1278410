"""A round of a watch against the last good state: what changed, came, went, failed, and is gone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.api import watching as files
from irscope.api.watching import LastGood
from irscope.model.capture import Capture, Failure
from tests.analysis.checks.test_assertions import MATMUL, TILE, capture, rewritten
from tests.cli.json_reference import Reference
from tests.cli.product import KERNELS, SIGNATURE, Run

NARROW = rewritten("ptx", r"st\.global\.v4\.b32", "st.global.b32")


def failed(one: Capture) -> Capture:
    return replace(one, status="failed", artifacts=(), failure=Failure("pass", "no", "ttgir"))


def states(good: LastGood, *captures: Capture, is_whole: bool = True) -> list[str]:
    return [one.state for one in good.take(captures, is_whole=is_whole)]


def test_states() -> None:
    good, tile, matmul = LastGood(["ttgir"]), capture(TILE), capture(MATMUL)
    assert states(good, tile, matmul) == ["new", "new"]
    assert states(good, tile, matmul) == ["same", "same"]
    assert states(good, tile, NARROW(matmul)) == ["same", "changed"]
    assert states(good, tile, failed(matmul)) == ["same", "failed"]
    # Compared with the last good state, not with the failure.
    assert states(good, tile, NARROW(matmul)) == ["same", "same"]
    # A program that stopped half-way launched less, and nothing is gone.
    assert states(good, tile, is_whole=False) == ["same"]
    assert states(good, tile) == ["same", "gone"]
    assert states(good, tile) == ["same"]


def test_what_came_and_what_went() -> None:
    # IRS102 needs addresses that would allow more: of the tile they do not, of what is aligned they do.
    good, masked = LastGood(["ttgir"]), capture("counters/masked")
    fine = rewritten("ptx", r"(ld|st)\.global\.b32", r"\1.global.v4.b32")(masked)
    good.take([fine], is_whole=True)
    (found,) = good.take([masked], is_whole=True)
    assert [one.code for one in found.added] == ["IRS101", "IRS102"]
    assert found.removed == ()
    assert {one.name: one.verdict for one in found.facts}["load_bits"] == "worse"
    (found,) = good.take([fine], is_whole=True)
    assert ([one.code for one in found.removed], found.added) == (["IRS101", "IRS102"], ())


def test_a_variant_with_other_constants_is_compared_with_the_one_that_was_there() -> None:
    good, one = LastGood(["ttgir"]), capture(MATMUL)
    good.take([one], is_whole=True)
    launch = replace(one.launch, constants=(*one.launch.constants, ("EXTRA", "1")))
    (found,) = good.take([replace(one, launch=launch)], is_whole=True)
    assert found.state in ("same", "changed")
    assert found.comparison is not None


@pytest.mark.triton
@pytest.mark.newest
def test_a_watch(irscope: Run, tmp_path: Path, reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved with another store, then with a syntax error, then as it was at first."""
    file = tmp_path / "thin.py"
    first = KERNELS.read_text()
    edits = [first.replace(", accumulator)", ", accumulator * 2.0)"), "def (", first]
    assert edits[0] != first
    file.write_text(first)

    def wait(self: files.Watched) -> tuple[Path, ...]:
        file.write_text(edits.pop(0))
        return (file,)

    monkeypatch.setattr(files.Watched, "wait", wait)
    code, out, err = irscope("diff", f"{file}::tile_product", "--watch", *SIGNATURE, "--recordings", 4, "--json")
    assert code == 0
    rounds = [json.loads(line) for line in out.splitlines()]
    for one in rounds:
        assert one.pop("irscope_json")
        assert list(reference.misfits(one, reference.prints("diff --watch"))) == []
    assert [one["recorded"] for one in rounds] == [True, True, False, True]
    assert [kernel["state"] for one in rounds for kernel in one["kernels"]] == ["new", "changed", "changed"]
    assert "last good state stays" in err
    (changed,) = rounds[1]["kernels"]
    assert {row["stage"] for row in changed["stages"] if row["state"] == "differs"} >= {"ttir", "ttgir"}


def test_what_is_no_file_is_not_watched(irscope: Run) -> None:
    code, out, err = irscope("diff", "last", "--watch")
    assert (code, out) == (2, "")
    assert "not a file to watch" in err
