"""Local and shared memory, of SASS written here: against counting, and the instruction set."""

from __future__ import annotations

import numpy as np
import pytest

from irscope.ir.asm.sass import parse_sass
from irscope.timing.program import Program
from irscope.timing.scalars import ARRAY_BITS, SharedWords, State
from irscope.timing.walk import walk

_HEAD = '\t.section\t.text.k,"ax",@progbits\n.text.k:\n'


def _program(lines: list[str], observed: tuple[str, ...] = ()) -> Program:
    text, offset = _HEAD, 0
    for line in lines:
        if line.endswith(":"):
            text += f"{line}\n"
            continue
        text += f"        /*{offset:04x}*/                   {line} ;\n"
        offset += 16
    return Program(parse_sass(text)[0], lambda item: item.opcode.startswith(observed))


def _walked(lines: list[str]) -> tuple[float, State]:
    """How many instructions a warp executes that starts with its stack at 64, and what is known after it."""
    program = _program(lines)
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


@pytest.mark.parametrize("form", ["M88", "MT88"])
def test_lanes_have_the_elements_of_a_matrix_that_the_instruction_set_states(form: str) -> None:
    """PTX ISA, ldmatrix: lane l has row l // 4 at columns 2 (l % 4) and the next one, or the transpose of this."""
    lines = [
        "STS.128 [R2], R4",
        f"LDSM.16.{form}.2 R8, [R3]",
        "LDG.E R10, desc[UR4][R8.64]",
        "EXIT",
    ]
    program = _program(lines, ("STS", "LDSM", "LDG"))
    assert program.addresses_need_shared
    lane = np.arange(32)[None, :]
    # Lane n stores row n of four matrices one below the other, whose elements are their own numbers.
    elements = np.arange(256).reshape(32, 8)
    words = elements[:, ::2] | elements[:, 1::2] << 16
    registers = {"R2": 1024 + 16 * lane, "R3": 1024 + 16 * (lane + 8)}
    registers |= {f"R{4 + number}": words[None, :, number] for number in range(4)}
    state = State(1, 32, dict(registers), {}, {"SHARED": np.zeros((1, 1), np.int64)}, shared=SharedWords(4096, 32))
    walk(program, state, lambda *_: None)
    for number in range(2):
        matrix = elements[8 * (number + 1) : 8 * (number + 2)]
        matrix = matrix.T if form == "MT88" else matrix
        value = state.registers[f"R{8 + number}"]
        assert value is not None
        assert [(int(one) & 0xFFFF, int(one) >> 16) for one in value[0]] == [
            (matrix[one // 4, one % 4 * 2], matrix[one // 4, one % 4 * 2 + 1]) for one in range(32)
        ]


def test_each_cta_has_shared_memory_of_its_own() -> None:
    """Integers that the capture holds are copied to one place in two CTAs, whose loads give each its own."""
    lines = ["LDGSTS.E [R2], desc[UR4][R4.64]", "LDS R6, [R3]", "LDG.E R10, desc[UR4][R6.64]", "EXIT"]
    program = _program(lines, ("LDS", "LDG"))
    lane = np.arange(32)[None, :]
    array, first = 1, np.array([[0], [128]])
    address = (array << ARRAY_BITS) + first + 4 * lane
    registers = {"R2": 1024 + 4 * lane, "R3": 1024 + 4 * (31 - lane), "R4": address, "R5": np.zeros((1, 1), np.int64)}
    words = np.arange(64, dtype=np.int32) ** 2
    shared = SharedWords(4096, 32, ctas=2)
    state = State(2, 32, dict(registers), {}, {"SHARED": np.array([[0], [shared.count]])}, shared=shared)
    state.assumed.contents[array] = 0, words.view(np.uint8)
    walk(program, state, lambda *_: None)
    value = state.registers["R6"]
    assert value is not None
    assert value.tolist() == [words[31::-1].tolist(), words[:31:-1].tolist()]
