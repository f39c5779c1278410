"""One multiprocessor with its CTAs: the warps in order, each unit as a queue, and what each warp waits for.

Times of memory follow from the queues of L1, of the port to L2, of this multiprocessor's part of L2 and of DRAM, and
from latencies. Warps that use a unit at the same time delay one another.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from irscope.device.clocks import Clock
from irscope.timing.accesses import Access
from irscope.timing.delays import Utilisation, dram_delay, l2_delay
from irscope.timing.execution import Execution
from irscope.timing.steps import (
    ATOMICS,
    DRAM,
    L1,
    L2,
    MEMORY,
    PORT,
    SHARED,
    START,
    TENSOR,
    UNITS,
    OneStep,
    Rates,
    Steps,
    Uses,
    costs_of,
    rates_of,
    wgmma_cost,
)  # fmt: skip
from irscope.timing.walk import NotFollowed

__all__ = ["Simulated", "Span", "simulate"]

_STORE_BACKLOG = 1200.0
"""Cycles of stores that wait for DRAM before a warp that stores more has to wait."""


@dataclass(slots=True)
class Span:
    """An interval in the timeline of one warp of the first CTA: work or a wait."""

    warp: int
    index: int
    start: float
    end: float
    why: str


@dataclass(slots=True)
class Simulated:
    """What became of the CTAs of one multiprocessor."""

    end: float
    """When the last CTA ended, without the iterations that were skipped."""
    ctas: list[tuple[float, float]]
    """(when it ended, cycles of its skipped iterations) of each CTA, the first to end first."""
    waits: dict[tuple[int, str], float]
    """(instruction, why) → cycles of all warps, the skipped iterations included. What waits for an access to memory
    counts for the access."""
    spans: list[Span]
    """Of the first CTA."""


@dataclass(slots=True)
class _Phase:
    """An mbarrier."""

    count: int = 1
    arrived: float = 0.0
    pending: float = 0.0
    landed: float = 0.0
    """When the last copy on it lands."""
    maker: int = -1
    """That copy; -1 without one."""
    done: list[float] = field(default_factory=list[float])
    """When each phase was complete."""
    waiting: list[tuple[int, _Warp]] = field(default_factory=list[Any])


@dataclass(slots=True)
class _Cta:
    slot: int
    warps: int
    left: int
    barriers: dict[int, tuple[float, list[Any]]] = field(default_factory=dict[int, Any])
    phases: dict[int, _Phase] = field(default_factory=dict[int, Any])
    end: float = 0.0
    extra: float = 0.0
    is_first: bool = False


class _Warp:
    __slots__ = (
        "again",
        "at",
        "awaited",
        "awaited_of_dram",
        "boards",
        "cta",
        "ending",
        "extra",
        "groups",
        "makers",
        "marks",
        "number",
        "pending",
        "reasons",
        "scheduler",
        "since",
        "steps",
        "tensor_groups",
        "time",
        "weight",
    )  # fmt: skip

    def __init__(self, cta: _Cta, number: int, steps: list[OneStep], scheduler: int, time: float) -> None:
        self.cta, self.number, self.steps, self.scheduler, self.time = cta, number, steps, scheduler, time
        self.at = 0
        self.boards = [0.0] * 8
        self.reasons = ["dependency"] * 8
        self.makers = [-1] * 8
        """Of each scoreboard: the access that its waits are the time of; -1 where that is who waits."""
        self.pending: tuple[float, int] = (0.0, -1)
        """When the last copy since the last group lands, and which that is."""
        self.groups: list[tuple[float, int]] = []
        self.tensor_groups: list[list[float]] = []
        """When each group of asynchronous tensor instructions is done, each in a list, since it may be delayed."""
        self.awaited = self.awaited_of_dram = 0.0
        """Sectors of L2, and of DRAM, that the warp loads since it last waited."""
        self.ending: OneStep | None = None
        """A step whose last instruction is still to come: others may come to the same unit before it."""
        self.again: OneStep | None = None
        """A wait for them that is looked at once more when it seemed to end."""
        self.extra = 0.0
        self.marks: dict[int, tuple[float, float, int]] = {}
        self.since: list[tuple[int, str, float]] = []


class _Multiprocessor:
    def __init__(self, execution: Execution, clock: Clock, rates: Rates, scale: float, steps: list[Steps]) -> None:
        self.execution, self.clock, self.rates, self.scale = execution, clock, rates, scale
        self.steps = steps
        self.free = [0.0] * len(UNITS)
        self.own = [[0.0] * len(UNITS) for _ in range(clock.schedulers)]
        self.load = [[0.0] * len(UNITS) for _ in range(clock.schedulers)]
        """Of each unit of a scheduler: the part of a cycle that warps use it now."""
        self.active: list[list[tuple[float, int, Uses, float]]] = [[] for _ in range(clock.schedulers)]
        """(end, order, cycles of each unit, the part of a cycle that each of them takes) of the steps that go on."""
        self.heap: list[tuple[float, int, _Warp]] = []
        self.order = 0
        self.waits: dict[tuple[int, str], float] = defaultdict(float)
        self.spans: list[Span] = []
        self.ended: list[_Cta] = []
        self.waiting = 0
        self.cost_cache: dict[int, dict[int, float]] = {}
        self.wgmma_cache: dict[int, tuple[float, float]] = {}
        self.multiplying: list[list[list[float]]] = [[] for _ in range(clock.schedulers)]
        """The groups of asynchronous tensor instructions of each scheduler that are not done yet."""
        self.multiplies = [False] * clock.schedulers
        """Whether a scheduler has had such instructions."""
        self.dram, self.l2 = Utilisation(), Utilisation()
        self.collision = clock.collision

    def push(self, warp: _Warp, time: float) -> None:
        warp.time = time
        self.order += 1
        heapq.heappush(self.heap, (time, self.order, warp))

    def start(self, slot: int, time: float, after: float, is_first: bool) -> None:
        """Start a CTA whose place is free at `time`; it takes at least `after` cycles."""
        time = max(self.queue(START, time, self.clock.cta_start), time + after)
        warps = sum(one.rows for one in self.steps)
        cta = _Cta(slot, warps, warps, is_first=is_first)
        number = 0
        for one in self.steps:
            for _ in range(one.rows):
                self.push(_Warp(cta, number, one.steps, (number + slot * warps) % self.clock.schedulers, time), time)
                number += 1

    def run(self, waiting: int) -> None:
        """Until all warps have ended; `waiting` CTAs take the places of those that end."""
        self.waiting = waiting
        heap = self.heap
        while heap:
            time, _, warp = heapq.heappop(heap)
            while (after := self.step(warp, time)) is not None:
                if heap and after > heap[0][0]:
                    self.push(warp, after)
                    break
                time = after

    def note(self, warp: _Warp, index: int, why: str, start: float, end: float) -> None:
        if end > start:
            self.waits[index, why] += end - start
            if warp.marks:
                warp.since.append((index, why, end - start))
            if warp.cta.is_first:
                self.spans.append(Span(warp.number, index, start, end, why))

    def step(self, warp: _Warp, time: float) -> float | None:
        """Do a warp's next step; returns when it is ready for the one after, None if it waits or has ended."""
        if warp.again is not None:
            return self.tensor_wait(warp, warp.again, time)
        if (step := warp.ending) is not None:
            warp.ending = None
            return self.end(warp, step, time)
        if warp.at >= len(warp.steps):
            self.finish(warp, time)
            return None
        step = warp.steps[warp.at]
        kind = step.kind
        if kind == "mark":
            warp.marks[step.mark] = (time, warp.extra, len(warp.since))
            warp.at += 1
            return time
        if kind == "skip":
            start, extra, since = warp.marks.pop(step.mark)
            warp.extra += step.number * (time - start + warp.extra - extra)
            for index, why, cycles in warp.since[since:]:
                self.waits[index, why] += cycles * step.number
            if not warp.marks:
                warp.since.clear()
            warp.at += 1
            return time
        ready = time
        if step.awaited:
            why, maker = "dependency", -1
            boards = warp.boards
            for number in step.awaited:
                if boards[number] > ready:
                    ready, why, maker = boards[number], warp.reasons[number], warp.makers[number]
            if ready > time:
                warp.awaited = warp.awaited_of_dram = 0.0
                self.note(warp, maker if maker >= 0 else step.index, why, time, ready)
                # Others that are ready before go first.
                if self.heap and ready > self.heap[0][0]:
                    warp.boards = [0.0 if value <= ready else value for value in warp.boards]
                    return ready
        own, scale = self.own[warp.scheduler], self.scale
        done = ready + step.stall
        why = "execution"
        latest, delay = done, 0.0
        load, active = self.load[warp.scheduler], self.active[warp.scheduler]
        while active and active[0][0] <= ready:
            _, _, use, part = heapq.heappop(active)
            for unit, cycles in use:
                load[unit] -= cycles * part
        uses = step.uses
        for unit, cycles in uses:
            # What others do meanwhile falls on this warp's instructions, and in order each delay is the whole warp's.
            busy = load[unit]
            delay += cycles * (busy if busy < 1.0 else 1.0)
            free = own[unit]
            own[unit] = free = (free if free > ready else ready) + cycles * scale
            if free > latest:
                latest, why = free, UNITS[unit]
        if step.shuffles:
            free = self.queue(SHARED, ready, step.shuffles)
            if free > latest:
                latest, why = free, UNITS[SHARED]
        done += delay * self.collision
        if latest > done:
            done = latest
        if step.fma and self.multiplies[warp.scheduler] and own[TENSOR] > ready:
            self.delay_tensor(warp.scheduler, ready, done, step.fma)
        length = done - ready
        if length > 0:
            part = scale / length
            for unit, cycles in uses:
                load[unit] += cycles * part
            self.order += 1
            heapq.heappush(active, (done, self.order, uses, part))
            self.note(warp, step.index, why, ready, done)
        for board, offset, latency in step.sets:
            warp.boards[board] = max(warp.boards[board], ready + offset + latency, done)
            warp.reasons[board], warp.makers[board] = "dependency", -1
        warp.at += 1
        if kind:
            if self.heap and done > self.heap[0][0]:
                warp.ending = step
                return done
            return self.end(warp, step, done)
        return done

    def delay_tensor(self, scheduler: int, start: float, end: float, cycles: float) -> None:
        """The tensor core stands still while the FMA pipe is used: both read the registers."""
        own = self.own[scheduler]
        part = min((own[TENSOR] - start) / (end - start), 1.0) if end > start else 1.0
        lost = cycles * self.clock.wgmma_fma * part * self.scale
        own[TENSOR] += lost
        flying = self.multiplying[scheduler] = [one for one in self.multiplying[scheduler] if one[0] > start]
        for one in flying:
            one[0] += lost

    def queue(self, unit: int, time: float, cycles: float) -> float:
        free = self.free[unit]
        free = (free if free > time else time) + cycles * self.scale
        self.free[unit] = free
        return free

    def end(self, warp: _Warp, step: OneStep, time: float) -> float | None:
        """What ends a step: an access, or a meeting with others."""
        kind, access, clock = step.kind, step.access, self.clock
        if kind == "tensor":
            item, base = self.execution.program.code[step.last], self.execution.program.bases[step.last]
            if step.last not in self.wgmma_cache:
                self.wgmma_cache[step.last] = wgmma_cost(item, base, clock)
            cycles, fronts = self.wgmma_cache[step.last]
            own = self.own[warp.scheduler]
            self.multiplies[warp.scheduler] = True
            begin = max(own[TENSOR], time)
            fed = self.queue(SHARED, time, fronts)
            own[TENSOR] = max(begin + cycles * self.scale, fed)
            until = own[TENSOR] + clock.wgmma_latency
            if "gsb" in item.text:
                warp.tensor_groups.append([until])
                self.multiplying[warp.scheduler].append(warp.tensor_groups[-1])
            if step.write >= 0:
                warp.boards[step.write], warp.reasons[step.write] = until, "tensor cores"
            # A few may wait for the tensor core; more stop the warp.
            return max(time, own[TENSOR] - 4 * cycles * self.scale)
        if kind == "tensor wait":
            return self.tensor_wait(warp, step, time)
        if kind == "commit":
            warp.groups.append(warp.pending)
            return time
        if kind == "groups":
            keep = int(step.number)
            groups = warp.groups
            until, maker = max(groups[: max(len(groups) - keep, 0)], default=(time, -1))
            self.note(warp, maker if maker >= 0 else step.last, "copies in flight", time, until)
            warp.awaited = warp.awaited_of_dram = 0.0
            return max(time, until)
        if access is None:
            return time
        if kind == "barrier":
            return self.barrier(warp, step, access, time)
        if kind in ("wait", "arrive", "init"):
            return self.phase(warp, step, access, time)
        return self.memory(warp, step, access, time)

    def tensor_wait(self, warp: _Warp, step: OneStep, time: float) -> float:
        """Wait for all but the last groups; others may delay them meanwhile."""
        groups, keep = warp.tensor_groups, int(step.number)
        until = max((one[0] for one in groups[: max(len(groups) - keep, 0)]), default=time)
        if until > time:
            self.note(warp, step.last, "tensor cores", time, until)
            warp.again = step
            return until
        warp.again = None
        warp.tensor_groups = groups[-keep:] if keep else []
        return time

    def barrier(self, warp: _Warp, step: OneStep, access: Access, time: float) -> float | None:
        needed = access.value or warp.cta.warps
        number = access.barrier or 0
        latest, members = warp.cta.barriers.get(number, (0.0, []))
        is_arrival = ".ARV" in self.execution.program.code[step.last].opcode
        members = [*members, (None if is_arrival else warp, time)]
        latest = max(latest, time)
        # Those that ended no longer take part.
        if len(members) < min(needed, warp.cta.left if not access.value else needed):
            warp.cta.barriers[number] = (latest, members)
            return time if is_arrival else None
        warp.cta.barriers.pop(number, None)
        until = latest + self.clock.barrier + self.clock.barrier_warp * needed
        for other, since in members:
            if other is None:
                continue
            self.note(other, step.last, "barrier", since, until)
            if other is not warp:
                self.push(other, until)
        return time if is_arrival else until

    def phase(self, warp: _Warp, step: OneStep, access: Access, time: float) -> float | None:
        phases = warp.cta.phases
        where = access.barrier if access.barrier is not None else -1
        phase = phases.setdefault(where, _Phase())
        if step.write >= 0:
            warp.boards[step.write] = time + 20
        if access.kind == "init":
            if access.is_on:
                # Its phases begin anew, whatever lay there before.
                count = max((0x200000 - (access.value & 0x1FFFFF)) // 2, 1) if access.value else 1
                phases[where] = _Phase(count)
            return time
        if access.kind == "arrive":
            lanes = max(access.lanes, 1.0) if access.lanes < 32 or phase.count >= 32 else 1.0
            phase.arrived += lanes * access.is_on
            phase.pending += access.value * access.is_on
            self.complete(phase, time)
            return time
        # A wait for parity p ends with the phase of that parity: the first has parity 0.
        done = len(phase.done)
        if done % 2 != access.value:
            maker = phase.maker if phase.maker >= 0 else step.last
            self.note(warp, maker, "copies in flight", time, phase.done[-1] if phase.done else time)
            return max(time, phase.done[-1]) if phase.done else time
        warp.time = time
        phase.waiting.append((step.last, warp))
        return None

    def complete(self, phase: _Phase, time: float) -> None:
        if phase.arrived < phase.count - 0.01 or phase.pending > 64:
            return
        until = max(time, phase.landed) + 10
        phase.arrived, phase.pending, phase.landed = 0.0, 0.0, 0.0
        phase.done.append(until)
        for index, warp in phase.waiting:
            self.note(warp, phase.maker if phase.maker >= 0 else index, "copies in flight", warp.time, until)
            self.push(warp, max(until, warp.time))
        phase.waiting.clear()

    def memory(self, warp: _Warp, step: OneStep, access: Access, time: float) -> float:
        clock, kind = self.clock, step.kind
        key = id(access)
        use = self.cost_cache.get(key)
        if use is None:
            use = self.cost_cache[key] = costs_of(access, self.execution, clock, self.rates)
        own = self.own[warp.scheduler]
        begin = max(own[MEMORY], time) + clock.memory_issue * self.scale
        own[MEMORY] = begin
        if kind == "shared":
            served = self.queue(SHARED, begin, use[SHARED])
            self.boards(warp, step, served + clock.shared_latency, served + 6, "shared memory")
            return self.held(warp, step, time, served, 300.0, "shared memory")
        served = landed = begin
        if L1 in use:
            served, landed = self.queue(L1, begin, use[L1]), self.queue(SHARED, begin, use[SHARED])
            if kind != "copy":
                served = max(served, landed)
        hit = served + clock.l1_latency
        ready, why = hit, "L1"
        if use[PORT]:
            reached = self.queue(PORT, served, use[PORT])
            at_l2 = self.queue(L2, served, use[L2])
            at_dram = self.queue(DRAM, served, use[DRAM]) if use[DRAM] else served
            if ATOMICS in use:
                at_l2 = max(at_l2, self.queue(ATOMICS, served, use[ATOMICS]))
            part = self.execution.from_dram.get(access.array, 1.0)
            missed = min(1.0, part * 3)
            if "store" in kind:
                self.dram.stored += use[DRAM] * self.scale
            sectors = access.sectors * access.missed * access.is_on
            self.l2.follow(served, self.free[L2])
            if kind in ("load", "copy"):
                warp.awaited += sectors
                warp.awaited_of_dram += sectors * part
                at_l2 = max(at_l2, served + l2_delay(clock, self.l2.used, warp.awaited))
            if use[DRAM]:
                self.dram.follow(served, self.free[DRAM])
                delay = dram_delay(clock, self.dram.used, self.dram.writing, warp.awaited_of_dram)
                at_dram = max(at_dram, served + delay * missed)
            latency = clock.l2_latency + (clock.dram_latency - clock.l2_latency) * missed
            if kind.startswith("bulk"):
                latency += clock.bulk_latency - clock.dram_latency
            slowest = max(reached, at_l2, at_dram)
            ready = slowest + latency
            why = "DRAM" if slowest == at_dram and use[DRAM] else "L2" if slowest == at_l2 else "memory latency"
            if slowest - served < 0.3 * latency:
                why = "memory latency"
        if kind == "local":
            self.boards(warp, step, ready, served + 6, "spills")
            return self.held(warp, step, time, max(served, self.free[L2]), 400.0, "spills")
        if kind == "load":
            self.boards(warp, step, ready, served + 10, why)
            return self.held(warp, step, time, served, 400.0, "L1")
        if kind == "copy":
            # The warp goes on while what it copies is written.
            ready = max(ready, landed)
            warp.pending = max(warp.pending, (ready, step.last))
            self.boards(warp, step, ready, served + 10, why)
            return self.held(warp, step, time, served, 400.0, "L1")
        if kind == "bulk":
            if access.barrier is not None:
                phase = warp.cta.phases.setdefault(access.barrier, _Phase())
                if ready >= phase.landed:
                    phase.landed, phase.maker = ready, step.last
                phase.pending -= access.bytes * access.is_on
                self.complete(phase, time)
            self.boards(warp, step, time + clock.bulk_issue, time + clock.bulk_issue, "execution")
            return time + clock.bulk_issue * self.scale
        if kind == "bulk store":
            warp.pending = max(warp.pending, (self.free[PORT] + 300, step.last))
            self.boards(warp, step, time + clock.bulk_issue, time + clock.bulk_issue, "execution")
            return time + clock.bulk_issue * self.scale
        if kind == "atomic":
            self.boards(warp, step, ready, served + 10, "atomics")
            return self.held(warp, step, time, self.free[ATOMICS], _STORE_BACKLOG, "atomics")
        self.boards(warp, step, served + 12, served + 12, why)
        until = max(self.free[DRAM], self.free[L2], self.free[PORT])
        return self.held(warp, step, time, until, _STORE_BACKLOG, "spills" if kind == "local store" else "stores")

    def boards(self, warp: _Warp, step: OneStep, written: float, read: float, why: str) -> None:
        if step.write >= 0:
            warp.boards[step.write] = max(warp.boards[step.write], written)
            warp.reasons[step.write], warp.makers[step.write] = why, step.last
        if step.read >= 0:
            warp.boards[step.read] = max(warp.boards[step.read], read)
            warp.reasons[step.read], warp.makers[step.read] = "memory pipe", step.last

    def held(self, warp: _Warp, step: OneStep, time: float, until: float, room: float, why: str) -> float:
        """A queue takes so many cycles of work before a warp with more has to wait."""
        after = max(time, until - room)
        self.note(warp, step.last, why, time, after)
        return after

    def finish(self, warp: _Warp, time: float) -> None:
        cta = warp.cta
        cta.left -= 1
        cta.extra = max(cta.extra, warp.extra)
        cta.end = max(cta.end, time)
        # A barrier may have waited for this warp only.
        for number, (latest, members) in list(cta.barriers.items()):
            if cta.left and len(members) >= cta.left:
                cta.barriers.pop(number)
                for other, _ in members:
                    if other is not None:
                        self.push(other, max(latest, time) + self.clock.barrier)
        if cta.left:
            return
        self.ended.append(cta)
        if self.waiting:
            self.waiting -= 1
            self.start(cta.slot, cta.end, self.clock.cta_turnover, False)


def simulate(
    execution: Execution,
    clock: Clock,
    steps: list[Steps],
    *,
    resident: int,
    waiting: int,
    active: int,
    scale: float = 1.0,
) -> Simulated:
    """Run the CTAs of one multiprocessor.

    Args:
        execution: what they execute.
        clock: the part.
        steps: of `steps_of`.
        resident: CTAs at once.
        waiting: CTAs that come after them.
        active: multiprocessors that run CTAs at the same time, and share L2 and DRAM.
        scale: how many CTAs each of these stands for.

    Raises NotFollowed where a CTA does not end.
    """
    rates = rates_of(clock, active)
    unit = _Multiprocessor(execution, clock, rates, scale, steps)
    for slot in range(resident):
        unit.start(slot, 0.0, 0.0, slot == 0)
    unit.run(waiting)
    drained = max(unit.free[DRAM], unit.free[L2], unit.free[PORT], unit.free[ATOMICS])
    ctas = sorted((one.end, one.extra) for one in unit.ended)
    if len(ctas) < resident + waiting:
        raise NotFollowed("warps wait for one another for ever, as far as its barriers are known.")
    return Simulated(max(ctas[-1][0], drained), ctas, dict(unit.waits), unit.spans)
