"""Races in shared and tensor memory, by thread: what happened before what, from the instructions of the PTX alone.

Each thread has a clock, and so has each unit that works for threads: asynchronous copies of a thread, copies of tiles
that an mbarrier counts, matrix instructions. A thread knows up to which time of each clock everything happened before
what it does now; barriers, arrivals and waits pass this on. Two accesses to a place, one of them a write, are a race
where the second one's thread does not know the first one's time. What a thread wrote itself, wgmma, tcgen05 and the
tensor memory accelerator read only behind a proxy fence: a second table of times follows that. So does what the
accelerator writes over an mbarrier that was never invalidated.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from irscope.errors import NotRun
from irscope.ir.asm.instructions import Instruction
from irscope.machine.ptx_registers import CtaListener, Spans
from irscope.machine.values import Array
from irscope.verify.trace import Numbering

RaceKind = Literal[
    "no barrier", "copy not awaited", "no proxy fence", "matrix instruction not awaited", "tensor access not awaited",
    "store not awaited",
]  # fmt: skip
_WARP = 32
_MOST_UNITS = 192
_MOST_BYTES = 1 << 30
_MOST_CHOSEN = 1 << 15
"""Places of global memory that are followed by thread."""
_PENDING = 1 << 30
"""The time of a load or a store of tensor memory until its thread waits for it: later than anyone knows."""


@dataclass(frozen=True, slots=True)
class SharedRace:
    """Two accesses to one place of shared or tensor memory that nothing orders."""

    kind: RaceKind
    first: Instruction
    first_thread: int | None
    """None where a unit did it."""
    first_writes: bool
    second: Instruction
    second_thread: int
    second_writes: bool
    space: str
    place: int | str
    """The byte of shared memory, lane × 512 + column of tensor memory, or a register's name."""
    passed: tuple[Instruction, int, int] | None = None
    """A wait at the mbarrier of the copy that did not wait for it: the parity that it waited for, and the phase."""


@dataclass(frozen=True, slots=True)
class _BeyondShared:
    """An access behind the end of the shared memory that the launch has."""

    item: Instruction
    thread: int
    writes: bool
    place: int


class _Places:
    """Who accessed each place of a space last."""

    def __init__(self, space: str, count: int, clocks: int, granule: int) -> None:
        self.space, self.granule = space, granule
        self.writer = np.full(count, -1, np.int32)
        self.written = np.zeros(count, np.int32)
        self.write_item = np.zeros(count, np.int32)
        self.read = np.zeros((count, clocks), np.int32)
        """The time of the last read by each clock."""
        self.read_item = np.zeros(count, np.int32)
        self.is_read = np.zeros(count, np.bool_)
        self.readers = np.zeros(clocks, np.bool_)
        """Which clocks read at all."""

    def read_by(self, where: Array, clock: Array | int, time: Array | int, number: int) -> None:
        self.readers[clock] = True
        self.read[where, clock] = time
        self.read_item[where], self.is_read[where] = number, True

    def written_by(self, where: Array, clock: Array | int, time: Array | int, number: int) -> None:
        self.writer[where], self.written[where], self.write_item[where] = clock, time, number
        read = where[self.is_read[where]]
        self.read[read], self.is_read[read] = 0, False

    def of_threads(self, threads: Array, addresses: Array, size: int) -> tuple[Array, Array]:
        """The places that threads access, and whose each is."""
        count = max(size // self.granule, 1)
        return (addresses[:, None] // self.granule + np.arange(count)).reshape(-1), np.repeat(threads, count)


class _ChosenPlaces(_Places):
    """Some places of global memory: an access to others is none of these."""

    def __init__(self, places: Array, clocks: int, granule: int) -> None:
        super().__init__("global", len(places), clocks, granule)
        self._chosen = places

    def of_threads(self, threads: Array, addresses: Array, size: int) -> tuple[Array, Array]:
        places, owners = super().of_threads(threads, addresses, size)
        where = np.searchsorted(self._chosen, places)
        inside = self._chosen[np.minimum(where, len(self._chosen) - 1)] == places
        return where[inside], owners[inside]


class SharedOrder(CtaListener):
    """Finds races among the accesses of one CTA."""

    def __init__(
        self, threads: int, shared_bytes: int, granule: int, in_order: int = 1, end: int | None = None
    ) -> None:
        """`granule`: bytes of the smallest access; `in_order`: threads whose accesses are in order with one another."""
        self.threads, self._in_order, self._end = threads, in_order, end
        self.beyond: dict[int, _BeyondShared] = {}
        self.found: dict[tuple[int, int, RaceKind], SharedRace] = {}
        self._units: dict[tuple[str, int], int] = {}
        self._clocks = threads + _MOST_UNITS
        places = shared_bytes // granule + 1
        if 4 * (places * self._clocks + 2 * threads * (2 * threads + _MOST_UNITS)) > _MOST_BYTES:
            raise NotRun("too large: more shared memory per program than is followed")
        # Threads, units, and behind these the copies of each thread.
        self._known = np.zeros((threads, self._clocks + threads), np.int32)
        self._visible = np.zeros_like(self._known)
        """What other proxies see of what threads, and their `cp.async`, did."""
        own = np.arange(threads)
        self._known[own, own] = 1
        self._spaces = {"shared": _Places("shared", places, self._clocks, granule)}
        self._items = Numbering()
        self._begun: Counter[tuple[str, int]] = Counter()
        """Of each queue of each thread: groups that were committed."""
        self._mbarriers: dict[int, tuple[Instruction, int, int]] = {}
        """Address → what made the mbarrier there that was not invalidated, its thread, and when."""
        self._passed: dict[int, tuple[Instruction, int, int]] = {}
        """Address → the last wait at the mbarrier there for another phase than that of the copies under way."""
        self._released: dict[int, Array] = {}
        self._completed: dict[int, Array] = {}
        self._pending: dict[bool, list[tuple[Array, Array]]] = {False: [], True: []}
        """Loads, and stores, of tensor memory that are not waited for: places and threads."""
        self._registers: dict[int, tuple[Sequence[str], Sequence[str]]] = {}
        """Instruction → the registers that it reads, but for the sum of wgmma, and those that it writes."""
        self._flying: dict[tuple[int, str], tuple[Instruction, int]] = {}
        """Warp and register → the wgmma that writes it, and the time when it is done."""
        self._stores: dict[int, tuple[Instruction, int, int]] = {}
        """Thread → its last bulk store, the first byte of it, and the time when it is done."""

    def follow_global(self, addresses: Array, granule: int) -> None:
        """Follow accesses to these places of global memory too, whose addresses are multiples of `granule`."""
        places = np.unique(addresses // granule)
        if len(places) > _MOST_CHOSEN:
            raise NotRun("too large: more places of global memory than are followed by thread")
        self._spaces["global"] = _ChosenPlaces(places, self._clocks, granule)

    # ── clocks ────────────────────────────────────────────────────────────────────────────────────────────────

    def _unit(self, name: str, number: int) -> int:
        key = (name, number)
        if key not in self._units:
            if len(self._units) == _MOST_UNITS:
                raise NotRun("too large: more queues and mbarriers than are followed")
            self._units[key] = self.threads + len(self._units)
        return self._units[key]

    def barrier(self, threads: Array) -> None:
        self._known[threads] = self._known[threads].max(axis=0)
        self._visible[threads] = self._visible[threads].max(axis=0)
        self._tick(threads)

    def _tick(self, threads: Array) -> None:
        self._known[threads, threads] += 1

    def fence(self, threads: Array) -> None:
        self._visible[threads] = self._known[threads]
        self._tick(threads)

    def passed(self, item: Instruction, barrier: int, parity: int, phase: int) -> None:
        self._passed[barrier] = item, parity, phase

    def initialise(self, item: Instruction, thread: int, barrier: int) -> None:
        self._mbarriers[barrier] = item, thread, int(self._known[thread, thread])

    def invalidate(self, barrier: int) -> None:
        self._mbarriers.pop(barrier, None)

    def arrive(self, threads: Array, barrier: int, queue: str = "") -> None:
        known, visible = self._released.setdefault(barrier, np.zeros((2, self._known.shape[1]), np.int32))
        for thread in threads.tolist() if queue else ():
            clock = self._clocks + thread if queue == "copy" else self._unit(queue, thread)
            self._begun[queue, thread] += 1
            known[clock] = max(known[clock], self._begun[queue, thread])
        if queue == "tensor matrix":
            return
        np.maximum(known, self._known[threads].max(axis=0), out=known)
        np.maximum(visible, self._visible[threads].max(axis=0), out=visible)
        self._tick(threads)

    def complete(self, barrier: int, phase: int) -> None:
        self._passed.pop(barrier, None)
        released = self._released.pop(barrier, np.zeros((2, self._known.shape[1]), np.int32))
        unit = self._units.get(("tile", barrier))
        if unit is not None:
            released[0, unit] = phase + 1
        self._completed[barrier] = released

    def waited(self, threads: Array, barrier: int) -> None:
        if barrier not in self._completed:
            # The phase before the first one.
            return
        known, visible = self._completed[barrier]
        self._known[threads] = np.maximum(self._known[threads], known)
        self._visible[threads] = np.maximum(self._visible[threads], visible)
        self._tick(threads)

    def commit(self, queue: str, threads: Array) -> None:
        owners = np.unique(threads // 128 * 128) if queue == "matrix" else threads
        for thread in owners.tolist():
            self._begun[queue, thread] += 1

    def wait(self, queue: str, threads: Array, pending: int) -> None:
        for thread in threads.tolist():
            owner = thread // 128 * 128 if queue == "matrix" else thread
            clock = self._clocks + owner if queue == "copy" else self._units.get((queue, owner))
            if clock is None:
                # Nothing was begun.
                continue
            done = self._begun[queue, owner] - pending
            self._known[thread, clock] = max(self._known[thread, clock], done)

    def wait_tensor(self, threads: Array, stores: bool) -> None:
        left: list[tuple[Array, Array]] = []
        places = self._of("tensor")
        for where, who in self._pending[stores]:
            done = np.isin(who, threads)
            at, own = where[done], who[done]
            times = self._known[own, own]
            if stores:
                mine = (places.writer[at] == own) & (places.written[at] == _PENDING)
                places.written[at[mine]] = times[mine]
            else:
                mine = places.read[at, own] == _PENDING
                places.read[at[mine], own[mine]] = times[mine]
            if not done.all():
                left.append((where[~done], who[~done]))
        self._pending[stores] = left

    # ── registers, and the end ──────────────────────────────────────────────────────────────────────────────────

    def registers(self, item: Instruction, threads: Array) -> None:
        # The sum of one wgmma is that of the next: these are in order.
        if id(item) not in self._registers:
            own = item.arguments[0].names if item.family == "wgmma" else ()
            self._registers[id(item)] = [name for name in item.reads if name not in own], item.writes
        reads, writes = self._registers[id(item)]
        for warp in np.unique(threads // _WARP).tolist():
            known = self._known[warp * _WARP]
            clock = self._units.get(("matrix", warp * _WARP // 128 * 128), 0)
            rows = {name: row for name in reads if (row := self._flying.get((warp, name)))}
            open_ = {name: row for name, row in rows.items() if known[clock] < row[1]}
            for name in writes:
                self._flying.pop((warp, name), None)
            if open_ and item.opcode.startswith("mov."):
                self._flying.update({(warp, name): next(iter(open_.values())) for name in writes})
                continue
            for name, (first, _) in open_.items():
                thread, kind = int(threads[threads // _WARP == warp][0]), "matrix instruction not awaited"
                self._add(SharedRace(kind, first, None, True, item, thread, False, "registers", name))

    def end(self, item: Instruction, threads: Array) -> None:
        for thread in threads.tolist():
            first, place, time = self._stores.get(thread, (item, 0, 0))
            if time and self._known[thread, self._unit("bulk store", thread)] < time:
                self._add(SharedRace("store not awaited", first, None, False, item, thread, False, "shared", place))

    # ── accesses ──────────────────────────────────────────────────────────────────────────────────────────────

    def access(self, item: Instruction, threads: Array, addresses: Array, size: int, writes: bool, space: str) -> None:
        places = self._of(space)
        where, who = places.of_threads(threads, addresses, size)
        number = self._items.of(item)
        self._check(places, where, who, self._known, who, item, writes)
        times = self._known[who, who]
        if space == "tensor":
            times = np.full(len(who), _PENDING, np.int32)
            self._pending[writes].append((where, who))
        if writes:
            places.written_by(where, who, times, number)
            lost = np.flatnonzero(places.writer[where] != who)
            if lost.size:
                # Several threads write one place at once: of copies, or of the same value.
                places.written_by(where[lost], who[lost], times[lost], number)
        else:
            places.read_by(where, who, times, number)

    def copy(self, item: Instruction, threads: Array, addresses: Array, size: int) -> None:
        places = self._of("shared")
        where, who = places.of_threads(threads, addresses, size)
        clock = self._clocks + who
        self._check(places, where, who, self._known, who, item, True, clock)
        begun = np.array([self._begun["copy", thread] + 1 for thread in who.tolist()])
        places.written_by(where, clock, begun, self._items.of(item))

    def queue(self, item: Instruction, queue: str, threads: Array, reads: Spans, writes: Spans, tensor: Any) -> None:
        owner = int(threads[0]) // 128 * 128 if queue == "matrix" else int(threads[0])
        unit, time = self._unit(queue, owner), self._begun[queue, owner] + 1
        if queue == "matrix":
            for warp in np.unique(threads // _WARP).tolist():
                self._flying.update({(warp, name): (item, time) for name in item.arguments[0].names})
        if queue == "bulk store":
            self._stores[owner] = item, reads[0][0], time
        known = self._known[threads].min(axis=0)
        visible = self._visible[threads].min(axis=0)
        self._take(item, "shared", self._where(reads), int(threads[0]), known, visible, unit, time, False)
        for access in tensor or ():
            lanes, columns = np.array(access.lanes), np.arange(access.column, access.column + access.columns)
            where = (lanes[:, None] * 512 + columns).reshape(-1)
            self._take(item, "tensor", where, int(threads[0]), known, None, unit, time, access.writes)

    def _where(self, spans: Spans) -> Array:
        granule = self._of("shared").granule
        if sum(size for _, size in spans) > 1 << 20:
            raise NotRun("too large: a copy of more than shared memory")
        parts = [np.arange(begin // granule, (begin + size) // granule) for begin, size in spans]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)

    def bulk_load(self, item: Instruction, thread: int, spans: Spans, barrier: int, phase: int) -> None:
        unit, where = self._unit("tile", barrier), self._where(spans)
        self._take(item, "shared", where, thread, self._known[thread], None, unit, phase + 1, True)
        # A unit may write over an mbarrier before it is there: nothing orders what threads write and what units do.
        for place, (first, owner, time) in self._mbarriers.items():
            is_inside = any(begin <= place < begin + size for begin, size in spans)
            if is_inside and self._visible[thread, owner] < time:
                self._add(SharedRace("no proxy fence", first, owner, True, item, thread, True, "shared", place))

    def _take(
        self, item: Instruction, space: str, where: Array, thread: int, known: Array, visible: Array | None, unit: int,
        time: int, writes: bool,
    ) -> None:  # fmt: skip
        places = self._of(space)
        who = np.full(len(where), thread)
        alike = np.zeros(len(where), np.intp)
        self._check(places, where, who, known[None], alike, item, writes, np.full(len(where), unit), visible)
        (places.written_by if writes else places.read_by)(where, unit, time, self._items.of(item))

    def _of(self, space: str) -> _Places:
        if space not in self._spaces:
            self._spaces[space] = _Places(space, 128 * 512, self._clocks, 1)
        return self._spaces[space]

    # ── races ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _check(
        self, places: _Places, where: Array, who: Array, known: Array, row: Array, item: Instruction, writes: bool,
        clock: Array | None = None, visible: Array | None = None,
    ) -> None:  # fmt: skip
        """Report what the accesses of threads, or of a unit that works for them, are not ordered behind.

        `row`: of `known`, for each access.
        """
        own = who if clock is None else clock
        last = int(where.max(initial=-1))
        if places.space == "shared" and self._end is not None and last * places.granule >= self._end:
            at = int(where.argmax())
            beyond = _BeyondShared(item, int(who[at]), writes, last * places.granule)
            self.beyond.setdefault(id(item), beyond)
        if last >= len(places.writer):
            raise NotRun(f"line {item.line} of the PTX accesses shared memory beyond its end")
        before = places.writer[where]
        # A store of tensor memory is not in order with its own thread until it is waited for.
        other = (before != own) | (places.written[where] == _PENDING)
        open_ = (before >= 0) & other & (known[row, before] < places.written[where])
        if self._in_order > 1:
            open_ &= before // self._in_order != own // self._in_order
        if open_.any():
            at = int(np.flatnonzero(open_)[0])
            self._report(places, int(where[at]), int(before[at]), True, item, int(who[at]), writes)
        if visible is not None:
            is_unit = (before >= self.threads) & (before < self._clocks)
            unseen = (before >= 0) & ~is_unit & ~open_ & (visible[before] < places.written[where])
            if unseen.any():
                at = int(np.flatnonzero(unseen)[0])
                writer = int(before[at])
                writer -= 0 if writer < self.threads else self._clocks
                self._report(places, int(where[at]), writer, True, item, int(who[at]), writes, "no proxy fence")
        if not writes:
            return
        read = np.flatnonzero(places.is_read[where])
        if not read.size:
            return
        clocks = np.flatnonzero(places.readers)
        late = places.read[np.ix_(where[read], clocks)] > known[np.ix_(row[read], clocks)]
        # A thread, or a unit, is in order with itself.
        late &= clocks // self._in_order != own[read, None] // self._in_order
        if late.any():
            first, column = (int(index[0]) for index in np.nonzero(late))
            at, reader = int(read[first]), int(clocks[column])
            self._report(places, int(where[at]), reader, False, item, int(who[at]), True)

    def _report(
        self, places: _Places, place: int, clock: int, first_writes: bool, item: Instruction, thread: int, writes: bool,
        kind: RaceKind | None = None,
    ) -> None:  # fmt: skip
        first = self._items.items[int((places.write_item if first_writes else places.read_item)[place])]
        owner: int | None = clock if clock < self.threads else None
        passed = None
        if kind is None:
            kind = "no barrier"
            if clock < self.threads and places.space == "tensor":
                times = places.written[place] if first_writes else places.read[place, clock]
                kind = "tensor access not awaited" if times == _PENDING else kind
            elif clock >= self._clocks:
                # Once it was waited for by its own thread, a barrier is missing.
                owner = clock - self._clocks
                is_done = self._known[owner, clock] >= places.written[place]
                kind = "no barrier" if is_done else "copy not awaited"
            elif clock >= self.threads:
                names = {number: unit for unit, number in self._units.items()}
                name, number = names[clock]
                kind = "matrix instruction not awaited" if "matrix" in name else "copy not awaited"
                passed = self._passed.get(number) if name == "tile" else None
        where = place * places.granule
        self._add(SharedRace(kind, first, owner, first_writes, item, thread, writes, places.space, where, passed))

    def _add(self, race: SharedRace) -> None:
        self.found.setdefault((id(race.first), id(race.second), race.kind), race)
