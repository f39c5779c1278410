"""Scalars of all programs: what they are named, and what is read back of sums and products of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from irscope.machine.numbers import Source, add, atom, constant, multiply, unknown
from irscope.machine.programs import Programs


@pytest.fixture(autouse=True)
def wrapping() -> Iterator[None]:
    """Tokens wrap around, as in an evaluation."""
    with np.errstate(all="ignore"):
        yield


def test_program_ids_are_those_of_the_grid() -> None:
    programs = Programs(np.arange(24), (4, 3, 2))
    found = [programs.values(programs.index(axis)) for axis in range(3)]
    expected = [(x, y, z) for z in range(2) for y in range(3) for x in range(4)]
    assert np.stack([one for one in found if one is not None], -1).tolist() == [list(one) for one in expected]


def test_equal_values_are_a_constant() -> None:
    programs = Programs(np.arange(5), (5, 1, 1))
    assert programs.named(np.full(5, 7), 32).value == 7
    assert programs.index(1).value == 0


def test_a_linear_combination_is_read_back() -> None:
    programs = Programs(np.arange(12), (4, 3, 1))
    x, y = programs.index(0), programs.index(1)
    number = add(add(multiply(x, constant(-3, 32)), constant(5, 32)), multiply(constant(100, 32), y))
    assert programs.values(number) is not None
    assert (programs.values(number) == [5 - 3 * (n % 4) + 100 * (n // 4) for n in range(12)]).all()
    # What goes away again leaves nothing.
    assert add(number, number, -1).value == 0


def test_a_part_that_no_program_decides_is_told_apart() -> None:
    programs = Programs(np.arange(4), (4, 1, 1))
    pointer = atom(Source("argument", "x"), 64, 512)
    address = add(pointer, multiply(programs.index(0), constant(64, 64)))
    shifts, rest = programs.split(address) or (None, None)
    assert shifts is not None
    assert shifts.tolist() == [0, 64, 128, 192]
    assert rest == {pointer.terms[0][0]: 1}
    assert programs.values(address) is None


def test_what_is_not_linear_is_no_combination() -> None:
    programs = Programs(np.arange(4), (4, 1, 1))
    x = programs.index(0)
    assert programs.split(unknown("square", (x,), 32)) is None
    assert programs.split(multiply(x, x)) is None


def test_terms_that_do_not_make_the_token_are_not_believed() -> None:
    programs = Programs(np.arange(4), (4, 1, 1))
    x = programs.index(0)
    ((token, _),) = x.terms
    assert programs.values(replace(x, terms=((token, 2),))) is None


def test_32_bits_wrap() -> None:
    programs = Programs(np.arange(2), (2, 1, 1))
    values = programs.values(multiply(programs.index(0), constant(1 << 31, 32)))
    assert values is not None
    assert values.tolist() == [0, -(1 << 31)]
