"""How long the units of a part take (`clocks.json`): rates, latencies and sizes for the clock, each with its source.

Cycles are those of the multiprocessor's clock. What no vendor publishes is measured: by `benchmarks/microbench` on the
parts that say so, by the papers named here on others. A part that was never compared with a GPU is marked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from irscope.device.parts import PEAKS
from irscope.errors import UsageError, did_you_mean
from irscope.target import Target


@dataclass(frozen=True, slots=True)
class Clock:
    """The timing constants of one part."""

    part: str
    target: str
    units: int
    """Multiprocessors, or compute units."""
    clock_hz: float
    """The clock under load."""
    is_validated: bool
    """Whether predictions for it were compared with times measured on it."""
    source: str
    schedulers: int = 4
    issue: float = 1.0
    """Cycles of a scheduler for each warp instruction."""
    alu: float = 2.0
    """Cycles of its pipe for each warp instruction of the integer and logic unit: 16 lanes of a scheduler."""
    fma: float = 1.0
    """Likewise of float32 FMAs: 32 lanes."""
    multiply: float = 2.0
    """Likewise of integer multiplications: 16 lanes."""
    half: float = 1.0
    """Likewise of packed half FMAs."""
    double: float = 2.0
    """Likewise of float64: 16 lanes."""
    special: float = 8.0
    """Likewise of MUFU and conversions: 4 lanes."""
    uniform: float = 2.0
    collision: float = 1.0
    """Of the cycles that other warps' instructions take on a unit, the part that delays a warp that needs it too."""
    tensor_flops: Mapping[str, float] = field(default_factory=dict[str, float])
    """Operand type → FMAs of a scheduler's tensor core in a cycle, by asynchronous instructions."""
    mma_flops: Mapping[str, float] = field(default_factory=dict[str, float])
    """The same by instructions of one warp (mma.sync)."""
    shared_bytes: float = 128.0
    """Bytes of one wavefront, which takes one cycle of the multiprocessor."""
    shared_latency: float = 23.0
    shuffle_latency: float = 24.0
    memory_issue: float = 2.0
    """Cycles of a scheduler's port to the memory pipes for each warp instruction."""
    l1_latency: float = 38.0
    l1_bytes: float = 128.0
    """Bytes that L1 returns in a cycle."""
    l1_size: int = 256 * 1024
    """Of L1 and shared memory together."""
    l2_latency: float = 284.0
    l2_size: int = 50 * 1024 * 1024
    l2_bytes_per_s: float = 10.0e12
    """Of the whole part, where no two multiprocessors load the same."""
    l2_line: float = 0.011
    """Cycles of the whole L2 for each line of a load, at least: one with a single sector takes 1.75 times what a
    sector takes of lines that are read as a whole or half (`--only sectors`)."""
    l2_store_sector: float = 0.017
    """Cycles of the whole L2 for each sector that is stored, in part or as a whole."""
    l2_store_line: float = 0.0139
    """Cycles more for each line."""
    port_bytes: float = 100.0
    """Bytes that one multiprocessor takes from L2 in a cycle."""
    ports_bytes_per_s: float = 16.4e12
    """What all multiprocessors together take from L2, where several load the same (`--only together`)."""
    dram_latency: float = 700.0
    """Of a load that misses L2, where nothing else uses DRAM."""
    l2_queue_spread: float = 64.0
    """Cycles that a load waits longer at L2 for each factor of e of its sectors, times u / (1 - u).

    Chosen with kernels. Streams of loads alone (`benchmarks.microbench --only together`) show 100.
    """
    dram_queue: float = 68.0
    """Cycles more where others use DRAM, times u / (1 - u) for its utilisation u."""
    dram_spread: float = 40.0
    """Cycles more for each factor of e by which more sectors are waited for together."""
    dram_queue_spread: float = 45.0
    """Likewise where others use DRAM, times u / (1 - u)."""
    dram_write_spread: float = 750.0
    """Likewise, times the part of its time in which DRAM writes (`benchmarks.microbench --only mixed`)."""
    dram_bytes_per_s: float = 3.35e12
    dram_efficiency: float = 0.9
    """The part of it that streams reach."""
    write_efficiency: float = 0.84
    dirty_bytes: float = 20e6
    """What others wrote and L2 still holds when a launch begins: it is written back in its time."""
    bulk_latency: float = 950.0
    """Cycles of a bulk (TMA) copy beyond the transfer, from DRAM; what hits L2 takes less by the difference above."""
    bulk_issue: float = 16.0
    l2_slices: int = 96
    atomic_pass: float = 1.4
    """Cycles of a slice of L2 for atomics on one sector, no two on one address."""
    atomic_sector: float = 0.0205
    """Cycles of the whole L2 for each sector of atomics."""
    atomic_lane: float = 0.006
    """Cycles more for each lane: these two reproduce the rates of one, two and four words a lane on an H200 to 8 %
    (`--only atomics`)."""
    barrier: float = 12.0
    """Cycles of a barrier of one warp."""
    barrier_warp: float = 2.0
    """Cycles more for each warp."""
    tensor_clock: float = 1.0
    """The part of its clock at which it runs launches that use tensor cores, however little: the cycles for the time of
    127 launches on H100s and H200s, next to those of 156 without (Nsight Compute, `benchmarks/timing/data`)."""
    wgmma_latency: float = 30.0
    """Cycles of an asynchronous tensor instruction beyond its use of the tensor core."""
    wgmma_fma: float = 0.0
    """Cycles that the tensor core stands still for each cycle of the FMA pipe, whichever warp uses it."""
    cta_start: float = 159.0
    """Cycles of a multiprocessor for each CTA that it starts: launches of 262,144 CTAs tell it; empty CTAs take 190."""
    cta_turnover: float = 425.0
    """Cycles from the end of a CTA to the first instruction of the one that takes its place: 2,097,152 CTAs of 16 warps
    that add a few bytes tell it. Empty CTAs of 1,024 threads, two at once, take 414 from one to the next
    (`cta_start_1024threads`)."""
    code_size: int = 140 * 1024
    """Bytes of code that a multiprocessor's caches hold."""
    code_fetch: float = 5.8
    """Cycles of a warp for each instruction that they do not hold."""
    code_bytes: float = 16.0
    """Bytes of code in a cycle that a multiprocessor fetches for the first time."""
    launch_s: float = 3.0e-6
    """Time of a launch that does nothing, between two events of the stream."""
    is_calibrated: bool = False
    """Whether `irscope time --calibrate` measured constants of it here."""

    def calibrated(self, constants: Mapping[str, float]) -> Clock:
        """The same part with constants that were measured on one; names that are none of a clock's are left out."""
        known = {name: value for name, value in constants.items() if name in _MEASURED and value > 0}
        whole = {name: int(value) for name, value in known.items() if name in ("units", "l2_size")}
        return replace(self, **(known | whole), is_calibrated=bool(known))  # pyright: ignore[reportArgumentType]

    def with_tensor_cores(self) -> Clock:
        """The part while a launch uses tensor cores: L2 and DRAM do not slow down, and so take fewer cycles."""
        slower = {name: getattr(self, name) * self.tensor_clock for name in ("clock_hz", *_BEYOND_MULTIPROCESSORS)}
        return replace(self, **slower)

    def cycles(self, seconds: float) -> float:
        return seconds * self.clock_hz


_BEYOND_MULTIPROCESSORS = (
    "l2_latency", "l2_line", "l2_store_sector", "l2_store_line", "dram_latency", "dram_queue", "dram_spread",
    "dram_queue_spread", "dram_write_spread", "l2_queue_spread", "bulk_latency", "atomic_pass", "atomic_sector",
    "atomic_lane",
)  # fmt: skip
"""Constants in cycles of what has a clock of its own."""
_MEASURED = ("clock_hz", "launch_s", "l2_latency", "dram_latency", "dram_bytes_per_s", "l2_bytes_per_s", "units",
             "l2_size")  # fmt: skip
"""Constants that are measured on the user's own part."""
_ROWS = tuple(Clock(**row) for row in json.loads(Path(__file__).with_name("clocks.json").read_bytes())["clocks"])
CLOCKS: Mapping[str, Clock] = MappingProxyType({row.part: row for row in _ROWS})
"""Every part by its name."""


def clock_of(target: Target, part: str | None = None) -> Clock:
    """The constants of a part, or of the first part of a target; raises UsageError where there are none."""
    mine = [row for row in _ROWS if row.target == str(target)]
    if part is None:
        if mine:
            return mine[0]
        raise UsageError(f"no timing constants of {target} are known, but of {', '.join(CLOCKS)}.")
    if (chosen := CLOCKS.get(part.lower())) is None:
        why = "no timing constants of it are known" if part.lower() in PEAKS else "there is no such part"
        raise UsageError(f"--part {part!r}: {why}.{did_you_mean(part, [*CLOCKS])}")
    if chosen not in mine:
        raise UsageError(f"--part {part!r} is a {chosen.target}, and this launch was compiled for {target}.")
    return chosen
