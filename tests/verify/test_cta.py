"""What kernels of Gluon get wrong with shared memory is found on its line; the same kernels without it are safe."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.verify.meaning import verify_lowering
from irscope.verify.safety import verify_launch
from irscope.verify.verdict import KERNEL
from tests.once import kept

KERNELS = Path(__file__).with_name("gluon_kernels.py")
pytestmark = [pytest.mark.triton, pytest.mark.newest]
WAIT = "mbarrier.wait(full, (tile * FLIPS"
PRODUCT = "warpgroup_mma(a.index"
# Kernel → its fault, the text of the line of each access, and the warp that makes the access.
WRONG = {
    "loads_without_barrier": ("shared-race", ["buffer.load(layout)", "buffer.store("], [0, 4]),
    "phase_stays": ("shared-race", ["tma.async_load(", "buffer.load(layout)", WAIT], [None, 0, None]),
    "phase_begins_with_one": ("shared-race", ["tma.async_load(", "buffer.load(layout)", WAIT], [None, 0, None]),
    "waits_for_the_next_phase": ("never-ends", ["mbarrier.wait(ready, 1)"], [None]),
    "copies_over_a_product": ("shared-race", [PRODUCT, "tma.async_load(a_desc"], [None, 0]),
    "copies_over_the_last_product_but_one": ("shared-race", [PRODUCT, "tma.async_load(a_desc"], [None, 0]),
    "multiplies_before_the_copies": ("shared-race", ["tma.async_load(a_desc", PRODUCT], [None, 0]),
    "stores_before_the_last_product": ("shared-race", [PRODUCT, "gl.store(c_ptr"], [None, 0]),
    "ends_before_its_store": ("shared-race", ["tma.async_store(", "def ends_before_its_store("], [None, 0]),
    "overwrites_what_is_stored": ("shared-race", ["tma.async_store(", "buffer.store(x)"], [None, 0]),
}


def gluon_captures() -> dict[str, Capture]:
    request = request_for(KERNELS, targets=("cuda:90",), disassemble=False)
    recorded = kept(("gluon", KERNELS.read_text("utf-8")), lambda: tuple(record_request(request).captures))
    return {one.name: one for one in recorded}


@pytest.fixture(scope="module")
def captures() -> dict[str, Capture]:
    return gluon_captures()


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


def test_a_register_that_wgmma_still_writes_is_named(captures: dict[str, Capture]) -> None:
    (violation,) = verify_launch(captures["stores_before_the_last_product"]).violations
    assert violation.address.startswith("register %")
    assert violation.detail == (
        "an asynchronous unit writes a register that is later read: no wait for the asynchronous matrix instruction"
    )


def test_the_phase_that_a_wait_is_for_is_named_with_the_one_that_is_due(captures: dict[str, Capture]) -> None:
    details = {name: verify_launch(captures[name]).violations[0].detail for name in [*WRONG][1:4]}
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
        "product_of_stored_tiles": ("safe", ()),
        "awaits_each_product": ("safe", ()),
        "awaits_the_product_before": ("safe", ()),
        "awaits_its_stores": ("safe", ()),
    }


def test_wgmma_reads_what_threads_stored_behind_a_fence_alone(captures: dict[str, Capture]) -> None:
    """Triton 3.9 adds the fence that the kernel of `product_of_stored_tiles` would lack; 3.6 does not."""
    capture = captures["product_of_stored_tiles"]
    text, count = re.subn(r"^\s*fence\.proxy\.async\S*;", "", capture.text("ptx"), flags=re.MULTILINE)
    assert count
    artifacts = tuple(replace(one, data=text) if one.stage == "ptx" else one for one in capture.artifacts)
    violation = verify_launch(capture.with_(artifacts=artifacts)).violations[0]
    assert (violation.code, violation.made_by) == ("IRS909", KERNEL)
    assert [access.operation.partition(".")[0] for access in violation.accesses] == ["st", "wgmma"]


def test_what_wgmma_reads_of_stored_tiles_is_computed(captures: dict[str, Capture]) -> None:
    assert verify_lowering(captures["product_of_stored_tiles"]).answer == "same"
