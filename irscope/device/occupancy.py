"""The limits of a multiprocessor (`limits.json`), how many warps of a kernel it can hold, and whether a kernel fits.

NVIDIA: "CUDA C++ Programming Guide", Technical Specifications per Compute Capability and Thread Block Clusters (8, or
16 if a kernel asks for it, which Triton does), and the CUDA toolkit's `cuda_occupancy.h`; "PTX ISA", tcgen05, for
tensor memory. AMD: LLVM's `AMDGPUBaseInfo.cpp`, after AMD's instruction set architecture manuals; LLVM prints its own
answer as `; Occupancy:` in the assembly.

The multiprocessor runs nothing else, and shared memory has the largest share of the cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from irscope.model.capture import Capture, Failure, Resources, Target, stage_named
from irscope.model.plain import built

_KIB = 1024

WARPS, BLOCKS, REGISTERS, SCALARS = "warps", "CTAs", "registers", "scalar registers"
SHARED, BARRIERS, TENSOR_MEMORY = "shared memory", "barriers", "tensor memory"


@dataclass(frozen=True, slots=True)
class _Cause:
    name: str
    ctas: int
    """How many it alone allows; 0 if a CTA needs more than there is."""
    needed: int = 0
    limit: int = 0
    unit: str = "per CTA"


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
    unit: ClassVar = "SM"

    def causes(self, resources: Resources, target: Target, num_warps: int) -> Iterator[_Cause]:
        threads, most = num_warps * 32, min(self.max_threads_per_block, self.max_warps * 32)
        yield _Cause(WARPS, self.max_warps // num_warps if threads <= most else 0, threads, most)
        yield _Cause(BLOCKS, self.max_blocks)
        if registers := resources.registers or 0:
            a_warp = _round_up(registers * 32, self.register_granule)
            # The hardware checks a block as if all sub-partitions held as many of its warps as the fullest one.
            needed = a_warp * _round_up(num_warps, self.sub_partitions)
            warps = self.registers // self.sub_partitions // a_warp * self.sub_partitions
            fits = needed <= self.registers and registers <= self.registers_per_thread
            yield _Cause(REGISTERS, warps // num_warps if fits else 0, needed, self.registers)
        shared, most = resources.shared_bytes or 0, self.shared_bytes_per_block
        if taken := _round_up(shared + self.reserved_shared_bytes, self.shared_granule_bytes):
            yield _Cause(SHARED, self.shared_bytes // taken if shared <= most else 0, shared, most, "bytes per CTA")
        if self.barriers is not None and (used := resources.barriers):
            yield _Cause(BARRIERS, self.barriers // used, used, self.barriers)
        if self.tensor_memory_columns is not None and (used := resources.tensor_memory_columns):
            columns = self.tensor_memory_columns
            yield _Cause(TENSOR_MEMORY, columns // used, used, columns, "columns per CTA")


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
    def max_warps(self) -> int:
        return self.simds * self.max_waves_per_simd

    def causes(self, resources: Resources, target: Target, num_warps: int) -> Iterator[_Cause]:
        most = min(self.max_waves_per_block, self.max_warps)
        waves = self.max_warps // num_warps if num_warps <= self.max_waves_per_block else 0
        yield _Cause(WARPS, waves, num_warps * target.warp_size, most * target.warp_size)
        used = (resources.registers or 0) + (resources.accumulator_registers or 0)
        # Per lane, if each SIMD holds its share of the block's waves.
        needed, unit = used * -(-num_warps // self.simds), "per lane of a SIMD"
        waves = self._waves_by_vectors(resources) * self.simds
        yield _Cause(REGISTERS, waves // num_warps, needed, self.vector_registers, unit)
        if num_warps > 1:  # a single wave needs no barrier, and it is barriers that run out
            yield _Cause(BLOCKS, self.max_blocks)
        if self.scalar_steps and (used := resources.scalar_registers) is not None:
            waves = next((waves for up_to, waves in self.scalar_steps if used <= up_to), 7) * self.simds
            yield _Cause(SCALARS, waves // num_warps)
        if used := resources.shared_bytes:
            most = self.shared_bytes_per_block
            ctas = self.shared_bytes // _round_up(used, self.shared_granule_bytes) if used <= most else 0
            yield _Cause(SHARED, ctas, used, most, "bytes per CTA")

    def _waves_by_vectors(self, resources: Resources) -> int:
        used = resources.registers or 0
        accumulators = resources.accumulator_registers or 0
        if accumulators:
            # One file: the accumulators begin at the next multiple of four. Two files: the fuller one decides.
            used = _round_up(used, 4) + accumulators if self.unified_file else max(used, accumulators)
        if used > self.vector_registers:
            return 0
        taken = max(_round_up(used, self.vector_granule), self.vector_granule)
        return self.vector_registers // taken


_TABLES: Any = json.loads(Path(__file__).with_name("limits.json").read_bytes())

CUDA_LIMITS: Mapping[str, _CudaLimits] = MappingProxyType(
    {arch: built(_CudaLimits, row) for arch, row in _TABLES["cuda"].items()}
)
"""By compute capability."""

HIP_LIMITS: Mapping[str, _HipLimits] = MappingProxyType(
    {arch: built(_HipLimits, row) for arch, row in _TABLES["hip"].items()}
)
"""By architecture; the RDNA ones in waves of 32 lanes."""


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
    limits, causes = _causes(resources, target, num_warps)
    if limits is None:
        return None
    ctas = min(cause.ctas for cause in causes)
    return Occupancy(
        warps_per_sm=ctas * num_warps,
        max_warps=limits.max_warps,
        ctas_per_sm=ctas,
        limited_by=tuple(cause.name for cause in causes if cause.ctas == ctas),
        limits=tuple((cause.name, cause.ctas) for cause in causes),
        unit=limits.unit,
    )


def _causes(
    resources: Resources, target: Target, num_warps: int
) -> tuple[_CudaLimits | _HipLimits | None, tuple[_Cause, ...]]:
    tables: dict[str, Mapping[str, _CudaLimits | _HipLimits]] = {"cuda": CUDA_LIMITS, "hip": HIP_LIMITS}
    limits = tables.get(target.backend, {}).get(target.arch)
    if limits is None or resources.registers is None or num_warps < 1:
        return None, ()
    return limits, tuple(limits.causes(resources, target, num_warps))


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
    _, causes = _causes(capture.resources, capture.target, warps_of(capture) or 0)
    rows = [
        ("threads" if cause.name == WARPS else cause.name, cause.needed, cause.limit, cause.unit)
        for cause in causes
        if not cause.ctas and cause.needed
    ]
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
