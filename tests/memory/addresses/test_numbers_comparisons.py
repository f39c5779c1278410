"""Comparisons of numbers that are known up to a multiple of something, against all multiples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from irscope.memory.addresses.numbers import PREDICATES, Number, Source, atom, compared, constant

COLUMNS = Number(np.arange(-20, 21, dtype=np.int64), (41,), 32)
HOLDS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("step", [1, 4, 16])
@pytest.mark.parametrize("predicate", [one for one in PREDICATES if one[0] != "u"])
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
    found = compared(
        "slt", Number(np.arange(32, dtype=np.int64), (32,), 32), atom(Source("argument", "n"), 32, 16)
    ).full()
    assert found.tokens is not None
    assert [len(set(part.tolist())) for part in (found.tokens[:16], found.tokens[16:])] == [1, 1]
    assert found.tokens[0] != found.tokens[16]
    assert compared("slt", constant(3, 32), constant(4, 32)).value == -1
