"""What irscope computes of a launch, compared with what the hardware counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from irscope.analysis.counters.operations import CounterComparison, counted_launch, executed_instructions
from irscope.ir.asm.control_flow import read_control_flow
from irscope.ir.mlir.uses import read_uses
from irscope.memory.costs import costs_of
from irscope.memory.machine import read_machine
from irscope.memory.ptx_shared import SharedWorks
from irscope.model.capture import Capture
from tests.analysis.counters.measured import NAMES, capture, counted
from tests.analysis.counters.pages import small_capture


@pytest.mark.parametrize("name", NAMES)
def test_what_is_exact_is_what_the_hardware_counted(name: str) -> None:
    for row in counted(name).operations:
        for one in row.comparisons:
            assert one.reason or one.verdict == "equal", (row.operation, row.line, one)


def test_enough_was_compared() -> None:
    verdicts = Counter((one.quantity, one.verdict) for name in NAMES for row in counted(name).operations
                       for one in row.comparisons)  # fmt: skip
    assert verdicts["sectors", "equal"] >= 60
    assert verdicts["lines", "equal"] >= 60
    assert verdicts["instructions", "equal"] >= 50
    assert verdicts["ways", "equal"] >= 4
    # Reductions, conversions and atomics through scratch, by the addresses in their PTX.
    assert verdicts["wavefronts", "equal"] >= 10
    assert verdicts["wavefronts", "differs"] == 0
    # Those of the kernels below alone.
    assert verdicts["sectors", "differs"] == verdicts["lines", "differs"] == 1


def test_equal_loads_of_a_warp_are_counted_as_the_assembler_makes_them() -> None:
    """A row that a whole tile reads: 8 loads of each warp in the PTX, one of them in the SASS."""
    (row,) = [one for one in counted("row_broadcast").operations if one.operation == "tt.load"]
    assert {(one.quantity, one.verdict) for one in row.comparisons} == {
        ("instructions", "equal"), ("sectors", "equal"), ("lines", "equal")
    }  # fmt: skip
    apart = replace(capture("row_broadcast"), operations=())
    (cost,) = [one for one in costs_of(apart) if one.operation == "tt.load"]
    assert cost.access is not None
    assert cost.access.certainty == "range", "without the operation of each instruction both are possible"
    assert cost.access.launch.units[1] == 8 * cost.access.launch.units[0]


@pytest.mark.parametrize(
    ("name", "operation", "reason"),
    [
        ("scalars", "tt.load", "warps may leave before it, at '@P0 EXIT' (0070)"),
        ("triangle", "tt.load", "the SASS has 8 instructions for 1 of the PTX, some of which execute with"),
        (
            "matmul_naive_kernel",
            "ttg.async_copy_global_to_local",
            "the hardware's count of the sectors of",
        ),
        ("column", "tt.load", "warps may leave before it, at '@P0 BRA `(.L_x_1)' (0160)"),
    ],
)
def test_differences_have_their_cause_in_the_code(name: str, operation: str, reason: str) -> None:
    rows = [one for one in counted(name).operations if one.operation == operation]
    found = [one for row in rows for one in row.comparisons if one.verdict != "equal"]
    assert found
    assert all(one.reason.startswith(reason) for one in found)


@pytest.mark.parametrize("name", NAMES)
def test_two_counts_of_shared_accesses_agree(name: str) -> None:
    """The wavefronts by the two layouts of an access, and by the addresses that its PTX computes."""
    one = capture(name)
    uses, machine = read_uses(one.text("ttgir")), read_machine(one)
    works, at = SharedWorks(one, uses, machine), {use.first_line: use for use in uses.operations}
    for cost in costs_of(one):
        work = works.of(at[cost.line]) if cost.line in at and "minimum_wavefronts" in cost.figures else None
        if work is not None:
            assert cost.figures["ways"] == work.ways, cost


def test_a_wrong_counter_is_seen() -> None:
    """A hundred sectors more at one load of `strided`, and one instruction less."""
    one = capture("strided")
    assert one.profile is not None
    row = '"8","256","256","32","32","0","Global","Load","32","256","0","224","256","32"'
    for title, old, new in (("sectors", '"224","256"', '"224","356"'), ("instructions", '"8","256"', '"7","256"')):
        assert row in one.profile.page
        page = one.profile.page.replace(row, row.replace(old, new), 1)
        found = counted_launch(replace(one, profile=replace(one.profile, page=page)))
        assert any(
            (comparison.quantity, comparison.verdict) == (title, "differs")
            for row in found.operations
            for comparison in row.comparisons
        ), title


@pytest.mark.parametrize(
    ("least", "most", "measured", "verdict"),
    [
        (100, 100, 100, "equal"),
        (100, 100, 101, "within 1 %"),
        (100, 100, 102, "differs"),
        (100, 100, 99, "differs"),
        (50, 100, 70, "in range"),
        (50, 100, 50, "in range"),
        (50, 100, 101, "within 1 %"),
        (50, 100, 40, "differs"),
        (0, 0, 0, "equal"),
        (4, 4, 0, "differs"),
    ],
)
def test_verdicts(least: int, most: int, measured: int, verdict: str) -> None:
    assert CounterComparison("sectors", least, most, measured).verdict == verdict


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
