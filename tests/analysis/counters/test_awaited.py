"""What an instruction waits for: by hand, and of every stall for global memory that an H200 saw."""

from __future__ import annotations

import pytest

from irscope.analysis.counters.awaited import Scoreboards
from irscope.ir.asm.control_flow import read_control_flow
from tests.analysis.counters.measured import NAMES, counted

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
