"""The limits of one multiprocessor of each architecture: the numbers behind occupancy.

NVIDIA: "CUDA C++ Programming Guide", Technical Specifications per Compute Capability, and the CUDA toolkit's
`cuda_occupancy.h` (granularities, sub-partitions, barriers); "PTX ISA", tcgen05, for tensor memory.
AMD: LLVM's `AMDGPUBaseInfo.cpp` (register granules, waves, work-group slots, LDS granularity), after AMD's instruction
set architecture manuals of MI200, MI300, CDNA 4, RDNA 3 and RDNA 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_KIB = 1024


@dataclass(frozen=True, slots=True)
class CudaLimits:
    """One streaming multiprocessor."""

    max_warps: int
    max_blocks: int
    shared_bytes: int
    shared_bytes_per_block: int
    """The most that a block may ask for, without the driver's share."""
    reserved_shared_bytes: int
    """Shared memory that the driver reserves per block."""
    shared_granule_bytes: int
    barriers: int | None
    """Named barriers that its blocks share; None if they do not limit the number of blocks."""
    tensor_memory_columns: int | None = None
    registers: int = 64 * _KIB
    register_granule: int = 256
    """A warp's registers are rounded up to a multiple of this."""
    registers_per_thread: int = 256
    sub_partitions: int = 4
    max_threads_per_block: int = 1024


@dataclass(frozen=True, slots=True)
class HipLimits:
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
        """Waves of the whole unit."""
        return self.simds * self.max_waves_per_simd


def _cuda(
    warps: int, blocks: int, shared_kib: int, barriers_per_block: int | None, columns: int | None = None
) -> CudaLimits:
    return CudaLimits(
        max_warps=warps,
        max_blocks=blocks,
        shared_bytes=shared_kib * _KIB,
        shared_bytes_per_block=(shared_kib - 1) * _KIB,
        reserved_shared_bytes=_KIB,
        shared_granule_bytes=128,
        barriers=barriers_per_block and barriers_per_block * blocks,
        tensor_memory_columns=columns,
    )


CUDA_LIMITS: Mapping[str, CudaLimits] = MappingProxyType(
    {
        "75": CudaLimits(32, 16, 64 * _KIB, 64 * _KIB, 0, 256, None),
        "80": _cuda(64, 32, 164, None),
        "86": _cuda(48, 16, 100, None),
        "87": _cuda(48, 16, 164, None),
        "89": _cuda(48, 24, 100, None),
        "90": _cuda(64, 32, 228, 2),
        "100": _cuda(64, 32, 228, 2, 512),
        "103": _cuda(64, 32, 228, 2, 512),
        "120": _cuda(48, 24, 100, 1),
        "121": _cuda(48, 24, 100, 1),
    }
)
"""By compute capability."""


def _cdna(shared_kib: int, shared_granule_bytes: int) -> HipLimits:
    return HipLimits(
        unit="CU",
        simds=4,
        max_waves_per_simd=8,
        vector_registers=512,
        vector_granule=8,
        unified_file=True,
        scalar_steps=((80, 10), (88, 9), (100, 8)),
        shared_bytes=shared_kib * _KIB,
        shared_bytes_per_block=shared_kib * _KIB,
        shared_granule_bytes=shared_granule_bytes,
        max_blocks=16,
        max_waves_per_block=16,
    )


def _rdna() -> HipLimits:
    return HipLimits(
        unit="WGP",
        simds=4,
        max_waves_per_simd=16,
        vector_registers=1536,
        vector_granule=24,
        unified_file=False,
        scalar_steps=(),
        shared_bytes=128 * _KIB,
        shared_bytes_per_block=64 * _KIB,
        shared_granule_bytes=512,
        max_blocks=32,
        max_waves_per_block=32,
    )


HIP_LIMITS: Mapping[str, HipLimits] = MappingProxyType(
    {
        "gfx90a": _cdna(64, 512),
        "gfx942": _cdna(64, 512),
        "gfx950": _cdna(160, 1280),
        "gfx1100": _rdna(),
        "gfx1101": _rdna(),
        "gfx1200": _rdna(),
        "gfx1201": _rdna(),
    }
)
"""By architecture; the RDNA ones in waves of 32 lanes."""
