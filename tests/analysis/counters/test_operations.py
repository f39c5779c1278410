"""Counters summed by operation, and the instructions that each one waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.analysis.counters.operations import Scoreboards, counted_launch, matched_instructions
from irscope.ir.asm.control_flow import read_control_flow
from irscope.ir.logs.source_page import Counters
from irscope.model.evidence import OperationLines
from tests.analysis.counters.measured import NAMES, capture, counted


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_is_in_one_row(name: str) -> None:
    found = counted(name)
    whole = matched_instructions(capture(name))
    assert sorted(one.line for row in found.operations for one in row.instructions) == [one.line for one in whole]
    assert Counters.sum([row.counters for row in found.operations]) == found.counters
    assert found.by_operation
    stalled = [row.counters.stalled for row in found.operations]
    assert stalled == sorted(stalled, reverse=True)


def test_an_operation_has_its_line_and_layouts() -> None:
    (row,) = [one for one in counted("transposed").operations if one.operation == "tt.load"]
    text = capture("transposed").text("ttgir").splitlines()[row.line - 1]
    assert "tt.load" in text
    assert row.layouts
    assert all(layout in text for layout in row.layouts)
    assert row.place.startswith("accessing.py:")


def test_without_operations_a_row_is_a_line_of_python_and_says_why() -> None:
    one = capture("transposed")
    found = counted_launch(replace(one, operations=(OperationLines("sass", reason="the code is another"),)))
    assert not found.by_operation
    assert found.why_not == "the code is another"
    assert found.predicted_executed is None
    assert all(not row.line and not row.comparisons for row in found.operations)
    assert {row.place for row in found.operations} == {row.place for row in counted("transposed").operations}
    assert found.counters == counted("transposed").counters


LOOP = """.target sm_90a
.section .text.kernel  // 8 instructions
        0000  B------:R-:W0:-:S01  LDG.E R1, desc[UR4][R2.64]
        0010  B------:R-:W1:-:S01  LDG.E R2, desc[UR4][R2.64]
.L_x_0:
        0020  B0-----:R-:W-:-:S04  FADD R4, R4, R1
        0030  B------:R-:W0:-:S01  LDG.E R1, desc[UR4][R2.64]
        0040  B------:R-:W0:-:S01  LDG.E R5, desc[UR4][R2.64]
        0050  B------:R-:W-:-:S05  @P0 BRA `(.L_x_0)
        0060  B01----:R-:W-:-:S04  FADD R4, R2, R1
        0070  B------:R-:W-:-:S05  EXIT
"""


def test_all_that_set_the_scoreboard_since_it_was_waited_for() -> None:
    (graph,) = read_control_flow(LOOP, "sass")
    boards = Scoreboards(graph)
    lines = {line.split()[0]: number for number, line in enumerate(LOOP.splitlines(), 1)}

    def awaited(offset: str) -> list[int]:
        return [one.offset for one in boards.awaited(lines[offset])]

    # On the way from before the loop the first load, on that of the loop the two in it.
    assert awaited("0020") == [0x00, 0x30, 0x40]
    assert awaited("0060") == [0x10, 0x30, 0x40]
    assert awaited("0030") == []
    assert boards.awaited(1) == ()


@pytest.mark.parametrize("name", NAMES)
def test_operations_wait_for_operations_that_read_global_memory(name: str) -> None:
    rows = counted(name).operations
    reading = {row.line for row in rows if row.counters.sectors}
    for row in rows:
        stalls = dict(row.counters.stalls).get("long_sb", 0)
        assert {*row.awaited} <= reading - {row.line}
        assert stalls or not row.awaited


def test_the_stalls_of_arithmetic_for_global_memory_have_their_load() -> None:
    """Of all kernels together: what is left is waited for by barriers of copies, which are no scoreboards."""
    stalled = [row for name in NAMES for row in counted(name).operations
               if row.operation.startswith("arith.") and dict(row.counters.stalls).get("long_sb", 0) > 5]  # fmt: skip
    assert len([row for row in stalled if row.awaited]) >= 5
    assert [row.operation for row in stalled if not row.awaited] == ["arith.cmpi"]
