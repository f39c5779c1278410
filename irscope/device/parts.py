"""The table of real parts, one for each target: what a GPU of that architecture has, and its peaks.

The numbers are the vendors'; those of a multiprocessor are in `irscope.device.occupancy`. They answer a script that
asks the device about itself on a machine without one.

Every figure is the vendor's, dense (without structured sparsity), at the clock that the vendor assumes. What no
document gives has no row: nothing is filled in by a rule of thumb. `tests/device/test_parts.py` holds the figures
against units × operations per clock × clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, NamedTuple

from irscope.device.occupancy import CUDA_LIMITS, HIP_LIMITS
from irscope.target import Target, architecture_rank

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
        return self.warps_per_multiprocessor * self.warp_size

    @property
    def backend(self) -> str:
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


_UnitKind = Literal["matrix", "vector", "special"]
_SPECIAL_PER_CLOCK = 16
# NVIDIA A100-SXM4-40GB
_BETWEEN_WORDS = re.compile(r"[^a-z0-9]+")


class Unit(NamedTuple):
    """What computes: `matrix` for tensor or matrix cores, `vector` for FMA units, `special` for functions such as exp2.

    `special` counts results, the others operations: two for a multiplication with an addition.
    """

    kind: _UnitKind
    dtype: str
    """Of the operands: f64, tf32, f32, bf16, f16, f8, f6, f4, i8; `f16 into f16` where the sum is float16 too."""

    def __str__(self) -> str:
        return f"{self.kind} {self.dtype}"


@dataclass(frozen=True, slots=True)
class Peaks:
    """What one part reaches at best."""

    part: str
    """As `--part` takes it: `h100`, `h100-pcie`."""
    target: str
    name: str
    units: int
    """Streaming multiprocessors or compute units."""
    bytes_per_s: float
    """Of its DRAM."""
    clocks_mhz: tuple[float | None, float | None]
    """(of the matrix units, of the others) that the figures assume; None where the vendor does not say."""
    rates: Mapping[Unit, float]
    """Unit → operations per second."""
    source: str
    """The titles of the documents that the row is taken from."""

    def rate(self, unit: Unit) -> float | None:
        """Operations per second of a unit; None if no document gives them."""
        # Where float16 sums have a figure of their own there is a row for them.
        return self.rates.get(unit, self.rates.get(Unit(unit.kind, unit.dtype.partition(" into ")[0])))


# (part, target, name, units, GB/s, clock of the matrix units and of the others in MHz, 10**12 operations per second of
# the matrix units, of the vector units, documents)
_Row_of_peaks = tuple[
    str, str, str, int, float, tuple[float | None, float | None], dict[str, float], dict[str, float], str
]

_GH100 = {
    "f16": 989.4, "f16 into f16": 989.4, "bf16": 989.4, "tf32": 494.7, "f64": 66.9, "f8": 1978.9, "i8": 1978.9,
}  # fmt: skip
_GH100_VECTOR = {"f32": 66.9, "f64": 33.5, "f16": 133.8, "bf16": 133.8}
_GA100 = {"f16": 312, "f16 into f16": 312, "bf16": 312, "tf32": 156, "f64": 19.5, "i8": 624}
_GA100_VECTOR = {"f32": 19.5, "f64": 9.7, "f16": 78, "bf16": 39}
_GB100 = {"f16": 2250, "bf16": 2250, "tf32": 1125, "f8": 4500, "f6": 4500}
_CDNA3 = {
    "f16": 1307.4, "bf16": 1307.4, "tf32": 653.7, "f32": 163.4, "f64": 163.4, "f8": 2614.9, "i8": 2614.9,
}  # fmt: skip
_CDNA3_VECTOR = {"f32": 163.4, "f64": 81.7}
_A100_PAPER = "NVIDIA A100 Tensor Core GPU Architecture (whitepaper)"
_H100_PAPER = "NVIDIA H100 Tensor Core GPU Architecture (whitepaper)"

_ROWS_of_peaks: tuple[_Row_of_peaks, ...] = (
    ("t4", "cuda:75", "NVIDIA T4", 40, 320, (1590, 1590), {"f16": 65, "i8": 130}, {"f32": 8.1}, "NVIDIA T4 data sheet"),
    ("a100", "cuda:80", "NVIDIA A100 SXM 80 GB", 108, 2039, (1410, 1410), _GA100, _GA100_VECTOR,
     f"{_A100_PAPER}; NVIDIA A100 data sheet"),
    ("a100-40gb", "cuda:80", "NVIDIA A100 SXM 40 GB", 108, 1555, (1410, 1410), _GA100, _GA100_VECTOR,
     f"{_A100_PAPER}; NVIDIA A100 data sheet"),
    ("rtx3090", "cuda:86", "NVIDIA GeForce RTX 3090", 82, 936, (1695, 1695),
     {"f16": 71, "f16 into f16": 142, "bf16": 71, "tf32": 35.6, "i8": 284}, {"f32": 35.6, "f16": 35.6, "bf16": 35.6},
     "NVIDIA Ampere GA102 GPU Architecture (whitepaper), appendix A"),
    ("rtx4090", "cuda:89", "NVIDIA GeForce RTX 4090", 128, 1008, (2520, 2520),
     {"f16": 165.2, "f16 into f16": 330.3, "bf16": 165.2, "tf32": 82.6, "f8": 330.3, "f8 into f16": 660.6, "i8": 660.6},
     {"f32": 82.6, "f16": 82.6, "bf16": 82.6}, "NVIDIA Ada GPU Architecture (whitepaper), appendix A"),
    ("l4", "cuda:89", "NVIDIA L4", 58, 300, (2040, 2040),
     {"f16": 121, "bf16": 121, "tf32": 60, "f8": 242.5, "i8": 242.5}, {"f32": 30.3},
     "NVIDIA L4 data sheet (half of its figures with sparsity)"),
    ("h100", "cuda:90", "NVIDIA H100 SXM5", 132, 3350, (1830, 1980), _GH100, _GH100_VECTOR,
     f"{_H100_PAPER}; NVIDIA H100 data sheet"),
    ("h100-pcie", "cuda:90", "NVIDIA H100 PCIe", 114, 2000, (1620, 1755),
     {"f16": 756, "f16 into f16": 756, "bf16": 756, "tf32": 378, "f64": 51.2, "f8": 1513, "i8": 1513},
     {"f32": 51.2, "f64": 25.6, "f16": 102.4, "bf16": 102.4}, f"{_H100_PAPER}; NVIDIA H100 data sheet"),
    ("h200", "cuda:90", "NVIDIA H200 SXM", 132, 4800, (1830, 1980), _GH100, _GH100_VECTOR,
     f"{_H100_PAPER}; NVIDIA H200 data sheet"),
    ("b200", "cuda:100", "NVIDIA B200 (HGX)", 148, 8000, (None, None), {**_GB100, "f64": 37, "f4": 9000, "i8": 4500},
     {"f32": 75, "f64": 37}, "NVIDIA HGX B200 data sheet (an eighth of its figures, dense)"),
    ("b300", "cuda:103", "NVIDIA B300 (HGX)", 148, 8000, (None, None), {**_GB100, "f64": 1.25, "f4": 13125},
     {"f32": 75, "f64": 1.25}, "NVIDIA HGX B300 data sheet (an eighth of its figures, dense)"),
    ("rtx5090", "cuda:120", "NVIDIA GeForce RTX 5090", 170, 1792, (2407, 2407),
     {"f16": 209.5, "f16 into f16": 419, "bf16": 209.5, "tf32": 104.8, "f8": 419, "f8 into f16": 838, "i8": 838,
      "f4": 1676},
     {"f32": 104.8, "f16": 104.8, "bf16": 104.8}, "NVIDIA RTX Blackwell GPU Architecture (whitepaper), appendix A"),
    ("mi250x", "hip:gfx90a", "AMD Instinct MI250X, one of its two dies", 110, 1638.4, (1700, 1700),
     {"f16": 191.5, "bf16": 191.5, "f32": 47.9, "f64": 47.9, "i8": 191.5}, {"f32": 23.9, "f64": 23.9},
     "AMD Instinct MI250X data sheet (half of its figures)"),
    ("mi300x", "hip:gfx942", "AMD Instinct MI300X", 304, 5300, (2100, 2100), _CDNA3, _CDNA3_VECTOR,
     "AMD CDNA 3 Architecture (white paper); AMD Instinct MI300X data sheet"),
    ("mi325x", "hip:gfx942", "AMD Instinct MI325X", 304, 6000, (2100, 2100), _CDNA3, _CDNA3_VECTOR,
     "AMD CDNA 3 Architecture (white paper); AMD Instinct MI325X data sheet"),
    ("mi355x", "hip:gfx950", "AMD Instinct MI355X", 256, 8000, (2400, 2400),
     {"f16": 2516.6, "bf16": 2516.6, "f32": 157.3, "f64": 78.6, "f8": 5033.2, "f6": 10066.3, "f4": 10066.3,
      "i8": 5033.2},
     {"f32": 157.3, "f64": 78.6}, "AMD CDNA 4 Architecture (white paper); AMD Instinct MI355X data sheet"),
    ("rx7900xtx", "hip:gfx1100", "AMD Radeon RX 7900 XTX", 96, 960, (2500, 2500), {"f16": 122.8, "bf16": 122.8},
     {"f32": 61.4, "f16": 122.8}, "AMD Radeon RX 7900 XTX specifications"),
    ("rx9070xt", "hip:gfx1201", "AMD Radeon RX 9070 XT", 64, 640, (2970, 2970),
     {"f16": 195, "bf16": 195, "f8": 389, "i8": 389}, {"f32": 48.7, "f16": 97.3},
     "AMD Radeon RX 9070 XT specifications"),
)  # fmt: skip
_WITH_SPECIAL = ("cuda:75", "cuda:80", "cuda:86", "cuda:89", "cuda:90")
_SPECIAL_SOURCE = "CUDA C++ Programming Guide, Throughput of Native Arithmetic Instructions"


def _rows() -> Iterator[Peaks]:
    for part, target, name, units, gigabytes, clocks, matrix, vector, source in _ROWS_of_peaks:
        rates = {Unit("matrix", dtype): tera * 1e12 for dtype, tera in matrix.items()}
        rates |= {Unit("vector", dtype): tera * 1e12 for dtype, tera in vector.items()}
        if target in _WITH_SPECIAL and clocks[1] is not None:
            # Reciprocals, square roots, ex2, lg2, sin and cos: so many results per clock of a multiprocessor.
            rates[Unit("special", "f32")] = units * _SPECIAL_PER_CLOCK * clocks[1] * 1e6
            source = f"{source}; {_SPECIAL_SOURCE}"
        yield Peaks(part, target, name, units, gigabytes * 1e9, clocks, MappingProxyType(rates), source)


PEAKS: Mapping[str, Peaks] = MappingProxyType({row.part: row for row in _rows()})
"""Every part by its name."""


def peaks_of_target(target: Target) -> tuple[Peaks, ...]:
    """The parts of a target, the one that is assumed first; empty if none is known."""
    return tuple(row for row in PEAKS.values() if row.target == str(target))


def peaks_of_device(name: str, target: Target) -> Peaks | None:
    """The peaks of the part that a driver calls so: `NVIDIA H100 PCIe` is `h100-pcie`; None if it is none of them."""
    words = [word for word in _BETWEEN_WORDS.split(name.lower()) if word]
    # RTX 4090 is one word here.
    known = {*words, *(one + other for one, other in pairwise(words))}
    fitting = [row for row in peaks_of_target(target) if known.issuperset(row.part.split("-"))]
    return max(fitting, key=lambda row: row.part.count("-"), default=None)
