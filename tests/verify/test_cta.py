"""What kernels of Gluon get wrong with shared memory is found on its line; the same kernels without it are safe."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.verify.safety import verify_launch
from irscope.verify.verdict import KERNEL

KERNELS = Path(__file__).with_name("gluon_kernels.py")
pytestmark = [pytest.mark.triton, pytest.mark.newest]
WAIT = "mbarrier.wait(full, (tile * FLIPS"
# Kernel → its fault, the text of the line of each access, and the warp that makes the access.
WRONG = {
    "loads_without_barrier": ("shared-race", ["buffer.load(layout)", "buffer.store("], [0, 4]),
    "phase_stays": ("shared-race", ["tma.async_load(", "buffer.load(layout)", WAIT], [None, 0, None]),
    "phase_begins_with_one": ("shared-race", ["tma.async_load(", "buffer.load(layout)", WAIT], [None, 0, None]),
    "waits_for_the_next_phase": ("never-ends", ["mbarrier.wait(ready, 1)"], [None]),
}


@pytest.fixture(scope="module")
def captures() -> dict[str, Capture]:
    request = request_for(KERNELS, targets=("cuda:90",), disassemble=False)
    return {one.name: one for one in record_request(request).captures}


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_is_named_with_its_line_and_a_witness(captures: dict[str, Capture], name: str) -> None:
    kind, lines, warps = WRONG[name]
    verdict = verify_launch(captures[name])
    assert verdict.answer == "wrong", verdict
    first = verdict.violations[0]
    assert (first.kind, first.made_by) == (kind, KERNEL)
    accesses = first.accesses[: len(lines)]
    source = KERNELS.read_text("utf-8").split("\n")
    places = [source[int(access.place.rpartition(":")[2]) - 1] for access in accesses]
    assert all(text in place for text, place in zip(lines, places, strict=True)), places
    assert [access.warp for access in accesses] == warps
    assert all(access.program == (0, 0, 0) for access in accesses)


def test_the_phase_that_a_wait_is_for_is_named_with_the_one_that_is_due(captures: dict[str, Capture]) -> None:
    details = {name: verify_launch(captures[name]).violations[0].detail for name in WRONG}
    assert (
        "the wait for phase 1 of its mbarrier is over at once: the copy is of phase 0"
        in (details["phase_begins_with_one"])
    )
    assert "the wait for phase 0 of its mbarrier is over at once: the copy is of phase 1" in details["phase_stays"]
    assert details["waits_for_the_next_phase"] == (
        "the wait for phase 1 of mbarrier ready never completes: 1 phase of it ended, and the next one, of parity 1, "
        "lacks 1 of 1 arrivals"
    )


def test_the_kernels_without_a_fault_are_safe(captures: dict[str, Capture]) -> None:
    safe = {name: verify_launch(one) for name, one in captures.items() if name not in WRONG}
    assert {name: (one.answer, one.undecided) for name, one in safe.items()} == {
        "loads_after_barrier": ("safe", ()),
        "phase_flips": ("safe", ()),
        "waits_for_each_phase": ("safe", ()),
    }
