"""ThreadMap: which register of which thread holds which element of a tensor, and how many copies there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

from irscope.errors import UsageError
from irscope.layout.linear import Preimage, eliminate, kernel, span
from irscope.model.layout import LinearLayout

IN_DIMS = ("register", "lane", "warp", "block")
"""The inputs of a layout in registers, in the order of their bits."""


class Owner(NamedTuple):
    """One register of one thread."""

    block: int
    warp: int
    lane: int
    register: int

    def __str__(self) -> str:
        block = f"C{self.block} " if self.block else ""
        return f"{block}w{self.warp} t{self.lane} r{self.register}"


@dataclass(frozen=True)
class ThreadMap:
    """A layout in registers, from (register, lane, warp, block) to elements and back."""

    layout: LinearLayout

    @staticmethod
    def of(layout: LinearLayout) -> ThreadMap:
        """The map of a layout in registers; raises UsageError if it has inputs other than `IN_DIMS`."""
        strange = [name for name in layout.in_dims if name not in IN_DIMS]
        if strange:
            raise UsageError(f"a thread map needs a layout in registers; this one has {', '.join(strange)}.")
        bases = tuple((name, layout.vectors(name)) for name in IN_DIMS)
        return ThreadMap(LinearLayout(bases, layout.out_dims))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.layout.shape

    @property
    def size(self) -> int:
        """The number of elements of the tensor."""
        return 1 << self.layout.out_bits

    @cached_property
    def _bits(self) -> tuple[int, ...]:
        return tuple(len(self.layout.vectors(name)) for name in IN_DIMS)

    @property
    def registers(self) -> int:
        """Elements per thread, copies included."""
        return 1 << self._bits[0]

    @property
    def lanes(self) -> int:
        """Threads per warp."""
        return 1 << self._bits[1]

    @property
    def warps(self) -> int:
        """Warps per CTA."""
        return 1 << self._bits[2]

    @property
    def blocks(self) -> int:
        """CTAs per cluster."""
        return 1 << self._bits[3]

    @cached_property
    def elements(self) -> list[int]:
        """The row-major element index at each place: registers vary fastest, then lanes, warps and blocks."""
        return self.layout.all_elements()

    @cached_property
    def first_owners(self) -> Preimage:
        """For each element the lowest place in `elements` that holds it; -1 if none does."""
        return Preimage(self.layout)

    @cached_property
    def _copies(self) -> list[int]:
        """The differences (by exclusive or) between the places of one element."""
        return span(kernel(self.layout))

    def owners_at(self, index: int) -> tuple[Owner, ...]:
        """All holders of the element with a row-major index, in order."""
        first = self.first_owners[index]
        return () if first < 0 else tuple(self.owner(place) for place in sorted(first ^ copy for copy in self._copies))

    def owner(self, place: int) -> Owner:
        """The holder at a place in `elements`."""
        register_bits, lane_bits, warp_bits, _ = self._bits
        register = place & (self.registers - 1)
        place >>= register_bits
        lane = place & (self.lanes - 1)
        place >>= lane_bits
        return Owner(place >> warp_bits, place & (self.warps - 1), lane, register)

    @cached_property
    def replication(self) -> _Replication:
        """The copies of each element within a thread, a warp, a CTA and the cluster."""
        columns: list[int] = []
        ranks = [0]
        for name in IN_DIMS:
            columns += self.layout.flat_vectors(name)
            ranks.append(len(eliminate(columns)[0]))
        free = [bits - rank + before for bits, rank, before in zip(self._bits, ranks[1:], ranks, strict=False)]
        return _Replication(*(1 << bits for bits in free))

    def contiguous(self, dimension: int | None = None) -> int:
        """Consecutive elements along a dimension (the last by default) in consecutive registers of a thread."""
        stride = 1 if dimension is None else prod(self.shape[dimension + 1 :])
        extent = self.shape[-1 if dimension is None else dimension] if self.shape else 1
        run = 1
        for element in self.layout.flat_vectors("register"):
            if run >= extent or element != run * stride:
                break
            run *= 2
        return run


@dataclass(frozen=True, slots=True)
class _Replication:
    """How many copies of each element there are."""

    registers: int
    """Registers of one thread that hold the same element."""
    lanes: int
    """Lanes of a warp that hold the same elements."""
    warps: int
    blocks: int

    @property
    def threads(self) -> int:
        """Threads per CTA that hold the same elements."""
        return self.lanes * self.warps

    @property
    def total(self) -> int:
        """Registers in the whole cluster that hold the same element."""
        return self.registers * self.threads * self.blocks

    @property
    def wasted(self) -> float:
        """The share of a CTA's registers that hold copies of others, 0 to 1."""
        return 1 - 1 / (self.registers * self.threads)

    def __str__(self) -> str:
        parts = [("registers", self.registers), ("lanes", self.lanes), ("warps", self.warps), ("CTAs", self.blocks)]
        return ", ".join(f"{count} {name}" for name, count in parts if count > 1) or "none"
