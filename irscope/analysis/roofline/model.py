"""Roofline: what a launch computes and moves, and the least time that the peaks of a part allow for it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from irscope.device.parts import Peaks, Unit
from irscope.memory.access import MOST, Span
from irscope.memory.programs.footprint import SECTOR_BYTES, Touched
from irscope.model.evidence import Ceilings

__all__ = ["MEMORY", "OperationWork", "Requested", "Roofline", "UnitWork", "mark"]

MEMORY = "memory"
"""What bounds a launch that no unit bounds."""


def mark(span: Span) -> str:
    """`exact`, or `between bounds`."""
    return "exact" if span[0] == span[1] else "between bounds"


@dataclass(frozen=True, slots=True)
class OperationWork:
    """The arithmetic of one operation of the TTGIR, in the whole launch."""

    line: int
    """In the TTGIR text, 1-based."""
    operation: str
    place: str
    """`file:line` of the Python source."""
    unit: Unit
    flops_each: int
    """Of one execution."""
    executions: Span
    """Of all programs together."""
    copies: int
    """How many threads compute the same element, by the layout of the result."""

    @property
    def flops(self) -> Span:
        """Each element once."""
        low, high = self.executions
        return low * self.flops_each, MOST if high >= MOST else high * self.flops_each


@dataclass(frozen=True, slots=True)
class UnitWork:
    """The arithmetic that one kind of unit does."""

    unit: Unit
    flops: Span
    """Each element once."""
    executed_flops: Span
    """As often as threads compute it: copies of a value that several threads hold are computed by each."""
    rate: float | None
    """Operations per second at best; None if no peak is known."""
    measured_rate: float | None = None
    """What a matrix product reached on a GPU of this target; None where that was not measured."""

    @property
    def time_s(self) -> tuple[float, float] | None:
        """The least time that it takes, for the fewest and for the most operations; None without a peak."""
        return None if self.rate is None else _times(self.flops, self.rate)


@dataclass(frozen=True, slots=True)
class Requested:
    """What the instructions ask of the caches, beside what must come from DRAM."""

    unit_bytes: int
    bytes: Span
    """What the lanes ask for."""
    moved_bytes: Span
    """The units (on NVIDIA sectors of 32 bytes) that each instruction touches, in bytes."""
    certainty: str
    """`exact`, `range` or `sampled`: the least certain of the accesses."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """A launch against the peaks of a part."""

    kernel: str
    capture_id: str
    target: str
    grid: tuple[int, int, int]
    peaks: Peaks | None
    """Of the part that is assumed; None if no part of the target is known."""
    other_parts: tuple[str, ...]
    """The other parts of the target, for `--part`."""
    bytes_per_s: float | None
    """Of the DRAM."""
    ceilings: Ceilings | None
    """What `doctor --gpu` measured on a GPU of this target; None if it did not."""
    units: tuple[UnitWork, ...]
    operations: tuple[OperationWork, ...]
    touched: tuple[Touched, ...]
    requested: Requested | None
    l2_bytes: int | None
    spilled_bytes: int | None = None
    """What all threads store to spill registers and load of it, once each; None where that is not known. It goes
    through the caches, and is no part of `dram_bytes`."""
    atomics: Span = (0, 0)
    """Elements that atomics read and write, in the L2 cache, one after another where they are the same."""
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What is not counted, and why bounds differ."""

    @property
    def dram_bytes(self) -> Span:
        """The sectors that are read, and those that are written, each once: the least that DRAM must move."""
        low = sum(one.sectors[0] for one in self.touched) * SECTOR_BYTES
        return low, min(sum(one.sectors[1] for one in self.touched) * SECTOR_BYTES, MOST)

    @property
    def distinct_bytes(self) -> Span:
        """The distinct bytes that are read, and those that are written."""
        low, high = (sum(one.distinct_bytes[side] for one in self.touched) for side in (0, 1))
        return low, min(high, MOST)

    @property
    def memory_time_s(self) -> tuple[float, float] | None:
        """The least time for the DRAM's bytes; None without a peak."""
        return None if self.bytes_per_s is None else _times(self.dram_bytes, self.bytes_per_s)

    @property
    def times_s(self) -> dict[str, tuple[float, float]]:
        """What takes time → the least that it takes, by its least and its greatest count."""
        found = {str(one.unit): one.time_s for one in self.units if one.time_s is not None}
        if self.memory_time_s is not None:
            found[MEMORY] = self.memory_time_s
        return found

    @property
    def floor_s(self) -> tuple[float, float] | None:
        """No launch is faster: the longest of these times; None if none is known."""
        times = self.times_s.values()
        return (max(low for low, _ in times), max(high for _, high in times)) if times else None

    @property
    def bound_by(self) -> tuple[str, ...]:
        """What may be the longest: one, or several where the bounds leave it open."""
        if (floor := self.floor_s) is None or not floor[1]:
            return ()
        return tuple(name for name, (_, high) in self.times_s.items() if high >= floor[0] and high > 0)

    @property
    def measured_s(self) -> float | None:
        """The time at the rates that a GPU was measured to reach, as far as they are known; None if none is."""
        if self.ceilings is None:
            return None
        times = [_times(one.flops, one.measured_rate)[0] for one in self.units if one.measured_rate]
        return max([*times, _times(self.dram_bytes, self.ceilings.bytes_per_s)[0]])

    def intensity(self, unit: UnitWork) -> tuple[float, float]:
        """A unit's operations per byte of DRAM, the least and the greatest."""
        (fewest, most), (least, greatest) = unit.flops, self.dram_bytes
        # Nothing bounds it: not the operations, or no byte is sure to be moved.
        is_endless = most >= MOST or (not least and most > 0)
        return fewest / greatest if greatest else 0.0, inf if is_endless else most / least if least else 0.0

    def ridge(self, unit: UnitWork) -> float | None:
        """The operations per byte from which on a unit is the bound, not the memory; None without peaks."""
        return unit.rate / self.bytes_per_s if unit.rate is not None and self.bytes_per_s else None


def _times(counts: Span, rate: float) -> tuple[float, float]:
    return counts[0] / rate, inf if counts[1] >= MOST else counts[1] / rate
