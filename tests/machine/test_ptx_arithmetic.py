"""Instructions of PTX, against Python's own integers and fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.machine.ptx_arithmetic import computed
from irscope.machine.ptx_floats import float_computed

_NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20)


@pytest.mark.parametrize("kind", ["u64", "s64", "u32", "s32"])
@given(numbers=_NUMBERS)
def test_the_upper_half_of_a_product(kind: str, numbers: list[int]) -> None:
    bits = int(kind[1:])

    def read(number: int) -> int:
        low = number % 2**bits
        return low - 2**bits if kind.startswith("s") and low >= 2 ** (bits - 1) else low

    pairs = [(one, two) for one in numbers for two in numbers]
    found = computed("mul", ["hi", kind], [np.array(side) for side in zip(*pairs, strict=True)])
    assert found is not None
    assert [number % 2**bits for number in found.tolist()] == [
        (read(one) * read(two) >> bits) % 2**bits for one, two in pairs
    ]


_SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(_SINGLES, _SINGLES)
def test_sums_that_are_rounded_to_zero(one: float, two: float) -> None:
    made = _floats("add", ["rz", "ftz", "f32"], one, two)
    with np.errstate(all="ignore"):
        nearest = np.float32(one) + np.float32(two)
    if not np.isfinite(nearest):
        return
    exact = Fraction(one) + Fraction(two)
    above = np.nextafter(made, np.float32(np.inf if exact > 0 else -np.inf))
    assert abs(Fraction(float(made))) <= abs(exact)
    assert not np.isfinite(above) or abs(Fraction(float(above))) > abs(exact)


@pytest.mark.parametrize(("name", "one", "two", "made"), [("min", -3, 2, -2), ("min", -3, -2, 2), ("max", 1, -2, -2)])
def test_one_of_two_magnitudes_with_the_product_of_the_signs(name: str, one: float, two: float, made: float) -> None:
    assert _floats(name, ["xorsign", "abs", "f32"], one, two) == made


def test_the_largest_of_three() -> None:
    assert [_floats("max", ["f32"], *row) for row in ((1, 2, 3), (3, 2, 1), (1, 3, 2))] == [3, 3, 3]
    assert np.isnan(_floats("min", ["NaN", "f32"], 1, 2, np.nan))


def test_the_bits_of_a_register_are_counted() -> None:
    counts = computed("popc", ["b32"], [np.array([0, 1, -1, 0x1_0000_00FF])])
    assert counts is not None
    assert counts.tolist() == [0, 1, 32, 8]


@pytest.mark.parametrize("bits", [3, 32, 64])
@given(numbers=_NUMBERS)
def test_the_bits_of_a_register_are_reversed(bits: int, numbers: list[int]) -> None:
    made = computed("brev", [f"b{bits}"], [np.array(numbers)])
    assert made is not None
    wanted = [int(f"{number % 2**bits:0{bits}b}"[::-1], 2) for number in numbers]
    assert [number % 2**bits for number in made.tolist()] == wanted


def _floats(name: str, suffixes: list[str], *operands: float) -> np.float32:
    registers = [np.array([one], np.float32).view(np.uint32).astype(np.int64) for one in operands]
    made = float_computed(name, suffixes, registers)
    assert made is not None
    return made.astype(np.uint32).view(np.float32)[0]


@given(_SINGLES)
def test_conversions_that_are_rounded_to_zero(number: float) -> None:
    made = float_computed("cvt", ["rz", "f16", "f32"], [np.array([number], np.float32).view(np.int32).astype(np.int64)])
    assert made is not None
    half = made.astype(np.uint16).view(np.float16)[0]
    assert abs(Fraction(float(half))) <= abs(Fraction(number))
    with np.errstate(all="ignore"):
        above = np.nextafter(half, np.float16(np.copysign(np.inf, number)))
    assert number == 0 or not np.isfinite(above) or abs(Fraction(float(above))) > abs(Fraction(number))


def test_the_largest_float_of_a_warp() -> None:
    floats = np.where(np.arange(64) == 40, np.float32(np.nan), np.arange(64, dtype=np.float32) - 100)
    bits = [floats.view(np.uint32).astype(np.int64)]
    found = {
        form: float_computed("redux", ["sync", *form.split("."), "f32"], bits) for form in ("max", "max.abs", "min.NaN")
    }
    read = {form: one.astype(np.uint32).view(np.float32)[[0, 63]] for form, one in found.items() if one is not None}
    assert read["max"].tolist() == [-69, -37]
    assert read["max.abs"].tolist() == [100, 68]
    assert read["min.NaN"][0] == -100
    assert np.isnan(read["min.NaN"][1])
