"""What the warps of a launch execute: the trace of each in one CTA, its accesses to memory, and what CTAs share.

One CTA is walked with all its lanes: sectors, bank conflicts, reuse in L1. All CTAs of a launch, or those that run at
the same time, are walked with one lane of each kind of warp: how often their loops run, and which tiles they share.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.device.clocks import Clock
from irscope.device.occupancy import occupancy_of
from irscope.errors import UsageError
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.sass import SassFunction, parse_sass
from irscope.ir.mlir.reader import parse_mlir
from irscope.memory.addresses.arguments import read_arguments
from irscope.memory.addresses.numbers import Number
from irscope.model.capture import Capture
from irscope.timing.scalars import State, address_of, predicate
from irscope.timing.walk import Observed, Program, Walked, walk

__all__ = ["Access", "Execution", "execute"]

Array = NDArray[Any]

SECTOR = 32
_LINE = 128
_BANKS = 32
_SPILLS = -3
"""What stands for an argument where registers are spilled."""
_ARRAY_BITS = 36
"""Each argument lies at a multiple of 2**36."""
_MOST_CTAS = 1536
"""CTAs whose ways are followed."""
_PARAMETERS = {7: 0x160, 8: 0x160, 9: 0x210, 10: 0x380, 12: 0x380}
"""Major compute capability → where the parameters of a kernel begin in the constant bank."""
_GRID = {7: (0x0, 0xC), 8: (0x0, 0xC), 9: (0x0, 0xC), 10: (0x360, 0x370), 12: (0x360, 0x370)}
"""Likewise the sizes of a CTA, and of the grid."""

_KINDS = {
    "LDG": "load", "LD": "load", "STG": "store", "ST": "store", "ATOMG": "atomic", "ATOM": "atomic", "RED": "atomic",
    "REDG": "atomic", "LDGSTS": "copy", "LDS": "shared", "STS": "shared", "LDSM": "shared", "STSM": "shared", "ATOMS": "shared",
    "LDL": "local", "STL": "local", "UTMALDG": "bulk", "UTMASTG": "bulk store", "UTMAREDG": "bulk store",
    "UBLKCP": "bulk", "UBLKRED": "bulk store", "SYNCS": "phase", "BAR": "barrier", "LDTM": "shared", "STTM": "shared",
}  # fmt: skip
"""Opcode → what kind of access it is."""
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1, "F32x4": 16, "F32x2": 8, "16": 16}


@dataclass(frozen=True, slots=True)
class Access:
    """One execution of an instruction that accesses memory or synchronises, as each warp of its group does it."""

    kind: str
    sectors: float = 0.0
    """Of each warp: sectors of 32 bytes."""
    ideal_sectors: float = 0.0
    """The sectors that its bytes fill."""
    lines: float = 0.0
    """Lines of 128 bytes: lookups of L1's tags."""
    missed: float = 1.0
    """The part of its sectors that are not in L1."""
    wavefronts: float = 0.0
    """Of shared memory."""
    ideal_wavefronts: float = 0.0
    array: int = -1
    bytes: float = 0.0
    """Of a bulk copy."""
    barrier: int | None = None
    """The address of an mbarrier, or the number of a named barrier."""
    value: int = 0
    """What a barrier is told: its count, the parity that is waited for, the bytes that are expected."""
    lanes: float = 32.0
    conflicts: float = 1.0
    """Of an atomic: the lanes of a warp that access one address, at most."""
    is_on: float = 1.0
    """The part of the warps that execute it: a predicate may turn it off."""


@dataclass(slots=True)
class Tiles:
    """What CTAs access by one argument: bytes from L2, and from DRAM."""

    requested: float = 0.0
    """Sectors of the whole launch beyond L1."""
    wave: float = 0.0
    """Of CTAs that run at the same time: distinct tiles for each that is asked for."""
    whole: float = 1.0
    """The same for all CTAs of the launch."""


@dataclass(slots=True)
class Execution:
    """What a launch executes."""

    program: Program
    function: SassFunction
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
    program = Program(function, lambda item: item.opcode.partition(".")[0] in _KINDS)
    launch = _Launch(capture, grid)
    warps = launch.warps
    occupied = occupancy_of(capture)
    resident = max(occupied.blocks_per_sm if occupied is not None else 1, 1)
    ctas = prod(grid)
    # Only loops with copies in flight are pipelined.
    is_pipelined = any(base in ("LDGSTS", "UTMALDG", "UBLKCP") for base in program.bases)
    stages = max(int(capture.launch.option("num_stages", 3) or 1), 1) if is_pipelined else 1
    # One CTA with all lanes: one from the middle of each axis is as most are.
    middle = grid[0] // 2 + grid[0] * (grid[1] // 2 + grid[1] * (grid[2] // 2))
    state = launch.state(np.full(warps, middle), np.arange(warps), 32)
    watch = _Watch(clock, resident, launch)
    groups, assumed = walk(program, state, watch, stages)
    # All CTAs, or those of a wave and some others, with one lane of each way.
    leaders = sorted({int(group.rows[0]) for group in groups})[:4]
    at_once = min(resident * clock.units, ctas)
    shown, is_all = _sample(ctas, at_once, middle)
    tiles = _TileWatch()
    rows_cta, rows_warp = np.repeat(shown, len(leaders)), np.tile(np.array(leaders), len(shown))
    _with_bytes(groups)
    others, more = walk(program, launch.state(rows_cta, rows_warp, 1), tiles, stages)
    work = np.zeros(len(shown))
    for walked in others:
        np.add.at(work, np.searchsorted(shown, rows_cta[walked.rows]), walked.instructions)
    own = np.searchsorted(shown, middle)
    work = work / max(work[own] if shown[own] == middle else work.mean(), 1)
    if not is_all:
        work = np.interp(np.linspace(0, 1, min(ctas, 1 << 16)), np.linspace(0, 1, len(work)), work)
    from_dram, written, together = _traffic(groups, tiles, launch, clock, at_once, ctas, shown, warps)
    spilled = launch.stack_bytes * warps * 32 * at_once
    from_dram[_SPILLS] = written[_SPILLS] = max(0.0, 1 - clock.l2_size / spilled) if spilled else 0.0
    return Execution(
        program, function, grid, warps, resident, groups, work, launch.names, launch.array_bytes, from_dram, written,
        together, assumed | more | launch.assumed,
    )  # fmt: skip


def _kernel_of(capture: Capture) -> SassFunction:
    functions = parse_sass(capture.texts.get("sass", ""))
    if not functions:
        raise UsageError(f"{capture.name} has no SASS: nvdisasm, which Triton brings along, makes it.")
    chosen = next((one for one in functions if one.name == capture.name), functions[0])
    return chosen.without_padding()


def _with_bytes(groups: Iterable[Walked]) -> None:
    """Give each bulk copy its bytes: what an mbarrier was told to expect, by the copies that land on it."""
    observed = [(group, place, entry) for group in groups for place, entry in enumerate(group.trace)
                if isinstance(entry, Observed) and entry.payload is not None]  # fmt: skip
    expected = loads = 0.0
    for group, _, entry in observed:
        times = entry.payload.is_on * len(group.rows)
        if entry.payload.kind == "arrive":
            expected += entry.payload.value * times
        elif entry.payload.kind == "bulk":
            loads += times
    each = expected / loads if loads and expected else 16384.0
    for group, place, entry in observed:
        if entry.payload.kind in ("bulk", "bulk store"):
            array = -2 - entry.index
            payload = replace(
                entry.payload, bytes=each, sectors=each / SECTOR, ideal_sectors=each / SECTOR, array=array
            )
            group.trace[place] = Observed(entry.index, payload)


def _sample(ctas: int, at_once: int, middle: int) -> tuple[Array, bool]:
    """CTAs in order: all; or those of a wave in the middle, and some from everywhere."""
    if ctas <= _MOST_CTAS:
        return np.arange(ctas), True
    window = min(at_once, _MOST_CTAS * 3 // 4)
    start = (ctas // 2) // max(at_once, 1) * max(at_once, 1)
    start = min(start, ctas - window)
    everywhere = np.linspace(0, ctas - 1, _MOST_CTAS - window).astype(np.int64)
    return np.unique(np.concatenate([np.arange(start, start + window), everywhere, [middle]])), False


class _Launch:
    """The parameters of a launch, as the constant bank and the special registers hold them."""

    def __init__(self, capture: Capture, grid: tuple[int, int, int]) -> None:
        self.grid = grid
        self.assumed: set[str] = set()
        self.warps = int(capture.launch.option("num_warps", 4) or 4)
        # A warp-specialised kernel has more warps than its option says.
        total = dict(capture.metadata).get("total_num_warps") if capture.metadata else None
        text = capture.texts.get("ttgir", "")
        if (found := text.find('"ttg.total-num-warps" = ')) >= 0:
            digits = text[found + 24 : found + 30].split(" ")[0]
            total = int(digits) if digits.isdecimal() else total
        if isinstance(total, int) and total > 0:
            self.warps = total
        self.shared_bytes = capture.resources.shared_bytes or 0
        self.stack_bytes = capture.resources.stack_bytes or 0
        major = int(str(capture.target.arch)) // 10
        begin = _PARAMETERS.get(major, 0x210)
        sizes_at, grid_at = _GRID.get(major, (0x0, 0xC))
        self.constants: dict[int, int] = {sizes_at: self.warps * 32, sizes_at + 4: 1, sizes_at + 8: 1}
        self.constants |= {grid_at + 4 * axis: size for axis, size in enumerate(grid)}
        self.array_bytes: dict[int, int] = {}
        self.names = self._place(capture, begin, text)

    def _place(self, capture: Capture, at: int, text: str) -> tuple[str, ...]:
        module = parse_mlir(text)
        kernel = module.kernel
        if kernel is None:
            raise UsageError(f"{capture.name} has no TTGIR, by which its arguments are known.")
        record = capture.launch.record
        arguments = read_arguments(kernel, capture.launch)
        names: list[str] = []
        missing: list[str] = []
        for value, kind, _ in kernel.parameters:
            name = value.name.lstrip("%")
            held = arguments.held.get(value)
            if "tensordesc" in kind:
                at = -(-at // 64) * 64
                self._words(at, (len(names) + 1) << _ARRAY_BITS, 8)
                names.append(name)
                at += 128
                continue
            if kind.startswith("!tt.ptr"):
                at = -(-at // 8) * 8
                row = record.argument(name) if record is not None else None
                if row is not None and row.storage_bytes:
                    self.array_bytes[len(names) + 1] = row.storage_bytes
                begin = int(held.known) if isinstance(held, Number) and not held.shape else 0
                self._words(at, ((len(names) + 1) << _ARRAY_BITS) + begin % 512, 8)
                names.append(name)
                at += 8
                continue
            size = (
                8
                if kind in ("i64", "f64")
                else 4
                if kind in ("i32", "f32")
                else 2
                if kind in ("i16", "f16", "bf16")
                else 1
            )
            at = -(-at // size) * size
            number = held.value if isinstance(held, Number) and not held.shape else None
            if number is not None:
                self._words(at, int(number), size)
            elif kind.startswith("i") and kind != "i1":
                missing.append(name)
            at += size
        if missing:
            raise UsageError(
                f"{', '.join(missing)}: the launch does not tell the value. --size {missing[0]}=VALUE gives it."
            )
        return tuple(names)

    def _words(self, at: int, value: int, size: int) -> None:
        value &= (1 << 8 * size) - 1
        for word in range(at & ~3, at + size, 4):
            shift = 8 * (word - at)
            part = value >> shift if shift >= 0 else value << -shift
            self.constants[word] = self.constants.get(word, 0) | part & 0xFFFFFFFF

    def state(self, ctas: Array, warps: Array, lanes: int) -> State:
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
        return State(len(ctas), lanes, {}, self.constants, special)


def _active(item: Instruction, state: State, lanes: Array | None) -> Array | None:
    """Which lanes execute an instruction; None if that is not known, and all may."""
    value: Array | None = np.ones((1, 1), np.bool_)
    if item.predicate:
        value = predicate(item.predicate)(state)
    # A mask may stand behind the operands of a copy.
    if item.operands and item.operands[-1].lstrip("!").startswith("P") and item.opcode.startswith(("LDGSTS", "LDG")):
        mask = predicate(item.operands[-1])(state)
        value = None if value is None or mask is None else value & mask
    if lanes is not None and value is not None:
        value = value & lanes
    return value


def _width(opcode: str) -> int:
    return next((_WIDTHS[part] for part in opcode.split(".")[1:] if part in _WIDTHS), 4)


class _Watch:
    """Sees the accesses of one CTA, with all its lanes."""

    def __init__(self, clock: Clock, resident: int, launch: _Launch) -> None:
        cache = max(clock.l1_size - resident * (launch.shared_bytes + 1024), 16 * 1024)
        spilled = launch.stack_bytes * launch.warps * 32 * resident
        self._spills_missed = max(0.0, 1 - cache / spilled) if spilled else 0.0
        self._most_seen = cache // SECTOR // max(resident, 1)
        self._seen: set[int] = set()

    def __call__(self, _: int, item: Instruction, state: State, lanes: Array | None, __: int) -> Access | None:
        base = item.opcode.partition(".")[0]
        kind = _KINDS[base]
        active = _active(item, state, lanes)
        if kind == "barrier":
            return _named_barrier(item)
        if kind == "phase":
            return _phase(item, state, active)
        if active is not None and not active.any():
            return Access(kind, is_on=0.0)
        on = 1.0 if active is None else float(np.broadcast_to(active, (state.rows, active.shape[1])).any(axis=1).mean())
        if kind in ("bulk", "bulk store"):
            return replace(_bulk(item, state, kind), is_on=on)
        if kind == "local":
            # Spills: each lane has its own words side by side.
            width = _width(item.opcode)
            return Access(kind, width, width, max(width / 4, 1), self._spills_missed, array=_SPILLS, is_on=on)
        operands = [one for one in item.operands if "[" in one]
        if kind == "copy":
            target = address_of(operands[0]) if operands else None
            found = self._global(operands[-1], item, state, active, kind)
            fronts = _wavefronts(target.value(state) if target else None, _width(item.opcode), active, 32)
            return replace(found, wavefronts=fronts[0], ideal_wavefronts=fronts[1], is_on=on)
        if kind == "shared":
            matrix = item.opcode.startswith(("LDSM", "STSM"))
            parts = item.opcode.split(".")
            count = 8 * int(parts[-1] if parts[-1] in ("2", "4") else 1) if matrix else 32
            address = address_of(operands[0]) if operands else None
            value = address.value(state) if address is not None else None
            width = 16 if matrix else _width(item.opcode)
            fronts = _wavefronts(value, width, None if matrix else active, count)
            return Access(kind, wavefronts=fronts[0], ideal_wavefronts=fronts[1], is_on=on)
        return replace(self._global(operands[0] if operands else "", item, state, active, kind), is_on=on)

    def _global(self, operand: str, item: Instruction, state: State, active: Array | None, kind: str) -> Access:
        width = _width(item.opcode)
        address = address_of(operand)
        value = address.value(state) if address is not None else None
        if value is None:
            state.assumed.add("addresses that depend on data are taken to be far apart")
            return Access(kind, 32.0, float(width), 32.0, 1.0)
        shape = np.broadcast_shapes(
            value.shape, (state.rows, state.lanes), active.shape if active is not None else (1, 1)
        )
        value = np.broadcast_to(value, shape)
        mask = np.ones(shape, np.bool_) if active is None else np.broadcast_to(active, shape)
        sectors = np.where(mask, value >> 5, -1)
        ordered = np.sort(sectors, axis=1)
        fresh = np.ones(shape, np.bool_)
        fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        fresh &= ordered >= 0
        live = max(int(mask.any(axis=1).sum()), 1)
        count = fresh.sum() / live
        rows = ordered >> 2
        lines = np.ones(shape, np.bool_)
        lines[:, 1:] = rows[:, 1:] != rows[:, :-1]
        lines &= ordered >= 0
        lanes = mask.sum() / live
        array = int(value[mask][0] >> _ARRAY_BITS) if mask.any() else -1
        ideal = lanes * width / SECTOR
        conflicts = 1.0
        missed = 1.0
        if kind == "atomic":
            first = np.sort(np.where(mask, value, -1)[:1], axis=1)[0]
            conflicts = float(max(np.unique(first[first >= 0], return_counts=True)[1], default=1))
        elif kind == "load" and "STRONG" not in item.opcode:
            distinct = set(ordered[fresh].tolist())
            new = distinct - self._seen
            missed = len(new) / max(int(fresh.sum()), 1)
            if len(self._seen) > self._most_seen:
                self._seen.clear()
            self._seen |= new
        distinct_lanes = ideal
        return Access(
            kind, float(count), max(float(distinct_lanes), 1 / 8), float(lines.sum() / live), missed, array=array,
            lanes=float(lanes), conflicts=conflicts,
        )  # fmt: skip


def _wavefronts(value: Array | None, width: int, active: Array | None, lanes: int) -> tuple[float, float]:
    """Wavefronts of a warp's access to shared memory, and without conflicts: words of one bank one after another."""
    together = 32 if width <= 4 else 16 if width == 8 else 8
    least = max(lanes // together, 1)
    if value is None or value.shape[1] == 1:
        return float(least), float(least)
    words = (value >> 2)[:4, :lanes]
    mask = None if active is None else np.broadcast_to(active, (active.shape[0], lanes))[:4]
    total = 0
    for row in range(len(words)):
        for first in range(0, lanes, together):
            chosen = words[row, first : first + together]
            if mask is not None:
                chosen = chosen[mask[min(row, len(mask) - 1), first : first + together]]
            if width > 4:
                chosen = (chosen[:, None] + np.arange(width // 4)).reshape(-1)
            distinct = np.unique(chosen)
            total += max(int(np.bincount(distinct % _BANKS, minlength=1).max()), 1) if distinct.size else 0
    return max(total / len(words), 1.0), float(least)


def _named_barrier(item: Instruction) -> Access:
    """`BAR.SYNC.DEFER_BLOCKING 0x1, 0x80`: number and threads."""
    numbers = [int(one, 16) for one in item.operands if one.startswith("0x")]
    return Access("barrier", barrier=numbers[0] if numbers else 0, value=numbers[1] // 32 if len(numbers) > 1 else 0)


def _first(value: Array | None) -> int | None:
    return None if value is None else int(value.reshape(-1)[0])


def _phase(item: Instruction, state: State, active: Array | None) -> Access | None:
    """What an instruction does to an mbarrier."""
    operand = next((one for one in item.operands if "[" in one), "")
    address = address_of(operand)
    barrier = _first(address.value(state)) if address is not None else None
    on = 1.0 if active is None else float(np.broadcast_to(active, (state.rows, active.shape[1])).any(axis=1).mean())
    registers = [one for one in item.operands if one.startswith(("R", "UR"))]
    value = _first(state.registers.get(registers[-1])) if registers and registers[-1] not in ("RZ", "URZ") else 0
    if "TRYWAIT" in item.opcode:
        # The parity stands in the highest bit of the register.
        return Access("wait", barrier=barrier, value=(value or 0) >> 31 & 1, is_on=on)
    if "ARRIVE" in item.opcode:
        is_expecting = (
            "TRANS64" in item.opcode and registers and registers[-1] not in ("RZ", "URZ") and "A1T0" not in item.opcode
        )
        lanes = 1.0 if active is None else float(np.broadcast_to(active, (state.rows, state.lanes)).sum(axis=1).max())
        return Access("arrive", barrier=barrier, value=value or 0 if is_expecting else 0, lanes=lanes, is_on=on)
    return Access("init", barrier=barrier, value=value or 0, is_on=on) if "EXCH" in item.opcode else None


def _bulk(item: Instruction, state: State, kind: str) -> Access:
    """A bulk copy: its mbarrier, and which tile it takes."""
    operand = next((one for one in item.operands if "[" in one), "")
    name = operand.strip("[]")
    number = int(name[2:]) if name.startswith("UR") and name[2:].isdecimal() else None
    barrier = _first(state.registers.get(f"UR{number + 1}")) if number is not None and kind == "bulk" else None
    return Access(kind, array=-2, barrier=barrier)


class _TileWatch:
    """Sees where CTAs access global memory, by one lane of each kind of warp."""

    def __init__(self) -> None:
        self.places: dict[tuple[int, bool], list[tuple[Array, Array]]] = {}
        """(argument, whether it is stored to) → (CTAs, a number for the tile of each) of each access; of a bulk copy -2 less its instruction."""

    def __call__(self, index: int, item: Instruction, state: State, lanes: Array | None, count: int) -> None:
        kind = _KINDS[item.opcode.partition(".")[0]]
        if kind not in ("load", "store", "copy", "atomic", "bulk", "bulk store") or count > 6:
            return
        ctas, warps = state.special["CTA"], state.special["WARP"]
        if kind.startswith("bulk"):
            value = _tile_of(item, state, kind)
        else:
            operands = [one for one in item.operands if "[" in one]
            address = address_of(operands[-1] if kind == "copy" else operands[0]) if operands else None
            value = address.value(state) if address is not None else None
        if value is None:
            return
        value = np.broadcast_to(value, ctas.shape)[:, 0]
        array = -2 - index if kind.startswith("bulk") else int(value[0] >> _ARRAY_BITS)
        # Warps of one CTA have tiles of their own.
        tile = (value if kind.startswith("bulk") else value >> 7) * 64 + np.broadcast_to(warps, ctas.shape)[:, 0]
        self.places.setdefault((array, "store" in kind), []).append((ctas[:, 0], tile))


def _tile_of(item: Instruction, state: State, kind: str) -> Array | None:
    operands = [one.strip("[]") for one in item.operands if "[" in one]
    if not operands or not operands[0].startswith("UR"):
        return None
    number = int(operands[0][2:])
    # The address in shared memory, of loads the mbarrier, then the coordinates.
    first = number + 2 if kind == "bulk" else number + 1
    rank = next((int(part[0]) for part in item.opcode.split(".") if part in ("1D", "2D", "3D", "4D", "5D")), 2)
    total: Array = np.zeros((1, 1), np.int64)
    for axis in range(rank):
        value = state.registers.get(f"UR{first + axis}")
        if value is None:
            return None
        total = total * 1_000_003 + value
    return total


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


def _traffic(
    groups: Iterable[Walked], tiles: _TileWatch, launch: _Launch, clock: Clock, at_once: int, ctas: int, shown: Array,
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
    distinct: dict[tuple[int, bool], tuple[float, float]] = {}
    for key, parts in tiles.places.items():
        owners = np.concatenate([one for one, _ in parts])
        values = np.concatenate([one for _, one in parts])
        here = (owners >= start) & (owners < start + at_once)
        in_wave = len(np.unique(values[here])) / max(int(here.sum()), 1) if here.any() else 1.0
        apart = ~here if len(shown) < ctas and (~here).sum() > 32 else np.ones(len(owners), np.bool_)
        # What one CTA accesses twice does not tell how many CTAs share a tile.
        own = np.unique(np.stack([owners[apart], values[apart]]), axis=1).shape[1]
        alone = own / max(int(apart.sum()), 1)
        pairs = round(ctas * len(owners) / len(shown) * alone)
        whole = alone * _distinct_of_all(len(np.unique(values[apart])), own, pairs)
        whole = max(min(whole, in_wave), 1 / max(ctas, 1))
        distinct[key] = (in_wave, whole)
    sums: dict[tuple[int, bool], list[float]] = {}
    for group in groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if not isinstance(entry, Observed):
                continue
            access = entry.payload
            if access is None or access.kind not in ("load", "store", "copy", "atomic", "bulk", "bulk store"):
                continue
            wave, whole = distinct.get((access.array, "store" in access.kind), (1.0, 1.0))
            amount = access.sectors * access.missed * weight * len(group.rows) * access.is_on
            key = (access.array, access.kind in ("store", "bulk store"))
            total = sums.setdefault(key, [0.0, 0.0, 0.0])
            total[0] += amount
            total[1] += amount * wave
            total[2] += amount * whole
    footprint = 0.0
    for (array, _), (amount, _, whole) in sums.items():
        size = launch.array_bytes.get(array)
        mine = whole * SECTOR * ctas
        footprint += min(mine, size) if size is not None else mine
    fits = max(0.0, min(1.0, 1.0 - (footprint - 0.6 * clock.l2_size) / (0.6 * clock.l2_size)))
    result: tuple[dict[int, float], dict[int, float]] = ({}, {})
    together: dict[int, float] = {}
    for (array, is_store), (amount, wave, whole) in sums.items():
        if not amount:
            continue
        size = launch.array_bytes.get(array)
        cold = whole / amount
        if size is not None:
            cold = min(cold, size / (amount * SECTOR * ctas))
        moving = max(min(wave / amount, 1.0), cold)
        result[is_store][array] = fits * cold + (1 - fits) * moving
        together[array] = min(together.get(array, 1.0), wave / amount)
    return (*result, together)
