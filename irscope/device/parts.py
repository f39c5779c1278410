"""The table of real parts, one for each target: what a GPU of that architecture has.

The numbers are the vendors'; those of a multiprocessor are in `irscope.device.occupancy`. They answer a script that asks
the device about itself on a machine without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from irscope.device.occupancy import CUDA_LIMITS, HIP_LIMITS
from irscope.target import architecture_rank

_MIB = 1 << 20
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class DevicePart:
    """What one real GPU has, seen as one device."""

    target: str
    """The text form of the target, such as `cuda:90`."""
    name: str
    """The name of the part, as its driver reports it."""
    multiprocessor_count: int
    """Streaming multiprocessors, or compute units on AMD."""
    l2_bytes: int
    """On parts of several chiplets, of one chiplet."""
    memory_bytes: int
    clock_khz: int
    """The boost clock."""
    memory_clock_khz: int
    """Half the data rate of a pin: bandwidth in bytes per second is 2 * clock * bus width / 8."""
    memory_bus_bits: int
    source: str
    """The titles of the vendor's documents that the row is taken from."""
    warp_size: int
    warps_per_multiprocessor: int
    registers_per_multiprocessor: int
    """32-bit registers."""
    shared_bytes_per_multiprocessor: int
    shared_bytes_per_block: int
    """The most that one block may ask for, by opting in if that is needed."""
    threads_per_block: int = 1024

    @property
    def threads_per_multiprocessor(self) -> int:
        """The most threads that one multiprocessor holds."""
        return self.warps_per_multiprocessor * self.warp_size

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


# (architecture, name, multiprocessors, MiB of L2, GiB of memory, clock and memory clock in kHz, bits of the memory bus,
# documents beside those of all)
_Row = tuple[str, str, int, int, int, int, int, int, str]
_CUDA: tuple[_Row, ...] = (
    ("75", "Tesla T4", 40, 4, 16, 1_590_000, 5_001_000, 256,
     "NVIDIA Turing GPU Architecture (whitepaper); NVIDIA T4 data sheet"),
    ("80", "NVIDIA A100-SXM4-80GB", 108, 40, 80, 1_410_000, 1_593_000, 5120,
     "NVIDIA A100 Tensor Core GPU Architecture (whitepaper); NVIDIA A100 80GB data sheet"),
    ("86", "NVIDIA GeForce RTX 3090", 82, 6, 24, 1_695_000, 9_751_000, 384,
     "NVIDIA Ampere GA102 GPU Architecture (whitepaper)"),
    ("89", "NVIDIA GeForce RTX 4090", 128, 72, 24, 2_520_000, 10_501_000, 384,
     "NVIDIA Ada GPU Architecture (whitepaper)"),
    ("90", "NVIDIA H100 80GB HBM3", 132, 50, 80, 1_980_000, 2_619_000, 5120,
     "NVIDIA H100 Tensor Core GPU Architecture (whitepaper); NVIDIA H100 data sheet"),
    ("100", "NVIDIA B200", 148, 126, 180, 1_965_000, 3_996_000, 8192,
     "NVIDIA Blackwell Tuning Guide; NVIDIA HGX B200 data sheet"),
    ("103", "NVIDIA B300 SXM6 AC", 148, 126, 270, 1_920_000, 3_996_000, 8192,
     "NVIDIA Blackwell Tuning Guide; NVIDIA HGX B300 data sheet"),
    ("120", "NVIDIA GeForce RTX 5090", 170, 96, 32, 2_407_000, 14_001_000, 512,
     "NVIDIA RTX Blackwell GPU Architecture (whitepaper)"),
)  # fmt: skip
_HIP: tuple[_Row, ...] = (
    ("gfx90a", "AMD Instinct MI250X", 110, 8, 64, 1_700_000, 1_600_000, 4096,
     "AMD Instinct MI200 ISA; AMD Instinct MI250X data sheet"),
    ("gfx942", "AMD Instinct MI300X", 304, 4, 192, 2_100_000, 2_600_000, 8192,
     "AMD Instinct MI300 ISA; AMD Instinct MI300X data sheet"),
    ("gfx950", "AMD Instinct MI355X", 256, 4, 288, 2_400_000, 4_000_000, 8192,
     "AMD CDNA 4 ISA; AMD Instinct MI355X data sheet"),
    ("gfx1100", "AMD Radeon RX 7900 XTX", 96, 6, 24, 2_500_000, 10_000_000, 384,
     "AMD RDNA 3 ISA; AMD Radeon RX 7900 XTX specifications"),
    ("gfx1201", "AMD Radeon RX 9070 XT", 64, 8, 16, 2_970_000, 10_000_000, 256,
     "AMD RDNA 4 ISA; AMD Radeon RX 9070 XT specifications"),
)  # fmt: skip


def _cuda(arch: str) -> tuple[int, int, int, int, int]:
    """Warp size, warps, registers and shared memory of a multiprocessor, shared memory of a block."""
    limits = CUDA_LIMITS[arch]
    return 32, limits.max_warps, limits.registers, limits.shared_bytes, limits.shared_bytes_per_block


def _hip(arch: str) -> tuple[int, int, int, int, int]:
    """The same of a compute unit, of which an RDNA work-group processor has two."""
    limits = HIP_LIMITS[arch]
    lanes, units = (32, 2) if limits.unit == "WGP" else (64, 1)
    registers = limits.simds * limits.vector_registers * lanes // units
    return lanes, limits.max_waves // units, registers, limits.shared_bytes // units, limits.shared_bytes_per_block


def _parts(backend: str, rows: tuple[_Row, ...], documents: str) -> Iterator[DevicePart]:
    for arch, name, units, l2, memory, clock, memory_clock, bus, source in rows:
        limits = _cuda(arch) if backend == "cuda" else _hip(arch)
        sources = f"{documents}; {source}"
        target = f"{backend}:{arch}"
        yield DevicePart(target, name, units, l2 * _MIB, memory * _GIB, clock, memory_clock, bus, sources, *limits)


_ROWS = (
    *_parts("cuda", _CUDA, "CUDA C++ Programming Guide, Technical Specifications per Compute Capability"),
    *_parts("hip", _HIP, "ROCm documentation, Accelerator and GPU hardware specifications"),
)

DEVICE_PARTS: Mapping[str, DevicePart] = MappingProxyType({row.target: row for row in _ROWS})
"""Every part by the text form of its target."""


def part_of(target_text: str) -> DevicePart:
    """The part of a target such as `cuda:90`; raises KeyError if its backend has none.

    An architecture without a row gets the nearest older one of its backend: `cuda:87` that of `cuda:86`, `hip:gfx941`
    that of `hip:gfx90a`.
    """
    if target_text in DEVICE_PARTS:
        return DEVICE_PARTS[target_text]
    rows = [row for row in _ROWS if row.backend == target_text.partition(":")[0]]
    if not rows:
        raise KeyError(f"no part is known for {target_text!r}: its backend must be 'cuda' or 'hip'")
    asked = architecture_rank(target_text.partition(":")[2])
    older = [row for row in rows if architecture_rank(row.arch) <= asked]
    return max(older, key=lambda row: architecture_rank(row.arch)) if older else rows[0]
