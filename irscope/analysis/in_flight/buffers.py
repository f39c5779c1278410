"""A buffer that a program is followed through: the tiles in its slots, when they are written, there and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irscope.analysis.in_flight.model import Ring, Stay, Step
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.types import read_types

__all__ = ["Buffer"]


class Buffer:
    """A buffer in shared or tensor memory; steps are told by their numbers."""

    def __init__(self, made: Operation, place: str) -> None:
        self.made = made
        self.place = place
        kind = next(iter(read_types(made.types)[-1:]), None)
        self.element = kind.element if kind is not None else ""
        self.shape = kind.shape if kind is not None else ()
        self.slots = 1
        self.is_ring = False
        """Whether it has slots, or is made anew in each turn: its tiles tell the turns apart."""
        self.is_indexed = False
        """Whether its first dimension is that of the slots."""
        self.stays: list[Stay] = []

    @property
    def name(self) -> str:
        """The value that its allocation gives."""
        return self.made.results[0].name if self.made.results else ""

    @property
    def is_barrier(self) -> bool:
        """Whether it holds barriers."""
        return self.element == "i64"

    @property
    def is_shared(self) -> bool:
        """Whether it holds data in shared memory."""
        return self.made.name == "ttg.local_alloc" and not self.is_barrier

    def index(self) -> None:
        """Note that a slot of it is asked for."""
        self.slots, self.is_ring, self.is_indexed = self.shape[0] if self.shape else 1, True, True

    def write(self, slot: int, number: int, *, lands: bool) -> int | None:
        """Write a slot; returns the tile, or None if tiles do not tell turns apart. `lands`: it is there at once."""
        tile = len(self.stays)
        self.stays.append(Stay(slot, tile, number, number if lands else None, (), None))
        return tile if self.is_ring else None

    def land(self, copy: int, number: int) -> None:
        """Note that a step waits for what another one copied."""
        for at, stay in enumerate(self.stays):
            if stay.written == copy and stay.landed is None:
                self.stays[at] = replace(stay, landed=number)

    def put(self, slot: int, number: int, *, lands: bool) -> int | None:
        """Write a slot, or add to what was not read since it was written; returns the tile as `write` does."""
        at = self._last(slot)
        if at is None or self.stays[at].read:
            return self.write(slot, number, lands=lands)
        if self.stays[at].landed is not None and not lands:
            self.stays[at] = replace(self.stays[at], landed=None)
        return at if self.is_ring else None

    def read(self, slot: int, number: int, wait: int | None = None) -> int | None:
        """Read a slot; returns the tile, or None if none is there or tiles do not tell turns apart.

        `wait`: the step that the reader waited at last, for what nothing else tells to be there.
        """
        at = self._last(slot)
        if at is None:
            return None
        stay = self.stays[at]
        landed = stay.landed
        if landed is None and wait is not None and wait > stay.written and not stay.read:
            landed = wait
        self.stays[at] = replace(stay, read=(*stay.read, number), landed=landed)
        return at if self.is_ring else None

    def _last(self, slot: int) -> int | None:
        return next((at for at in range(len(self.stays) - 1, -1, -1) if self.stays[at].slot == slot), None)

    def ring(self, steps: Sequence[Step]) -> Ring:
        """What is told of it, with the steps behind which nothing reads each tile."""
        shape = self.shape[1:] if self.is_indexed else self.shape
        kind = "×".join([*map(str, shape), self.element])
        stays = tuple(_freed(stay, steps) for stay in self.stays)
        return Ring(self.name, kind, self.slots, self.made.first_line, self.place, stays)


def _freed(stay: Stay, steps: Sequence[Step]) -> Stay:
    ends = [steps[one].until for one in stay.read]
    known = [one for one in ends if one is not None]
    return replace(stay, free=max(known)) if known and len(known) == len(ends) else stay
