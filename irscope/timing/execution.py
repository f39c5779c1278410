"""What the warps of a launch execute: the trace of each in one CTA, its accesses to memory, and what CTAs share.

One CTA is walked with all its lanes: sectors, bank conflicts, reuse in L1. All CTAs of a launch, or those that run at
the same time, are walked with one lane of each kind of warp: how often their loops run, and which tiles they share.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.device.clocks import Clock
from irscope.device.occupancy import occupancy, occupancy_of, warps_of
from irscope.errors import UsageError
from irscope.ir.asm.sass import SassFunction, parse_sass
from irscope.ir.mlir.model import MlirModule
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import parse_type
from irscope.machine.numbers import Number
from irscope.memory.addresses.arguments import read_arguments
from irscope.model.capture import Capture
from irscope.timing.accesses import GRANULE, KINDS, SECTOR, SPILLS, Access, CtaWatch, DataWatch, TileWatch
from irscope.timing.program import Program
from irscope.timing.scalars import ARRAY_BITS, Assumptions, SharedWords, State
from irscope.timing.walk import Observed, Walked, walk

__all__ = ["Execution", "execute"]

Array = NDArray[Any]

_MOST_CTAS = 1536
"""CTAs whose ways are followed."""
_PARAMETERS = {7: 0x160, 8: 0x160, 9: 0x210, 10: 0x380, 12: 0x380}
"""Major compute capability → where the parameters of a kernel begin in the constant bank."""
_GRID = {7: (0x0, 0xC), 8: (0x0, 0xC), 9: (0x0, 0xC), 10: (0x360, 0x370), 12: (0x360, 0x370)}
"""Likewise the sizes of a CTA, and of the grid."""
_KEPT = 0.6
"""The part of L2 that holds what is accessed again: its halves hold copies of what both access."""
_FETCHED = 2.0
"""Sectors that DRAM gives for one that is alone: it is read in 64 bytes."""
_DENSE = 0.7
"""The part of a tensor, or of a sector, from which on a launch is taken to access all of it."""
_FETCHED_FAR = 2.8
"""Likewise where pages change as well: microbenchmarks of sectors 256 bytes apart and more."""
_MANY = 3
"""Waves from which on what the first one fetches into L1 does not count."""
_UNKNOWN_BYTES = 64 << 20
"""Of a tensor whose size is not known, where data decide what is accessed of it."""
_NEIGHBOURS = 2
"""CTAs next to one another whose loads of one sector L2 serves together, if they come at the same time: a launch begins
with such on the two multiprocessors of a texture processing cluster (`benchmarks.microbench --only together`)."""
_SIZES = {"i64": 8, "f64": 8, "i32": 4, "f32": 4, "i16": 2, "f16": 2, "bf16": 2}
"""Bytes of a scalar parameter; 1 of any other."""


@dataclass(slots=True)
class Execution:
    """What a launch executes."""

    program: Program
    grid: tuple[int, int, int]
    warps: int
    """Of a CTA."""
    resident: int
    """CTAs of a multiprocessor at once."""
    groups: list[Walked]
    """The warps of one CTA by their ways."""
    work: Array
    """How many instructions each CTA executes, beside the one that was walked: 1 for as many."""
    array_names: tuple[str, ...]
    array_bytes: Mapping[int, int]
    """Of the storage of each argument."""
    from_dram: Mapping[int, float]
    """Argument → the part of what L1 misses that comes from DRAM; -1 for all others."""
    written: Mapping[int, float]
    """The same of stores."""
    distinct: Mapping[int, float]
    """Argument → the distinct tiles that CTAs at the same time access, for each that is accessed."""
    atomic_granules: Mapping[int, float]
    """Argument → how many parts of it, each in one slice of L2, atomics access at the same time."""
    in_step: Mapping[int, float]
    """Argument → the distinct tiles that CTAs next to one another load, for each that is loaded."""
    assumed: set[str] = field(default_factory=set[str])

    @property
    def ctas(self) -> int:
        """Of the launch."""
        return prod(self.grid)


def execute(capture: Capture, clock: Clock) -> Execution:
    """Walk a launch.

    Args:
        capture: a compile for CUDA with its SASS.
        clock: the part.

    Raises UsageError where the grid or an integer argument is not known.
    """
    grid = capture.launch.grid
    if grid is None:
        raise UsageError("this kernel was compiled but not launched: --grid X,Y,Z says how many CTAs run.")
    function = _kernel_of(capture)
    launch = _Launch(capture, grid)
    program = Program(
        function, lambda item: item.opcode.partition(".")[0] in KINDS, is_specialized=launch.is_specialized
    )
    assumed, warps = launch.assumed, launch.warps
    launch.has_shared_addresses = program.addresses_need_shared
    occupied = occupancy_of(capture)
    if occupied is None:
        # A capture without its binary's figures: the registers that its code names.
        named = {int(name[1:]) for item in program.code for name in item.writes if name[1:].isdecimal()}
        resources = replace(capture.resources, registers=max(named, default=0) + 1)
        occupied = occupancy(resources, capture.target, warps)
    resident = max(occupied.ctas_per_sm if occupied is not None else 1, 1)
    ctas = prod(grid)
    # Only loops with copies in flight are pipelined.
    is_pipelined = any(base in ("LDGSTS", "UTMALDG", "UBLKCP") for base in program.bases)
    stages = max(int(capture.launch.option("num_stages", 3) or 1), 1) if is_pipelined else 1
    # One CTA with all lanes: one from the middle of each axis is as most are.
    middle = grid[0] // 2 + grid[0] * (grid[1] // 2 + grid[1] * (grid[2] // 2))
    assumed.ranges = _ranges(program, launch, middle)
    state = launch.state(np.full(warps, middle), np.arange(warps), 32)
    common = launch.array_bytes if ctas > _MANY * resident * clock.units else {}
    watch = CtaWatch(clock, resident, launch.shared_bytes, launch.stack_bytes * warps * 32, common)
    groups = walk(program, state, watch, stages, watch.passed)
    # All CTAs, or those of a wave and some others, with one lane of each way.
    leaders = sorted({int(group.rows[0]) for group in groups})[:4]
    at_once = min(resident * clock.units, ctas)
    shown, is_all = _sample(ctas, at_once, middle)
    tiles = TileWatch()
    rows_cta, rows_warp = np.repeat(shown, len(leaders)), np.tile(np.array(leaders), len(shown))
    _with_bytes(groups)
    others = walk(program, launch.state(rows_cta, rows_warp, 1), tiles, stages)
    work = np.zeros(len(shown))
    for walked in others:
        np.add.at(work, np.searchsorted(shown, rows_cta[walked.rows]), walked.instructions)
    own = np.searchsorted(shown, middle)
    work = work / max(work[own] if shown[own] == middle else work.mean(), 1)
    if not is_all:
        work = np.interp(np.linspace(0, 1, min(ctas, 1 << 16)), np.linspace(0, 1, len(work)), work)
    from_dram, written, together = _traffic(groups, tiles, launch, clock, at_once, ctas, shown, warps)
    spilled = launch.stack_bytes * warps * 32 * at_once
    from_dram[SPILLS] = written[SPILLS] = max(0.0, 1 - clock.l2_size / spilled) if spilled else 0.0
    return Execution(
        program, grid, warps, resident, groups, work, launch.names, launch.array_bytes, from_dram, written,
        together, _atomic_granules(watch, tiles, launch, at_once), _in_step(tiles, ctas, at_once), assumed.notes,
    )  # fmt: skip


def _kernel_of(capture: Capture) -> SassFunction:
    functions = parse_sass(capture.texts.get("sass", ""))
    if not functions:
        raise UsageError(f"{capture.name} has no SASS: nvdisasm, which comes with Triton, disassembles it.")
    chosen = next((one for one in functions if one.name == capture.name), functions[0])
    return chosen.without_padding()


def _ranges(program: Program, launch: _Launch, middle: int) -> dict[int, int]:
    """Offset of a load → how many values it has, where they are indices: what they address lies within its tensor."""
    if not program.addresses_need_data:
        return {}
    places: list[dict[tuple[int, int], tuple[int, frozenset[int]]]] = []
    loads: dict[int, int] = {}
    for value in (0, 1):
        probe = DataWatch()
        assumed = replace(launch.assumed, value=value, notes=set(), iterations={})
        walk(program, launch.state(np.array([middle]), np.zeros(1, np.int64), 1, assumed), probe)
        places.append(probe.places)
        loads = probe.loads
    ranges: dict[int, int] = {}
    for key, (place, origins) in places[0].items():
        step = abs(places[1].get(key, (place, origins))[0] - place)
        size = launch.array_bytes.get(place >> ARRAY_BITS, _UNKNOWN_BYTES)
        if not 0 < step < 1 << ARRAY_BITS:
            continue
        for load in origins:
            ranges[load] = min(ranges.get(load, 1 << 31), max(size // step, 1))
    # A row from one offset to the next: the second one may be a bound alone.
    by_place = {place: index for index, place in loads.items()}
    for index, place in loads.items():
        size = 8 if place >> ARRAY_BITS in launch.assumed.wide else 4
        pair = program.code[index].offset, program.code[by_place.get(place + size, index)].offset
        if pair[0] != pair[1] and (known := [ranges[one] for one in pair if one in ranges]):
            launch.assumed.adjacent.update(pair)
            ranges |= dict.fromkeys(pair, min(known))
    return ranges


def _atomic_granules(watch: CtaWatch, tiles: TileWatch, launch: _Launch, at_once: int) -> dict[int, float]:
    """Argument → in how many parts of one slice of L2 each are what the atomics of CTAs that run together access."""
    found: dict[int, float] = {}
    start = _wave(prod(launch.grid), at_once)
    for array, own in watch.granules.items():
        count = float(len(own))
        if parts := tiles.granules.get(array):
            owners, values = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
            together = (owners >= start) & (owners < start + at_once)
            if together.any():
                owners, values = owners[together], values[together]
            ctas = max(len(np.unique(owners)), 1)
            count *= len(np.unique(values)) * ctas / max(_pairs(owners, values), 1)
        size = launch.array_bytes.get(array)
        found[array] = max(min(count, size / GRANULE) if size is not None else count, 1.0)
    return found


def _in_step(tiles: TileWatch, ctas: int, at_once: int) -> dict[int, float]:
    """Argument → the distinct tiles of neighbouring CTAs in a wave, for each that an execution of a load accesses."""
    sums: dict[int, tuple[int, int]] = {}
    start = _wave(ctas, at_once)
    for (array, is_store), parts in tiles.places.items():
        if is_store:
            continue
        for owners, values in parts:
            here = (owners >= start) & (owners < start + at_once)
            distinct, accesses = sums.get(array, (0, 0))
            distinct += _pairs((owners[here] - start) // _NEIGHBOURS, values[here])
            sums[array] = distinct, accesses + _pairs(owners[here], values[here])
    return {array: distinct / accesses for array, (distinct, accesses) in sums.items() if accesses}


def _with_bytes(groups: Iterable[Walked]) -> None:
    """Give each bulk copy its bytes: what an mbarrier was told to expect, by the copies that land on it."""
    observed = [(group, place, entry) for group in groups for place, entry in enumerate(group.trace)
                if isinstance(entry, Observed) and entry.payload is not None]  # fmt: skip
    expected: dict[int | None, float] = defaultdict(float)
    loads: dict[int | None, float] = defaultdict(float)
    for group, _, entry in observed:
        times = entry.payload.is_on * len(group.rows)
        if entry.payload.kind == "arrive":
            expected[entry.payload.barrier] += entry.payload.value * times
        elif entry.payload.kind == "bulk":
            loads[entry.payload.barrier] += times
    whole = sum(expected.values()) / sum(loads.values()) if sum(loads.values()) else 0.0
    for group, place, entry in observed:
        if entry.payload.kind in ("bulk", "bulk store"):
            array, barrier = -2 - entry.index, entry.payload.barrier
            each = expected[barrier] / loads[barrier] if loads[barrier] and expected[barrier] else whole or 16384.0
            payload = replace(
                entry.payload, bytes=each, sectors=each / SECTOR, ideal_sectors=each / SECTOR, array=array
            )
            group.trace[place] = Observed(entry.index, payload)


def _wave(ctas: int, at_once: int) -> int:
    """The first CTA of a wave in the middle of the launch."""
    return min((ctas // 2) // at_once * at_once, ctas - at_once)


def _sample(ctas: int, at_once: int, middle: int) -> tuple[Array, bool]:
    """CTAs in order: all; or those of a wave in the middle, and some from everywhere."""
    if ctas <= _MOST_CTAS:
        return np.arange(ctas), True
    window = min(at_once, _MOST_CTAS * 3 // 4)
    start = _wave(ctas, window)
    everywhere = np.linspace(0, ctas - 1, _MOST_CTAS - window).astype(np.int64)
    return np.unique(np.concatenate([np.arange(start, start + window), everywhere, [middle]])), False


_MEASURED_SPECIALIZED = 9
"""Of the compute capability: the parts on which kernels with specialised warps were timed."""


class _Launch:
    """The parameters of a launch, as the constant bank and the special registers hold them."""

    def __init__(self, capture: Capture, grid: tuple[int, int, int]) -> None:
        self.grid = grid
        self.warps = warps_of(capture) or 4
        module = parse_mlir(capture.texts.get("ttgir", ""))
        self.is_specialized = any(one.opcode == "warp_specialize" for one in module.walk())
        self.shared_bytes = capture.resources.shared_bytes or 0
        self.stack_bytes = capture.resources.stack_bytes or 0
        major = int(str(capture.target.arch)) // 10
        begin = _PARAMETERS.get(major, 0x210)
        sizes_at, grid_at = _GRID.get(major, (0x0, 0xC))
        self.constants: dict[int, int] = {sizes_at: self.warps * 32, sizes_at + 4: 1, sizes_at + 8: 1}
        self.constants |= {grid_at + 4 * axis: size for axis, size in enumerate(grid)}
        self.array_bytes: dict[int, int] = {}
        self.assumed = Assumptions(array_bytes=self.array_bytes, ctas=prod(grid))
        self.names = self._place(capture, module, begin)
        self.has_shared_addresses = False
        """Whether addresses go through shared memory."""
        if self.is_specialized and major != _MEASURED_SPECIALIZED:
            self.assumed.notes.add(
                "specialised warps wait for one another as modelled, which was not compared with measured times"
            )

    def _place(self, capture: Capture, module: MlirModule, at: int) -> tuple[str, ...]:
        kernel = module.kernel
        if kernel is None:
            raise UsageError(f"{capture.name} has no TTGIR, which identifies its arguments.")
        record = capture.launch.record
        arguments = read_arguments(kernel, capture.launch)
        names: list[str] = []
        missing: list[str] = []
        for value, kind, _ in kernel.parameters:
            name = value.name.lstrip("%")
            argument = arguments.held.get(value)
            number = argument if isinstance(argument, Number) else None
            if parse_type(kind).form == "descriptor":
                at = -(-at // 64) * 64
                self._words(at, (len(names) + 1) << ARRAY_BITS, 8)
                names.append(name)
                at += 128
                continue
            if (pointer := parse_type(kind)).form == "pointer":
                at = -(-at // 8) * 8
                if pointer.element is not None and (pointer.element.bits == 64 or pointer.element.form == "pointer"):
                    self.assumed.wide.add(len(names) + 1)
                row = record.argument(name) if record is not None else None
                if row is not None and row.storage_bytes:
                    self.array_bytes[len(names) + 1] = row.storage_bytes
                begin = int(number.known.flat[0]) if number is not None and number.known.size == 1 else 0
                self._words(at, ((len(names) + 1) << ARRAY_BITS) + begin % 512, 8)
                names.append(name)
                at += 8
                continue
            size = _SIZES.get(kind, 1)
            at = -(-at // size) * size
            if number is not None and number.value is not None:
                self._words(at, number.value, size)
            elif kind.startswith("i") and kind != "i1":
                missing.append(name)
            at += size
        if missing:
            raise UsageError(
                f"{', '.join(missing)}: the launch does not hold its value. --size {missing[0]}=VALUE gives it."
            )
        return tuple(names)

    def _words(self, at: int, value: int, size: int) -> None:
        value &= (1 << 8 * size) - 1
        for word in range(at & ~3, at + size, 4):
            shift = 8 * (word - at)
            part = value >> shift if shift >= 0 else value << -shift
            self.constants[word] = self.constants.get(word, 0) | part & 0xFFFFFFFF

    def state(self, ctas: Array, warps: Array, lanes: int, assumed: Assumptions | None = None) -> State:
        """Warps of CTAs before their first instruction."""
        x, y, _ = self.grid
        ctas, warps = ctas[:, None].astype(np.int64), warps[:, None].astype(np.int64)
        lane = np.arange(lanes, dtype=np.int64)[None, :]
        zero = np.zeros((1, 1), np.int64)
        special = {
            "SR_TID.X": warps * 32 + lane, "SR_TID.Y": zero, "SR_TID.Z": zero, "SR_LANEID": lane,
            "SR_CTAID.X": ctas % x, "SR_CTAID.Y": ctas // x % y, "SR_CTAID.Z": ctas // (x * y), "SR_CgaCtaId": zero,
            "SR_CgaCtaIdX": zero, "SRZ": zero, "SR_CgaSize": zero + 1, "CTA": ctas, "WARP": warps,
        }  # fmt: skip
        shared = SharedWords(self.shared_bytes, lanes) if self.has_shared_addresses else None
        return State(len(ctas), lanes, {}, self.constants, special, assumed or self.assumed, shared=shared)


def _distinct_of_all(distinct: int, sample: int, ctas: int) -> float:
    """How many distinct tiles all CTAs access, for each that is accessed, by those of a sample.

    Of T tiles that are equally likely, n accesses meet T (1 - exp(-n / T)).
    """
    if sample >= ctas or distinct >= 0.98 * sample:
        return distinct / max(sample, 1)
    low, high = float(distinct), 1e12
    for _ in range(80):
        middle = (low * high) ** 0.5
        if middle * -np.expm1(-sample / middle) < distinct:
            low = middle
        else:
            high = middle
    return min(low / ctas, 1.0)


def _pairs(owners: Array, values: Array) -> int:
    """How many different tiles CTAs access, each by itself."""
    # Pairs that differ are one number with a chance of one in 2**63 alone, which sorts faster than two.
    return len(np.unique(values * 0x1E3779B97F4A7C15 + owners))


def _left_by_l1(groups: Iterable[Walked]) -> dict[tuple[int, bool], float]:
    """(argument, whether it is stored to) → the part of the sectors of its accesses that L1 does not serve."""
    sums: dict[tuple[int, bool], list[float]] = {}
    for group in groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            access = entry.payload if isinstance(entry, Observed) else None
            if access is None or not access.sectors:
                continue
            total = sums.setdefault((access.array, "store" in access.kind), [0.0, 0.0])
            amount = access.sectors * weight * len(group.rows) * access.is_on
            total[0] += amount
            total[1] += amount * access.missed
    return {key: missed / every for key, (every, missed) in sums.items() if every and missed}


def _accesses(groups: Iterable[Walked]) -> Iterator[tuple[Access, float]]:
    """(a load, store or copy of a CTA, how many warps execute it)."""
    for group in groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            access = entry.payload if isinstance(entry, Observed) else None
            if access is not None and access.kind in ("load", "store", "copy"):
                yield access, weight * len(group.rows) * access.is_on


def _scattered(groups: Iterable[Walked]) -> dict[tuple[int, bool], tuple[bool, float]]:
    """(argument, whether it is stored to) → whether most sectors are alone in their pair; what is used of a sector."""
    sums: dict[tuple[int, bool], list[float]] = {}
    for access, times in _accesses(groups):
        total = sums.setdefault((access.array, access.kind == "store"), [0.0, 0.0, 0.0, 0.0])
        total[0] += access.sectors * times
        total[1] += access.pairs * times
        total[2] += access.ideal_sectors * times
        total[3] += access.sectors * access.missed * times
    return {
        key: (sectors < 1.25 * pairs, ideal / missed) for key, (sectors, pairs, ideal, missed) in sums.items() if missed
    }


def _random_arrays(groups: Iterable[Walked]) -> dict[int, bool]:
    """Arguments of which data decide most accesses → whether most of their sectors are alone in their line."""
    sums: dict[int, list[float]] = {}
    for access, times in _accesses(groups):
        total = sums.setdefault(access.array, [0.0, 0.0, 0.0])
        total[0] += access.sectors * access.is_random * times
        total[1] += access.lines * access.is_random * times
        total[2] += access.sectors * times
    return {array: sectors < 1.5 * lines for array, (sectors, lines, every) in sums.items() if sectors > every / 2}


def _traffic(
    groups: Sequence[Walked], tiles: TileWatch, launch: _Launch, clock: Clock, at_once: int, ctas: int, shown: Array,
    warps: int,
) -> tuple[dict[int, float], dict[int, float], dict[int, float]]:  # fmt: skip
    """Argument → the part of what L1 misses that comes from DRAM, of loads; of stores; distinct tiles of a wave."""
    window = (
        shown
        >= shown[np.searchsorted(shown, ctas // 2 // max(at_once, 1) * max(at_once, 1) if len(shown) < ctas else 0)]
    )
    start = int(shown[window][0]) if window.any() else 0
    if start + at_once > ctas:
        start = max(ctas - at_once, 0)
    distinct: dict[tuple[int, bool], tuple[float, float, float]] = {}
    left = _left_by_l1(groups)
    for key, parts in tiles.places.items():
        owners = np.concatenate([one for one, _ in parts])
        values = np.concatenate([one for _, one in parts])
        here = (owners >= start) & (owners < start + at_once)
        apart = ~here if len(shown) < ctas and (~here).sum() > 32 else np.ones(len(owners), np.bool_)
        # What one CTA accesses twice does not tell how many CTAs share a tile; what L1 served of it is gone already.
        own = _pairs(owners[apart], values[apart])
        alone = own / max(int(apart.sum()), 1)
        within = min(1.0, alone / left.get(key, 1.0))
        in_wave = within
        if here.any():
            in_wave *= len(np.unique(values[here])) / _pairs(owners[here], values[here])
        pairs = round(ctas * len(owners) / len(shown) * alone)
        whole = within * _distinct_of_all(len(np.unique(values[apart])), own, pairs)
        whole = max(min(whole, in_wave), 1 / max(ctas, 1))
        distinct[key] = (within, in_wave, whole)
    sums: dict[tuple[int, bool], list[float]] = {}
    for group in groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if not isinstance(entry, Observed):
                continue
            access = entry.payload
            if access is None or access.kind not in ("load", "store", "copy", "atomic", "bulk", "bulk store"):
                continue
            within, wave, whole = distinct.get((access.array, "store" in access.kind), (1.0, 1.0, 1.0))
            amount = access.sectors * access.missed * weight * len(group.rows) * access.is_on
            key = (access.array, access.kind in ("store", "bulk store"))
            total = sums.setdefault(key, [0.0, 0.0, 0.0, 0.0])
            total[0] += amount
            total[1] += amount * wave
            total[2] += amount * whole
            total[3] += amount * within
    all_bytes = wave_bytes = 0.0
    for (array, _), (_, wave, whole, _) in sums.items():
        size = launch.array_bytes.get(array, inf)
        all_bytes += min(whole * SECTOR * ctas, size)
        wave_bytes += min(wave * SECTOR * at_once, size)
    cache = _KEPT * clock.l2_size

    def hits(distance: float) -> float:
        """The part that L2 still holds of what was accessed so many bytes ago."""
        return max(0.0, min(1.0, 2.0 - distance / cache))

    result: tuple[dict[int, float], dict[int, float]] = ({}, {})
    random = _random_arrays(groups)
    scattered = _scattered(groups)
    everything = sum(amount for amount, *_ in sums.values())
    together: dict[int, float] = {}
    for (array, is_store), (amount, wave, whole, within) in sums.items():
        if not amount:
            continue
        size = launch.array_bytes.get(array)
        cold = whole / amount
        if size is not None:
            cold = min(cold, size / (amount * SECTOR * ctas))
        moving = max(min(wave / amount, 1.0), cold)
        # What a CTA itself loads again, and L1 no longer has, comes back after what all of a wave access meanwhile;
        # what it stores again in a sector follows at once.
        again = 1.0 if is_store else hits(wave_bytes)
        moving *= again + (1 - again) * amount / max(within, amount * moving)
        if array in random and size is not None:
            # Random sectors hit what L2 holds of the tensor; of what streams beside it none is accessed again.
            moving = max(cold, 1 - cache * amount / everything / size)
        if random.get(array):
            cold, moving = cold * _FETCHED_FAR, moving * _FETCHED_FAR
        alone, used = scattered.get((array, is_store), (False, 1.0))
        # What is stored is written back, and what a sector lacks read before, where L2 does not hold all.
        evicted = 1.0 - hits(all_bytes) if is_store else 1.0
        if alone and array not in random and size is not None and whole * SECTOR * ctas < _DENSE * size:
            # DRAM reads and writes pairs of sectors.
            cold, moving = (part * (1 + evicted * (_FETCHED - 1)) for part in (cold, moving))
        if is_store and used * amount < _DENSE * whole:
            cold, moving = (part * (1 + evicted) for part in (cold, moving))
        # What other CTAs access again comes back with their wave: the next one, or a later one.
        waves = max(whole * ctas / max(wave * at_once, 1e-9), 1.0)
        fits = hits(min(all_bytes, waves * wave_bytes))
        result[is_store][array] = fits * cold + (1 - fits) * moving
        together[array] = min(together.get(array, 1.0), wave / amount)
    return (*result, together)
