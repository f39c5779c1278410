"""The registers that hold a value at each instruction, against what `nvdisasm -plr` marks."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from irscope.ir.columns import read_body
from irscope.ir.registers import live_values, makers_of
from irscope.ir.syntax import Ignored
from tests.ir.live_ranges import Row, model_liveness, read_live_ranges

DATA = Path(__file__).parents[2] / "data" / "asm"
LISTINGS = sorted(path.name for path in DATA.glob("*.plr.txt.xz"))


def as_text(rows: list[Row]) -> str:
    """The rows in irscope's normal form of SASS."""
    lines = [f"{row.label}:" if row.label else f"        {row.offset:04x}  -  {row.text}" for row in rows]
    return "\n".join([".section .text.kernel", *lines])


def general(registers: set[str] | frozenset[str]) -> set[str]:
    """Those that every thread has its own of, but the stack pointer, which nvdisasm takes to be live everywhere."""
    return {register for register in registers if register[0] == "R" and register != "R1"}


@pytest.mark.parametrize("name", LISTINGS)
def test_live_registers_are_those_that_nvdisasm_marks(name: str) -> None:
    compared = 0
    for rows in read_live_ranges(lzma.decompress((DATA / name).read_bytes()).decode()):
        live = live_values(read_body(as_text(rows), "sass", frozenset[Ignored]()))
        narrow = model_liveness(rows, guards_keep=False)
        for line, place in enumerate(live.body.numbers):
            # The first line of the text names the function.
            number = place - 2
            if number < 0 or (marks := rows[number].marks) is None or narrow.is_opaque[number]:
                continue
            names = {live.body.names[value] for value in live.values(line)}
            ours = general(names)
            theirs = general(set(marks))
            # A write under a guard may or may not end what stood there: nvdisasm proves some that do.
            least = general(narrow.before[number] | narrow.writes[number])
            assert least <= ours, rows[number].text
            assert theirs <= ours, rows[number].text
            assert len(names) == live.counts[line]
            compared += ours == theirs
    assert compared > 20


def test_a_constant_that_a_value_begins_with_is_not_what_computes_it() -> None:
    """The zeros of an accumulator, and those below a masked load, have the line of whatever ptxas put beside them."""
    instructions = (
        "S2R R2, SR_TID.X",
        "CS2R R8, SRZ",
        "MOV R4, 0x3f800000",
        "@P0 LDG.E R4, desc[UR4][R6.64]",
        "FFMA R8, R2, R4, R8",
        "@P1 MOV R9, 0x1",
        "STG.E.64 desc[UR4][R6.64], R8",
    )
    lines = [f"        {16 * index:04x}  -  {text}" for index, text in enumerate(instructions)]
    body = read_body("\n".join([".section .text.kernel", *lines]), "sass", frozenset[Ignored]())
    made = {body.names[value]: body.lines[line].split("  ")[-1] for value, line in makers_of(body).items()}
    assert {name: made[name].split(" R")[0].strip() for name in ("R2", "R4", "R8", "R9")} == {
        "R2": "S2R",
        "R4": "@P0 LDG.E",
        "R8": "FFMA",
        "R9": "CS2R",
    }
