"""Remainders by a divisor of which a factor is known, and comparisons, against Python's integers and all multiples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from irscope.machine.numbers import Number, Source, add, atom, compared, constant, multiply, remainder

SIZE = 64


@pytest.mark.parametrize("step", [2, 8, 16])
@pytest.mark.parametrize("block", [4, 16, 64])
@pytest.mark.parametrize("shift", [0, 3])
def test_elements_of_one_token_are_as_far_apart_as_they_are_said_to_be(step: int, block: int, shift: int) -> None:
    begin = multiply(atom(Source("program", "x"), 32, low=0, high=1 << 20), constant(block, 32))
    places = Number(np.arange(SIZE, dtype=np.int64) + shift, 32)
    divisor = atom(Source("argument", "n"), 32, step)
    found = remainder(add(begin, places), divisor).full()
    assert found.tokens is not None
    run = np.gcd(step, block)
    # As many in a row have one token as are in order for certain.
    groups = (np.arange(SIZE) + shift) // run
    assert (found.tokens[1:] == found.tokens[:-1]).tolist() == (groups[1:] == groups[:-1]).tolist()
    for program in (0, 1, 7, 100):
        for n in (step, 5 * step, 129 * step, -3 * step):
            values = np.fmod(program * block + np.arange(SIZE) + shift, n)
            for token in np.unique(found.tokens):
                same = found.tokens == token
                assert len(set((values - found.known)[same].tolist())) == 1
                assert not (values - found.known)[same][0] % found.step


def test_a_dividend_that_may_be_negative_is_not_taken_apart() -> None:
    begin = multiply(atom(Source("argument", "s"), 32), constant(16, 32))
    places = Number(np.arange(SIZE, dtype=np.int64), 32)
    found = remainder(add(begin, places), atom(Source("argument", "n"), 32, 16))
    assert found.tokens is not None
    assert len(np.unique(found.tokens)) == SIZE


COLUMNS = Number(np.arange(-20, 21, dtype=np.int64), 32)
HOLDS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("step", [1, 4, 16])
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge"])
@pytest.mark.parametrize("swapped", [False, True])
def test_what_is_said_to_be_equal_is_equal_for_every_multiple(predicate: str, step: int, swapped: bool) -> None:
    """And for lt and its like all that is equal is said to be: whole steps of columns."""
    end = atom(Source("argument", "n"), 32, step)
    pair = (end, COLUMNS) if swapped else (COLUMNS, end)
    found = compared(predicate, *pair).full()
    assert found.tokens is not None
    holds = HOLDS[predicate[-2:]]

    def truths(column: int) -> list[bool]:
        multiples = range(-2 * step, 2 * step + 1, step) if step > 1 else range(-30, 31)
        return [holds(end, column) if swapped else holds(column, end) for end in multiples]

    said = [(int(known), int(token)) for known, token in zip(found.known, found.tokens, strict=True)]
    for one, other in combinations(range(len(said)), 2):
        equal = truths(int(COLUMNS.known[one])) == truths(int(COLUMNS.known[other]))
        if said[one] == said[other]:
            assert equal
        if predicate[-2:] in ("lt", "le", "gt", "ge") and abs(int(COLUMNS.known[one])) <= step:
            assert said[one] == said[other] or not equal or abs(int(COLUMNS.known[other])) > step


def test_a_mask_that_ends_at_a_multiple_is_equal_in_between() -> None:
    found = compared("slt", Number(np.arange(32, dtype=np.int64), 32), atom(Source("argument", "n"), 32, 16)).full()
    assert found.tokens is not None
    assert [len(set(part.tolist())) for part in (found.tokens[:16], found.tokens[16:])] == [1, 1]
    assert found.tokens[0] != found.tokens[16]
    assert compared("slt", constant(3, 32), constant(4, 32)).value == -1
