"""Sets of bytes as intervals, against Python's sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.memory.addresses import footprint as module
from irscope.memory.addresses.footprint import Intervals, Pieces, TooMany, extent_of

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


STEPS = st.tuples(st.integers(1, 5), st.integers(1, 6)).map(lambda both: [both[0] * at for at in range(both[1])])


PARTS = st.lists(st.tuples(st.integers(0, 200), STEPS, STEPS), min_size=1, max_size=3)
BEGINS = st.lists(st.integers(0, 31), min_size=1, max_size=3)


@given(st.sampled_from([4, 8, 12, 16, 32, 48, 64, 128]), PARTS, st.integers(1, 9), BEGINS)
def test_pieces_at_even_distances_are_counted_without_being_written_out(
    apart: int, rows: list[tuple[int, list[int], list[int]]], size: int, begins: list[int]
) -> None:
    """As many as there are in a launch over a column of a large matrix are counted all the same."""
    pieces = [Pieces(array(starts) * apart + first, size, (array(moves) * apart,)) for first, starts, moves in rows]
    bytes_ = {
        first + (start + move) * apart + byte
        for first, starts, moves in rows
        for start in starts
        for move in moves
        for byte in range(size)
    }
    units = [len({(byte + begin) // 32 for byte in bytes_}) for begin in begins]
    extent = extent_of(pieces, 32, begins)
    assert (extent.bytes, extent.units) == (len(bytes_), (min(units), max(units)))
    try:
        columns = [module._extent_of_columns(pieces, 32, begin) for begin in begins]
    except TooMany:
        return
    assert columns == [(len(bytes_), count) for count in units]


def test_a_column_of_a_large_matrix_has_no_bound_of_0() -> None:
    programs = np.arange(1 << 14, dtype=np.int64) * (1 << 15)
    extent = extent_of([Pieces(np.arange(1 << 10, dtype=np.int64) * 32, 4, (programs,))], 32, (0,))
    assert (extent.bytes, extent.units) == (1 << 26, (1 << 24, 1 << 24))
