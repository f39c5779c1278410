"""The float32 instructions that indices come from, against NumPy's own float32; and predicates in registers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from irscope.ir.asm.sass import parse_sass
from irscope.timing.instructions import compiled
from irscope.timing.scalars import State

_LEFT = np.array([[1.5, -2.25, 7.0, 1e12]], np.float32)
_RIGHT = np.array([[0.5, 3.0, -7.0, 2e12]], np.float32)
_HEAD = '\t.section\t.text.k,"ax",@progbits\n.text.k:\n'


def _bits(number: np.ndarray) -> np.ndarray:
    return np.asarray(number, np.float32).view(np.uint32).astype(np.int64)


def _run(text: str, more: Mapping[str, np.ndarray] | None = None, *, is_index: bool = True) -> State:
    (item,) = parse_sass(f"{_HEAD}        /*0000*/                   {text} ;\n")[0].instructions
    registers = {"R1": _bits(_LEFT), "R2": _bits(_RIGHT), "P1": _LEFT > 1, **(more or {})}
    state = State(1, 4, registers, {}, {})
    compiled(item, is_index=is_index)(state)
    return state


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FADD R0, R1, R2", _LEFT + _RIGHT),
        ("FADD.FTZ R0, R1, -R2", _LEFT - _RIGHT),
        ("FMUL R0, -R1, |R2|", -_LEFT * np.abs(_RIGHT)),
        ("FMUL R0, |R1|.reuse, 0.25", np.abs(_LEFT) * np.float32(0.25)),
        ("FMNMX R0, R1, R2, PT", np.minimum(_LEFT, _RIGHT)),
        ("FMNMX R0, R1, R2, !PT", np.maximum(_LEFT, _RIGHT)),
        ("FSEL R0, R1, R2, P1", np.where(_LEFT > 1, _LEFT, _RIGHT)),
        ("FRND.FLOOR R0, R1", np.floor(_LEFT)),
        ("MUFU.RSQ R0, |R2|", 1 / np.sqrt(np.abs(_RIGHT))),
    ],
)
def test_a_float_is_numpys(text: str, expected: np.ndarray) -> None:
    value = _run(text).registers["R0"]
    assert value is not None
    found = value.astype(np.uint32).view(np.float32)[0].tolist()
    assert found == pytest.approx(expected.astype(np.float32)[0].tolist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("F2I.TRUNC.NTZ R0, R1", [1, -2, 7, (1 << 31) - 1]),
        ("F2I.FLOOR.NTZ R0, R1", [1, -3, 7, (1 << 31) - 1]),
        ("F2I.CEIL.NTZ R0, R1", [2, -2, 7, (1 << 31) - 1]),
        ("F2I.NTZ R0, R1", [2, -2, 7, (1 << 31) - 1]),
    ],
)
def test_conversions_round_as_they_say(text: str, expected: list[int]) -> None:
    value = _run(text).registers["R0"]
    assert value is not None
    assert value.astype(np.uint32).view(np.int32).tolist() == [expected]


def test_comparisons_give_both_predicates() -> None:
    state = _run("FSETP.GTU.AND P0, P2, R1, R2, P1")
    first, second = state.registers["P0"], state.registers["P2"]
    assert first is not None
    assert second is not None
    assert first.tolist() == ((_LEFT > _RIGHT) & (_LEFT > 1)).tolist()
    assert second.tolist() == (~(_LEFT > _RIGHT) & (_LEFT > 1)).tolist()


@pytest.mark.parametrize(
    ("compare", "limit", "holds"),
    [
        ("GEU", "1.175494350822287508e-38", True),
        ("GT", "8.50705917302346158658e+37", False),
        ("NEU", "+INF", True),
        ("GT", "2", None),
    ],
)
def test_data_are_taken_to_be_ordinary_numbers(compare: str, limit: str, holds: bool | None) -> None:
    state = _run(f"FSETP.{compare}.AND P0, PT, |R9|, {limit}, PT", is_index=False)
    value = state.registers["P0"]
    assert holds is None if value is None else value.tolist() == [[holds]]


def test_64_bits_become_a_float_that_is_no_less_and_come_back() -> None:
    numbers = [(1 << 33) + 7, 3, (1 << 64) - 1, (1 << 53) + 1]
    words = {f"R{4 + part}": np.array([[one >> 32 * part & 0xFFFFFFFF for one in numbers]]) for part in (0, 1)}
    value = _run("I2F.U64.RP R0, R4", words).registers["R0"]
    assert value is not None
    floats = value.astype(np.uint32).view(np.float32)[0].tolist()
    assert all(found >= number > found * (1 - 2**-23) for found, number in zip(floats, numbers, strict=True))
    after = _run("F2I.U64.TRUNC R6, R0", {"R0": value}).registers
    low, high = after["R6"], after["R7"]
    assert low is not None
    assert high is not None
    back = [int(one) + (int(other) << 32) for one, other in zip(low[0], high[0], strict=True)]
    assert back[:2] == [int(one) for one in floats[:2]]
    assert back[3] == int(floats[3])


def test_predicates_are_packed_into_a_register_that_held_nothing() -> None:
    state = _run("LOP3.LUT R0, R0, 0xfffffffd, RZ, 0xc0, !PT", is_index=False)
    value = state.registers["R0"]
    assert value is not None
    assert not value.any()


@pytest.mark.parametrize(("letter", "pack", "file"), [("P", "P2R", "PR, RZ"), ("UP", "UP2UR", "UPR, URZ")])
@pytest.mark.parametrize("holds", [True, False])
def test_a_register_takes_the_predicates_that_its_mask_names(letter: str, pack: str, file: str, holds: bool) -> None:
    target = "UR7" if letter == "UP" else "R7"
    held = {f"{letter}{number}": np.full((1, 1), number == 3) for number in range(7)} | {
        f"{letter}2": np.full((1, 1), holds)
    }
    value = _run(f"{pack} {target}, {file}, 0xc", held).registers[target]
    assert value is not None
    assert value.item() == (8 | 4 * holds)
