"""Weight: how often each program comes to a place of the kernel, between two bounds."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from irscope.memory.access import MOST, Span
from irscope.memory.addresses.numbers import Integers, Source

__all__ = ["ENDLESS", "Weight"]

ENDLESS = 1 << 40
"""As often as this or more often: without a bound."""


@dataclass(frozen=True)
class Weight:
    """How often each program comes somewhere."""

    low: Integers
    """One for each program, or one for all."""
    high: Integers
    count: int
    """How many programs there are."""
    sources: frozenset[Source] = frozenset()
    """What decides how often, where that is not known."""

    @staticmethod
    def once(count: int) -> Weight:
        """Each program once."""
        one = np.ones(1, np.int64)
        return Weight(one, one, count)

    def often(self, low: Integers, high: Integers) -> Weight:
        """Each time between two numbers of times."""
        least = _times(self.low, low)
        return replace(self, low=least, high=least if low is high and self.is_known else _times(self.high, high))

    def where(self, holds: NDArray[np.bool_]) -> Weight:
        """Only in the programs in which something holds."""
        times = holds.astype(np.int64)
        return self.often(times, times)

    def perhaps(self, sources: frozenset[Source]) -> Weight:
        """At most as often: what decides it is not known."""
        return Weight(np.zeros(1, np.int64), self.high, self.count, self.sources | sources)

    @property
    def is_known(self) -> bool:
        """Whether both bounds are the same."""
        return self.low is self.high

    @cached_property
    def span(self) -> Span:
        """How often all programs together come there."""
        return self._sum(self.low), self._sum(self.high)

    def _sum(self, times: Integers) -> int:
        if int(times.max()) >= ENDLESS:
            return MOST
        return int(times.sum()) * (self.count if times.size == 1 else 1)


def _times(one: Integers, other: Integers) -> Integers:
    return np.where((other > 0) & (one > ENDLESS // np.maximum(other, 1)), ENDLESS, one * other)
