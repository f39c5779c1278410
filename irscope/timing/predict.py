"""The predicted time of a launch: its grid over the multiprocessors of a part, what bounds it, and whose time it is."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf
from typing import Literal

import numpy as np

from irscope.device.clocks import Clock, clock_of
from irscope.ir.locations.model import Chain
from irscope.ir.locations.stages import capture_locations
from irscope.model.capture import Capture
from irscope.timing.accesses import Access
from irscope.timing.execution import Execution, execute
from irscope.timing.simulate import Simulated, Span, simulate
from irscope.timing.steps import (
    ATOMICS,
    DRAM,
    L2,
    SHARED,
    TENSOR,
    UNITS,
    Demand,
    Steps,
    demand_of,
    rates_of,
    steps_of,
    uses_tensor_cores,
)
from irscope.timing.walk import Observed, Skip, Walked

__all__ = ["Model", "Prediction", "Share", "WhatIf", "coalesced", "predict_with", "predicted_from_work"]

_MOST_STEPS = 100_000
"""Steps of warps that are simulated: with more, one CTA stands for several."""
_BUSY = 0.6
"""A unit bounds a launch that keeps it busy for this part of the time."""
_WAITING = 0.3
_UNIT_KIND = {
    **dict.fromkeys(("L1", "L2 port", "L2", "DRAM"), "memory"),
    **dict.fromkeys(("issue", "integer and logic", "FMA", "special functions", "float64", "memory pipe"), "issue"),
}
"""Units that serve the same accesses one after another, or the same instructions."""
_UNEVEN = 1.1
"""From so many times the time of CTAs of one length on, those that are left at the end are simulated alone."""
_FEW = 8
"""Of so many multiprocessors one is busy, at the very end."""
_SLOWING = ((TENSOR, 0.3, 0.14), (L2, 0.5, 0.12))
"""(unit, from which part of the time that it is busy, how much lower the clock is by then where it is always busy)."""
_INTERVAL = (0.75, 1.5)
"""Where nine of ten measured times lie, in times the predicted one (docs/timing.md)."""
_ASSUMED_INTERVAL = (0.5, 2.5)
"""Likewise where data decide a loop, a branch or an address."""
_ANALYTIC_INTERVAL = (0.5, 3.0)


@dataclass(frozen=True, slots=True)
class Share:
    """The part of all warps' time that goes to one line of Python."""

    file: str
    line: int
    share: float
    seconds: float
    """The part of the launch's time."""
    reasons: tuple[tuple[str, float], ...]
    """(why its warps wait, the part of the line's time), the greatest first."""
    instructions: tuple[tuple[str, float], ...]
    """(what kind of instruction, the part of the line's time), the greatest first."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The same model with one thing changed."""

    name: str
    seconds: float
    gain: float
    """How many times faster."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted time of a launch, without a GPU."""

    kernel: str
    capture_id: str
    part: str
    seconds: float
    interval: tuple[float, float]
    """Where the measured time is expected to lie."""
    bound: str
    """What bounds it: a unit, latency, barriers, the last wave, too few CTAs, or the launch itself."""
    method: Literal["simulated", "analytic"]
    is_validated: bool
    """Whether predictions for this part were compared with measured times."""
    grid: tuple[int, int, int]
    ctas_per_unit: int
    """CTAs that a multiprocessor holds at once."""
    waves: float
    launch_seconds: float
    busy: tuple[tuple[str, float], ...]
    """(unit, the part of the time that it is busy), the busiest first."""
    dram_bytes: float
    l2_bytes: float
    lines: tuple[Share, ...] = ()
    """The lines of Python, the most expensive first."""
    waits: tuple[tuple[str, float], ...] = ()
    """(what warps do or wait for, the part of their time), the greatest first."""
    what_if: tuple[WhatIf, ...] = ()
    timeline: tuple[Span, ...] = ()
    """Of one CTA, in cycles."""
    clock_hz: float = 0.0
    notes: tuple[str, ...] = ()
    is_calibrated: bool = False
    """Whether constants of the part were measured here, by `irscope time --calibrate`."""


@dataclass(slots=True)
class _Timed:
    cycles: float
    simulated: Simulated
    demand: Demand
    busy: list[float]
    limits: list[float]
    """The same, of DRAM and L2 in parts of their peak as Nsight Compute counts."""
    waves: float
    resident: int
    balance: float


def predict_with(
    capture: Capture,
    *,
    part: str | None = None,
    clock: Clock | None = None,
    what_if: bool = True,
) -> Prediction:
    """Predict a CUDA launch from its SASS.

    Args:
        capture: a compile with its SASS.
        part: `h100`, `h200`, …; None for the first of the target.
        clock: its constants, where they are others than the table's.
        what_if: whether to answer what coalescing, conflicts and more warps are worth.

    Raises UsageError for a part that is not known, and where a size or the grid is not; NotFollowed where the control
    flow is not.
    """
    model = Model(capture, part=part, clock=clock)
    return _prediction(model, what_if)


def _prediction(model: Model, what_if: bool) -> Prediction:
    capture, clock, execution, timed = model.capture, model.clock, model.execution, model.timed
    seconds = clock.launch_s + timed.cycles / clock.clock_hz
    low, high = _ASSUMED_INTERVAL if execution.assumed else _INTERVAL
    busy = sorted(zip(UNITS, timed.busy, strict=True), key=lambda row: -row[1])
    waits = _reasons(timed.simulated)
    return Prediction(
        capture.name,
        capture.id,
        clock.part,
        seconds,
        (seconds * low, seconds * high),
        _bound(execution, clock, timed, waits),
        "simulated",
        clock.is_validated,
        execution.grid,
        execution.resident,
        timed.waves,
        clock.launch_s,
        tuple((name, part) for name, part in busy if part > 0.005),
        timed.demand.dram_bytes * execution.ctas,
        timed.demand.l2_bytes * execution.ctas,
        _lines(execution, timed.simulated, seconds, capture.launch.kernel.file, model.locations),
        tuple(sorted(waits.items(), key=lambda row: -row[1])),
        _what_ifs(execution, clock, seconds) if what_if else (),
        tuple(timed.simulated.spans),
        clock.clock_hz,
        tuple(sorted(execution.assumed)),
        clock.is_calibrated,
    )


def _timed(execution: Execution, clock: Clock) -> _Timed:
    """The cycles of a launch from its first CTA's start to its last one's end."""
    steps = steps_of(execution, clock)
    ctas = execution.ctas
    most = ceil(ctas / clock.units)
    resident = min(execution.resident, most)
    active = min(ctas, clock.units)
    size = sum(one.rows * len(one.steps) for one in steps)
    generations, rest = divmod(most, resident)
    waiting = min(generations - 1, 2) * resident + rest
    apart = max(1, ceil(resident * size * min(generations + bool(rest), 2) / _MOST_STEPS))
    count = max(1, round(resident / apart))
    scale = resident / count
    first = simulate(execution, clock, steps, resident=count, waiting=ceil(waiting / scale), active=active, scale=scale)
    runs = [first.ctas[start : start + count] for start in range(0, len(first.ctas), count)]
    extras = [max(extra for _, extra in run) for run in runs]
    cycles = first.end + sum(extras)
    if generations > 3 and len(runs) > 2:
        # The first generations begin together, so the third tells how long each further one takes.
        second, third = (sum(end for end, _ in run) / count for run in runs[1:3])
        cycles += (generations - 3) * (third - second + extras[2])
    work = execution.work
    balance = 1.0
    if work.size and work.max() > 1.02 * work.min():
        slots = clock.units * resident
        scale = ctas / len(work)
        ends = _ends(work.tolist(), max(1, round(slots / scale)))
        even = max(ceil(len(work) / max(1, slots / scale)), 1)
        balance = ends[-1] / even
        if balance > _UNEVEN:
            alone = _alone(execution, clock, steps, active, resident, first.ctas[count - 1][0])
            cycles *= _with_fewer(ends, resident, alone) / even
        else:
            cycles *= balance
    demand = demand_of(execution, clock, rates_of(clock, active))
    mean = float(work.mean()) if work.size else 1.0
    share = ctas / active * mean
    # No unit does more than it can: what queues leave out of sight in skipped iterations shows here.
    floor = max(demand.cycles) * share
    cycles = max(cycles, floor)
    # What the launch itself leaves in L2 others write back.
    moved, written = demand.dram_bytes * ctas * mean, demand.written_bytes * ctas * mean
    evicted = max(min(clock.dirty_bytes, moved) - min(clock.dirty_bytes, written), 0.0)
    taken = evicted / (clock.dram_bytes_per_s / clock.clock_hz)
    if taken:
        cycles += taken * min(demand.cycles[DRAM] * share / cycles, 1.0)
        demand.cycles[DRAM] += taken / share
    cycles += len(execution.program.code) * 16 / clock.code_bytes
    busy = [one * share / cycles for one in demand.cycles]
    if busy[TENSOR]:
        cycles /= 1 - sum(slower * max(busy[unit] - least, 0.0) for unit, least, slower in _SLOWING)
    # Multiprocessors without a CTA count too.
    limits = [one if unit in (L2, DRAM, ATOMICS) else one * active / clock.units for unit, one in enumerate(busy)]
    limits[DRAM] = (moved + evicted) / cycles / (clock.dram_bytes_per_s / clock.clock_hz)
    # Of L1 while the multiprocessors have CTAs: fewer of these in the last wave.
    present = ctas / clock.units / most / max(balance, 1.0) if active == clock.units else 1.0
    limits[SHARED] = demand.l1_throughput * share / cycles * active / clock.units / present
    limits[L2] = demand.l2_throughput * share / cycles
    return _Timed(cycles, first, demand, busy, limits, ctas / (clock.units * execution.resident), resident, balance)


def _ends(work: list[float], slots: int) -> list[float]:
    """When each place of CTAs is free for good, in order: they start in turn, each where a place is free first."""
    places = [0.0] * min(slots, len(work))
    heapq.heapify(places)
    for one in work:
        heapq.heapreplace(places, places[0] + one)
    return sorted(places)


def _alone(
    execution: Execution, clock: Clock, steps: list[Steps], active: int, resident: int, together: float
) -> tuple[float, float]:
    """The time of a CTA for that among as many as fit: on one of `_FEW` multiprocessors, and alone on each of them."""

    def faster(units: int) -> float:
        return min(simulate(execution, clock, steps, resident=1, waiting=0, active=units).end / together, 1.0)

    return faster(-(-active // _FEW)), faster(active) if resident > 1 else 1.0


def _with_fewer(ends: Sequence[float], resident: int, alone: tuple[float, float]) -> float:
    """How long CTAs take where those that are left at the end go on faster than all of them together.

    Args:
        ends: when each place is free, at the speed of all.
        resident: places of a multiprocessor.
        alone: of `_alone`.
    """
    left = np.arange(len(ends), 0, -1) / len(ends)
    parts = np.diff(np.array(ends), prepend=0.0)
    return float(parts @ np.interp(left, (1 / resident / _FEW, 1 / resident, 1.0), (*alone, 1.0)))


def _reasons(simulated: Simulated) -> dict[str, float]:
    whole = sum(simulated.waits.values()) or 1.0
    found: dict[str, float] = defaultdict(float)
    for (_, why), cycles in simulated.waits.items():
        found[why] += cycles / whole
    return dict(found)


def _bound(execution: Execution, clock: Clock, timed: _Timed, waits: Mapping[str, float]) -> str:
    """What bounds a launch, in words."""
    if clock.launch_s * clock.clock_hz > timed.cycles:
        return "launch overhead"
    unit, busiest = max(zip(UNITS, timed.limits, strict=True), key=lambda row: row[1])
    if busiest >= _BUSY:
        return unit
    ctas, units = execution.ctas, clock.units
    if ctas < 0.75 * units:
        return "too few CTAs"
    waves = ctas / (units * timed.resident)
    if waves > 1 and ceil(waves) / waves > 1.3:
        return "last wave"
    if timed.balance > 1.4:
        return "CTAs of unequal length"
    if waits.get("barrier", 0.0) > _WAITING:
        return "barriers"
    if busiest > 0.45:
        return unit
    return "latency: too little in flight"


def _line_of(location: Chain, file: str) -> tuple[str, int]:
    """The innermost line in the kernel's own file, where there is one: its callees in libraries are its own time."""
    mine = next((frame for frame in location if frame.file == file), location[-1] if location else None)
    return (mine.file, mine.line) if mine is not None else ("", 0)


def _lines(
    execution: Execution, simulated: Simulated, seconds: float, file: str, locations: Sequence[Chain]
) -> tuple[Share, ...]:
    code = execution.program.code
    total = sum(simulated.waits.values()) or 1.0
    whole: dict[tuple[str, int], float] = defaultdict(float)
    reasons: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    kinds: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (index, why), cycles in simulated.waits.items():
        item = code[index]
        place = _line_of(locations[index], file)
        whole[place] += cycles
        reasons[place][why] += cycles
        kinds[place][item.family or item.opcode.partition(".")[0]] += cycles
    ranked = sorted(whole.items(), key=lambda row: -row[1])
    return tuple(
        Share(
            file, line, cycles / total, seconds * cycles / total, _parts(reasons[file, line], cycles),
            _parts(kinds[file, line], cycles),
        )
        for (file, line), cycles in ranked
    )  # fmt: skip


def _parts(found: Mapping[str, float], whole: float) -> tuple[tuple[str, float], ...]:
    ranked = sorted(found.items(), key=lambda row: -row[1])[:4]
    return tuple((name, cycles / whole) for name, cycles in ranked)


def _what_ifs(execution: Execution, clock: Clock, seconds: float) -> tuple[WhatIf, ...]:
    """The launch with one thing changed, of what it has."""
    accesses = [
        entry.payload
        for group in execution.groups
        for entry in group.trace
        if isinstance(entry, Observed) and entry.payload is not None
    ]
    changes: list[tuple[str, Execution]] = []
    if any(one.sectors > 1.05 * one.ideal_sectors and one.kind in ("load", "store", "copy") for one in accesses):
        changes.append(("with perfect coalescing", _changed(execution, coalesced)))
    if any(one.wavefronts > 1.05 * one.ideal_wavefronts for one in accesses):
        changes.append(("without bank conflicts", _changed(execution, _without_conflicts)))
    if execution.ctas > clock.units * execution.resident and execution.resident * execution.warps * 2 <= 64:
        changes.append(("with twice the warps", replace(execution, resident=execution.resident * 2)))
    found: list[WhatIf] = []
    for name, changed in changes:
        after = clock.launch_s + _timed(changed, clock).cycles / clock.clock_hz
        found.append(WhatIf(name, min(after, seconds), max(seconds / after, 1.0)))
    return tuple(found)


def _changed(execution: Execution, change: Callable[[Access], Access]) -> Execution:
    def entry(one: object) -> object:
        if isinstance(one, Observed) and one.payload is not None:
            return Observed(one.index, change(one.payload))
        return one

    groups = [Walked(group.rows, [entry(one) for one in group.trace]) for group in execution.groups]  # pyright: ignore[reportArgumentType]
    return replace(execution, groups=groups)


def coalesced(access: Access) -> Access:
    """An access of as few sectors as its bytes fill, each of which L1 gives at once."""
    if access.kind not in ("load", "store", "copy") or access.sectors <= access.ideal_sectors:
        return access
    beyond = access.sectors * access.missed
    sectors = access.ideal_sectors
    fronts = 0.0 if access.kind == "load" else access.wavefronts
    missed = min(1.0, beyond / sectors)
    return replace(access, sectors=sectors, lines=max(sectors / 4, 1.0), missed=missed, wavefronts=fronts)


def _without_conflicts(access: Access) -> Access:
    return replace(access, wavefronts=min(access.wavefronts, access.ideal_wavefronts))


class Model:
    """The timing model of a launch on a part, which also predicts changed behaviour."""

    def __init__(self, capture: Capture, *, part: str | None = None, clock: Clock | None = None) -> None:
        """The arguments, and what is raised, are those of `predict_with`."""
        self.capture = capture
        self.clock = clock or clock_of(capture.target, part)
        self.execution = execute(capture, self.clock)
        if uses_tensor_cores(self.execution.program):
            self.clock = self.clock.with_tensor_cores()
        self.timed = _timed(self.execution, self.clock)
        stated = capture_locations(capture, capture.texts.get("sass", ""), "sass")
        self.locations = [stated.chain_at(item.line) or item.location for item in self.execution.program.code]
        """Where each instruction comes from: SASS alone gives inline assembly lines that LLVM made up."""

    @cached_property
    def prediction(self) -> Prediction:
        """How long it takes as it is."""
        return _prediction(self, what_if=False)

    @property
    def accesses(self) -> Iterator[tuple[int, Access]]:
        """(instruction, access), as often as the trace has it."""
        for group in self.execution.groups:
            for entry in group.trace:
                if isinstance(entry, Observed) and entry.payload is not None:
                    yield entry.index, entry.payload

    @property
    def least_seconds(self) -> float:
        """What its busiest unit takes for all of its work, if nothing else is waited for."""
        return self.clock.launch_s + self.busiest * self.timed.cycles / self.clock.clock_hz

    @property
    def saturation(self) -> float:
        """The part of its limit that the unit nearest to it reaches: of the time, or of its peak in Nsight Compute."""
        return max(*self.timed.busy, *self.timed.limits)

    @property
    def covered(self) -> float:
        """The part of the time in which one of the two busiest units works, if they do not wait for each other.

        Units that serve the same accesses one after another, or the same instructions, count as one.
        """
        shares: dict[str, float] = {}
        for unit, share in zip(UNITS, self.timed.busy, strict=True):
            kind = _UNIT_KIND.get(unit, unit)
            shares[kind] = max(shares.get(kind, 0.0), share)
        second, first = sorted(shares.values())[-2:]
        return 1 - (1 - first) * (1 - second)

    @property
    def busiest(self) -> float:
        """The part of the time that its busiest unit is busy."""
        return max(self.timed.busy)

    def seconds(
        self,
        *,
        access: Callable[[int, Access], Access] | None = None,
        keeps: Callable[[int], float] | None = None,
        resident: int | None = None,
        from_dram: Mapping[int, float] | None = None,
    ) -> float:
        """How long it would take.

        Args:
            access: (instruction, what it accesses) → what it would access.
            keeps: instruction → the part of its executions that would be left: 0 for none, 1 for all.
            resident: CTAs of a multiprocessor at once.
            from_dram: as of `Execution`.
        """
        groups = [Walked(one.rows, [*_altered(one.trace, access, keeps)]) for one in self.execution.groups]
        changed = replace(
            self.execution,
            groups=groups,
            resident=resident or self.execution.resident,
            from_dram=from_dram or self.execution.from_dram,
        )
        return self.clock.launch_s + _timed(changed, self.clock).cycles / self.clock.clock_hz


def _altered(
    trace: Sequence[int | Observed | Skip],
    access: Callable[[int, Access], Access] | None,
    keeps: Callable[[int], float] | None,
) -> Iterator[int | Observed | Skip]:
    """A trace without some entries, and with other accesses; what is skipped is as long as what is left of it."""
    places = [0]
    owed: dict[float, float] = {}
    for entry in trace:
        place = places[-1]
        if isinstance(entry, Skip):
            entries, since = (place - places[len(places) - 1 - count] for count in (entry.entries, entry.since))
            yield replace(entry, entries=entries, since=since)
            places.append(place + 1)
            continue
        index = entry.index if isinstance(entry, Observed) else entry
        part = keeps(index) if keeps is not None else 1.0
        if part < 1.0:
            # The first one of several is left.
            owed[part] = owed.get(part, 1.0 - part) + part
            if part <= 0.0 or owed[part] < 1.0:
                places.append(place)
                continue
            owed[part] -= 1.0
        if isinstance(entry, Observed) and entry.payload is not None and access is not None:
            entry = Observed(index, access(index, entry.payload))
        yield entry
        places.append(place + 1)


def predicted_from_work(
    capture: Capture,
    clock: Clock,
    grid: tuple[int, int, int],
    resident: int,
    dram_bytes: float,
    unit_seconds: Mapping[str, float],
    notes: tuple[str, ...],
) -> Prediction:
    """Predict a launch whose machine code cannot be walked, from its arithmetic and its bytes.

    Little's law: with few warps, bytes in flight do not cover the latency of DRAM. 16 bytes of each thread are taken to
    be in flight for each stage.

    Args:
        capture: the compile.
        clock: the part.
        grid: its CTAs.
        resident: CTAs of a compute unit at once.
        dram_bytes: what DRAM moves at least.
        unit_seconds: unit → the minimum time of its work on the whole part.
        notes: what is not known.
    """
    ctas = grid[0] * grid[1] * grid[2]
    warps = int(capture.launch.option("num_warps", 4) or 4)
    stages = max(int(capture.launch.option("num_stages", 1) or 1) - 1, 1)
    at_once = min(resident * clock.units, ctas)
    in_flight = at_once * warps * capture.target.warp_size * 16.0 * stages
    latency = (clock.dram_latency + 3 * clock.dram_queue) / clock.clock_hz
    rate = min(clock.dram_bytes_per_s * clock.dram_efficiency, in_flight / latency)
    memory = dram_bytes / rate if rate else inf
    waves = ctas / max(resident * clock.units, 1)
    tail = ceil(waves) / waves if waves else 1.0
    compute = {name: value / 0.7 * tail for name, value in unit_seconds.items()}
    slowest = max([*compute.values(), memory], default=0.0)
    floor = latency * 3
    seconds = clock.launch_s + max(slowest, floor)
    bound = "DRAM" if memory >= slowest else next(name for name, value in compute.items() if value == slowest)
    if clock.launch_s > max(slowest, floor):
        bound = "launch overhead"
    elif ctas < 0.75 * clock.units:
        bound = "too few CTAs"
    elif floor > slowest or (memory >= slowest and rate < clock.dram_bytes_per_s * 0.5):
        bound = "latency: too little in flight"
    low, high = _ANALYTIC_INTERVAL
    busy = {name: value / seconds for name, value in unit_seconds.items()}
    busy["DRAM"] = dram_bytes / clock.dram_bytes_per_s / seconds
    return Prediction(
        capture.name, capture.id, clock.part, seconds, (seconds * low, seconds * high), bound, "analytic",
        clock.is_validated, grid, resident, waves, clock.launch_s, tuple(sorted(busy.items(), key=lambda row: -row[1])),
        dram_bytes, dram_bytes, clock_hz=clock.clock_hz, notes=notes,
    )  # fmt: skip
