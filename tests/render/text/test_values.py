"""The table of the values of a run."""

from __future__ import annotations

import pytest

from irscope.machine.observed import ObservedValue
from irscope.render.text.values import value_cells


@pytest.mark.parametrize(
    ("number", "shown"),
    [(-2073254261.0, "-2073254261"), (0.1 + 0.2, "0.3"), (1e30, "1e+30"), (float("inf"), "inf"), (None, "–")],
)
def test_whole_numbers_have_all_their_digits(number: float | None, shown: str) -> None:
    value = ObservedValue(3, "k.py:3", "%x", "arith.constant", "i32", (), 1, number, number, 0, 0, ())
    assert value_cells(value)[5:7] == [shown, shown]
