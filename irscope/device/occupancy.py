"""Theoretical occupancy: how many warps of a kernel one multiprocessor can hold, and what limits it.

NVIDIA's formula is that of the CUDA toolkit's `cuda_occupancy.h`; AMD's that of LLVM's AMDGPU back end, which prints
its own answer as `; Occupancy:` in the assembly. Both assume that the multiprocessor runs nothing else, and that
shared memory has the largest share of the cache.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from irscope.device.limits import CUDA_LIMITS, HIP_LIMITS, CudaLimits, HipLimits
from irscope.model.capture import Capture, Resources, Target

WARPS, BLOCKS, REGISTERS, SCALARS = "warps", "blocks", "registers", "scalar registers"
SHARED, BARRIERS, TENSOR_MEMORY = "shared memory", "barriers", "tensor memory"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The most warps and blocks of a kernel that one multiprocessor holds at once."""

    warps_per_sm: int
    """Warps (waves) of the kernel at once per multiprocessor."""
    max_warps: int
    """Warps that the multiprocessor can hold."""
    blocks_per_sm: int
    limited_by: tuple[str, ...]
    """The causes that allow no further block: `warps`, `blocks`, `registers`, `shared memory`, …"""
    limits: tuple[tuple[str, int], ...]
    """(cause, blocks that it alone would allow); a resource that the kernel does not use is left out."""
    unit: str = "SM"
    """What a multiprocessor is called: `SM`, `CU`, or `WGP` for the pair of CUs that RDNA runs a work group on."""

    @property
    def fraction(self) -> float:
        """`warps_per_sm` of `max_warps`, from 0 to 1."""
        return self.warps_per_sm / self.max_warps

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {"fraction": self.fraction}


def occupancy(resources: Resources, target: Target, num_warps: int) -> Occupancy | None:
    """The theoretical occupancy of a kernel.

    Args:
        resources: what it uses; the registers must be known, and any other that is None counts as not used.
        target: its backend and architecture.
        num_warps: all warps of a block, those of warp-specialised partitions included.

    Returns None if the registers are not known, or the architecture is not in `irscope.device.limits`.
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
    # From the metadata: warp specialisation adds warps to those of the option.
    warps = dict(capture.metadata).get("num_warps", capture.launch.option("num_warps"))
    return occupancy(capture.resources, capture.target, warps) if isinstance(warps, int) else None


def _occupancy(causes: dict[str, int], max_warps: int, num_warps: int, unit: str) -> Occupancy:
    blocks = min(causes.values())
    return Occupancy(
        warps_per_sm=blocks * num_warps,
        max_warps=max_warps,
        blocks_per_sm=blocks,
        limited_by=tuple(cause for cause, allowed in causes.items() if allowed == blocks),
        limits=tuple(causes.items()),
        unit=unit,
    )


def _cuda_causes(resources: Resources, limits: CudaLimits, num_warps: int) -> dict[str, int]:
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


def registers_of_block(registers: int, limits: CudaLimits, num_warps: int) -> int:
    """The registers that a block is given, for a number of registers per thread."""
    # The hardware checks a block as if all sub-partitions held as many of its warps as the fullest one.
    return _round_up(registers * 32, limits.register_granule) * _round_up(num_warps, limits.sub_partitions)


def _blocks_by_registers(registers: int, limits: CudaLimits, num_warps: int) -> int:
    a_warp = _round_up(registers * 32, limits.register_granule)
    if registers_of_block(registers, limits, num_warps) > limits.registers or registers > limits.registers_per_thread:
        return 0
    if not a_warp:
        return -1
    warps = limits.registers // limits.sub_partitions // a_warp * limits.sub_partitions
    return warps // num_warps


def _blocks_by_shared(shared_bytes: int, limits: CudaLimits) -> int:
    if shared_bytes > limits.shared_bytes_per_block:
        return 0
    taken = _round_up(shared_bytes + limits.reserved_shared_bytes, limits.shared_granule_bytes)
    return limits.shared_bytes // taken if taken else -1


def _hip_causes(resources: Resources, limits: HipLimits, num_warps: int) -> dict[str, int]:
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


def _waves_by_vectors(resources: Resources, limits: HipLimits) -> int:
    used = resources.registers or 0
    accumulators = resources.accumulator_registers or 0
    if accumulators:
        # One file: the accumulators begin at the next multiple of four. Two files: the fuller one decides.
        used = _round_up(used, 4) + accumulators if limits.unified_file else max(used, accumulators)
    if used > limits.vector_registers:
        return 0
    taken = max(_round_up(used, limits.vector_granule), limits.vector_granule)
    return limits.vector_registers // taken


def _waves_by_scalars(resources: Resources, limits: HipLimits) -> int:
    used = resources.scalar_registers or 0
    return next((waves for up_to, waves in limits.scalar_steps if used <= up_to), 7)


def _round_up(value: int, granule: int) -> int:
    return -(-value // granule) * granule
