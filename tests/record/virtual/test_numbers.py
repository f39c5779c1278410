"""Numbers that remember where they were read: the arithmetic of plain ones, and every question told."""

from __future__ import annotations

import copy
import json
import math
import operator
import pickle
import statistics
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.record.virtual.numbers import (
    Placeholder,
    PlaceholderFloat,
    PlaceholderInt,
    Read,
    Reads,
    carry,
    listeners,
    plain,
    reads_of,
)

N, M = Read("n", "3", "/a/b.py", 4), Read("m", "5", "/a/b.py", 5)
BINARY = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv, divmod)
UNARY = (operator.neg, operator.pos, abs, round, math.floor, math.ceil, math.trunc)
COMPARED = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)

NUMBER = st.one_of(st.integers(-50, 50), st.floats(-50, 50))


def n(value: float) -> float:
    return carry(value, frozenset({N}))


def m(value: float) -> float:
    return carry(value, frozenset({M}))


@pytest.fixture
def asked() -> Iterator[list[Reads]]:
    told: list[Reads] = []
    listeners.append(told.append)
    yield told
    listeners.remove(told.append)


def outcome(compute: object, *values: object) -> object:
    try:
        return compute(*values)  # type: ignore[operator]
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        return type(error)


def same(one: object, other: object) -> None:
    assert type(one) is type(other)
    assert repr(one) == repr(other)


@given(a=NUMBER, b=NUMBER, compute=st.sampled_from(BINARY))
def test_arithmetic_is_that_of_plain_numbers(a: float, b: float, compute: object) -> None:
    expected = outcome(compute, a, b)
    same(plain(outcome(compute, n(a), m(b))), expected)
    same(plain(outcome(compute, n(a), b)), expected)
    same(plain(outcome(compute, a, m(b))), expected)


@given(a=st.integers(-9, 9), b=st.integers(-9, 9), compute=st.sampled_from(BINARY))
def test_arithmetic_carries_the_memory_on(a: int, b: int, compute: object) -> None:
    for result, reads in ((outcome(compute, n(a), m(b)), {N, M}), (outcome(compute, a, m(b)), {M})):
        if not isinstance(result, type):
            assert reads_of(result) == reads


@given(a=NUMBER, compute=st.sampled_from(UNARY))
def test_one_number(a: float, compute: object) -> None:
    result = outcome(compute, n(a))
    same(plain(result), outcome(compute, a))
    assert reads_of(result) == {N}


@given(a=NUMBER, b=NUMBER, compute=st.sampled_from(COMPARED))
def test_comparisons_are_plain_and_asked(a: float, b: float, compute: object) -> None:
    told: list[Reads] = []
    listeners.append(told.append)
    try:
        same(outcome(compute, n(a), b), outcome(compute, a, b))
        same(outcome(compute, a, m(b)), outcome(compute, a, b))
    finally:
        listeners.remove(told.append)
    # A plain float before a placeholder integer answers by itself: Python asks the right-hand side of subclasses only.
    assert told == [{N}] if isinstance(a, float) and isinstance(b, int) else [{N}, {M}]


def test_a_test_of_truth_is_asked(asked: list[Reads]) -> None:
    assert not n(0)
    assert n(2)
    assert asked == [{N}, {N}]


def test_what_else_python_does_with_a_number() -> None:
    assert f"{n(7):4d}|{n(7)}|{n(0.5):.2f}" == "   7|7|0.50"
    assert json.dumps({"n": n(3)}) == '{"n": 3}'
    assert type(pickle.loads(pickle.dumps(n(3)))) is int
    assert type(copy.deepcopy([n(3)])[0]) is PlaceholderInt
    assert {n(3): "x"}[3] == "x"
    assert [10, 20, 30][n(1)] == 20
    assert type(n(6).bit_length()) is PlaceholderInt  # type: ignore[attr-defined]
    assert isinstance(n(2.5), float)
    assert isinstance(n(2.5), PlaceholderFloat)
    assert (2 ** n(3), n(2) ** 3, n(6) >> 1, ~n(0), pow(n(2), 3, 5)) == (8, 8, 3, -1, 3)


def test_a_class_called_by_a_library() -> None:
    """As statistics makes its results: of the class of the values, and of no value that was read."""
    assert statistics.mean([n(1.5), n(2.5)]) == 2.0
    assert reads_of(type(n(1.5))(3)) == frozenset()


def test_lists_and_tuples() -> None:
    values = carry([1, [2.0, True]], frozenset({N}))
    assert reads_of(values) == {N}
    assert values[1][1] is True
    assert not any(isinstance(item, Placeholder) for item in (*plain((n(1), m(2))), *plain([n(1)])))
    assert reads_of((1, "x", None)) == frozenset()
