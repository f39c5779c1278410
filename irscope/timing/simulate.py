"""One multiprocessor with its CTAs: the warps in order, each unit as a queue, and what each warp waits for.

A warp's trace becomes steps: instructions of fixed latency up to one that waits for a scoreboard, accesses memory or
meets others. A step takes as long as its stall counts say, or as the queue of a unit that it uses. Times of memory
follow from the queues of L1, of the port to L2, of this multiprocessor's part of L2 and of DRAM, and from latencies.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from irscope.device.clocks import Clock
from irscope.ir.asm.instructions import Instruction
from irscope.timing.execution import SECTOR, Access, Execution
from irscope.timing.walk import Observed, Skip

__all__ = ["Demand", "Span", "Steps", "demand_of", "simulate", "steps_of"]

UNITS = ("issue", "integer and logic", "FMA", "special functions", "tensor cores", "float64", "shared memory", "L1",
         "L2 port", "L2", "DRAM", "atomics", "memory pipe", "CTA start")  # fmt: skip
"""What may be busy; the first six and the last of one scheduler, the others of a multiprocessor or of its part."""
_ISSUE, _ALU, _FMA, _SPECIAL, _TENSOR, _DOUBLE, _SHARED, _L1, _PORT, _L2, _DRAM, _ATOMICS, _MEMORY, _START = range(14)
_OF_SCHEDULER = (_ISSUE, _ALU, _FMA, _SPECIAL, _TENSOR, _DOUBLE, _MEMORY)
_STORE_BACKLOG = 1200.0
"""Cycles of stores that wait for DRAM before a warp that stores more has to wait."""

_ON_FMA = ("FFMA", "FMUL", "FADD", "FSWZADD", "FFMA32I", "FADD2", "FMUL2", "FFMA2")
_ON_HALF = ("HFMA2", "HADD2", "HMUL2", "HMNMX2", "HSET2", "HSETP2", "BF16_V2")
_ON_MULTIPLY = ("IMAD", "IDP", "XMAD")
_ON_DOUBLE = ("DFMA", "DMUL", "DADD", "DSETP", "DMNMX")
_ON_SPECIAL = ("MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV", "I2FP")
_NOWHERE = (
    "NOP", "BRA", "EXIT", "BSSY", "BSYNC", "WARPSYNC", "CS2R", "S2R", "S2UR", "ULDC", "LDC", "LDCU", "UMOV", "UIADD3",
    "ULEA", "USHF", "ULOP3", "UISETP", "USEL", "R2UR", "UIMAD", "DEPBAR", "LDGDEPBAR", "WARPGROUP", "FENCE", "MEMBAR",
    "UTMACMDFLUSH", "UTMACCTL", "ELECT", "VOTEU", "CCTL", "ERRBAR", "YIELD", "NANOSLEEP", "BREAK", "RET", "CALL",
)  # fmt: skip
_LATENCY = {"MUFU": 18.0, "I2F": 23.0, "F2I": 23.0, "S2R": 30.0, "S2UR": 30.0, "LDC": 38.0, "LDCU": 30.0,
            "R2UR": 14.0, "F2F": 23.0, "POPC": 17.0, "FLO": 17.0, "VOTEU": 12.0, "MEMBAR": 60.0, "FENCE": 20.0,
            "DFMA": 10.0, "DADD": 10.0, "DMUL": 10.0, "DSETP": 10.0, "REDUX": 24.0, "CREDUX": 24.0}  # fmt: skip
"""Cycles of instructions whose latency varies, where nothing queues."""


@dataclass(slots=True)
class _Step:
    """Instructions of one warp without a wait between them, and what ends them."""

    index: int
    """The first instruction."""
    wait: int = 0
    """Scoreboards that must be clear before."""
    stall: float = 0.0
    use: dict[int, float] = field(default_factory=dict[int, float])
    sets: list[tuple[int, float, float]] = field(default_factory=list[tuple[int, float, float]])
    """(scoreboard, cycles after the beginning, latency)."""
    kind: str = ""
    """What ends it: an access, a barrier, a mark."""
    access: Access | None = None
    last: int = 0
    """The instruction that ends it."""
    write: int = -1
    read: int = -1
    number: float = 0.0
    """Of a wait: how many groups may remain; of a skip: the iterations."""
    mark: int = 0
    count: int = 1


@dataclass(slots=True)
class Steps:
    """The steps of one group of warps."""

    rows: int
    steps: list[_Step]


@dataclass(slots=True)
class Span:
    """What the timeline shows of one warp of the first CTA: from when to when it did, or waited for, something."""

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
    first_end: float
    """When the first generation ended."""
    extra: float
    """Cycles of a CTA's skipped iterations."""
    waits: dict[tuple[int, str], float]
    """(instruction, why) → cycles of all warps, the skipped iterations included."""
    spans: list[Span]
    """Of the first CTA."""


def steps_of(execution: Execution, clock: Clock) -> list[Steps]:
    """The steps of each group of warps of a CTA."""
    return [Steps(len(group.rows), _Builder(execution, clock).build(group.trace)) for group in execution.groups]


class _Builder:
    def __init__(self, execution: Execution, clock: Clock) -> None:
        self.code = execution.program.code
        self.bases = execution.program.bases
        self.clock = clock
        self.execution = execution
        self._static: dict[int, tuple[int, float]] = {}

    def _pipe(self, index: int) -> tuple[int, float]:
        """The pipe that an instruction uses, and for how many cycles; a negative one for none."""
        if index not in self._static:
            self._static[index] = _pipe_of(self.bases[index], self.code[index], self.clock)
        return self._static[index]

    def build(self, trace: list[Any]) -> list[_Step]:
        marks: dict[int, list[int]] = defaultdict(list)
        for place, entry in enumerate(trace):
            if isinstance(entry, Skip):
                marks[place - (entry.since or entry.entries)].append(place)
        steps: list[_Step] = []
        current: _Step | None = None
        outstanding = 0
        # When each pipe takes this warp's next instruction: in order, one that waits for its pipe holds up all others.
        taken: dict[int, float] = {}

        def close() -> None:
            nonlocal current
            if current is not None:
                steps.append(current)
                current = None

        for place, entry in enumerate(trace):
            for mark in marks.get(place, ()):
                close()
                steps.append(_Step(0, kind="mark", mark=mark))
            if isinstance(entry, Skip):
                close()
                steps.append(_Step(0, kind="skip", mark=place, number=entry.count / entry.window))
                continue
            index = entry.index if isinstance(entry, Observed) else entry
            item = self.code[index]
            control = item.control
            waits = control.wait_mask & outstanding if control is not None else 0
            if waits:
                close()
                outstanding &= ~waits
            if current is None:
                current = _Step(index, wait=waits)
                taken.clear()
            stall = max(control.stall if control is not None else 2, 1)
            current.last = index
            use = current.use
            use[_ISSUE] = use.get(_ISSUE, 0.0) + self.clock.issue
            pipe, cycles = self._pipe(index)
            if pipe >= 0:
                use[pipe] = use.get(pipe, 0.0) + cycles
                current.stall = max(current.stall, taken.get(pipe, 0.0))
                taken[pipe] = current.stall + cycles
            write = control.write_barrier if control is not None else None
            read = control.read_barrier if control is not None else None
            access = entry.payload if isinstance(entry, Observed) else None
            kind = self._kind(index, item, access)
            if write is not None:
                outstanding |= 1 << write
            if read is not None:
                outstanding |= 1 << read
            if kind:
                current.kind, current.access = kind, access
                current.write, current.read = -1 if write is None else write, -1 if read is None else read
                current.stall += stall
                current.number = _number(item) if kind in ("groups", "tensor wait") else 0.0
                if kind == "scoreboards":
                    current.number = float(outstanding)
                close()
                continue
            if write is not None:
                latency = _LATENCY.get(self.bases[index], self.clock.shuffle_latency)
                current.sets.append((write, current.stall, latency))
            if read is not None:
                current.sets.append((read, current.stall, 12.0))
            current.stall += stall
        close()
        return steps

    def _kind(self, index: int, item: Instruction, access: Access | None) -> str:
        base = self.bases[index]
        if access is not None:
            if not access.is_on:
                return ""
            return access.kind
        if base in ("HGMMA", "QGMMA", "IGMMA", "BGMMA") or (base.startswith("UTC") and "MMA" in base):
            return "tensor"
        if base == "WARPGROUP" and "DEPBAR" in item.opcode:
            return "tensor wait"
        if base == "DEPBAR":
            return "groups" if "SB0" in item.text and "LE" in item.opcode else ""
        if base in ("LDGDEPBAR", "UTMACMDFLUSH"):
            return "commit"
        if base == "ARRIVES":
            return "commit"
        return ""


def _number(item: Instruction) -> float:
    """`DEPBAR.LE SB0, 0x2`, `WARPGROUP.DEPBAR.LE gsb0, 0x1`."""
    last = item.operands[-1] if item.operands else "0x0"
    return float(int(last, 16)) if last.startswith("0x") else 0.0


def _pipe_of(base: str, item: Instruction, clock: Clock) -> tuple[int, float]:
    if base in _ON_FMA:
        return _FMA, clock.fma
    if base in _ON_MULTIPLY:
        # A move or an addition in its dress takes what a multiplication takes.
        return _FMA, clock.multiply
    if base in _ON_HALF:
        return _FMA, clock.half
    if base in _ON_DOUBLE:
        return _DOUBLE, clock.double
    if base in _ON_SPECIAL:
        return (_ALU, clock.alu) if base == "I2FP" else (_SPECIAL, clock.special)
    if base in ("HMMA", "IMMA", "QMMA", "DMMA", "BMMA"):
        return _TENSOR, _mma_cycles(base, item, clock)
    if base in ("SHFL", "REDUX"):
        return _MEMORY, clock.shuffle
    return (-1, 0.0) if base in _NOWHERE or base.startswith("U") else (_ALU, clock.alu)


def _shape(item: Instruction) -> tuple[int, int, int] | None:
    """`HGMMA.64x256x16.F32.BF16`, `HMMA.16816.F32.BF16`."""
    for part in item.opcode.split(".")[1:]:
        if part.count("x") == 2 and part.replace("x", "").isdecimal():
            m, n, k = map(int, part.split("x"))
            return m, n, k
        if part.isdecimal() and len(part) in (3, 4, 5):
            return {"1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32), "884": (8, 8, 4),
                    "1684": (16, 8, 4), "16864": (16, 8, 64)}.get(part, (16, 8, 16))  # fmt: skip
    return None


def _operands(base: str, item: Instruction) -> str:
    if base[0] == "Q":
        return "f8"
    if base[0] == "I":
        return "i8"
    if base[0] == "D":
        return "f64"
    return "tf32" if "TF32" in item.opcode else "f16"


def _mma_cycles(base: str, item: Instruction, clock: Clock) -> float:
    m, n, k = _shape(item) or (16, 8, 16)
    rate = clock.mma_flops.get(_operands(base, item), 256.0)
    return m * n * k / rate


def _wgmma(item: Instruction, base: str, clock: Clock) -> tuple[float, float]:
    """Cycles of the tensor core of each scheduler, and wavefronts of shared memory for each warp."""
    m, n, k = _shape(item) or (64, 64, 16)
    kind = _operands(base, item)
    rate = clock.tensor_flops.get(kind, 512.0)
    cycles = m * n * k / (4 * rate)
    size = {"f16": 2, "tf32": 4, "f8": 1, "i8": 1}.get(kind, 2)
    from_shared = sum("gdesc" in one for one in item.operands)
    size_a = (
        m * k * size
        if from_shared
        and "gdesc" in (item.operands[1] if len(item.operands) > 1 else "")
        and not item.operands[1].startswith("R")
        else 0
    )
    return cycles, (n * k * size + size_a) / clock.shared_bytes / 4


@dataclass(slots=True)
class Demand:
    """What a CTA asks of each unit, in cycles of a multiprocessor with all its schedulers, skipped iterations included."""

    cycles: list[float]
    l2_bytes: float
    dram_bytes: float
    by_index: dict[int, float]
    """Instruction → bytes of DRAM."""
    instructions: float
    tensor_flops: float = 0.0


def costs_of(access: Access, execution: Execution, clock: Clock, rates: _Rates) -> dict[int, float]:
    """What one warp's access asks of each unit, in cycles."""
    kind, on = access.kind, access.is_on
    use: dict[int, float] = {}
    if kind == "shared":
        return {_SHARED: access.wavefronts * on}
    if kind not in ("load", "store", "copy", "atomic", "bulk", "bulk store", "local"):
        return use
    beyond = access.sectors * access.missed * SECTOR * on
    if not kind.startswith("bulk"):
        use[_L1] = max(access.lines, access.sectors * SECTOR / clock.l1_bytes) * on
    if kind == "copy":
        use[_SHARED] = access.wavefronts * on
    part = (execution.written if "store" in kind else execution.from_dram).get(access.array, 1.0)
    use[_PORT] = beyond / clock.port_bytes
    use[_L2] = beyond / rates.l2
    use[_DRAM] = beyond * part / (rates.written if "store" in kind else rates.dram)
    if kind == "atomic":
        alone = execution.distinct.get(access.array, 1.0)
        serial = clock.atomic_cycles * access.conflicts / max(alone * rates.resident, 1e-9)
        use[_ATOMICS] = max(access.sectors * clock.atomics, serial) * on
    return use


@dataclass(slots=True)
class _Rates:
    """Bytes in a cycle that one multiprocessor gets of what all share."""

    l2: float
    dram: float
    written: float
    resident: int


def rates_of(clock: Clock, active: int, resident: int) -> _Rates:
    """`active`: multiprocessors that run CTAs at the same time."""
    active = max(active, 1)
    dram = clock.dram_bytes_per_s / clock.clock_hz / active
    return _Rates(
        clock.l2_bytes_per_s / clock.clock_hz / active, dram * clock.dram_efficiency, dram * clock.write_efficiency,
        resident,
    )  # fmt: skip


def demand_of(execution: Execution, clock: Clock, rates: _Rates) -> Demand:
    """What one CTA asks of each unit."""
    total = [0.0] * len(UNITS)
    l2 = dram = count = 0.0
    by_index: dict[int, float] = defaultdict(float)
    builder = _Builder(execution, clock)
    total[_START] = clock.cta_start
    tensor = 0.0
    for group in execution.groups:
        rows = len(group.rows)
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if isinstance(entry, Skip):
                continue
            index = entry.index if isinstance(entry, Observed) else entry
            times = weight * rows
            count += times
            total[_ISSUE] += times * clock.issue / clock.schedulers
            pipe, cycles = builder._pipe(index)
            if pipe >= 0:
                total[pipe] += times * cycles / clock.schedulers
            base = builder.bases[index]
            if base.endswith("GMMA"):
                own, fronts = _wgmma(builder.code[index], base, clock)
                total[_TENSOR] += times * own / clock.schedulers
                total[_SHARED] += times * fronts
            if isinstance(entry, Observed) and entry.payload is not None:
                access: Access = entry.payload
                for unit, cycles in costs_of(access, execution, clock, rates).items():
                    total[unit] += times * cycles
                    if unit == _DRAM:
                        moved = cycles * (rates.written if "store" in access.kind else rates.dram)
                        dram += moved * times
                        by_index[index] += moved * times
                    elif unit == _L2:
                        l2 += cycles * rates.l2 * times
    return Demand(total, l2, dram, by_index, count, tensor)


# ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Phase:
    """An mbarrier."""

    count: int = 1
    arrived: float = 0.0
    pending: float = 0.0
    landed: float = 0.0
    """When the last copy on it lands."""
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
    start: float = 0.0
    end: float = 0.0
    extra: float = 0.0
    is_first: bool = False


class _Warp:
    __slots__ = (
        "at",
        "boards",
        "cta",
        "extra",
        "groups",
        "marks",
        "number",
        "pending",
        "reasons",
        "scheduler",
        "since",
        "steps",
        "tensor",
        "tensor_groups",
        "time",
        "weight",
    )  # fmt: skip

    def __init__(self, cta: _Cta, number: int, steps: list[_Step], scheduler: int, time: float) -> None:
        self.cta, self.number, self.steps, self.scheduler, self.time = cta, number, steps, scheduler, time
        self.at = 0
        self.boards = [0.0] * 8
        self.reasons = ["dependency"] * 8
        self.pending = 0.0
        self.groups: list[float] = []
        self.tensor = 0.0
        self.tensor_groups: list[float] = []
        self.extra = 0.0
        self.marks: dict[int, tuple[float, float, int]] = {}
        self.since: list[tuple[int, str, float]] = []


class _Multiprocessor:
    def __init__(self, execution: Execution, clock: Clock, rates: _Rates, scale: float, steps: list[Steps]) -> None:
        self.execution, self.clock, self.rates, self.scale = execution, clock, rates, scale
        self.steps = steps
        self.free = [0.0] * len(UNITS)
        self.own = [[0.0] * len(UNITS) for _ in range(clock.schedulers)]
        self.load = [[0.0] * len(UNITS) for _ in range(clock.schedulers)]
        """Of each unit of a scheduler: the part of a cycle that warps use it now."""
        self.active: list[list[tuple[float, int, list[tuple[int, float]]]]] = [[] for _ in range(clock.schedulers)]
        self.heap: list[tuple[float, int, _Warp]] = []
        self.order = 0
        self.waits: dict[tuple[int, str], float] = defaultdict(float)
        self.spans: list[Span] = []
        self.ended: list[_Cta] = []
        self.waiting = 0
        self.cost_cache: dict[int, dict[int, float]] = {}
        self.wgmma_cache: dict[int, tuple[float, float]] = {}

    def push(self, warp: _Warp, time: float) -> None:
        warp.time = time
        self.order += 1
        heapq.heappush(self.heap, (time, self.order, warp))

    def start(self, slot: int, time: float, is_first: bool) -> None:
        time = self.queue(_START, time, self.clock.cta_start)
        warps = sum(one.rows for one in self.steps)
        cta = _Cta(slot, warps, warps, start=time, is_first=is_first)
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
            while True:
                after = self.step(warp, time)
                if after is None:
                    break
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
        if step.wait:
            why = "dependency"
            for number in range(6):
                if step.wait >> number & 1 and warp.boards[number] > ready:
                    ready, why = warp.boards[number], warp.reasons[number]
            if ready > time:
                self.note(warp, step.index, why, time, ready)
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
            for unit, rate in heapq.heappop(active)[2]:
                load[unit] -= rate
        for unit, cycles in step.use.items():
            # What others do meanwhile falls on this warp's instructions, and in order each delay is the whole warp's.
            delay += cycles * (load[unit] if load[unit] < 1.0 else 1.0)
            free = own[unit]
            free = (free if free > ready else ready) + cycles * scale
            own[unit] = free
            if free > latest:
                latest, why = free, UNITS[unit]
        done = max(done + delay * self.clock.collision, latest)
        length = done - ready
        if length > 0:
            rates = [(unit, cycles * scale / length) for unit, cycles in step.use.items()]
            for unit, rate in rates:
                load[unit] += rate
            self.order += 1
            heapq.heappush(active, (done, self.order, rates))
        self.note(warp, step.index, why, ready, done)
        for board, offset, latency in step.sets:
            warp.boards[board] = max(warp.boards[board], ready + offset + latency, done)
            warp.reasons[board] = "dependency"
        warp.at += 1
        return self.end(warp, step, done) if kind else done

    def queue(self, unit: int, time: float, cycles: float) -> float:
        free = self.free[unit]
        free = (free if free > time else time) + cycles * self.scale
        self.free[unit] = free
        return free

    def end(self, warp: _Warp, step: _Step, time: float) -> float | None:
        """What ends a step: an access, or a meeting with others."""
        kind, access, clock = step.kind, step.access, self.clock
        if kind == "tensor":
            item, base = self.execution.program.code[step.last], self.execution.program.bases[step.last]
            if step.last not in self.wgmma_cache:
                self.wgmma_cache[step.last] = _wgmma(item, base, clock)
            cycles, fronts = self.wgmma_cache[step.last]
            own = self.own[warp.scheduler]
            begin = max(own[_TENSOR], time)
            fed = self.queue(_SHARED, time, fronts)
            own[_TENSOR] = max(begin + cycles * self.scale, fed)
            warp.tensor = own[_TENSOR] + clock.wgmma_latency
            if "gsb" in item.text:
                warp.tensor_groups.append(warp.tensor)
            if step.write >= 0:
                warp.boards[step.write], warp.reasons[step.write] = warp.tensor, "tensor cores"
            # A few may wait for the tensor core; more stop the warp.
            return max(time, own[_TENSOR] - 4 * cycles * self.scale)
        if kind == "tensor wait":
            groups = warp.tensor_groups
            keep = int(step.number)
            until = max(groups[: len(groups) - keep], default=time) if len(groups) > keep else time
            warp.tensor_groups = groups[-keep:] if keep else []
            self.note(warp, step.last, "tensor cores", time, until)
            return max(time, until)
        if kind == "commit":
            warp.groups.append(warp.pending)
            return time
        if kind == "groups":
            keep = int(step.number)
            groups = warp.groups
            until = max(groups[: len(groups) - keep], default=time) if len(groups) > keep else time
            self.note(warp, step.last, "copies in flight", time, until)
            return max(time, until)
        if access is None:
            return time
        if kind == "barrier":
            return self.barrier(warp, step, access, time)
        if kind in ("wait", "arrive", "init"):
            return self.phase(warp, step, access, time)
        return self.memory(warp, step, access, time)

    def barrier(self, warp: _Warp, step: _Step, access: Access, time: float) -> float | None:
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

    def phase(self, warp: _Warp, step: _Step, access: Access, time: float) -> float | None:
        phases = warp.cta.phases
        where = access.barrier if access.barrier is not None else -1
        phase = phases.setdefault(where, _Phase())
        if step.write >= 0:
            warp.boards[step.write] = time + 20
        if access.kind == "init":
            phase.count = max((0x200000 - (access.value & 0x1FFFFF)) // 2, 1) if access.value else 1
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
            self.note(warp, step.last, "copies in flight", time, phase.done[-1] if phase.done else time)
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
            self.note(warp, index, "copies in flight", warp.time, until)
            self.push(warp, max(until, warp.time))
        phase.waiting.clear()

    def memory(self, warp: _Warp, step: _Step, access: Access, time: float) -> float:
        clock, kind = self.clock, step.kind
        key = id(access)
        use = self.cost_cache.get(key)
        if use is None:
            use = self.cost_cache[key] = costs_of(access, self.execution, clock, self.rates)
        own = self.own[warp.scheduler]
        begin = max(own[_MEMORY], time) + clock.memory_issue * self.scale
        own[_MEMORY] = begin
        if kind == "shared":
            served = self.queue(_SHARED, begin, use[_SHARED])
            self.boards(warp, step, served + clock.shared_latency, served + 6, "shared memory")
            return self.held(warp, step, time, served, 300.0, "shared memory")
        served = begin
        if _L1 in use:
            served = self.queue(_L1, begin, use[_L1])
        hit = served + clock.l1_latency
        ready, why = hit, "L1"
        if use[_PORT]:
            reached = self.queue(_PORT, served, use[_PORT])
            at_l2 = self.queue(_L2, served, use[_L2])
            at_dram = self.queue(_DRAM, served, use[_DRAM]) if use[_DRAM] else served
            if _ATOMICS in use:
                at_l2 = max(at_l2, self.queue(_ATOMICS, served, use[_ATOMICS]))
            part = self.execution.from_dram.get(access.array, 1.0)
            latency = clock.l2_latency + (clock.dram_latency - clock.l2_latency) * min(1.0, part * 3)
            if kind.startswith("bulk"):
                latency += clock.bulk_latency - clock.dram_latency
            slowest = max(reached, at_l2, at_dram)
            ready = slowest + latency
            why = "DRAM" if slowest == at_dram and use[_DRAM] else "L2" if slowest == at_l2 else "memory latency"
            if slowest - served < 0.3 * latency:
                why = "memory latency"
        if kind == "local":
            self.boards(warp, step, ready, served + 6, "spills")
            return self.held(warp, step, time, max(served, self.free[_L2]), 400.0, "spills")
        if kind == "load":
            self.boards(warp, step, ready, served + 10, why)
            return self.held(warp, step, time, served, 400.0, "L1")
        if kind == "copy":
            fronts = self.queue(_SHARED, served, use[_SHARED])
            warp.pending = max(warp.pending, ready, fronts)
            self.boards(warp, step, ready, served + 10, why)
            return self.held(warp, step, time, max(served, fronts), 400.0, "L1")
        if kind == "bulk":
            if access.barrier is not None:
                phase = warp.cta.phases.setdefault(access.barrier, _Phase())
                phase.landed = max(phase.landed, ready)
                phase.pending -= access.bytes * access.is_on
                self.complete(phase, time)
            self.boards(warp, step, time + clock.bulk_issue, time + clock.bulk_issue, "execution")
            return time + clock.bulk_issue * self.scale
        if kind == "bulk store":
            warp.pending = max(warp.pending, self.free[_PORT] + 300)
            self.boards(warp, step, time + clock.bulk_issue, time + clock.bulk_issue, "execution")
            return time + clock.bulk_issue * self.scale
        if kind == "atomic":
            self.boards(warp, step, ready, served + 10, "atomics")
            return self.held(warp, step, time, self.free[_ATOMICS], _STORE_BACKLOG, "atomics")
        self.boards(warp, step, served + 12, served + 12, why)
        return self.held(
            warp, step, time, max(self.free[_DRAM], self.free[_L2], self.free[_PORT]), _STORE_BACKLOG, "stores"
        )

    def boards(self, warp: _Warp, step: _Step, written: float, read: float, why: str) -> None:
        if step.write >= 0:
            warp.boards[step.write] = max(warp.boards[step.write], written)
            warp.reasons[step.write] = why
        if step.read >= 0:
            warp.boards[step.read] = max(warp.boards[step.read], read)
            warp.reasons[step.read] = "memory pipe"

    def held(self, warp: _Warp, step: _Step, time: float, until: float, room: float, why: str) -> float:
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
            self.start(cta.slot, cta.end, False)


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
    """
    rates = rates_of(clock, active, resident)
    unit = _Multiprocessor(execution, clock, rates, scale, steps)
    for slot in range(resident):
        unit.start(slot, 0.0, slot == 0)
    unit.run(waiting)
    ended = unit.ended
    if not ended:
        # Warps wait for one another: what the trace left out would have freed them.
        return Simulated(max(unit.free), max(unit.free), 0.0, dict(unit.waits), unit.spans)
    ends = sorted(one.end for one in ended)
    drained = max(unit.free[_DRAM], unit.free[_L2], unit.free[_PORT], unit.free[_ATOMICS])
    first = ends[min(resident, len(ends)) - 1]
    return Simulated(
        max(ends[-1], drained), max(first, drained) if not waiting else first, max(one.extra for one in ended),
        dict(unit.waits), unit.spans,
    )  # fmt: skip
