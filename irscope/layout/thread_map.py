"""ThreadMap: which threads hold which element of a tensor, and what is held twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from irscope.errors import UsageError
from irscope.layout.linear import LinearLayout, Preimage, eliminate, span

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
    """A layout in registers, read both ways."""

    layout: LinearLayout

    @staticmethod
    def of(layout: LinearLayout) -> ThreadMap:
        """The map of a layout whose inputs are among register, lane, warp and block; raises UsageError for another."""
        strange = [name for name in layout.in_dims if name not in IN_DIMS]
        if strange:
            raise UsageError(f"a thread map needs a layout in registers; this one has {', '.join(strange)}.")
        bases = tuple((name, layout.vectors(name)) for name in IN_DIMS)
        return ThreadMap(LinearLayout(bases, layout.out_dims))

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's."""
        return self.layout.shape

    @property
    def size(self) -> int:
        """Elements of the tensor."""
        return 1 << self.layout.out_bits

    @cached_property
    def _bits(self) -> tuple[int, ...]:
        return tuple(len(self.layout.vectors(name)) for name in IN_DIMS)

    @property
    def registers(self) -> int:
        """Elements that each thread holds, copies counted."""
        return 1 << self._bits[0]

    @property
    def lanes(self) -> int:
        """Threads of a warp."""
        return 1 << self._bits[1]

    @property
    def warps(self) -> int:
        """Warps of a CTA."""
        return 1 << self._bits[2]

    @property
    def blocks(self) -> int:
        """CTAs of the cluster."""
        return 1 << self._bits[3]

    @cached_property
    def elements(self) -> list[int]:
        """The row-major element index in each register of each thread: registers run fastest, then lanes, warps."""
        return self.layout.all_elements()

    @cached_property
    def first_owners(self) -> Preimage:
        """For each element the lowest place in `elements` that holds it; -1 where none does."""
        return Preimage(self.layout)

    @cached_property
    def _copies(self) -> list[int]:
        """What to change in a place (by exclusive or) to come to each other holder of the same element."""
        return span(self.layout.kernel())

    def element_at(self, register: int = 0, lane: int = 0, warp: int = 0, block: int = 0) -> tuple[int, ...]:
        """The coordinates that a register of a thread holds; raises UsageError where there is no such register."""
        return self.layout.apply(register=register, lane=lane, warp=warp, block=block)

    def owners_of(self, *coordinates: int) -> tuple[Owner, ...]:
        """Everyone who holds an element, in order; raises UsageError outside of the shape."""
        inside = len(coordinates) == len(self.shape) and all(
            0 <= c < s for c, s in zip(coordinates, self.shape, strict=True)
        )
        if not inside:
            raise UsageError(f"{coordinates!r} is no element of a {'×'.join(map(str, self.shape))} tensor.")
        return self.owners_at(self.layout.flatten(coordinates))

    def owners_at(self, index: int) -> tuple[Owner, ...]:
        """Everyone who holds the element with a row-major index, in order."""
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

    def place(self, owner: Owner) -> int:
        """The place in `elements` of a holder."""
        register_bits, lane_bits, warp_bits, _ = self._bits
        return ((owner.block << warp_bits | owner.warp) << lane_bits | owner.lane) << register_bits | owner.register

    def __iter__(self) -> Iterator[tuple[Owner, tuple[int, ...]]]:
        """(holder, coordinates) for every register of every thread."""
        for place, element in enumerate(self.elements):
            yield self.owner(place), self.layout.unflatten(element)

    # What is held twice

    @cached_property
    def replication(self) -> Replication:
        """How many hold each element, by who they are."""
        columns = {name: [self.layout.flatten(vector) for vector in self.layout.vectors(name)] for name in IN_DIMS}
        ranks: list[int] = []
        for count in range(1, len(IN_DIMS) + 1):
            ranks.append(len(eliminate([base for name in IN_DIMS[:count] for base in columns[name]])[0]))
        free = [bits - (rank - before) for bits, rank, before in zip(self._bits, ranks, (0, *ranks), strict=False)]
        return Replication(1 << free[0], 1 << free[1], 1 << free[2], 1 << free[3], self.registers)

    def contiguous(self, dimension: int | None = None) -> int:
        """Elements side by side along a dimension (by default the last) in one thread's consecutive registers."""
        stride = 1
        for size in self.shape[len(self.shape) if dimension is None else dimension + 1 :]:
            stride *= size
        extent = self.shape[-1 if dimension is None else dimension] if self.shape else 1
        run = 1
        for vector in self.layout.vectors("register"):
            if run >= extent or self.layout.flatten(vector) != run * stride:
                break
            run *= 2
        return run


@dataclass(frozen=True, slots=True)
class Replication:
    """How many copies of each element there are."""

    registers: int
    """Registers of one thread that hold the same element."""
    lanes: int
    """Lanes of a warp that hold what another does."""
    warps: int
    blocks: int
    registers_a_thread: int
    """Registers a thread, copies counted."""

    @property
    def threads(self) -> int:
        """Threads of a CTA that hold the same elements."""
        return self.lanes * self.warps

    @property
    def total(self) -> int:
        """Holders of each element."""
        return self.registers * self.threads * self.blocks

    @property
    def wasted(self) -> float:
        """The share of a CTA's registers that only hold copies, 0 to 1."""
        return 1 - 1 / (self.registers * self.threads)

    @property
    def wasted_registers(self) -> float:
        """Registers a thread that hold copies, on average."""
        return self.registers_a_thread * self.wasted

    def __str__(self) -> str:
        parts = [("registers", self.registers), ("lanes", self.lanes), ("warps", self.warps), ("CTAs", self.blocks)]
        return ", ".join(f"{count} {name}" for name, count in parts if count > 1) or "none"
