"""What a value of the kernel is held as: a number, a descriptor, or one not computed; and how it grows in loops."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from irscope.memory.addresses.accesses import Descriptor
from irscope.memory.addresses.kinds import Kind
from irscope.memory.addresses.numbers import FAR, Number, Source, add, atom, constant, multiply, select, unknown

__all__ = [
    "LOST",
    "Held",
    "Opaque",
    "Place",
    "Programs",
    "either",
    "grew",
    "grown",
    "growth_of",
    "kind_of_held",
    "made_number",
]


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is not computed: made a number only where one is asked for."""

    kind: Kind
    source: Source
    key: int


Held = Number | Opaque | Descriptor

LOST = Source("operation", "a value that could not be read")


def made_number(opaque: Opaque) -> Number:
    """Something unknown for each element; raises ValueError if the value is not made of integers."""
    kind = opaque.kind
    if not kind.bits:
        raise ValueError(f"{kind.element!r} is no integer")
    places = np.arange(prod(kind.shape), dtype=np.int64).reshape(kind.shape)
    low, high = (-1, 0) if kind.bits == 1 else (-FAR, FAR)
    found = unknown(("opaque", opaque.key), (Number(places, kind.shape, 64),), kind.bits, low, high)
    return replace(found, sources=frozenset({opaque.source}))


def kind_of_held(value: Held) -> Kind:
    """The kind of a value, as far as it has one."""
    if isinstance(value, Number):
        return Kind(value.shape, f"i{value.bits}")
    return value.kind if isinstance(value, Opaque) else Kind((), "")


def either(condition: Number, sides: Sequence[Held]) -> Held | None:
    """What one of two branches gives; None if that is not computed."""
    if len(sides) != 2:
        return None
    one, other = sides
    if isinstance(one, Descriptor) or isinstance(other, Descriptor):
        return one if one == other else None
    if not isinstance(one, Number) or not isinstance(other, Number) or one.shape != other.shape:
        return None
    rank = len(one.shape)
    chosen = condition.shaped(lambda array: array.reshape((1,) * rank), (1,) * rank)
    return replace(select(chosen, one, other), shape=one.shape)


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs that an evaluation stands for: along each axis the first one and how many."""

    first: tuple[int, int, int] = (0, 0, 0)
    counts: tuple[int, int, int] = (1, 1, 1)
    grid: tuple[int, int, int] | None = None
    """All programs of the launch; None if that is not known."""
    apart: tuple[int, int, int] = (1, 1, 1)
    """The distance from one to the next along each axis."""

    @property
    def count(self) -> int:
        """How many they are."""
        return prod(self.counts)

    def along(self, axis: int) -> Programs:
        """Those along one axis, from the first one on."""
        counts = [1, 1, 1]
        counts[axis] = self.counts[axis]
        return replace(self, counts=(counts[0], counts[1], counts[2]))

    def parts(self, periods: Sequence[int]) -> list[Programs]:
        """The same programs in parts: those of one remainder along each axis."""
        sides = [
            [
                (first + rest * apart, len(range(rest, count, period)), apart * period)
                for rest in range(min(period, count))
            ]
            for first, count, apart, period in zip(self.first, self.counts, self.apart, periods, strict=True)
        ]
        return [
            Programs((x[0], y[0], z[0]), (x[1], y[1], z[1]), self.grid, (x[2], y[2], z[2]))
            for x, y, z in product(*sides)
        ]

    def index(self, axis: int) -> Number:
        """The program id along an axis."""
        first, count, apart = self.first[axis], self.counts[axis], self.apart[axis]
        source = Source("program", f"program {'xyz'[axis]}")
        if self.grid is None:
            return atom(source, 32, low=0)
        if count == 1:
            return constant(first, 32)
        return add(constant(first, 32), multiply(atom(source, 32, low=0, high=count - 1), constant(apart, 32)))

    def total(self, axis: int) -> Number:
        """The number of programs along an axis."""
        if self.grid is None:
            return atom(Source("program", f"number of programs {'xyz'[axis]}"), 32, low=1)
        return constant(self.grid[axis], 32)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an evaluation stands: how often it comes there, and on what that depends."""

    times: tuple[int, int] = (1, 1)
    """The fewest and the most executions that are stood for."""
    sources: frozenset[Source] = frozenset()
    warps: int = 4
    share: float = 1.0
    """The share of the turns of the loops around it that is evaluated."""
    depth: int = 0

    def often(self, times: tuple[int, int], sources: frozenset[Source] = frozenset()) -> Place:
        """The same place, each time as often, or for something unknown."""
        low, high = (min(a * b, FAR) for a, b in zip(self.times, times, strict=True))
        return replace(self, times=(low, high), sources=self.sources | sources)


def grown(value: Number, growth: Number, index: Number) -> Number:
    """A carried value at the beginning of a turn."""
    rank = len(value.shape)
    times = replace(index.shaped(lambda array: array.reshape((1,) * rank), (1,) * rank), bits=value.bits)
    return add(value, multiply(growth, times))


def growth_of(first: Held, second: Held, third: Held) -> Number | None:
    """By what a carried value grows from turn to turn; None if the first two turns do not agree."""
    if not isinstance(first, Number) or not isinstance(second, Number) or first.bits == 1:
        return None
    if first.shape != second.shape or first.bits != second.bits:
        return None
    growth = replace(add(second, first, -1), argument="")
    return growth if grew(second, third, growth) else None


def grew(before: Held, after: Held, growth: Number) -> bool:
    """Whether a turn added just that."""
    if not isinstance(before, Number) or not isinstance(after, Number) or before.shape != after.shape:
        return False
    rest = add(add(after, before, -1), growth, -1)
    return rest.tokens is None and not rest.known.any()
