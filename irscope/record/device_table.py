"""The real parts that stand behind each target: the one table of what a GPU of that architecture has.

The numbers are the vendors'. They answer a script that asks the device about itself on a machine that has none, and
they set the limits a kernel is held to. Importing this module imports neither Triton nor torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from irscope.target import architecture_rank

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

_CUDA_GUIDE = "CUDA C++ Programming Guide, Technical Specifications per Compute Capability"
_ROCM_SPECIFICATIONS = "ROCm documentation, Accelerator and GPU hardware specifications"


@dataclass(frozen=True, slots=True)
class DevicePart:
    """What one real GPU has, seen as one device."""

    target: str
    """The text form of the target, such as `cuda:90`."""
    name: str
    """The name of the part, as its driver reports it."""
    warp_size: int
    multiprocessor_count: int
    """Streaming multiprocessors, or compute units on AMD."""
    shared_bytes_per_block: int
    """The most one block may ask for, by opting in where that is needed."""
    shared_bytes_per_multiprocessor: int
    registers_per_multiprocessor: int
    """32-bit registers."""
    threads_per_multiprocessor: int
    warps_per_multiprocessor: int
    blocks_per_multiprocessor: int
    l2_bytes: int
    """On parts of several chiplets, what one chiplet has."""
    memory_bytes: int
    clock_khz: int
    """The boost clock."""
    memory_clock_khz: int
    """Half the data rate of a pin: bandwidth in bytes a second is 2 * clock * bus width / 8."""
    memory_bus_bits: int
    source: str
    """The titles of the vendor's documents that the row is taken from."""
    threads_per_block: int = 1024

    @property
    def backend(self) -> str:
        """`cuda` or `hip`."""
        return self.target.partition(":")[0]

    @property
    def arch(self) -> str:
        """`90`, `gfx942`, …"""
        return self.target.partition(":")[2]

    @property
    def capability(self) -> tuple[int, int]:
        """What `torch.cuda.get_device_capability` answers: (9, 0) for `cuda:90`, (9, 4) for `hip:gfx942`."""
        if self.backend == "cuda":
            number = int(self.arch)
            return number // 10, number % 10
        # gfx90a -> 9, 0; gfx942 -> 9, 4; gfx1100 -> 11, 0: all but the last two digits, then the last but one.
        digits = self.arch.removeprefix("gfx")
        return int(digits[:-2]), int(digits[-2], 16)

    @property
    def memory_bytes_per_second(self) -> int:
        """The peak bandwidth of the device's memory."""
        return 2 * self.memory_clock_khz * 1000 * self.memory_bus_bits // 8


_ROWS: tuple[DevicePart, ...] = (
    DevicePart(
        target="cuda:75",
        name="Tesla T4",
        warp_size=32,
        multiprocessor_count=40,
        shared_bytes_per_block=64 * KIB,
        shared_bytes_per_multiprocessor=64 * KIB,
        registers_per_multiprocessor=64 * KIB,
        threads_per_multiprocessor=1024,
        warps_per_multiprocessor=32,
        blocks_per_multiprocessor=16,
        l2_bytes=4 * MIB,
        memory_bytes=16 * GIB,
        clock_khz=1_590_000,
        memory_clock_khz=5_001_000,
        memory_bus_bits=256,
        source=f"{_CUDA_GUIDE}; NVIDIA Turing GPU Architecture (whitepaper); NVIDIA T4 data sheet",
    ),
    DevicePart(
        target="cuda:80",
        name="NVIDIA A100-SXM4-80GB",
        warp_size=32,
        multiprocessor_count=108,
        shared_bytes_per_block=163 * KIB,
        shared_bytes_per_multiprocessor=164 * KIB,
        registers_per_multiprocessor=64 * KIB,
        threads_per_multiprocessor=2048,
        warps_per_multiprocessor=64,
        blocks_per_multiprocessor=32,
        l2_bytes=40 * MIB,
        memory_bytes=80 * GIB,
        clock_khz=1_410_000,
        memory_clock_khz=1_593_000,
        memory_bus_bits=5120,
        source=f"{_CUDA_GUIDE}; NVIDIA A100 Tensor Core GPU Architecture (whitepaper); NVIDIA A100 80GB data sheet",
    ),
    DevicePart(
        target="cuda:86",
        name="NVIDIA GeForce RTX 3090",
        warp_size=32,
        multiprocessor_count=82,
        shared_bytes_per_block=99 * KIB,
        shared_bytes_per_multiprocessor=100 * KIB,
        registers_per_multiprocessor=64 * KIB,
        threads_per_multiprocessor=1536,
        warps_per_multiprocessor=48,
        blocks_per_multiprocessor=16,
        l2_bytes=6 * MIB,
        memory_bytes=24 * GIB,
        clock_khz=1_695_000,
        memory_clock_khz=9_751_000,
        memory_bus_bits=384,
        source=f"{_CUDA_GUIDE}; NVIDIA Ampere GA102 GPU Architecture (whitepaper)",
    ),
    DevicePart(
        target="cuda:89",
        name="NVIDIA GeForce RTX 4090",
        warp_size=32,
        multiprocessor_count=128,
        shared_bytes_per_block=99 * KIB,
        shared_bytes_per_multiprocessor=100 * KIB,
        registers_per_multiprocessor=64 * KIB,
        threads_per_multiprocessor=1536,
        warps_per_multiprocessor=48,
        blocks_per_multiprocessor=24,
        l2_bytes=72 * MIB,
        memory_bytes=24 * GIB,
        clock_khz=2_520_000,
        memory_clock_khz=10_501_000,
        memory_bus_bits=384,
        source=f"{_CUDA_GUIDE}; NVIDIA Ada GPU Architecture (whitepaper)",
    ),
    DevicePart(
        target="cuda:90",
        name="NVIDIA H100 80GB HBM3",
        warp_size=32,
        multiprocessor_count=132,
        shared_bytes_per_block=227 * KIB,
        shared_bytes_per_multiprocessor=228 * KIB,
        registers_per_multiprocessor=64 * KIB,
        threads_per_multiprocessor=2048,
        warps_per_multiprocessor=64,
        blocks_per_multiprocessor=32,
        l2_bytes=50 * MIB,
        memory_bytes=80 * GIB,
        clock_khz=1_980_000,
        memory_clock_khz=2_619_000,
        memory_bus_bits=5120,
        source=f"{_CUDA_GUIDE}; NVIDIA H100 Tensor Core GPU Architecture (whitepaper); NVIDIA H100 data sheet",
    ),
    DevicePart(
        target="cuda:100",
        name="NVIDIA B200",
        warp_size=32,
        multiprocessor_count=148,
        shared_bytes_per_block=227 * KIB,
        shared_bytes_per_multiprocessor=228 * KIB,
        registers_per_multiprocessor=64 * KIB,
        threads_per_multiprocessor=2048,
        warps_per_multiprocessor=64,
        blocks_per_multiprocessor=32,
        l2_bytes=126 * MIB,
        memory_bytes=180 * GIB,
        clock_khz=1_965_000,
        memory_clock_khz=3_996_000,
        memory_bus_bits=8192,
        source=f"{_CUDA_GUIDE}; NVIDIA Blackwell Tuning Guide; NVIDIA HGX B200 data sheet",
    ),
    DevicePart(
        target="cuda:103",
        name="NVIDIA B300 SXM6 AC",
        warp_size=32,
        multiprocessor_count=148,
        shared_bytes_per_block=227 * KIB,
        shared_bytes_per_multiprocessor=228 * KIB,
        registers_per_multiprocessor=64 * KIB,
        threads_per_multiprocessor=2048,
        warps_per_multiprocessor=64,
        blocks_per_multiprocessor=32,
        l2_bytes=126 * MIB,
        memory_bytes=270 * GIB,
        clock_khz=1_920_000,
        memory_clock_khz=3_996_000,
        memory_bus_bits=8192,
        source=f"{_CUDA_GUIDE}; NVIDIA Blackwell Tuning Guide; NVIDIA HGX B300 data sheet",
    ),
    DevicePart(
        target="cuda:120",
        name="NVIDIA GeForce RTX 5090",
        warp_size=32,
        multiprocessor_count=170,
        shared_bytes_per_block=99 * KIB,
        shared_bytes_per_multiprocessor=100 * KIB,
        registers_per_multiprocessor=64 * KIB,
        threads_per_multiprocessor=1536,
        warps_per_multiprocessor=48,
        blocks_per_multiprocessor=24,
        l2_bytes=96 * MIB,
        memory_bytes=32 * GIB,
        clock_khz=2_407_000,
        memory_clock_khz=14_001_000,
        memory_bus_bits=512,
        source=f"{_CUDA_GUIDE}; NVIDIA RTX Blackwell GPU Architecture (whitepaper)",
    ),
    DevicePart(
        target="hip:gfx90a",
        name="AMD Instinct MI250X",
        warp_size=64,
        multiprocessor_count=110,
        shared_bytes_per_block=64 * KIB,
        shared_bytes_per_multiprocessor=64 * KIB,
        registers_per_multiprocessor=128 * KIB,
        threads_per_multiprocessor=2048,
        warps_per_multiprocessor=32,
        blocks_per_multiprocessor=32,
        l2_bytes=8 * MIB,
        memory_bytes=64 * GIB,
        clock_khz=1_700_000,
        memory_clock_khz=1_600_000,
        memory_bus_bits=4096,
        source=f"{_ROCM_SPECIFICATIONS}; AMD Instinct MI200 ISA; AMD Instinct MI250X data sheet",
    ),
    DevicePart(
        target="hip:gfx942",
        name="AMD Instinct MI300X",
        warp_size=64,
        multiprocessor_count=304,
        shared_bytes_per_block=64 * KIB,
        shared_bytes_per_multiprocessor=64 * KIB,
        registers_per_multiprocessor=128 * KIB,
        threads_per_multiprocessor=2048,
        warps_per_multiprocessor=32,
        blocks_per_multiprocessor=32,
        l2_bytes=4 * MIB,
        memory_bytes=192 * GIB,
        clock_khz=2_100_000,
        memory_clock_khz=2_600_000,
        memory_bus_bits=8192,
        source=f"{_ROCM_SPECIFICATIONS}; AMD Instinct MI300 ISA; AMD Instinct MI300X data sheet",
    ),
    DevicePart(
        target="hip:gfx950",
        name="AMD Instinct MI355X",
        warp_size=64,
        multiprocessor_count=256,
        shared_bytes_per_block=160 * KIB,
        shared_bytes_per_multiprocessor=160 * KIB,
        registers_per_multiprocessor=128 * KIB,
        threads_per_multiprocessor=2048,
        warps_per_multiprocessor=32,
        blocks_per_multiprocessor=32,
        l2_bytes=4 * MIB,
        memory_bytes=288 * GIB,
        clock_khz=2_400_000,
        memory_clock_khz=4_000_000,
        memory_bus_bits=8192,
        source=f"{_ROCM_SPECIFICATIONS}; AMD CDNA 4 ISA; AMD Instinct MI355X data sheet",
    ),
    DevicePart(
        target="hip:gfx1100",
        name="AMD Radeon RX 7900 XTX",
        warp_size=32,
        multiprocessor_count=96,
        shared_bytes_per_block=64 * KIB,
        shared_bytes_per_multiprocessor=64 * KIB,
        registers_per_multiprocessor=96 * KIB,
        threads_per_multiprocessor=1024,
        warps_per_multiprocessor=32,
        blocks_per_multiprocessor=32,
        l2_bytes=6 * MIB,
        memory_bytes=24 * GIB,
        clock_khz=2_500_000,
        memory_clock_khz=10_000_000,
        memory_bus_bits=384,
        source=f"{_ROCM_SPECIFICATIONS}; AMD RDNA 3 ISA; AMD Radeon RX 7900 XTX specifications",
    ),
    DevicePart(
        target="hip:gfx1201",
        name="AMD Radeon RX 9070 XT",
        warp_size=32,
        multiprocessor_count=64,
        shared_bytes_per_block=64 * KIB,
        shared_bytes_per_multiprocessor=64 * KIB,
        registers_per_multiprocessor=96 * KIB,
        threads_per_multiprocessor=1024,
        warps_per_multiprocessor=32,
        blocks_per_multiprocessor=32,
        l2_bytes=8 * MIB,
        memory_bytes=16 * GIB,
        clock_khz=2_970_000,
        memory_clock_khz=10_000_000,
        memory_bus_bits=256,
        source=f"{_ROCM_SPECIFICATIONS}; AMD RDNA 4 ISA; AMD Radeon RX 9070 XT specifications",
    ),
)

DEVICE_PARTS: Mapping[str, DevicePart] = MappingProxyType({row.target: row for row in _ROWS})
"""Every part by the text form of its target."""


def part_of(target_text: str) -> DevicePart:
    """The part that stands behind a target.

    Arguments:
        target_text: the text form of a target, such as `cuda:90` or `hip:gfx942`.

    Returns the row of that target; for an architecture with no row, the nearest older one of the same family: `cuda:87`
    is answered by the row of `cuda:86`, `hip:gfx941` by that of `hip:gfx90a`.

    Raises KeyError where the backend has no row at all.
    """
    if target_text in DEVICE_PARTS:
        return DEVICE_PARTS[target_text]
    rows = [row for row in _ROWS if row.backend == target_text.partition(":")[0]]
    if not rows:
        raise KeyError(f"no part is known for {target_text!r}: its backend must be 'cuda' or 'hip'")
    asked = architecture_rank(target_text.partition(":")[2])
    older = [row for row in rows if architecture_rank(row.arch) <= asked]
    return max(older, key=lambda row: architecture_rank(row.arch)) if older else rows[0]
