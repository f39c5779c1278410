"""Real parts, of `parts.json`: for each target what a GPU of that architecture has, and the peaks of each part.

The numbers are the vendors'; those of a multiprocessor are in `irscope.device.occupancy`. They answer a script that
asks the device about itself on a machine without one.

Every figure is the vendor's, dense (without structured sparsity), at the clock that the vendor assumes. What no
document gives has no row: nothing is filled in by a rule of thumb. `tests/device/test_parts.py` holds the figures
against units × operations per clock × clock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from irscope.device.occupancy import CUDA_LIMITS, HIP_LIMITS
from irscope.target import Target, architecture_rank

_MIB = 1 << 20
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class DevicePart:
    """The resources of one real GPU, seen as one device."""

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


_TABLES: Any = json.loads(Path(__file__).with_name("parts.json").read_bytes())
_DOCUMENTS = {
    "cuda": "CUDA C++ Programming Guide, Technical Specifications per Compute Capability",
    "hip": "ROCm documentation, Accelerator and GPU hardware specifications",
}
"""The documents of all parts of a backend."""


def _cuda(arch: str) -> tuple[int, int, int, int, int]:
    """Warp size, warps, registers and shared memory of a multiprocessor, shared memory of a block."""
    limits = CUDA_LIMITS[arch]
    return 32, limits.max_warps, limits.registers, limits.shared_bytes, limits.shared_bytes_per_block


def _hip(arch: str) -> tuple[int, int, int, int, int]:
    """The same of a compute unit, of which an RDNA work-group processor has two."""
    limits = HIP_LIMITS[arch]
    lanes, units = (32, 2) if limits.unit == "WGP" else (64, 1)
    registers = limits.simds * limits.vector_registers * lanes // units
    return lanes, limits.max_warps // units, registers, limits.shared_bytes // units, limits.shared_bytes_per_block


def _parts(backend: str) -> Iterator[DevicePart]:
    for row in _TABLES[backend]:
        yield DevicePart(
            f"{backend}:{row['arch']}", row["name"], row["units"], row["l2_mib"] * _MIB, row["memory_gib"] * _GIB,
            row["clock_khz"], row["memory_clock_khz"], row["bus_bits"], f"{_DOCUMENTS[backend]}; {row['source']}",
            *(_cuda if backend == "cuda" else _hip)(row["arch"]),
        )  # fmt: skip


DEVICE_PARTS: Mapping[str, DevicePart] = MappingProxyType(
    {row.target: row for name in _DOCUMENTS for row in _parts(name)}
)
"""Every part by the text form of its target."""


def part_of(target_text: str) -> DevicePart:
    """The part of a target such as `cuda:90`; raises KeyError if its backend has none.

    An architecture without a row gets the nearest older one of its backend: `cuda:87` that of `cuda:86`, `hip:gfx941`
    that of `hip:gfx90a`.
    """
    if target_text in DEVICE_PARTS:
        return DEVICE_PARTS[target_text]
    rows = [row for row in DEVICE_PARTS.values() if row.backend == target_text.partition(":")[0]]
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
    """The peaks of one part."""

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


_WITH_SPECIAL = ("cuda:75", "cuda:80", "cuda:86", "cuda:89", "cuda:90")
_SPECIAL_SOURCE = "CUDA C++ Programming Guide, Throughput of Native Arithmetic Instructions"


def _peaks() -> Iterator[Peaks]:
    # Clocks in MHz, of the matrix units and of the others; rates in 10**12 operations per second.
    for row in _TABLES["peaks"]:
        clocks, source = tuple(row["clocks_mhz"]), row["source"]
        rates = {Unit(kind, dtype): tera * 1e12 for kind in ("matrix", "vector") for dtype, tera in row[kind].items()}
        if row["target"] in _WITH_SPECIAL and clocks[1] is not None:
            # Reciprocals, square roots, ex2, lg2, sin and cos: so many results per clock of a multiprocessor.
            rates[Unit("special", "f32")] = row["units"] * _SPECIAL_PER_CLOCK * clocks[1] * 1e6
            source = f"{source}; {_SPECIAL_SOURCE}"
        bytes_per_s, rows = row["gb_per_s"] * 1e9, MappingProxyType(rates)
        yield Peaks(row["part"], row["target"], row["name"], row["units"], bytes_per_s, clocks, rows, source)


PEAKS: Mapping[str, Peaks] = MappingProxyType({row.part: row for row in _peaks()})
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
