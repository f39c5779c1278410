"""Sets of bytes as intervals, against Python's sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.memory.programs import intervals as module
from irscope.memory.programs.intervals import Intervals, TooMany

NUMBERS = st.lists(st.integers(-60, 60), max_size=12)


def array(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def held(found: Intervals) -> set[int]:
    for end, start in zip(found.ends, found.starts[1:], strict=False):
        assert end < start
    return {byte for first, end in zip(found.starts, found.ends, strict=True) for byte in range(first, end)}


@given(NUMBERS, NUMBERS, NUMBERS, st.integers(1, 9), st.integers(0, 31))
def test_unions_moves_and_units(starts: list[int], others: list[int], shifts: list[int], size: int, begin: int) -> None:
    one, other = Intervals.of(array(starts), size), Intervals.of(array(others), 3)
    by_hand = {start + byte for start in starts for byte in range(size)}
    assert held(one) == by_hand
    assert one.bytes == len(by_hand)
    assert one.units(32, begin) == len({(byte + begin) // 32 for byte in by_hand})
    both = Intervals.union([one, other])
    assert held(both) == by_hand | {start + byte for start in others for byte in range(3)}
    assert held(one.moved(array(shifts))) == {byte + shift for byte in by_hand for shift in shifts}


def test_too_many_pieces_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 10)
    pieces = Intervals.of(array([0, 8, 16, 24]), 4)
    with pytest.raises(TooMany):
        pieces.moved(array([0, 100, 200]))
    with pytest.raises(TooMany):
        Intervals.union([pieces] * 3)
