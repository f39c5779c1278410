"""The accesses of SASS to memory, and what synchronises: sectors, conflicts, reuse in L1."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.device.clocks import Clock
from irscope.ir.asm.instructions import Instruction
from irscope.timing.scalars import ARRAY_BITS, TRUE, State, address_of, predicate, width_of

__all__ = [
    "GRANULE", "KINDS", "LINE", "SECTOR", "SPILLS", "Access", "CtaWatch", "DataWatch", "Shifts", "active_lanes",
    "configured_shared",
]  # fmt: skip

Array = NDArray[Any]
Shifts = Sequence[tuple[Mapping[int, int], int]]
"""(instruction → bytes beyond the addresses of the CTA that is walked, CTAs) of each alignment of a launch's CTAs."""

SECTOR = 32
LINE = 128
_BANKS = 32
_NO_WORD = np.iinfo(np.int64).min
SPILLS = -3
"""What stands for an argument where registers are spilled."""
GRANULE = 256
"""Bytes that lie in one slice of L2: atomics on 128 bytes to 32 KiB tell (`benchmarks.microbench --only atomics`).

Of 512 and of 1,024 bytes two slices are used, of more as many as there are 512 bytes."""
_SHARED = tuple(size << 10 for size in (0, 8, 16, 32, 64, 100, 132, 164, 196, 228))
"""Bytes of L1 that can be configured as shared memory (NVIDIA, "Hopper Tuning Guide")."""
_PREFERRED = 48 << 10
"""Bytes of shared memory of a CTA beyond which Triton prefers all of it to be configured (its `driver.c`)."""
_DOUBLED = 132 << 10
"""Up to which twice the resident CTAs have room."""
_RECENT = 32
"""Lines that were accessed last: one of these does not count again in a reuse distance. Chosen, not measured."""
_RANDOM = "loaded indices are assumed uniformly random within their tensor"
_NOT_IN_L1 = ("STRONG.GPU", "STRONG.SYS", "BYPASS")
_KEPT_IN_L1 = 0.25
"""The part of L1 up to which what all CTAs read stays in it."""
_FLOAT_COLLISION = 2.5
"""A further lane of one address costs floating point so many passes."""
KINDS = {
    "LDG": "load", "LD": "load", "STG": "store", "ST": "store", "ATOMG": "atomic", "ATOM": "atomic", "RED": "atomic",
    "REDG": "atomic", "LDGSTS": "copy", "LDS": "shared", "STS": "shared", "LDSM": "shared", "STSM": "shared",
    "ATOMS": "shared",
    "LDL": "local", "STL": "local store", "UTMALDG": "bulk", "UTMASTG": "bulk store", "UTMAREDG": "bulk store",
    "UBLKCP": "bulk", "UBLKRED": "bulk store", "SYNCS": "phase", "BAR": "barrier", "LDTM": "shared", "STTM": "shared",
}  # fmt: skip
"""Opcode → what kind of access it is."""


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
    pairs: float = 0.0
    """Pairs of sectors, which DRAM reads and writes together."""
    missed: float = 1.0
    """The part of its sectors that are not in L1."""
    wavefronts: float = 0.0
    """Of shared memory; of a scattered load, of L1."""
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
    passes: float = 0.0
    """Of an atomic: how often L2 passes over the sectors of a warp, where lanes of one address go one after another."""
    place: int = 0
    """The first address."""
    is_random: bool = False
    """Whether data decide the address, in whose place random numbers stand."""
    is_store: bool = False
    """Of an access to shared memory."""
    is_on: float = 1.0
    """The part of the warps that execute it: a predicate may turn it off."""
    other_lines: float = 0.0
    """Lines of L1 that were not among the last ones accessed."""


def active_lanes(item: Instruction, state: State, lanes: Array | None) -> Array | None:
    """Which lanes execute an instruction; None if that is not known, and all may."""
    value: Array | None = np.ones((1, 1), np.bool_)
    if item.predicate:
        value = None if state.data.get(item.predicate.lstrip("@!")) else predicate(item.predicate)(state)
    # A mask may stand behind the operands of a copy.
    if item.operands and item.operands[-1].lstrip("!").startswith("P") and item.opcode.startswith(("LDGSTS", "LDG")):
        mask = predicate(item.operands[-1])(state)
        value = None if value is None or mask is None else value & mask
    if lanes is not None and value is not None:
        value = value & lanes
    return value


_MERGED = 0.2
"""What a store of words to the sectors of the store before costs beyond L1, beside that one: by an H200's counters four
stores of `stencil` take 0.31 of four, and two of it and of `rope_interleaved` 0.61 and 0.51 of two; by `--only again`
two take 0.6, and four 0.55."""
_MOST_MERGED = 16
"""Sectors of a warp's store that are merged: those of 32 are not."""


class CtaWatch:
    """Sees the accesses of one CTA, with all its lanes."""

    def __init__(
        self, clock: Clock, resident: int, shared_bytes: int, spilled: int, array_bytes: Mapping[int, int],
        shifts: Shifts = (),
    ) -> None:  # fmt: skip
        """`shared_bytes`, `spilled`: of a CTA, in bytes; `array_bytes`: of the arguments that CTAs have in common;
        `shifts`: the CTAs whose sectors are counted, in the mean; by default the one that is walked.
        """
        cache = max(clock.l1_size - configured_shared(resident, shared_bytes), 16 * 1024)
        spilled *= resident
        self._spills_missed = max(0.0, 1 - cache / spilled) if spilled else 0.0
        kept = {array for array, size in array_bytes.items() if size <= cache * _KEPT_IN_L1}
        most = cache // LINE // max(resident, 1)
        every = sum(times for _, times in shifts) or 1
        self._lines = [_Lines(one, most, kept) for one, _ in shifts or [({}, 1)]]
        """Of each alignment."""
        self._parts = np.array([times / every for _, times in shifts or [({}, 1)]])
        """Of the CTAs that have it."""
        self.with_several_addresses: set[int] = set()
        """Instructions of which the lanes of a warp access more than one address."""
        self._fronts: dict[tuple[object, ...], tuple[float, float]] = {}
        self.granules: dict[int, set[int]] = {}
        """Argument → what atomics access of it, in parts that lie in one slice of L2."""

    def __call__(self, index: int, item: Instruction, state: State, lanes: Array | None, _: int) -> Access | None:
        base = item.opcode.partition(".")[0]
        kind = KINDS[base]
        active = active_lanes(item, state, lanes)
        if kind == "barrier":
            return _named_barrier(item) if active is None or active.any() else None
        if kind == "phase":
            return _phase(item, state, active)
        if active is not None and not active.any():
            return Access(kind, is_on=0.0)
        on = 1.0 if active is None else float(active.any(axis=1).mean())
        if kind in ("bulk", "bulk store"):
            return replace(_bulk(item, state, kind), is_on=on)
        if kind.startswith("local"):
            # Spills: each lane has its own words side by side. L1 writes through: an H200's L2 counts 1.5 sectors for
            # each that two products spill, 1.07e8 and 1.35e8, as for each that is stored.
            width = width_of(item.opcode)
            missed = self._spills_missed if kind == "local" else 1.0
            return Access(kind, width, width, max(width / 4, 1), width / 2, missed, array=SPILLS, is_on=on)
        operands = [one for one in item.operands if "[" in one]
        if kind == "copy":
            target, source = (found.value(state) if (found := address_of(one)) else None for one in operands[:2])
            found = self._global(index, operands[-1], item, state, active, kind)
            width = width_of(item.opcode)
            fronts, ideal = self._wavefronts(target, width, active, 32)
            if "BYPASS" not in item.opcode and target is not None and source is not None:
                fronts = _copy_wavefronts(source, target, width, active)
            return replace(found, wavefronts=fronts, ideal_wavefronts=ideal, is_on=on)
        if kind == "shared":
            matrix = item.opcode.startswith(("LDSM", "STSM"))
            parts = item.opcode.split(".")
            count = 8 * int(parts[-1] if parts[-1] in ("2", "4") else 1) if matrix else 32
            address = address_of(operands[0]) if operands else None
            value = address.value(state) if address is not None else None
            width = 16 if matrix else width_of(item.opcode)
            fronts = self._wavefronts(value, width, None if matrix else active, count)
            is_store = base.startswith("ST")
            return Access(kind, wavefronts=fronts[0], ideal_wavefronts=fronts[1], is_store=is_store, is_on=on)
        return replace(self._global(index, operands[0] if operands else "", item, state, active, kind), is_on=on)

    def _wavefronts(self, value: Array | None, width: int, active: Array | None, lanes: int) -> tuple[float, float]:
        """Those of `_wavefronts`, which are the same where all addresses are as many words further."""
        if value is None:
            return _wavefronts(None, width, active, lanes)
        apart = value[:4] - (value[0, 0] & -4)
        mask = b"" if active is None else active[:4].tobytes()
        key = (apart.tobytes(), apart.shape, width, mask, lanes)
        if key not in self._fronts:
            self._fronts[key] = _wavefronts(value, width, active, lanes)
        return self._fronts[key]

    def spread(self, array: int, is_store: bool) -> float:
        """The bytes of the lines that the CTA accesses of an argument, for each byte of its sectors there."""
        used = self._lines[0].used[is_store]
        bits = [sectors.bit_count() for line, sectors in used.items() if line * LINE >> ARRAY_BITS == array]
        return 4 * len(bits) / sum(bits) if bits else 1.0

    def passed(self, count: float) -> None:
        """Iterations that were skipped accessed as many lines."""
        for one in self._lines:
            one.accesses += count

    def _global(
        self, index: int, operand: str, item: Instruction, state: State, active: Array | None, kind: str
    ) -> Access:
        width = width_of(item.opcode)
        address = address_of(operand)
        value = address.value(state) if address is not None else None
        if value is None:
            if kind == "atomic":
                state.assumed.notes.add("atomics with unknown addresses are assumed to be scattered")
                return Access(kind, 32.0, float(width), 32.0, 32.0, passes=32.0, is_random=True)
            state.assumed.notes.add("unknown addresses are assumed to be coalesced")
            return Access(kind, float(width), float(width), max(width / 4, 1.0), max(width / 2, 1.0))
        origins = address.origins(state) if address is not None else frozenset[int]()
        is_random = bool(origins)
        state.assumed.notes.update(state.assumed.origins.get(one, _RANDOM) for one in origins)
        shape = np.broadcast_shapes(
            value.shape, (state.rows, state.lanes), active.shape if active is not None else (1, 1)
        )
        value = np.broadcast_to(value, shape)
        mask = np.ones(shape, np.bool_) if active is None else np.broadcast_to(active, shape)
        if kind == "atomic" and active is None and (value == value[:, :1]).all():
            # One thread stands for a program's scalar.
            mask = np.arange(shape[1])[None, :] < np.ones(shape[:1], np.int64)[:, None]
        live = max(int(mask.any(axis=1).sum()), 1)
        lanes = mask.sum() / live
        array = int(value[mask][0] >> ARRAY_BITS) if mask.any() else -1
        ideal = lanes * width / SECTOR
        if (value != value[:, :1]).any():
            self.with_several_addresses.add(index)
        counts = [one.accessed(index, item, kind, width, array, value, mask) for one in self._lines]
        count, lines, pairs, new, others = (self._parts @ np.array(counts) / live).tolist()
        conflicts, passes, fronts = 1.0, 0.0, 0.0
        if kind == "load":
            fronts = self._wavefronts(value, width, active, 32)[0]
        if kind == "atomic":
            conflicts, passes = _collisions(value, mask, live)
            if any(part in item.opcode for part in (".F32", ".F16", ".BF16", ".F64")):
                passes += (_FLOAT_COLLISION - 1) * (passes - float(count))
            elif ".ADD" in item.opcode:
                # Integers that lanes add to one address are summed up first (`atomic_u32_one`).
                passes = float(count)
            self.granules.setdefault(array, set()).update((value[mask] // GRANULE).tolist())
        return Access(
            kind, count, max(float(ideal), 1 / 8), lines, pairs, new / max(count, 1e-9), fronts, fronts, array=array,
            other_lines=others,
            lanes=float(lanes), conflicts=conflicts, passes=passes, is_random=is_random,
            place=int(value[mask][0]) if lanes else 0,
        )  # fmt: skip


def configured_shared(resident: int, shared_bytes: int) -> int:
    """The bytes that the driver configures as shared memory, which L1 is without.

    Args:
        resident: CTAs of a multiprocessor at once.
        shared_bytes: of a CTA, without the 1 KiB of the system.

    A rule that 122 of 125 launches follow of 77 kernels that Nsight Compute profiled on an H200
    (`benchmarks/timing/data/h200-shared-memory.jsonl`).
    """
    if shared_bytes > _PREFERRED:
        return _SHARED[-1]
    if not shared_bytes:
        return 32 << 10

    def room_for(ctas: int) -> int:
        return next((one for one in _SHARED if one >= ctas * (shared_bytes + 1024)), _SHARED[-1])

    doubled = min(2 * resident, 32) if resident > 1 else 1
    return max(room_for(resident), min(room_for(doubled), _DOUBLED))


class _Lines:
    """The lines that a CTA accesses: which sectors L1 has of each, and those of its last store.

    Its addresses lie by so many bytes beyond those of the CTA that is walked, which may begin elsewhere in a sector.
    L1 holds the lines that were accessed last. A line takes all of its room, however many sectors of it are fetched,
    and so does one that is stored to (`benchmarks.microbench --only reuse`).
    """

    def __init__(self, shifts: Mapping[int, int], most: int, kept: Container[int]) -> None:
        """`most`: the lines that L1 holds of a CTA; `kept`: arguments that it holds from one to the next."""
        self._shifts, self._most, self._kept = shifts, most, kept
        self._held: dict[int, tuple[float, int]] = {}
        """Line → the reuse distance's clock when it was accessed last, a bit for each sector that was fetched."""
        self.used: dict[bool, dict[int, int]] = {False: {}, True: {}}
        """Of loads, and of stores: line → a bit for each sector that is accessed at some time."""
        self.accesses = 0.0
        """The clock of reuse distances: accesses of lines other than the last few."""
        self._stored: Array | None = None
        """The sectors of the last store."""

    def accessed(
        self, index: int, item: Instruction, kind: str, width: int, array: int, value: Array, mask: Array
    ) -> tuple[int, int, int, float, float]:
        """Sectors, lines and pairs of sectors of all warps, the sectors that L1 misses, how far its clock goes on."""
        sectors = np.where(mask, value + self._shifts.get(index, 0) >> 5, -1)
        ordered = sectors if (sectors[:, 1:] >= sectors[:, :-1]).all() else np.sort(sectors, axis=1)
        fresh = ordered >= 0
        fresh[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
        count = int(fresh.sum())
        lines, pairs = (
            int(fresh[:, 0].sum() + (fresh[:, 1:] & (ordered[:, 1:] >> by != ordered[:, :-1] >> by)).sum())
            for by in (2, 1)
        )
        missed, before = float(count), self.accesses
        if kind in ("load", "copy") and not any(one in item.opcode for one in _NOT_IN_L1):
            missed = float(self._fetched(ordered[fresh]))
            if array in self._kept:
                missed = 0.0
        elif kind == "store":
            self._fetched(ordered[fresh], is_store=True)
            is_again = self._stored is not None and np.array_equal(ordered, self._stored)
            self._stored = ordered
            if is_again and width >= 4 and count <= _MOST_MERGED * max(int(fresh.any(axis=1).sum()), 1):
                missed = count * _MERGED
        return count, lines, pairs, missed, self.accesses - before

    def _fetched(self, sectors: Array, *, is_store: bool = False) -> int:
        """Access sectors: how many of them L1 lacks."""
        distinct = np.unique(sectors)
        lines, begins = np.unique(distinct >> 2, return_index=True)
        bits = np.add.reduceat(1 << (distinct & 3), begins) if len(distinct) else distinct
        used, now = self.used[is_store], self.accesses
        missed = 0
        for line, asked in zip(lines.tolist(), bits.tolist(), strict=True):
            last, held = self._held.get(line, (-inf, 0))
            held = held if last >= now - self._most else 0
            self.accesses += last < now - _RECENT
            missed += (asked & ~held).bit_count()
            used[line] = used.get(line, 0) | asked
            self._held[line] = self.accesses, held if is_store else held | asked
        return missed


def _collisions(value: Array, mask: Array, live: int) -> tuple[float, float]:
    """Of a warp's atomics: lanes of one address at most, and passes over its sectors, each as many as lanes collide."""
    most = passes = 0
    for row in range(len(value)):
        places, counts = np.unique(value[row][mask[row]], return_counts=True)
        if not places.size:
            continue
        most = max(most, int(counts.max()))
        _, begins = np.unique(places // SECTOR, return_index=True)
        passes += int(np.maximum.reduceat(counts, begins).sum())
    return float(max(most, 1)), passes / live


def _wavefronts(value: Array | None, width: int, active: Array | None, lanes: int) -> tuple[float, float]:
    """Wavefronts of a warp's access to shared memory, and without conflicts: words of one bank one after another."""
    together = 32 if width <= 4 else 16 if width == 8 else 8
    least = max(lanes // together, 1)
    if value is None:
        return float(least), float(least)
    words = np.broadcast_to(value >> 2, (len(value), max(lanes, value.shape[1])))[:4, :lanes]
    if lanes == 32 and width > 4 and any((words == words[:, np.arange(32) ^ pair]).all() for pair in (1, 2)):
        # Lanes n and n ^ 1, or n and n ^ 2, with one address each: twice as many lanes are served together
        # (forums.developer.nvidia.com, "Unexpected shared memory bank conflict").
        together *= 2
    rows, together = len(words), min(together, lanes)
    if active is not None and not active.all():
        words = np.where(np.broadcast_to(active, (len(active), lanes))[:rows], words, _NO_WORD)
    groups = words.reshape(-1, together)
    if width > 4:
        following = groups[:, :, None] + np.arange(width // 4)
        groups = np.where(groups[:, :, None] == _NO_WORD, _NO_WORD, following).reshape(len(groups), -1)
    ordered = np.sort(groups, axis=1)
    distinct = ordered != _NO_WORD
    distinct[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    banks = (np.arange(len(groups))[:, None] * _BANKS + ordered % _BANKS)[distinct]
    total = int(np.bincount(banks, minlength=len(groups) * _BANKS).reshape(-1, _BANKS).max(axis=1).sum())
    return max(total / rows, 1.0), float(least)


def _copy_wavefronts(source: Array, target: Array, width: int, active: Array | None) -> float:
    """Wavefronts of a warp's copy from L1's lines to shared memory.

    In each one the first lane of a bank reads it, and of those that read the first one of a bank writes it, also where
    lanes have one word (`benchmarks.microbench --only copies`: 11.2 where eight lanes of one bank to read have eight
    banks to write, and the four of one bank to write have four banks to read).
    """
    shape = np.broadcast_shapes(source.shape, target.shape, (1, 32), active.shape if active is not None else (1, 1))
    mask = np.broadcast_to(TRUE if active is None else active, shape)[:4]
    read, write = (np.broadcast_to(value // width, shape)[:4] for value in (source, target))
    banks = _BANKS * 4 // width
    count = 0
    for row in range(len(mask)):
        left = np.flatnonzero(mask[row])
        while left.size:
            count += 1
            reading = np.sort(left[np.unique(read[row][left] % banks, return_index=True)[1]])
            done = reading[np.unique(write[row][reading] % banks, return_index=True)[1]]
            left = np.setdiff1d(left, done, assume_unique=True)
    return max(count / len(mask), 1.0)


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
        # A register holds how many arrive (ART0) or the bytes that are expected; A1T0 is one arrival and nothing more.
        has_count, is_one = "ART0" in item.opcode, "A1T0" in item.opcode
        lanes = 1.0 if active is None else float(np.broadcast_to(active, (state.rows, state.lanes)).sum(axis=1).max())
        if has_count:
            lanes *= value or 1
        expected = 0 if has_count or is_one or "TRANS64" not in item.opcode else value or 0
        return Access("arrive", barrier=barrier, value=expected, lanes=lanes, is_on=on)
    return Access("init", barrier=barrier, value=value or 0, is_on=on) if "EXCH" in item.opcode else None


def _bulk(item: Instruction, state: State, kind: str) -> Access:
    """A bulk copy: its mbarrier, and which tile it takes."""
    operand = next((one for one in item.operands if "[" in one), "")
    name = operand.strip("[]")
    number = int(name[2:]) if name.startswith("UR") and name[2:].isdecimal() else None
    barrier = _first(state.registers.get(f"UR{number + 1}")) if number is not None and kind == "bulk" else None
    return Access(kind, array=-2, barrier=barrier)


class DataWatch:
    """Sees which accesses depend on data, in one lane."""

    def __init__(self) -> None:
        self.places: dict[tuple[int, int], tuple[int, frozenset[int]]] = {}
        """(instruction, 0 or 1) → (address, the loads that decide it) of its first execution, or of its second.

        What a loop loads may decide where its next iteration does.
        """
        self.loads: dict[int, int] = {}
        """Load → the address of its first execution."""

    def __call__(self, index: int, item: Instruction, state: State, lanes: Array | None, count: int) -> None:
        kind = KINDS[item.opcode.partition(".")[0]]
        if count > 1 or kind not in ("load", "store", "copy", "atomic"):
            return
        operand = [one for one in item.operands if "[" in one][-1 if item.opcode.startswith("LDGSTS") else 0 :][:1]
        address = address_of(operand[0]) if operand else None
        value = address.value(state) if address is not None else None
        if address is None or value is None:
            return
        if kind == "load" and not count:
            self.loads[index] = int(value.flat[0])
        if origins := address.origins(state):
            self.places[index, count] = int(value.flat[0]), origins
