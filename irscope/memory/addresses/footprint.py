"""The footprint of a launch: how often its operations are executed, and how many distinct bytes it reads and writes."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from irscope.ir.mlir.model import MlirModule, Operation
from irscope.machine.noted import AccessExecution, Evaluation
from irscope.machine.numbers import Integers, Source
from irscope.machine.programs import Programs, Weight
from irscope.memory.access import MOST, SECTOR_BYTES, Span
from irscope.memory.addresses.arguments import LaunchArguments, pointer_steps
from irscope.memory.addresses.counter import bounds_of_mask
from irscope.memory.addresses.parts import AccessPlace, active_parts, parts_of, place_of
from irscope.memory.machine import ACCESSES

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
class _Extent:
    """How much memory a set of bytes takes."""

    bytes: int
    units: tuple[int, int]
    """The fewest and the most units that hold any of them, by where byte 0 lies in a unit."""


def extent_of(pieces: Sequence[Pieces], unit: int, begins: Iterable[int]) -> _Extent:
    """The extent of all pieces together, each byte once; raises TooMany.

    `begins`: how far behind the beginning of a unit byte 0 may lie.
    """
    held = [part for part in pieces if part.starts.size and all(shift.size for shift in part.shifts)]
    try:
        whole = Intervals.union(_intervals_of(part.starts, part.size, part.shifts) for part in held)
        counts = [whole.units(unit, begin) for begin in begins]
        return _Extent(whole.bytes, (min(counts), max(counts)))
    except TooMany:
        # Far apart, but at even distances.
        found = [_extent_of_columns(held, unit, begin) for begin in begins]
        counts = [units for _, units in found]
        return _Extent(found[0][0], (min(counts), max(counts)))


def _intervals_of(starts: Integers, size: int, shifts: Iterable[Integers]) -> Intervals:
    intervals = Intervals.of(starts, size)
    # The shortest distances first: what joins is moved on as one.
    factors = (factor for shift in shifts for factor in _factors(np.unique(shift)))
    for factor in sorted(factors, key=lambda one: int(one[-1] - one[0])):
        intervals = intervals.moved(factor)
    return intervals


def _factors(shifts: Integers) -> list[Integers]:
    """Lists of distances, any sum of one of each of which is one of the shifts, which are in order."""
    found: list[Integers] = []
    while shifts.size > 2:
        ends = np.flatnonzero(np.diff(shifts) != shifts[1] - shifts[0])
        count = int(ends[0]) + 1 if ends.size else shifts.size
        heads = shifts[::count]
        factor = shifts[:count] - shifts[0]
        if count == 1 or shifts.size % count or (shifts.reshape(-1, count) - heads[:, None] != factor).any():
            break
        found.append(factor)
        shifts = heads
    return [*found, shifts]


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
        return int((self.ends - self.starts).sum())


def _joined(starts: Integers, ends: Integers) -> Intervals:
    if not starts.size:
        return Intervals(starts, ends)
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    heads = np.concatenate([[True], starts[1:] > ends[:-1]])
    return Intervals(starts[heads], ends[np.append(np.flatnonzero(heads)[1:] - 1, ends.size - 1)])


_READS = ("load", "copy")


@dataclass(frozen=True, slots=True)
class Touched:
    """The bytes of one argument that a launch reads, or writes."""

    argument: str
    """An empty string for what is reached in another way than by an argument."""
    is_read: bool
    distinct_bytes: Span
    sectors: Span
    """Distinct sectors of `SECTOR_BYTES` that these bytes lie in."""
    requested_bytes: Span
    """Each element as often as it is asked for; those that a mask turns off are left out."""
    why_not: tuple[str, ...] = ()
    """What is not known, where the bounds differ."""


@dataclass(frozen=True, slots=True)
class Footprint:
    executions: Mapping[int, Span]
    """Line of an operation → how often all programs together execute it."""
    open: Mapping[int, tuple[str, ...]]
    """Line of an operation whose bounds differ → what decides it."""
    touched: tuple[Touched, ...]
    notes: tuple[str, ...]
    """Why it is incomplete; empty if it is not."""


def footprint_of(
    module: MlirModule,
    arguments: LaunchArguments,
    grid: tuple[int, int, int],
    room: Mapping[str, int],
    chosen: Sequence[int] | None = None,
) -> Footprint:
    """The footprint of a launch of at most `MOST_PROGRAMS` programs, or of those chosen.

    `room`: argument → bytes of the storage that it lies in, as far as that is known: it touches no more.
    """
    found = _Found(room, pointer_steps(arguments))
    for part in parts_of(module, arguments, grid, None if chosen is None else np.array(chosen)):
        found.take(part)
    return found.footprint(module)


@dataclass(slots=True)
class _Sum:
    """What is known of one argument, read or written."""

    surely: list[Pieces] = field(default_factory=list[Pieces])
    perhaps: list[Pieces] = field(default_factory=list[Pieces])
    beyond: int = 0
    """Bytes that lie nobody knows where, at most."""
    beyond_sectors: int = 0
    """Sectors that they lie in, at most."""
    requested: list[int] = field(default_factory=lambda: [0, 0])
    why_not: dict[str, None] = field(default_factory=dict[str, None])


class _Found:
    def __init__(self, room: Mapping[str, int], steps: Mapping[str, int]) -> None:
        self._room = room
        self._steps = steps
        self._executions: dict[int, list[int]] = {}
        self._open: dict[int, dict[str, None]] = {}
        self._sums: dict[tuple[str, bool], _Sum] = {}
        self._notes: dict[str, None] = {}
        self._is_ended = False

    def take(self, run: Evaluation) -> None:
        for operation, weight in run.visits:
            low, high = weight.span
            span = self._executions.setdefault(operation.first_line, [0, 0])
            span[:] = min(span[0] + low, MOST), min(span[1] + high, MOST)
            if low < high:
                self._open.setdefault(operation.first_line, {}).update(_words(weight.sources))
        for execution in run.executions:
            for is_read in _directions(execution.operation):
                self._touch(run.programs, execution, is_read)
        for line, why in run.unread:
            total = self._sum("", True)
            total.why_not[f"the access of line {line}: {why}"] = None
            total.beyond = total.beyond_sectors = total.requested[1] = MOST
        self._notes.update(dict.fromkeys(run.notes))
        self._is_ended = self._is_ended or run.is_ended

    def _sum(self, argument: str, is_read: bool) -> _Sum:
        return self._sums.setdefault((argument, is_read), _Sum())

    def _touch(self, programs: Programs, execution: AccessExecution, is_read: bool) -> None:
        place, active = place_of(programs, execution), active_parts(programs, execution)
        total = self._sum(execution.addresses.argument, is_read)
        for mask, weight in active or [(execution.mask, execution.weight)]:
            self._part(total, execution, place, *bounds_of_mask(mask, execution.addresses), weight)

    def _part(
        self, total: _Sum, execution: AccessExecution, place: AccessPlace | None, surely: NDArray[np.bool_],
        perhaps: NDArray[np.bool_], weight: Weight,
    ) -> None:  # fmt: skip
        size = max(execution.element_bits // 8, 1)
        low, high = weight.span
        most = min(high * int(perhaps.sum()) * size, MOST)
        total.requested[0] += low * int(surely.sum()) * size
        total.requested[1] = min(total.requested[1] + most, MOST)
        if not most:
            return
        if place is None:
            _lie_anywhere(total, most, size)
            # Where what is pointed to begins nobody needs to know.
            begin = Source("argument", execution.addresses.argument)
            total.why_not.update(_words(execution.addresses.sources - {begin}))
            return
        known = execution.addresses.full().known
        if surely is not perhaps or not weight.is_known:
            total.perhaps.append(_pieces(known[perhaps], size, place, weight.high > 0))
            total.why_not.update(_words(weight.sources))
            if execution.mask is not None and surely is not perhaps:
                total.why_not.update(_words(execution.mask.sources))
        total.surely.append(_pieces(known[surely], size, place, weight.low > 0))

    def footprint(self, module: MlirModule) -> Footprint:
        if self._is_ended:
            # What was not reached may come as often as it likes.
            self._unbound(module)
        touched = tuple(
            self._touched(argument, is_read, total) for (argument, is_read), total in sorted(self._sums.items())
        )
        executions = {line: (low, high) for line, (low, high) in self._executions.items()}
        return Footprint(
            executions, {line: tuple(why) for line, why in self._open.items()}, touched, tuple(self._notes)
        )

    def _unbound(self, module: MlirModule) -> None:
        for one in module.walk():
            self._executions.setdefault(one.first_line, [0, 0])[1] = MOST
        for argument in ("", *self._steps):
            for is_read in (True, False):
                total = self._sum(argument, is_read)
                total.beyond = total.beyond_sectors = total.requested[1] = MOST
                total.why_not.update(self._notes)

    def _touched(self, argument: str, is_read: bool, total: _Sum) -> Touched:
        room, requested = self._room.get(argument, MOST), total.requested
        step = self._steps.get(argument, 1)
        # A storage that does not begin with a sector may lie in one more.
        room_sectors = -(-room // SECTOR_BYTES) + (step < SECTOR_BYTES)
        begins = range(0, SECTOR_BYTES, step) if step < SECTOR_BYTES else (0,)
        try:
            surely = extent_of(total.surely, SECTOR_BYTES, begins)
            perhaps = extent_of([*total.surely, *total.perhaps], SECTOR_BYTES, begins) if total.perhaps else surely
        except TooMany:
            surely = perhaps = _Extent(0, (0, 0))
            _lie_anywhere(total, requested[1], 1)
            total.why_not["it is accessed in too many pieces to be counted"] = None
        fewest, most = surely.units[0], perhaps.units[1]
        # What lies nobody knows where may all be new, as far as there is room.
        high = min(perhaps.bytes + total.beyond, max(room, surely.bytes), requested[1])
        if surely.bytes < high == room < requested[1]:
            total.why_not["it is assumed to stay within its storage"] = None
        most = min(most + total.beyond_sectors, max(room_sectors, fewest), MOST)
        return Touched(
            argument, is_read, (surely.bytes, high), (fewest, most), (requested[0], requested[1]), tuple(total.why_not)
        )


def _lie_anywhere(total: _Sum, size: int, element_bytes: int) -> None:
    """Add bytes of which it is not known where they lie."""
    total.beyond = min(total.beyond + size, MOST)
    total.beyond_sectors = min(total.beyond_sectors + 2 * (size // element_bytes), MOST)


def _pieces(starts: Integers, size: int, place: AccessPlace, reached: NDArray[np.bool_]) -> Pieces:
    """The bytes that an access touches in the programs that come to it."""
    both = np.broadcast_arrays(place.shifts, reached)
    iterations = (apart * np.arange(count, dtype=np.int64) for apart, count in place.iterations)
    return Pieces(np.unique(starts), size, (*iterations, np.unique(both[0][both[1]])))


def _directions(operation: Operation) -> tuple[bool, ...]:
    action = ACCESSES[operation.opcode]
    return (True, False) if action == "atomic" else (action in _READS,)


def _words(sources: Iterable[Source]) -> dict[str, None]:
    of_kind = {
        kind: [one.text for one in sources if one.kind == kind]
        for kind in ("argument", "data", "operation", "program", "iteration")
    }
    said = [f"{text} has no value" for text in of_kind["argument"]]
    said += [f"it depends on {text}" for text in of_kind["data"]]
    said += [f"{text} is not evaluated" for text in of_kind["operation"]]
    # Programs and iterations decide nothing by themselves where something else is not known.
    said = said or ["the programs differ in it"] * bool(of_kind["program"]) + [
        "the iterations of a loop differ in it"
    ] * bool(of_kind["iteration"])
    return dict.fromkeys(sorted(said))
