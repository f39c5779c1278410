"""The limits of a multiprocessor (`limits.json`), how many warps of a kernel it can hold, and whether a kernel fits.

NVIDIA: "CUDA C++ Programming Guide", Technical Specifications per Compute Capability, and the CUDA toolkit's
`cuda_occupancy.h` (granularities, sub-partitions, barriers); "PTX ISA", tcgen05, for tensor memory.
AMD: LLVM's `AMDGPUBaseInfo.cpp` (register granules, waves, work-group slots, LDS granularity), after AMD's instruction
set architecture manuals of MI200, MI300, CDNA 4, RDNA 3 and RDNA 4.

NVIDIA's formula is that of the CUDA toolkit's `cuda_occupancy.h`; AMD's that of LLVM's AMDGPU back end, which prints
its own answer as `; Occupancy:` in the assembly. Both assume that the multiprocessor runs nothing else, and that
shared memory has the largest share of the cache.

A launch of such a kernel is refused by the driver (Triton: "out of resource"). The limits are those of occupancy
(`irscope.device.occupancy`); for clusters, "CUDA C++ Programming Guide", Thread Block Clusters: 8 blocks, or 16 if a
kernel asks for it, which Triton does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from irscope.model.capture import Capture, Failure, Resources, Target, stage_named
from irscope.model.plain import built

_KIB = 1024


@dataclass(frozen=True, slots=True)
class _CudaLimits:
    """One streaming multiprocessor."""

    max_warps: int
    max_blocks: int
    shared_bytes: int
    shared_bytes_per_block: int
    """The most that a block may ask for, without the driver's share."""
    reserved_shared_bytes: int
    """Shared memory that the driver reserves per CTA."""
    shared_granule_bytes: int
    barriers: int | None
    """Named barriers that its CTAs share; None if they do not limit the number of CTAs."""
    tensor_memory_columns: int | None = None
    registers: int = 64 * _KIB
    register_granule: int = 256
    """A warp's registers are rounded up to a multiple of this."""
    registers_per_thread: int = 256
    sub_partitions: int = 4
    max_threads_per_block: int = 1024


@dataclass(frozen=True, slots=True)
class _HipLimits:
    """One compute unit, or on RDNA one work-group processor: what a work group runs on."""

    unit: str
    """`CU` or `WGP`."""
    simds: int
    max_waves_per_simd: int
    vector_registers: int
    """VGPRs of a SIMD for each lane."""
    vector_granule: int
    unified_file: bool
    """Whether accumulation VGPRs come out of the same file as VGPRs."""
    scalar_steps: tuple[tuple[int, int], ...]
    """(SGPRs up to, waves per SIMD) in rising order, beyond the last one 7; empty if SGPRs never limit."""
    shared_bytes: int
    shared_bytes_per_block: int
    shared_granule_bytes: int
    max_blocks: int
    """Work groups of more than one wave at once."""
    max_waves_per_block: int

    @property
    def max_waves(self) -> int:
        return self.simds * self.max_waves_per_simd


_TABLES: Any = json.loads(Path(__file__).with_name("limits.json").read_bytes())

CUDA_LIMITS: Mapping[str, _CudaLimits] = MappingProxyType(
    {arch: built(_CudaLimits, row) for arch, row in _TABLES["cuda"].items()}
)
"""By compute capability."""

HIP_LIMITS: Mapping[str, _HipLimits] = MappingProxyType(
    {arch: built(_HipLimits, row) for arch, row in _TABLES["hip"].items()}
)
"""By architecture; the RDNA ones in waves of 32 lanes."""


WARPS, BLOCKS, REGISTERS, SCALARS = "warps", "CTAs", "registers", "scalar registers"
SHARED, BARRIERS, TENSOR_MEMORY = "shared memory", "barriers", "tensor memory"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The most warps and CTAs of a kernel that one multiprocessor holds at once."""

    warps_per_sm: int
    """Warps (waves) of the kernel at once per multiprocessor."""
    max_warps: int
    """Warps that the multiprocessor can hold."""
    ctas_per_sm: int
    limited_by: tuple[str, ...]
    """The causes that allow no further CTA: `warps`, `CTAs`, `registers`, `shared memory`, …"""
    limits: tuple[tuple[str, int], ...]
    """(cause, CTAs that it alone would allow); a resource that the kernel does not use is left out."""
    unit: str = "SM"
    """The name of a multiprocessor: `SM`, `CU`, or `WGP` for the pair of CUs that RDNA runs a work group on."""

    @property
    def fraction(self) -> float:
        """`warps_per_sm` of `max_warps`, from 0 to 1."""
        return self.warps_per_sm / self.max_warps

    def __str__(self) -> str:
        """`32 of 64 warps per SM, limited by registers`."""
        warps = "warps" if self.unit == "SM" else "waves"
        causes = " and ".join(self.limited_by).replace(WARPS, warps)
        return f"{self.warps_per_sm} of {self.max_warps} {warps} per {self.unit}, limited by {causes}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"fraction": self.fraction}


def occupancy(resources: Resources, target: Target, num_warps: int) -> Occupancy | None:
    """The theoretical occupancy of a kernel.

    Args:
        resources: what it uses; the registers must be known, and any other that is None counts as not used.
        num_warps: all warps of a block, those of warp-specialised partitions included.

    Returns None if the registers are not known, or the architecture is not in `irscope.device.occupancy`.
    """
    if resources.registers is None or num_warps < 1:
        return None
    if target.backend == "cuda" and target.arch in CUDA_LIMITS:
        limits = CUDA_LIMITS[target.arch]
        return _occupancy(_cuda_causes(resources, limits, num_warps), limits.max_warps, num_warps, "SM")
    if target.backend == "hip" and target.arch in HIP_LIMITS:
        unit = HIP_LIMITS[target.arch]
        return _occupancy(_hip_causes(resources, unit, num_warps), unit.max_waves, num_warps, unit.unit)
    return None


def occupancy_of(capture: Capture) -> Occupancy | None:
    """The theoretical occupancy of a capture's kernel; None if it is not known."""
    warps = warps_of(capture)
    return None if warps is None else occupancy(capture.resources, capture.target, warps)


def warps_of(capture: Capture) -> int | None:
    """The warps of a CTA, those that warp specialisation adds included; None if they are not known."""
    return _compiled_with(capture, "num_warps")


def _compiled_with(capture: Capture, option: str) -> int | None:
    # From the metadata: warp specialisation adds warps to those of the option.
    value = dict(capture.metadata).get(option, capture.launch.option(option))
    return value if isinstance(value, int) else None


def _occupancy(causes: dict[str, int], max_warps: int, num_warps: int, unit: str) -> Occupancy:
    blocks = min(causes.values())
    return Occupancy(
        warps_per_sm=blocks * num_warps,
        max_warps=max_warps,
        ctas_per_sm=blocks,
        limited_by=tuple(cause for cause, allowed in causes.items() if allowed == blocks),
        limits=tuple(causes.items()),
        unit=unit,
    )


def _cuda_causes(resources: Resources, limits: _CudaLimits, num_warps: int) -> dict[str, int]:
    causes = {
        WARPS: limits.max_warps // num_warps if num_warps * 32 <= limits.max_threads_per_block else 0,
        BLOCKS: limits.max_blocks,
        REGISTERS: _blocks_by_registers(resources.registers or 0, limits, num_warps),
        SHARED: _blocks_by_shared(resources.shared_bytes or 0, limits),
    }
    if limits.barriers is not None and resources.barriers:
        causes[BARRIERS] = limits.barriers // resources.barriers
    if limits.tensor_memory_columns is not None and resources.tensor_memory_columns:
        causes[TENSOR_MEMORY] = limits.tensor_memory_columns // resources.tensor_memory_columns
    return {cause: allowed for cause, allowed in causes.items() if allowed >= 0}


def _registers_of_block(registers: int, limits: _CudaLimits, num_warps: int) -> int:
    # The hardware checks a block as if all sub-partitions held as many of its warps as the fullest one.
    return _round_up(registers * 32, limits.register_granule) * _round_up(num_warps, limits.sub_partitions)


def _blocks_by_registers(registers: int, limits: _CudaLimits, num_warps: int) -> int:
    a_warp = _round_up(registers * 32, limits.register_granule)
    if _registers_of_block(registers, limits, num_warps) > limits.registers or registers > limits.registers_per_thread:
        return 0
    if not a_warp:
        return -1
    warps = limits.registers // limits.sub_partitions // a_warp * limits.sub_partitions
    return warps // num_warps


def _blocks_by_shared(shared_bytes: int, limits: _CudaLimits) -> int:
    if shared_bytes > limits.shared_bytes_per_block:
        return 0
    taken = _round_up(shared_bytes + limits.reserved_shared_bytes, limits.shared_granule_bytes)
    return limits.shared_bytes // taken if taken else -1


def _hip_causes(resources: Resources, limits: _HipLimits, num_warps: int) -> dict[str, int]:
    causes = {
        WARPS: limits.max_waves // num_warps if num_warps <= limits.max_waves_per_block else 0,
        REGISTERS: _waves_by_vectors(resources, limits) * limits.simds // num_warps,
    }
    if num_warps > 1:  # a single wave needs no barrier, and it is barriers that run out
        causes[BLOCKS] = limits.max_blocks
    if limits.scalar_steps and resources.scalar_registers is not None:
        causes[SCALARS] = _waves_by_scalars(resources, limits) * limits.simds // num_warps
    if resources.shared_bytes:
        taken = _round_up(resources.shared_bytes, limits.shared_granule_bytes)
        fits = resources.shared_bytes <= limits.shared_bytes_per_block
        causes[SHARED] = limits.shared_bytes // taken if fits else 0
    return causes


def _waves_by_vectors(resources: Resources, limits: _HipLimits) -> int:
    used = resources.registers or 0
    accumulators = resources.accumulator_registers or 0
    if accumulators:
        # One file: the accumulators begin at the next multiple of four. Two files: the fuller one decides.
        used = _round_up(used, 4) + accumulators if limits.unified_file else max(used, accumulators)
    if used > limits.vector_registers:
        return 0
    taken = max(_round_up(used, limits.vector_granule), limits.vector_granule)
    return limits.vector_registers // taken


def _waves_by_scalars(resources: Resources, limits: _HipLimits) -> int:
    used = resources.scalar_registers or 0
    return next((waves for up_to, waves in limits.scalar_steps if used <= up_to), 7)


def _round_up(value: int, granule: int) -> int:
    return -(-value // granule) * granule


_MAX_BLOCKS_PER_CLUSTER = 16


@dataclass(frozen=True, slots=True)
class _Excess:
    """One resource of which a block needs more than there is."""

    resource: str
    """`shared memory`, `threads`, `registers`, `tensor memory`, `barriers`, `cluster`."""
    needed: int
    limit: int
    unit: str
    """The unit of both: `bytes per CTA`."""
    target: str

    def __str__(self) -> str:
        return (
            f"{self.resource}: {self.needed} {self.unit} needed, {self.limit} available on {self.target}: "
            f"limit exceeded by {self.needed - self.limit}"
        )


def excesses_of(capture: Capture) -> tuple[_Excess, ...]:
    """The resources of which a capture's kernel needs too much; empty if it fits, or its needs are not known."""
    occupied = occupancy_of(capture)
    arch = capture.target.arch
    rows: list[tuple[str, int, int, str]] = []
    for cause, blocks in occupied.limits if occupied is not None else ():
        if blocks == 0 and capture.target.backend == "cuda":
            rows.append(_of_cuda(capture, CUDA_LIMITS[arch], cause))
        elif blocks == 0:
            rows.append(_of_hip(capture, HIP_LIMITS[arch], cause))
    blocks = _compiled_with(capture, "num_ctas") or 1
    if capture.target.backend == "cuda" and blocks > _MAX_BLOCKS_PER_CLUSTER:
        rows.append(("cluster", blocks, _MAX_BLOCKS_PER_CLUSTER, "CTAs per cluster"))
    return tuple(_Excess(*row, str(capture.target)) for row in rows)


def with_fit(capture: Capture) -> Capture:
    """The capture, marked as failed if its binary cannot run."""
    binary = next((stage for stage in capture.stages if stage_named(stage).is_binary), "")
    if capture.failure is not None or not binary or not (excesses := excesses_of(capture)):
        return capture
    failure = Failure("fit", "\n".join(map(str, excesses)), binary)
    return replace(capture, status="failed", failure=failure)


def _of_cuda(capture: Capture, limits: _CudaLimits, cause: str) -> tuple[str, int, int, str]:
    resources, warps = capture.resources, _compiled_with(capture, "num_warps") or 0
    if cause == SHARED:
        return cause, resources.shared_bytes or 0, limits.shared_bytes_per_block, "bytes per CTA"
    if cause == WARPS:
        return "threads", warps * 32, min(limits.max_threads_per_block, limits.max_warps * 32), "per CTA"
    if cause == TENSOR_MEMORY:
        return cause, resources.tensor_memory_columns or 0, limits.tensor_memory_columns or 0, "columns per CTA"
    if cause == REGISTERS:
        return cause, _registers_of_block(resources.registers or 0, limits, warps), limits.registers, "per CTA"
    return cause, resources.barriers or 0, limits.barriers or 0, "per CTA"


def _of_hip(capture: Capture, limits: _HipLimits, cause: str) -> tuple[str, int, int, str]:
    resources, warps = capture.resources, _compiled_with(capture, "num_warps") or 0
    if cause == SHARED:
        return cause, resources.shared_bytes or 0, limits.shared_bytes_per_block, "bytes per CTA"
    if cause == WARPS:
        most = min(limits.max_waves_per_block, limits.max_waves)
        return "threads", warps * capture.target.warp_size, most * capture.target.warp_size, "per CTA"
    # Per lane, if each SIMD holds its share of the block's waves.
    waves = -(-warps // limits.simds)
    used = (resources.registers or 0) + (resources.accumulator_registers or 0)
    return cause, used * waves, limits.vector_registers, "per lane of a SIMD"
