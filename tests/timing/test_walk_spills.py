"""How often a loop runs, of SASS written here: against counting."""

from __future__ import annotations

import numpy as np
import pytest

from irscope.ir.asm.sass import parse_sass
from irscope.timing.program import Program
from irscope.timing.scalars import State
from irscope.timing.walk import walk

_HEAD = '\t.section\t.text.k,"ax",@progbits\n.text.k:\n'


def _walked(lines: list[str]) -> tuple[float, State]:
    """How many instructions a warp executes that starts with its stack at 64, and what is known after it."""
    text, offset = _HEAD, 0
    for line in lines:
        if line.endswith(":"):
            text += f"{line}\n"
            continue
        text += f"        /*{offset:04x}*/                   {line} ;\n"
        offset += 16
    program = Program(parse_sass(text)[0], lambda _: False)
    registers = {"R1": 64, "R8": 0, "R9": 16}
    state = State(1, 1, {name: np.full((1, 1), value, np.int64) for name, value in registers.items()}, {}, {})
    (walked,) = walk(program, state, lambda *_: None)
    return walked.instructions, state


def _instructions(lines: list[str]) -> float:
    instructions, state = _walked(lines)
    assert not state.assumed.notes
    return instructions


@pytest.mark.parametrize("count", [1, 7, 100, 20_000])
def test_a_counter_in_local_memory_ends_its_loop(count: int) -> None:
    spilled = [
        "MOV R4, 0x0",
        "STL.64 [R1+0x10], R4",
        ".L_x_0:",
        "LDL R5, [R1+0x10]",
        "IADD3 R5, R5, 0x1, RZ",
        "STL [R1+0x10], R5",
        f"ISETP.NE.AND P0, PT, R5, {count:#x}, PT",
        "@P0 BRA `(.L_x_0)",
        "EXIT",
    ]
    assert _instructions(spilled) == 2 + 5 * count + 1


def test_a_store_to_local_memory_under_a_predicate_that_is_off_stores_nothing() -> None:
    lines = [
        "MOV R4, 0x3",
        "MOV R5, 0x9",
        "STL [R1], R4",
        "ISETP.EQ.AND P1, PT, R4, R5, PT",
        "@P1 STL [R1], R5",
        ".L_x_0:",
        "LDL R6, [R1]",
        "IADD3 R6, R6, -0x1, RZ",
        "STL [R1], R6",
        "ISETP.NE.AND P0, PT, R6, RZ, PT",
        "@P0 BRA `(.L_x_0)",
        "EXIT",
    ]
    assert _instructions(lines) == 5 + 5 * 3 + 1


def test_of_words_that_are_spilled_together_each_is_followed() -> None:
    lines = [
        "MOV R4, 0x3",
        "LDG.E R5, desc[UR4][R8.64]",
        "STL.64 [R1], R4",
        "LDL.64 R6, [R1]",
        ".L_x_0:",
        "IADD3 R6, R6, -0x1, RZ",
        "ISETP.NE.AND P0, PT, R6, RZ, PT",
        "@P0 BRA `(.L_x_0)",
        "EXIT",
    ]
    assert _instructions(lines) == 4 + 3 * 3 + 1


def test_data_stays_where_a_store_under_a_predicate_stores_nothing() -> None:
    lines = [
        "LDG.E R5, desc[UR4][R8.64]",
        "STL [R1], R5",
        "MOV R4, 0x3",
        "ISETP.EQ.AND P1, PT, R4, RZ, PT",
        "@P1 STL [R1], R4",
        ".L_x_0:",
        "LDL R6, [R1]",
        "ISETP.NE.AND P0, PT, R6, RZ, PT",
        "@P0 BRA `(.L_x_0)",
        "EXIT",
    ]
    state = _walked(lines)[1]
    assert any("data-dependent trip count" in note for note in state.assumed.notes)
