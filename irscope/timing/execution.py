"""What the warps of a launch execute: the trace of each in one CTA, its accesses to memory, and what CTAs share.

One CTA is walked with all its lanes: sectors, bank conflicts, reuse in L1. All CTAs of a launch, or those that run at
the same time, are walked with one lane of each kind of warp: how often their loops run, and which tiles they share.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.device.clocks import Clock
from irscope.device.occupancy import occupancy, occupancy_of, warps_of
from irscope.errors import UsageError
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.sass import SassFunction, parse_sass
from irscope.ir.mlir.model import MlirModule
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import parse_type
from irscope.machine.numbers import Number
from irscope.memory.addresses.arguments import read_arguments
from irscope.model.capture import Capture
from irscope.timing.accesses import (
    GRANULE,
    KINDS,
    SECTOR,
    SPILLS,
    Access,
    CtaWatch,
    DataWatch,
    Shifts,
    active_lanes,
)
from irscope.timing.floats import float_bits
from irscope.timing.neighbours import NeighbourWatch, TileWatch
from irscope.timing.program import Program
from irscope.timing.scalars import ARRAY_BITS, Assumptions, SharedWords, State
from irscope.timing.traffic import pairs_of, traffic_of
from irscope.timing.walk import Observed, Walked, walk

__all__ = ["Execution", "execute", "slices_of"]

Array = NDArray[Any]

_MOST_CTAS = 1536
"""CTAs whose ways are followed."""
_ACCESS = 32.0
"""How many instructions an access counts as in comparing CTAs, where data decide which of them make it. Masks by the
place alone are alike in most CTAs, and one lane does not stand for the others there. Chosen, not measured."""
_USUAL = 0.9, 1.1
"""Accesses to instructions of the CTA in the middle, in times those of all, where it stands for the others: chosen, not
measured."""
_IDLE = 0.5
"""Instructions of a CTA that does less than others do, in times the mean: chosen, not measured."""
_NEAR = 0.02
"""How much further from the mean a CTA may be that is nearer to the middle."""
_PARAMETERS = {7: 0x160, 8: 0x160, 9: 0x210, 10: 0x380, 12: 0x380}
"""Major compute capability → where the parameters of a kernel begin in the constant bank."""
_GRID = {7: (0x0, 0xC), 8: (0x0, 0xC), 9: (0x0, 0xC), 10: (0x360, 0x370), 12: (0x360, 0x370)}
"""Likewise the sizes of a CTA, and of the grid."""
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
    fresh: Mapping[int, float]
    """Argument → the part of the accesses to tiles that no CTA as far as a wave before accessed."""
    atomic_slices: Mapping[int, float]
    """Argument → the slices of L2 that atomics access at the same time, as if there were any number."""
    in_step: Mapping[int, float]
    """Argument → the distinct tiles that CTAs next to one another load, for each that is loaded."""
    assumed: set[str] = field(default_factory=set[str])

    @property
    def ctas(self) -> int:
        """Of the launch."""
        return prod(self.grid)


def timed_grid(capture: Capture) -> tuple[int, int, int]:
    """The grid of a launch; raises UsageError where there was none, or no CTA runs."""
    grid = capture.launch.grid
    if grid is None:
        raise UsageError(f"{capture.name} was compiled but not launched: --grid X,Y,Z says how many CTAs run.")
    if not prod(grid):
        raise UsageError(f"{capture.name} runs no CTA: the launch's grid is {'×'.join(map(str, grid))}.")
    return grid


def execute(capture: Capture, clock: Clock) -> Execution:
    """Walk a launch.

    Args:
        capture: a compile for CUDA with its SASS.
        clock: the part.

    Raises UsageError where the grid or an integer argument is not known, or no CTA runs.
    """
    grid = timed_grid(capture)
    function = _kernel_of(capture)
    launch = _Launch(capture, grid)
    program = Program(
        function, lambda item: item.opcode.partition(".")[0] in KINDS, is_specialized=launch.is_specialized
    )
    assumed, warps = launch.assumed, launch.warps
    if not program.has_float_indices:
        assumed.floats.clear()
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
    at_once = min(resident * clock.units, ctas)
    common = launch.array_bytes if ctas > _MANY * resident * clock.units else {}

    def walk_all_lanes(shifts: Shifts) -> tuple[list[Walked], CtaWatch]:
        watch = CtaWatch(clock, resident, launch.shared_bytes, launch.stack_bytes * warps * 32, common, shifts)
        state = launch.state(np.full(warps, middle), np.arange(warps), 32)
        groups = walk(program, state, watch, stages, watch.passed)
        _with_bytes(groups)
        return groups, watch

    def walk_all_ctas() -> tuple[Array, Array, TileWatch, Array]:
        """All, or those of a wave and some others, with one lane of each way: which, and what each does."""
        leaders = sorted({int(group.rows[0]) for group in groups})[:4]
        shown, consecutive = _sample(ctas, at_once, middle)
        tiles = TileWatch()
        rows = np.repeat(shown, len(leaders)), np.tile(np.array(leaders), len(shown))
        work = _work(program, launch.state(*rows, 1), 1, tiles)
        return shown, consecutive, tiles, work.reshape(2, len(shown), len(leaders)).sum(axis=2)

    middle = NeighbourWatch(grid).cta
    if is_chosen := bool(assumed.contents) and not launch.is_specialized:
        middle = _representative(program, launch, stages)
    assumed.ranges = _ranges(program, launch, middle)
    groups, watch = walk_all_lanes(())
    shown, consecutive, tiles, (instructions, accesses) = walk_all_ctas()
    own = np.searchsorted(shown, middle)
    apart = accesses[own] * instructions.mean() / max(instructions[own] * accesses.mean(), 1e-9)
    is_usual = _USUAL[0] < apart < _USUAL[1] and instructions[own] > _IDLE * instructions.mean()
    if not (is_chosen or launch.is_specialized or is_usual):
        # It lies at an edge, where masks switch off what others access, or ends at once, as others do not.
        middle = _representative(program, launch, stages)
        groups, watch = walk_all_lanes(())
        shown, consecutive, tiles, (instructions, accesses) = walk_all_ctas()
    neighbours = NeighbourWatch(grid, middle)
    work = instructions + accesses * (_ACCESS if assumed.contents else 0.0)
    if shifts := tiles.shifts(middle, shown, watch.with_several_addresses):
        groups, watch = walk_all_lanes(shifts)
    own = np.searchsorted(shown, middle)
    work = work / max(work[own] if shown[own] == middle else work.mean(), 1)
    if len(shown) < ctas:
        work = np.interp(np.linspace(0, ctas - 1, min(ctas, 1 << 16)), shown, work)

    def walk_neighbours() -> None:
        rows = np.repeat(neighbours.ctas, warps), np.tile(np.arange(warps), len(neighbours.ctas))
        for group in walk(program, launch.state(*rows, 32), neighbours):
            weights = zip(group.trace, group.weights(), strict=True)
            neighbours.weigh((entry.payload, times) for entry, times in weights if isinstance(entry, Observed))

    neighbours.prepare = walk_neighbours
    traffic = traffic_of(groups, watch, tiles, neighbours, launch.array_bytes, clock, at_once, ctas, shown, consecutive)
    spilled = launch.stack_bytes * warps * 32 * at_once
    traffic.read[SPILLS] = traffic.written[SPILLS] = max(0.0, 1 - clock.l2_size / spilled) if spilled else 0.0
    return Execution(
        program, grid, warps, resident, groups, work, launch.names, launch.array_bytes, traffic.read, traffic.written,
        traffic.distinct,
        traffic.fresh,
        _atomic_slices(watch, tiles, launch, at_once), _in_step(tiles, ctas, at_once), assumed.notes,
    )  # fmt: skip


def _representative(program: Program, launch: _Launch, stages: int) -> int:
    """The CTA that does as much as the mean, next to the middle of each axis, where data or masks decide how much.

    It is counted in some CTAs, by the first and the last lane of each warp.
    """
    x, y, z = launch.grid
    middle, warps = NeighbourWatch(launch.grid).cta, launch.warps
    drawn = np.random.default_rng(0).integers(0, prod(launch.grid), max(_MOST_CTAS // warps // 2, 32))
    ctas = np.unique(np.append(drawn, middle))
    # Each has a neighbour before it on every axis.
    axes = ((ctas % x, x), (ctas // x % y, y), (ctas // (x * y), z))
    ctas = ctas[np.logical_and.reduce([(place > 0) | (size == 1) for place, size in axes])]
    threads = np.stack([np.arange(warps) * 32, np.arange(warps) * 32 + 31]).reshape(-1)
    state = launch.state(np.repeat(ctas, len(threads)), np.tile(threads // 32, len(ctas)), 1)
    lanes = np.tile(threads % 32, len(ctas))[:, None]
    state.special = {**state.special, "SR_LANEID": lanes, "SR_TID.X": state.special["WARP"] * 32 + lanes}
    state.assumed = replace(launch.assumed, notes=set(), iterations={})
    instructions, accesses = _work(program, state, stages).reshape(2, len(ctas), len(threads)).sum(axis=2)
    work = instructions + accesses * _ACCESS
    mean = work.mean()
    if np.median(work) < _IDLE * mean:
        # Most end at once: it is one of those that do the work.
        mean = (work**2).sum() / work.sum()
    apart = np.abs(work - mean)
    near = apart <= apart.min() + _NEAR * mean
    return int(ctas[near][np.abs(ctas[near] - middle).argmin()])


def _work(program: Program, state: State, stages: int, watch: TileWatch | None = None) -> Array:
    """How many instructions each row executes, and how many of these access memory: 2 × rows."""
    done: list[Array] = []

    def observe(index: int, item: Instruction, state: State, lanes: Array | None, count: int) -> Access | None:
        if watch is not None:
            watch(index, item, state, lanes, count)
        active = active_lanes(item, state, lanes)
        if active is not None and not active.any():
            return None
        done.append(np.zeros(rows, np.bool_))
        done[-1][state.special["ROW"][:, 0]] = True if active is None else active[:, 0]
        return Access(KINDS[item.opcode.partition(".")[0]], value=len(done) - 1)

    rows = state.rows
    found = np.zeros((2, rows))
    state.special = {**state.special, "ROW": np.arange(rows)[:, None]}
    for walked in walk(program, state, observe, stages):
        found[0, walked.rows] = walked.instructions
        found[1, walked.rows] = walked.counted(
            (place, done[one.payload.value][walked.rows])
            for place, one in enumerate(walked.trace)
            if isinstance(one, Observed) and one.payload is not None
        )
    return found


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


def _atomic_slices(watch: CtaWatch, tiles: TileWatch, launch: _Launch, at_once: int) -> dict[int, float]:
    """Argument → the slices of L2 that the atomics of CTAs access which run together."""
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
            count *= len(np.unique(values)) * ctas / max(pairs_of(owners, values), 1)
        size = launch.array_bytes.get(array)
        found[array] = slices_of(min(count, size / GRANULE) if size is not None else count)
    return found


def slices_of(granules: float) -> float:
    """The slices of L2 that so many of `GRANULE` bytes, one after another, lie in."""
    return max(granules / 2, min(granules, 2.0), 1.0)


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
            distinct += pairs_of((owners[here] - start) // _NEIGHBOURS, values[here])
            sums[array] = distinct, accesses + pairs_of(owners[here], values[here])
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


def _sample(ctas: int, at_once: int, middle: int) -> tuple[Array, Array]:
    """CTAs in order, and those that follow one another: all; or some in the middle, and some from everywhere."""
    if ctas <= _MOST_CTAS:
        return np.arange(ctas), np.arange(ctas)
    window = _MOST_CTAS * 3 // 4
    start = min(_wave(ctas, min(at_once, window)), ctas - window)
    consecutive = np.arange(start, start + window)
    everywhere = np.linspace(0, ctas - 1, _MOST_CTAS - window).astype(np.int64)
    return np.unique(np.concatenate([consecutive, everywhere, [middle]])), consecutive


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
        text = capture.texts.get("ttgir", "")
        arguments = read_arguments(kernel, capture.launch, text, loaded_are_apart=True, with_drawn=True)
        names: list[str] = []
        missing: list[str] = []
        for value, kind, _ in kernel.parameters:
            name = value.name.lstrip("%")
            argument = arguments.held.get(value)
            number = argument if isinstance(argument, Number) else None
            row = record.argument(name) if record is not None else None
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
                if pointer.element is not None and pointer.element.text == "f32":
                    self.assumed.floats.add(len(names) + 1)
                if row is not None and row.storage_bytes:
                    self.array_bytes[len(names) + 1] = row.storage_bytes
                begin = int(number.known.flat[0]) % 512 if number is not None and number.known.size == 1 else 0
                self._words(at, ((len(names) + 1) << ARRAY_BITS) + begin, 8)
                if (held := arguments.contents.get(name)) is not None:
                    content = held.values.astype(f"<i{held.element_bytes}").view(np.uint8)
                    self.assumed.contents[len(names) + 1] = begin, content
                    if row is not None and row.drawn and not row.data:
                        self.assumed.drawn[len(names) + 1] = name
                names.append(name)
                at += 8
                continue
            size = _SIZES.get(kind, 1)
            at = -(-at // size) * size
            if number is not None and number.value is not None:
                self._words(at, number.value, size)
            elif kind.startswith("i") and kind != "i1":
                missing.append(name)
            elif kind == "f32" and row is not None and isinstance(row.value, float):
                self._words(at, int(float_bits(np.array(row.value))), size)
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
        own, places = np.unique(ctas, return_inverse=True)
        shared = SharedWords(self.shared_bytes, lanes, len(own)) if self.has_shared_addresses else None
        special["SHARED"] = places.reshape(-1, 1) * shared.count if shared is not None and len(own) > 1 else zero
        return State(len(ctas), lanes, {}, self.constants, special, assumed or self.assumed, shared=shared)
