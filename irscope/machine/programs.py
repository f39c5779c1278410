"""The programs that a symbolic run stands for: the scalars that differ between them, and how often each comes where."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from irscope.machine.numbers import Integers, Number, Source, atom, constant, token_of, wrapped

_ENDLESS = 1 << 40
"""As often as this or more often: without a bound."""


class Programs:
    """Some programs of a launch, and each scalar that differs between them: an atom whose value is known for each."""

    def __init__(self, numbers: Integers | None = None, grid: tuple[int, int, int] | None = None) -> None:
        """`numbers`: each as x + width * (y + height * z); without a grid it is any program, of an unknown launch."""
        self.numbers = np.zeros(1, np.int64) if numbers is None else numbers
        self.grid = grid
        self._of: dict[int, Integers] = {}

    @staticmethod
    def all(grid: tuple[int, int, int]) -> Programs:
        return Programs(np.arange(prod(grid)), grid)

    @staticmethod
    def at(index: tuple[int, int, int], grid: tuple[int, int, int] | None) -> Programs:
        """One program of a launch; any one of an unknown launch."""
        x, y, z = index
        return Programs(None if grid is None else np.array([x + grid[0] * (y + grid[1] * z)]), grid)

    @property
    def count(self) -> int:
        return self.numbers.size

    def index(self, axis: int) -> Number:
        if self.grid is None:
            return atom(Source("program", f"program {'xyz'[axis]}"), 32, low=0)
        return self.named(self.numbers // prod(self.grid[:axis]) % self.grid[axis], 32)

    def total(self, axis: int) -> Number:
        if self.grid is None:
            return atom(Source("program", f"number of programs {'xyz'[axis]}"), 32, low=1)
        return constant(self.grid[axis], 32)

    def named(self, values: Integers, bits: int) -> Number:
        """The scalar that has these values, one or one for each program: a constant if all are equal."""
        low, high = int(values.min()), int(values.max())
        if low == high:
            return constant(low, bits)
        apart = values - low
        token = token_of(blake2b(apart.tobytes()).digest())
        self._of[token] = apart
        return Number(
            np.array([low], np.int64), bits, np.array([token], np.uint64), int(np.gcd.reduce(apart)), 0, high - low,
            frozenset({Source("program", str(token))}), terms=((token, 1),),
        )  # fmt: skip

    def of_token(self, token: int) -> Integers | None:
        """The values of an atom; None if it is none that differs between the programs alone."""
        return self._of.get(token)

    def of_source(self, source: Source) -> Integers | None:
        """The values, less the least, of the scalar that something depends on; None if it is no such scalar."""
        return self._of.get(int(source.text)) if source.kind == "program" and source.text.isdigit() else None

    def split(self, number: Number) -> tuple[Integers, dict[int, int]] | None:
        """What a scalar, or the one unknown part of a tensor, adds in each program, and (token → factor) of the rest.

        None if it is no linear combination of atoms.
        """
        total = np.zeros(1, np.int64)
        if number.tokens is None:
            return total, {}
        if not number.is_rigid or not number.terms:
            return None
        check, rest = 0, dict[int, int]()
        for token, factor in number.terms:
            check += token * factor
            if token in self._of:
                total = total + self._of[token] * np.int64(factor)
            else:
                rest[token] = factor
        return (total, rest) if check % (1 << 64) == int(number.tokens.flat[0]) else None

    def values(self, number: Number) -> Integers | None:
        """The values of a scalar, one or one for each program; None if it depends on more than the program."""
        found = self.split(number)
        if found is None or found[1] or number.known.size != 1:
            return None
        return wrapped(number.known.reshape(1) + found[0], number.bits)


@dataclass(frozen=True)
class Weight:
    """How often each program comes somewhere."""

    most: ClassVar[int] = 1 << 62
    """Stands for a number without a bound."""
    low: Integers
    """One for each program, or one for all."""
    high: Integers
    count: int
    """How many programs there are."""
    sources: frozenset[Source] = frozenset()
    """What decides how often, where that is not known."""

    @staticmethod
    def once(count: int) -> Weight:
        one = np.ones(1, np.int64)
        return Weight(one, one, count)

    def often(self, low: Integers, high: Integers, sources: frozenset[Source] = frozenset()) -> Weight:
        """Each time between two numbers of times, which some sources decide."""
        least = _times(self.low, low)
        most = least if low is high and self.is_known else _times(self.high, high)
        return replace(self, low=least, high=most, sources=self.sources | sources)

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
    def span(self) -> tuple[int, int]:
        """How often all programs together come there."""
        return self.span_of(np.ones(self.count, np.bool_))

    def span_of(self, chosen: NDArray[np.bool_]) -> tuple[int, int]:
        """How often some of the programs together come there."""
        return _sum(self.low, chosen), _sum(self.high, chosen)


def _sum(times: Integers, chosen: NDArray[np.bool_]) -> int:
    if int(times.max()) >= _ENDLESS:
        return Weight.most
    return int(times[0]) * int(chosen.sum()) if times.size == 1 else int(times[chosen].sum())


def _times(one: Integers, other: Integers) -> Integers:
    return np.where((other > 0) & (one > _ENDLESS // np.maximum(other, 1)), _ENDLESS, one * other)


def times_of(iterations: tuple[int, int]) -> tuple[Integers, Integers]:
    """The fewest and the most iterations, as what multiplies a weight."""
    low, high = (np.array([min(count, _ENDLESS)]) for count in iterations)
    return low, high
