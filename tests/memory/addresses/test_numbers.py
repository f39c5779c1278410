"""Remainders by a divisor of which a factor is known, against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from irscope.memory.addresses.numbers import Number, Source, add, atom, constant, multiply, remainder

SIZE = 64


def spread(number: Number) -> Number:
    return number.shaped(lambda array: array.reshape(1), (SIZE,))


@pytest.mark.parametrize("step", [2, 8, 16])
@pytest.mark.parametrize("block", [4, 16, 64])
@pytest.mark.parametrize("shift", [0, 3])
def test_elements_of_one_token_are_as_far_apart_as_they_are_said_to_be(step: int, block: int, shift: int) -> None:
    begin = multiply(atom(Source("program", "x"), 32, low=0, high=1 << 20), constant(block, 32))
    places = Number(np.arange(SIZE, dtype=np.int64) + shift, (SIZE,), 32)
    divisor = spread(atom(Source("argument", "n"), 32, step))
    found = remainder(add(spread(begin), places), divisor).full()
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
    places = Number(np.arange(SIZE, dtype=np.int64), (SIZE,), 32)
    found = remainder(add(spread(begin), places), spread(atom(Source("argument", "n"), 32, 16)))
    assert found.tokens is not None
    assert len(np.unique(found.tokens)) == SIZE
