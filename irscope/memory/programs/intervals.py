"""Sets of bytes as sorted intervals that neither touch nor overlap."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from irscope.memory.addresses.numbers import Integers

__all__ = ["Intervals", "TooMany"]

_MOST = 1 << 23
"""Intervals of one set, before those that touch are joined."""


class TooMany(Exception):
    """A set has too many pieces to be counted."""


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
