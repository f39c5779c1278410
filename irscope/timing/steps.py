"""What a warp's trace asks of the units of a multiprocessor: steps, their pipes and latencies, the costs of accesses.

A trace becomes steps: instructions of fixed latency up to one that waits for a scoreboard, accesses memory or meets
others. A step takes as long as its stall counts and the pipe of each instruction say.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import inf
from typing import Any

from irscope.device.clocks import Clock
from irscope.ir.asm.instructions import Instruction
from irscope.timing.accesses import KINDS, SECTOR, Access
from irscope.timing.execution import Execution
from irscope.timing.program import Program
from irscope.timing.walk import Observed, Skip

__all__ = [
    "ATOMICS", "DRAM", "ISSUE", "L1", "L2", "MEMORY", "PORT", "SHARED", "START", "TENSOR", "UNITS", "Demand",
    "OneStep", "Rates", "Steps", "Uses", "costs_of", "demand_of", "rates_of", "steps_of",
    "uses_tensor_cores", "wgmma_cost",
]  # fmt: skip

UNITS = ("issue", "integer and logic", "FMA", "special functions", "tensor cores", "float64", "shared memory", "L1",
         "L2 port", "L2", "DRAM", "atomics", "memory pipe", "CTA start")  # fmt: skip
"""What may be busy; the first six and the last of one scheduler, the others of a multiprocessor or of its part."""
ISSUE, _ALU, _FMA, _SPECIAL, TENSOR, _DOUBLE, SHARED, L1, PORT, L2, DRAM, ATOMICS, MEMORY, START = range(14)


_ON_FMA = ("FFMA", "FMUL", "FADD", "FSWZADD", "FFMA32I", "FADD2", "FMUL2", "FFMA2")
_ADDS = ("VIADD",)
"""Not on the ALU: of two launches with a sixth and a fifth of these, an H200's ALU is used for at most 84 and 62 % of
the time, with them it would be 98 and 69. That they take the FMA pipe is assumed."""
_ON_HALF = ("HFMA2", "HADD2", "HMUL2", "HMNMX2", "HSET2", "HSETP2", "BF16_V2")
_ON_MULTIPLY = ("IMAD", "IDP", "XMAD")
_ON_DOUBLE = ("DFMA", "DMUL", "DADD", "DSETP", "DMNMX")
_ON_TENSOR = ("HMMA", "IMMA", "QMMA", "DMMA", "BMMA")
_ON_SPECIAL = ("MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV", "I2FP")
_NOWHERE = (
    "NOP", "BRA", "EXIT", "BSSY", "BSYNC", "WARPSYNC", "CS2R", "S2R", "S2UR", "ULDC", "LDC", "LDCU", "UMOV", "UIADD3",
    "ULEA", "USHF", "ULOP3", "UISETP", "USEL", "R2UR", "UIMAD", "DEPBAR", "LDGDEPBAR", "WARPGROUP", "FENCE", "MEMBAR",
    "UTMACMDFLUSH", "UTMACCTL", "ELECT", "VOTEU", "CCTL", "ERRBAR", "YIELD", "NANOSLEEP", "BREAK", "RET", "CALL",
)  # fmt: skip
_SHUFFLES = ("SHFL", "REDUX")
"""They pass through the data pipe of shared memory and L1, a wavefront each; of REDUX that is assumed."""
_LATENCY = {"MUFU": 18.0, "I2F": 23.0, "F2I": 23.0, "S2R": 30.0, "S2UR": 30.0, "LDC": 38.0, "LDCU": 30.0,
            "R2UR": 14.0, "F2F": 23.0, "POPC": 17.0, "FLO": 17.0, "VOTEU": 12.0, "MEMBAR": 60.0, "FENCE": 20.0,
            "DFMA": 10.0, "DADD": 10.0, "DMUL": 10.0, "DSETP": 10.0, "REDUX": 24.0, "CREDUX": 24.0}  # fmt: skip
"""Cycles of instructions whose latency varies, where nothing queues."""


_L1_OF = {"store": 1.6, "copy": 0.55, "atomic": 4.5}
_L1_OF_WGMMA = 0.8
"""What a wavefront of an access, or of wgmma's operands, takes of the data pipe in Nsight Compute's throughput of L1,
where that is not one."""
_REQUESTS = {
    "load": (0.0, 0.5), "copy": (0.0, 0.5), "bulk": (0.31, 0.0), "store": (0.7, 1.27), "local store": (0.7, 1.27),
    "bulk store": (0.87, 0.0), "atomic": (1.06, 0.8),
}  # fmt: skip
"""Likewise of L1's port for requests to L2, by what it takes for a sector and for a line; that registers which are
spilled take what other stores do is assumed."""
_L2_SENT, _L2_LOOKUP = 0.95, 6.2e-12
"""Likewise of L2: what a byte takes, of its rate, that it sends; and the seconds of looking up a line."""
_L2_READ, _L2_STORED, _L2_ADDED, _L2_FILLED, _L2_LINE = 0.45, 1.58, 2.27, 1.68, 3.0e-12
"""What takes as much of L2's rate between its two partitions, which Nsight Compute's breakdown does not list: a byte
that is read, stored, added, or read from DRAM, and a line. Half of what DRAM and the multiprocessors send lies in the
other partition: L2 counts 1.5 sectors for one that is stored, and 0.5 more for one that DRAM reads. All of these are
fitted to launches on an H200 (docs/timing.md)."""
_LINES_COUNTED = 1.5
"""Lines that L2 looks up for one that is stored or added to."""
_STORED, _STORING = 1.3, 0.75
"""What a wavefront of a store to shared memory takes of the data pipe, and what a store to global memory takes beyond
the wavefronts of its sectors: by least squares over 228 launches that Nsight Compute profiled on an H200
(`python -m benchmarks.timing terms` compares what is predicted now)."""
_IN_DATA_PIPE = ("shared", "load", "store", "copy", "atomic")
"""What takes a wavefront of the data pipe even where no lane of a warp is on: Nsight Compute's wavefronts tell, of a
padding that stores nothing in two of three warps, and of the loads `@!PT LDS RZ, [RZ]` before `LDGSTS`."""
_LINES = 3.7
"""Lines that L1 looks up in a cycle: 32 lanes on 32 lines and as many banks take 8.7 cycles (`--only again`)."""


Uses = tuple[tuple[int, float], ...]
"""(unit, cycles) of all instructions of a step."""


@dataclass(slots=True)
class OneStep:
    """Instructions of one warp without a wait between them, and what ends them."""

    index: int
    """The first instruction."""
    awaited: tuple[int, ...] = ()
    """Scoreboards that must be clear before."""
    stall: float = 0.0
    uses: Uses = ()
    fma: float = 0.0
    """Cycles of the FMA pipe by additions and multiplications of float32."""
    shuffles: float = 0.0
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


@dataclass(slots=True)
class Steps:
    """The steps of one group of warps."""

    rows: int
    steps: list[OneStep]


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

    def build(self, trace: list[Any]) -> list[OneStep]:
        marks: dict[int, list[int]] = defaultdict(list)
        for place, entry in enumerate(trace):
            if isinstance(entry, Skip):
                marks[place - (entry.since or entry.entries)].append(place)
        steps: list[OneStep] = []
        current: OneStep | None = None
        outstanding = 0
        use: dict[int, float] = {}
        # When each pipe takes this warp's next instruction: in order, one that waits for its pipe holds up all others.
        taken: dict[int, float] = {}

        fetches = self._fetches(trace)

        def close() -> None:
            nonlocal current
            if current is not None:
                current.uses = tuple(use.items())
                steps.append(current)
                current = None

        for place, entry in enumerate(trace):
            for mark in marks.get(place, ()):
                close()
                steps.append(OneStep(0, kind="mark", mark=mark))
            if isinstance(entry, Skip):
                close()
                steps.append(OneStep(0, kind="skip", mark=place, number=entry.count / entry.window))
                continue
            index = entry.index if isinstance(entry, Observed) else entry
            item = self.code[index]
            control = item.control
            waits = control.wait_mask & outstanding if control is not None else 0
            if waits:
                close()
                outstanding &= ~waits
            if current is None:
                current = OneStep(index, tuple(board for board in range(6) if waits >> board & 1))
                taken.clear()
                use.clear()
            stall = max(control.stall if control is not None else 2, 1, fetches[place])
            current.last = index
            use[ISSUE] = use.get(ISSUE, 0.0) + self.clock.issue
            pipe, cycles = self._pipe(index)
            if pipe >= 0:
                use[pipe] = use.get(pipe, 0.0) + cycles
                if self.bases[index] in _ON_FMA:
                    current.fma += cycles
                current.shuffles += self.bases[index] in _SHUFFLES
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

    def _fetches(self, trace: list[Any]) -> list[float]:
        """Cycles of a warp for each entry until its code is there: none where it was executed not long ago."""
        clock, size = self.clock, 16
        indices = [-1 if isinstance(one, Skip) else one.index if isinstance(one, Observed) else one for one in trace]
        everything = len(set(indices)) * size
        if everything <= clock.code_size:
            return [0.0] * len(trace)
        found: list[float] = []
        last: dict[int, int] = {}
        for place, index in enumerate(indices):
            since = (place - last[index]) * size if index in last else everything
            last[index] = place
            found.append(clock.code_fetch if since > clock.code_size else 0.0)
        return found

    def _kind(self, index: int, item: Instruction, access: Access | None) -> str:
        base = self.bases[index]
        if access is not None:
            if not access.is_on:
                return "shared" if access.kind in _IN_DATA_PIPE else ""
            return access.kind
        if _is_asynchronous_mma(base):
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


def _is_asynchronous_mma(base: str) -> bool:
    return base in ("HGMMA", "QGMMA", "IGMMA", "BGMMA") or (base.startswith("UTC") and "MMA" in base)


def uses_tensor_cores(program: Program) -> bool:
    """Whether any instruction of a kernel is one of the tensor cores'."""
    return any(base in _ON_TENSOR or _is_asynchronous_mma(base) for base in program.bases)


def _number(item: Instruction) -> float:
    """`DEPBAR.LE SB0, 0x2`, `WARPGROUP.DEPBAR.LE gsb0, 0x1`."""
    last = item.operands[-1] if item.operands else "0x0"
    return float(int(last, 16)) if last.startswith("0x") else 0.0


def _pipe_of(base: str, item: Instruction, clock: Clock) -> tuple[int, float]:
    if base in _ON_FMA or base in _ADDS:
        return _FMA, clock.fma
    if base in _ON_MULTIPLY:
        # A move or an addition in its dress takes what a multiplication takes, one with the product's high half twice.
        is_wide = ".WIDE" in item.opcode or ".HI" in item.opcode
        return _FMA, clock.multiply * (2 if is_wide else 1)
    if base in _ON_HALF:
        return _FMA, clock.half
    if base in _ON_DOUBLE:
        return _DOUBLE, clock.double
    if base in _ON_SPECIAL:
        return (_ALU, clock.alu) if base == "I2FP" else (_SPECIAL, clock.special)
    if base in _ON_TENSOR:
        return TENSOR, _mma_cycles(base, item, clock)
    if base in _SHUFFLES:
        return MEMORY, clock.memory_issue
    if base in KINDS or base.endswith("GMMA"):
        # These are issued to the memory pipe, or to the tensor core, at the step's end.
        return -1, 0.0
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


def wgmma_cost(item: Instruction, base: str, clock: Clock) -> tuple[float, float]:
    """Cycles of the tensor core of each scheduler, and wavefronts of shared memory for each warp."""
    m, n, k = _shape(item) or (64, 64, 16)
    kind = _operands(base, item)
    rate = clock.tensor_flops.get(kind, 512.0)
    cycles = m * n * k / (4 * rate)
    size = {"f16": 2, "tf32": 4, "f8": 1, "i8": 1}.get(kind, 2)
    sources = item.operands[1:2]
    size_a = m * k * size if sources and "gdesc" in sources[0] else 0
    return cycles, (n * k * size + size_a) / clock.shared_bytes / 4


@dataclass(slots=True)
class Demand:
    """What a CTA asks of each unit, in cycles of a multiprocessor, skipped iterations included."""

    cycles: list[float]
    l2_bytes: float
    dram_bytes: float
    written_bytes: float
    """Of the bytes of DRAM: those that are written."""
    l1_throughput: float
    """Cycles of L1 as Nsight Compute counts its throughput: of its data pipe, or of its port for requests."""
    l2_throughput: float
    """Cycles of L2 likewise: of what passes between its partitions, of what it sends, or of looking up lines."""


def costs_of(access: Access, execution: Execution, clock: Clock, rates: Rates) -> dict[int, float]:
    """What one warp's access asks of each unit, in cycles."""
    kind, on = access.kind, access.is_on
    use: dict[int, float] = {}
    # A warp of which no lane makes the access sends it all the same.
    off = 1 - on if kind in _IN_DATA_PIPE else 0.0
    if kind == "shared":
        return {SHARED: access.wavefronts * (_STORED if access.is_store else 1.0) * on + off}
    if kind not in ("load", "store", "copy", "atomic", "bulk", "bulk store", "local", "local store"):
        return use
    beyond = access.sectors * access.missed * SECTOR * on
    if not kind.startswith("bulk"):
        # The data pass through the array that is shared memory as well, and lanes of one bank one after another.
        use[L1] = max(access.lines / _LINES, 1.0) * on
        through = max(access.sectors * SECTOR / clock.l1_bytes, access.wavefronts, 0.0 if "store" in kind else 1.0)
        # What is copied is written into the array without passing through registers: the array is taken to be busy for
        # it, though Nsight Compute's wavefronts of the pipe leave it out.
        use[SHARED] = (access.wavefronts if kind == "copy" else through + _STORING * (kind == "store")) * on + off
    part = (execution.written if "store" in kind else execution.from_dram).get(access.array, 1.0)
    use[PORT] = beyond / rates.port
    if "store" in kind and not kind.startswith("bulk"):
        cost = clock.l2_store_sector * access.sectors + clock.l2_store_line * access.lines
        use[L2] = cost * access.missed * rates.active * on
    else:
        alone = max(beyond / rates.l2, clock.l2_line * access.lines * access.missed * rates.active * on)
        # What neighbouring CTAs load at the same time L2 serves once.
        use[L2] = alone * execution.in_step.get(access.array, 1.0)
    use[DRAM] = beyond * part / (rates.written if "store" in kind else rates.dram)
    if kind == "atomic":
        # A slice of L2 takes one pass after another; what lies close together is in few slices.
        slices = 1 / execution.atomic_slices.get(access.array, inf) + 1 / clock.l2_slices
        everywhere = clock.atomic_sector * access.sectors + clock.atomic_lane * access.lanes
        use[ATOMICS] = max(everywhere, clock.atomic_pass * access.passes * slices) * rates.active * on
    return use


@dataclass(slots=True)
class Rates:
    """Bytes in a cycle that one multiprocessor gets of what all share."""

    l2: float
    port: float
    dram: float
    written: float
    active: int


def rates_of(clock: Clock, active: int) -> Rates:
    """`active`: multiprocessors that run CTAs at the same time."""
    active = max(active, 1)
    dram = clock.dram_bytes_per_s / clock.clock_hz / active
    return Rates(
        clock.l2_bytes_per_s / clock.clock_hz / active,
        min(clock.port_bytes, clock.ports_bytes_per_s / clock.clock_hz / active), dram * clock.dram_efficiency,
        dram * clock.write_efficiency, active,
    )  # fmt: skip


def demand_of(execution: Execution, clock: Clock, rates: Rates) -> Demand:
    """What one CTA asks of each unit."""
    total = [0.0] * len(UNITS)
    l1 = l2 = dram = written = requests = between = sent = lines = 0.0
    builder = _Builder(execution, clock)
    total[START] = clock.cta_start
    for group in execution.groups:
        rows = len(group.rows)
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if isinstance(entry, Skip):
                continue
            index = entry.index if isinstance(entry, Observed) else entry
            times = weight * rows
            total[ISSUE] += times * clock.issue / clock.schedulers
            pipe, cycles = builder._pipe(index)
            if pipe >= 0:
                total[pipe] += times * cycles / clock.schedulers
            base = builder.bases[index]
            total[SHARED] += times * (base in _SHUFFLES)
            l1 += times * (base in _SHUFFLES)
            if base.endswith("GMMA"):
                own, fronts = wgmma_cost(builder.code[index], base, clock)
                total[TENSOR] += times * own / clock.schedulers
                total[SHARED] += times * fronts
                l1 += times * fronts * _L1_OF_WGMMA
            if isinstance(entry, Observed) and entry.payload is not None:
                access: Access = entry.payload
                is_store, is_atomic = "store" in access.kind, access.kind == "atomic"
                beyond = access.missed * access.is_on * times
                l2 += access.sectors * SECTOR * beyond
                of_sector, of_line = _REQUESTS.get(access.kind, (0.0, 0.0))
                requests += (of_sector * access.sectors + of_line * access.lines) * beyond
                if is_store or is_atomic:
                    between += access.sectors * SECTOR * beyond * (_L2_ADDED if is_atomic else _L2_STORED)
                    lines += access.lines * beyond * _LINES_COUNTED
                else:
                    served = execution.in_step.get(access.array, 1.0)
                    sent += access.sectors * SECTOR * beyond * served
                    lines += access.lines * beyond * served
                for unit, cycles in costs_of(access, execution, clock, rates).items():
                    total[unit] += times * cycles
                    if unit == SHARED:
                        l1 += times * cycles * _L1_OF.get(access.kind, 1.0)
                    if unit == DRAM:
                        moved = cycles * (rates.written if is_store else rates.dram)
                        dram += moved * times
                        written += moved * times * is_store
    between += sent * _L2_READ + (dram - written) * _L2_FILLED
    lines *= clock.clock_hz * rates.active
    throughput = max(between / rates.l2 + lines * _L2_LINE, sent * _L2_SENT / rates.l2, lines * _L2_LOOKUP)
    return Demand(total, l2, dram, written, max(l1, requests), throughput)
