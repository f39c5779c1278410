"""Sets of bytes as sorted intervals that neither touch nor overlap."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from irscope.memory.addresses.numbers import Integers

__all__ = ["Extent", "Intervals", "Pieces", "TooMany", "extent_of"]

_MOST = 1 << 23
"""Intervals of one set, before those that touch are joined."""


class TooMany(Exception):
    """A set has too many pieces to be counted."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Bytes that an access touches: pieces of one size, moved by any sum of one distance of each list."""

    starts: Integers
    size: int
    shifts: tuple[Integers, ...] = ()


@dataclass(frozen=True, slots=True)
class Extent:
    """How much memory a set of bytes takes."""

    bytes: int
    units: tuple[int, int]
    """The fewest and the most units that hold any of them, by where byte 0 lies in a unit."""


def extent_of(pieces: Sequence[Pieces], unit: int, begins: Iterable[int]) -> Extent:
    """The extent of all pieces together; raises TooMany.

    Args:
        pieces: what is counted, each byte once.
        unit: bytes of a unit.
        begins: how far behind the beginning of a unit byte 0 may lie.
    """
    held = [part for part in pieces if part.starts.size and all(shift.size for shift in part.shifts)]
    try:
        whole = Intervals.union(_intervals_of(part.starts, part.size, part.shifts) for part in held)
        counts = [whole.units(unit, begin) for begin in begins]
        return Extent(whole.bytes, (min(counts), max(counts)))
    except TooMany:
        # Far apart, but at even distances.
        found = [_extent_of_columns(held, unit, begin) for begin in begins]
        counts = [units for _, units in found]
        return Extent(found[0][0], (min(counts), max(counts)))


def _intervals_of(starts: Integers, size: int, shifts: Iterable[Integers]) -> Intervals:
    intervals = Intervals.of(starts, size)
    for shift in shifts:
        intervals = intervals.moved(shift)
    return intervals


def _extent_of_columns(pieces: Sequence[Pieces], unit: int, begin: int) -> tuple[int, int]:
    """The (bytes, units) of pieces that lie at multiples of one distance from one another.

    Memory is taken as a table of rows of that distance. A piece is a range of columns, so that the rows that it is
    found in follow one another, and are few intervals. Raises TooMany where there is no such distance.
    """
    apart = 0
    for part in pieces:
        for steps in (part.starts, *part.shifts):
            apart = int(np.gcd.reduce(np.append(np.abs(steps - steps[0]), apart)))
    longest = max(part.size for part in pieces)
    # A row is whole units, or a unit is whole rows.
    row = apart if apart % unit == 0 else int(np.gcd(apart, unit))
    if row < longest:
        raise TooMany
    columns: list[tuple[int, int, Intervals]] = []
    for part in pieces:
        first = part.starts[0] + begin + sum(int(shift[0]) for shift in part.shifts)
        column = int(first % row)
        moves = [(shift - shift[0]) // row for shift in part.shifts]
        rows = _intervals_of((part.starts - part.starts[0]) // row + first // row, 1, moves)
        columns.append((column, min(column + part.size, row), rows))
        if column + part.size > row:
            columns.append((0, column + part.size - row, rows.moved(np.ones(1, np.int64))))
    edges = sorted({edge for start, end, _ in columns for edge in (start, end)})
    total = 0
    for start, end in pairwise(edges):
        rows = Intervals.union(rows for first, last, rows in columns if first <= start and end <= last)
        total += (end - start) * rows.bytes
    if row < unit:
        every = Intervals.union(rows for _, _, rows in columns)
        return total, every.units(unit // row)
    units = 0
    for number in {edge // unit for first, last, _ in columns for edge in range(first, last, unit)} | {
        (last - 1) // unit for _, last, _ in columns
    }:
        touched = [rows for first, last, rows in columns if first < (number + 1) * unit and last > number * unit]
        units += Intervals.union(touched).bytes
    return total, units


@dataclass(frozen=True, slots=True)
class Intervals:
    """Bytes from each start up to, without it, the end beside it."""

    starts: Integers
    ends: Integers

    @staticmethod
    def of(starts: Integers, size: int) -> Intervals:
        """The bytes of pieces of one size, wherever they begin."""
        return _joined(starts, starts + size)

    @staticmethod
    def union(parts: Iterable[Intervals]) -> Intervals:
        """The bytes that are in any part; raises TooMany."""
        held = list(parts)
        if sum(part.starts.size for part in held) > _MOST:
            raise TooMany
        none = np.zeros(0, np.int64)
        return _joined(
            np.concatenate([none, *(part.starts for part in held)]), np.concatenate([none, *(p.ends for p in held)])
        )

    def moved(self, shifts: Integers) -> Intervals:
        """The bytes at each of some distances from these; raises TooMany."""
        shifts = np.unique(shifts)
        if self.starts.size * shifts.size > _MOST:
            raise TooMany
        return _joined((self.starts[:, None] + shifts).reshape(-1), (self.ends[:, None] + shifts).reshape(-1))

    def units(self, size: int, begin: int = 0) -> int:
        """How many units of some bytes hold any of them, if byte 0 lies so far behind the beginning of a unit."""
        first, last = (self.starts + begin) // size, (self.ends - 1 + begin) // size
        # The intervals are in order, and of two neighbours the later may begin in the unit in which the earlier ends.
        shared = np.concatenate([[False], first[1:] == last[:-1]]) if first.size else np.zeros(0, np.bool_)
        return int((last - first + 1).sum()) - int(shared.sum())

    @property
    def bytes(self) -> int:
        """How many bytes they are."""
        return int((self.ends - self.starts).sum())


def _joined(starts: Integers, ends: Integers) -> Intervals:
    if not starts.size:
        return Intervals(starts, ends)
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    heads = np.concatenate([[True], starts[1:] > ends[:-1]])
    return Intervals(starts[heads], ends[np.append(np.flatnonzero(heads)[1:] - 1, ends.size - 1)])
