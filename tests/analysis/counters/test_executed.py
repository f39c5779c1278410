"""The instructions that launches execute, held against an H200's count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.analysis.counters.executed import executed_instructions
from irscope.ir.asm.control_flow import read_control_flow
from irscope.model.capture import Capture
from tests.analysis.counters.measured import NAMES, counted
from tests.analysis.counters.pages import small_capture

KNOWN = ("strided", "every_second", "structs", "transposed", "softmax_kernel", "matmul_naive_kernel")
"""Some of those that must be known: straight code, and the loop of a matmul."""


@pytest.mark.parametrize("name", NAMES)
def test_what_is_known_is_what_the_hardware_counted(name: str) -> None:
    found = counted(name)
    assert found.predicted_executed in (None, found.counters.executed)
    assert found.predicted_executed is not None or name not in KNOWN


def changed(capture: Capture, old: str, new: str) -> Capture:
    assert old in capture.text("sass")
    artifacts = (
        one.__class__(one.stage, one.text.replace(old, new), one.duration_us) if one.stage == "sass" else one
        for one in capture.artifacts
    )
    return capture.with_(artifacts=tuple(artifacts))


def count(capture: Capture) -> int | None:
    (graph,) = read_control_flow(capture.text("sass"), "sass")
    return executed_instructions(capture, graph, [], [0] * 100)


def test_straight_code_is_counted_and_branches_are_not_guessed() -> None:
    straight = changed(small_capture(), "@P1 EXIT", "NOP")
    # 16 programs of 4 warps, 7 instructions.
    assert count(straight) == 16 * 4 * 7
    assert count(small_capture()) is None
    assert count(changed(straight, "FADD R4, R4, R4", "CALL.REL.NOINC `(other)")) is None
    assert count(straight.with_(launch=replace(straight.launch, grid=(3, 2, 1)))) == 6 * 4 * 7
    assert count(straight.with_(launch=replace(straight.launch, grid=None))) is None
