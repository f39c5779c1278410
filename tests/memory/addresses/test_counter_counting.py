"""The sectors of asynchronous copies, against what an H200 counted for them."""

from __future__ import annotations

import numpy as np
import pytest

from irscope.machine.numbers import Number
from irscope.memory.addresses.counter import Lanes, counted

ROWS = 128
# benchmarks/repeating.py on an H200: (every, of, swapped, flipped, added), sectors of 4 warps, 16 bytes a lane
COPIES = [
    ((1, 128, 0, 0, 0), 64), ((2, 64, 0, 0, 0), 128), ((4, 32, 0, 0, 0), 128), ((8, 16, 0, 0, 0), 128),
    ((32, 4, 0, 0, 0), 128), ((1, 1, 0, 0, 0), 128), ((1, 2, 0, 0, 0), 64), ((1, 4, 0, 0, 0), 64),
    ((1, 16, 0, 0, 0), 64), ((2, 4, 0, 0, 0), 128), ((1, 128, 1, 0, 0), 128), ((1, 128, 2, 0, 0), 128),
    ((1, 128, 4, 0, 0), 128), ((1, 128, 5, 0, 0), 128), ((1, 128, 0, 0, 1), 128), ((1, 128, 0, 0, 2), 64),
    ((1, 128, 0, 0, 3), 128), ((4, 32, 2, 0, 0), 128), ((1, 128, 0, 1, 0), 64), ((1, 16, 0, 1, 0), 64),
]  # fmt: skip


def rows_read(pattern: tuple[int, int, int, int, int]) -> np.ndarray:
    every, of, swapped, flipped, added = pattern
    rows = np.arange(ROWS) // every % of
    low, high = rows & 1, (rows >> swapped) & 1
    return ((rows + (high - low) + ((low - high) << swapped) ^ flipped) + added) % ROWS


def lanes() -> Lanes:
    return Lanes(np.arange(ROWS).reshape(4, 32) * 8, 8, np.ones((4, 32), np.bool_), np.arange(4))


def addresses(rows: np.ndarray, step: int = 0) -> Number:
    known = (rows[:, None] * 16 + np.arange(8) * 2).astype(np.int64)
    if not step:
        return Number(known, 64)
    return Number(known, 64, np.ones((1, 1), np.uint64), step=step, high=1 << 20)


@pytest.mark.parametrize(("pattern", "sectors"), COPIES)
def test_copies_that_pass_by_l1(pattern: tuple[int, int, int, int, int], sectors: int) -> None:
    assert counted(lanes(), addresses(rows_read(pattern)), None, 2, 32, 128, by_pairs=True).units == (sectors, sectors)


def test_loads_of_the_same_rows_count_each_sector_once() -> None:
    for pattern, _ in COPIES:
        rows = rows_read(pattern).reshape(4, 32)
        distinct = sum(len(set(warp // 2)) for warp in rows)
        assert counted(lanes(), addresses(rows.reshape(-1)), None, 2, 32, 128).units == (distinct, distinct)


def test_lanes_that_a_mask_turns_off_are_not_counted() -> None:
    holds = np.where(np.arange(ROWS) % 4 < 3, -1, 0).reshape(ROWS, 1)
    mask = Number(np.broadcast_to(holds, (ROWS, 8)), 1)
    found = counted(lanes(), addresses(np.arange(ROWS)), mask, 2, 32, 128, by_pairs=True)
    assert found.units == (64, 64)


def test_where_a_sector_begins_is_not_known() -> None:
    """Of 128 halves from a multiple of 16 bytes on: pairs that lie in one sector, or none that does."""
    found = counted(lanes(), addresses(np.arange(ROWS), step=16), None, 2, 32, 128, by_pairs=True)
    assert found.units == (64, 128)
