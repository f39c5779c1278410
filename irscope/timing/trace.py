"""The trace of a walk through SASS: what was executed and seen, and how the iterations of a loop in it come round."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.timing.program import Program

__all__ = [
    "Absence", "Entry", "Observed", "Skip", "Walked", "bytes_read", "index_of", "inner_of", "is_regular",
    "lines_accessed", "path_of", "turn_of", "waits_of",
]  # fmt: skip

Array = NDArray[Any]

_FEW = 4
"""Iterations of which all tell how a register grows."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Iterations of a loop that went as the ones before."""

    head: int
    count: int
    entries: int
    """How many entries of the trace before this one are one iteration."""
    window: int = 1
    """Iterations before it that went the same way: with copies in flight, some wait and others do not."""
    since: int = 0
    """How many entries these are."""


@dataclass(frozen=True, slots=True)
class Observed:
    """An instruction that accesses memory or synchronises, with what was seen of it."""

    index: int
    payload: Any


Entry = int | Observed | Skip


@dataclass(frozen=True, slots=True)
class Absence:
    """Rows of a group that left a loop before others of it."""

    parts: Array
    """Of each row: the part that it does not execute of what the entries stand for."""
    begin: int
    end: int
    """Between which entries of the trace."""


@dataclass(slots=True)
class Walked:
    """The way of one group of warps."""

    rows: Array
    """Which of the warps."""
    trace: list[Entry] = field(default_factory=list[Entry])
    absent: list[Absence] = field(default_factory=list[Absence])

    @property
    def instructions(self) -> Array:
        """How many instructions each warp executes, those skipped included."""
        weights = np.array(self.weights())
        total = np.full(len(self.rows), weights.sum())
        for absence in self.absent:
            total -= absence.parts * weights[absence.begin : absence.end].sum()
        return total

    def counted(self, masks: Iterable[tuple[int, Array]]) -> Array:
        """How often each warp executes some entries of the trace: their places, and which warps they are for."""
        weights = self.weights()
        total = np.zeros(len(self.rows))
        for place, mask in masks:
            parts = [one.parts for one in self.absent if one.begin <= place < one.end]
            total += mask * (weights[place] * (1 - sum(parts)))
        return total

    def weights(self) -> list[float]:
        """How often each entry of the trace stands for itself: skipped iterations count with those before them."""
        weights = [0.0 if isinstance(entry, Skip) else 1.0 for entry in self.trace]
        # Outer loops come later in the trace, and scale what the inner ones made of it.
        for place, entry in enumerate(self.trace):
            if isinstance(entry, Skip) and entry.entries:
                for at in range(place - entry.entries, place):
                    weights[at] *= 1 + entry.count
        return weights


def index_of(entry: Entry) -> int:
    return entry.index if isinstance(entry, Observed) else -1 if isinstance(entry, Skip) else entry


def bytes_read(entries: Sequence[Entry], weights: Sequence[float] | None, rows: int) -> dict[int, float]:
    """Argument → bytes that loads take of it and find in no cache of the multiprocessor."""
    read: dict[int, float] = {}
    for entry, weight in zip(entries, weights or repeat(1.0), strict=False):
        access = entry.payload if isinstance(entry, Observed) else None
        if access is not None and access.kind in ("load", "copy"):
            amount = access.sectors * access.missed * access.is_on * 32 * weight * rows
            read[access.array] = read.get(access.array, 0.0) + amount
    return read


def lines_accessed(entries: Iterable[Entry]) -> float:
    """The lines of L1 that a warp accesses, but for those that were among the last ones."""
    accesses = (entry.payload for entry in entries if isinstance(entry, Observed))
    return sum(one.other_lines * one.is_on for one in accesses if one is not None)


def is_regular(entry: Entry, loop: Sequence[Entry]) -> bool:
    """Whether an access of a loop goes on as far in each iteration."""
    if not isinstance(entry, Observed) or entry.payload is None:
        return False
    # Where no lane makes it, an access has no place.
    observed = (one for one in loop if isinstance(one, Observed) and one.index == entry.index)
    places = [one.payload.place for one in observed if one.payload is not None][-3:]
    return len(places) < 3 or places[2] - places[1] == places[1] - places[0] != 0


def waits_of(entries: list[Entry]) -> list[tuple[int, int | None, int]]:
    """The waits for mbarriers, each with the parity of its phase."""
    return [
        (entry.index, entry.payload.barrier, entry.payload.value)
        for entry in entries
        if isinstance(entry, Observed) and entry.payload is not None and entry.payload.kind == "wait"
    ]


def turn_of(values: Sequence[Array | None]) -> tuple[int, Array] | None:
    """After how many iterations a register has grown by always the same, and by what; None where it has not.

    `values`: at the beginning of each iteration.
    """
    fewest = 2 if len(values) > _FEW else 1
    # At the first iteration a register may still hold something else.
    values = values[1:] if len(values) > _FEW else values
    last = values[-1]
    if last is not None and len(values) > fewest + 1 and all(value is last for value in values):
        return 1, np.zeros(last.shape, np.int64)
    known: list[Array] = []
    for value in reversed(values):
        if value is None:
            break
        known.append(value.astype(np.int64) if value.dtype == np.bool_ else value)
    for period in range(1, len(known) - fewest):
        grown = known[0] - known[period] & 0xFFFFFFFF
        pairs = ((known[at], known[at + period]) for at in range(1, len(known) - period))
        if all(np.array_equal(grown, value - before & 0xFFFFFFFF) for value, before in pairs):
            return period, grown
    return None


def path_of(entries: list[Entry]) -> tuple[int, ...]:
    return tuple(
        entry.index if isinstance(entry, Observed) else -1 - entry.count if isinstance(entry, Skip) else entry
        for entry in entries
    )


def inner_of(path: tuple[int, ...], program: Program) -> list[bool]:
    """Which places of an iteration lie in loops within it."""
    inner = [place < 0 for place in path]
    seen: dict[int, int] = {}
    for place, index in enumerate(path):
        if index < 0 or index in program.called:
            continue
        if index in seen:
            for between in range(seen[index], place + 1):
                inner[between] = True
        seen[index] = place
    return inner
