"""Access and Cost: what one operation does to memory, and what that costs because of its layouts or addresses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Span = tuple[int, int]
"""The least and the most that it can be; equal where it is known."""
Certainty = Literal["exact", "range", "sampled"]

SECTOR_BYTES = 32
"""The least that is moved to or from DRAM: a sector of NVIDIA's L2, and the smaller of the two sizes of a request that
AMD's L2 sends to memory ("MI300 and MI200 Series performance counters", ROCm documentation, TCC_EA_RDREQ_32B)."""
MOST = 1 << 62
"""The most that is counted; it stands for a number without a bound."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one operation asks of memory, in all warps of one or more programs."""

    executions: Span = (0, 0)
    """How often a program comes to the operation; summed where several programs are counted."""
    instructions: Span = (0, 0)
    """Instructions of warps, those with all lanes masked off included."""
    active_instructions: Span = (0, 0)
    """Those of them with a lane that is not masked off: the assembly may branch around the others."""
    bytes: Span = (0, 0)
    """Bytes that the lanes ask for."""
    masked_lanes: Span = (0, 0)
    """Lanes that a mask turns off, summed over the instructions; lanes with copies of others are not among them."""
    units: Span = (0, 0)
    """Distinct units of memory (on NVIDIA sectors of 32 bytes) of each instruction, summed."""
    ideal_units: Span = (0, 0)
    """The units that the distinct bytes of each instruction would fill, summed: Nsight Compute's ideal sectors."""
    least_units: Span = (0, 0)
    """The units that the distinct bytes of all instructions of a warp would fill, at each execution."""
    lines: Span = (0, 0)
    """Distinct cache lines of each instruction, summed."""
    distinct_bytes: Span = (0, 0)
    """Distinct bytes that a program touches at each execution."""

    def often(self, times: Span) -> Traffic:
        """The traffic of so many executions."""
        return Traffic(*((min(low * times[0], MOST), min(high * times[1], MOST)) for low, high in self._spans()))

    def scaled(self, factor: float) -> Traffic:
        """The traffic of all executions, of which a sample's is known."""
        return Traffic(*((round(low * factor), min(round(high * factor), MOST)) for low, high in self._spans()))

    @staticmethod
    def between(least: Traffic, most: Traffic) -> Traffic:
        both = zip(least._spans(), most._spans(), strict=True)
        return Traffic(*((one[0], other[1]) for one, other in both))

    @staticmethod
    def unknown() -> Traffic:
        return Traffic(*((0, MOST) for _ in fields(Traffic)))

    @property
    def is_known(self) -> bool:
        return all(low == high for low, high in self._spans())

    def _spans(self) -> Iterable[Span]:
        return (getattr(self, field.name) for field in fields(self))

    @staticmethod
    def sum(parts: Iterable[Traffic]) -> Traffic:
        columns = zip(*(part._spans() for part in parts), strict=True)
        spans = [tuple(min(sum(side), MOST) for side in zip(*column, strict=True)) for column in columns]
        return Traffic(*spans) if spans else Traffic()  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, slots=True)
class GlobalAccess:
    operation: str
    line: int
    """In the TTGIR text, 1-based."""
    action: Literal["load", "store", "atomic", "copy"]
    """A `copy` goes from global to shared memory, past the registers."""
    argument: str
    """The argument that it points into; an empty string if that is not known."""
    bits_per_thread: int
    """Bits of one lane's part of an instruction; 0 for a block of a tensor descriptor, which has no lanes."""
    possible_bits: int
    """What that could be with the addresses and the mask that the first program has."""
    strides: tuple[int | None, ...]
    """Bytes between neighbours along each dimension of the pointers; None where they differ or are unknown."""
    unit_bytes: int
    """Size of the units counted: on NVIDIA 32, a sector; on AMD that of a cache line."""
    line_bytes: int
    each: Traffic
    """Of one execution: the first one that was evaluated."""
    first: Traffic
    """Of the launch's first program, in all its executions."""
    inner: Traffic
    """Of a program in the middle of the grid."""
    last: Traffic
    programs: Certainty
    """Whether the traffic of these three is exact, lies between two figures, or was scaled up from some iterations of a
    loop."""
    launch: Traffic
    certainty: Certainty
    """Whether the launch's traffic is exact, lies between two figures, or was scaled up from a sample."""
    basis: str
    """How the launch's traffic is known: `no program differs`, `32 of 1024 programs`, …"""
    assumed: tuple[str, ...] = ()
    """What was assumed or is unknown, of arguments, data and operations."""
    element_bytes: int = 0
    """Bytes of an element; 0 if it is not executed."""

    @property
    def unit(self) -> str:
        return "sectors" if self.unit_bytes == 32 else "cache lines"

    @property
    def mark(self) -> str:
        """The certainty in words, with how it is known."""
        if self.certainty == "exact":
            return "exact"
        return f"{'between these bounds' if self.certainty == 'range' else 'sampled'}: {self.basis}"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one operation because of its layouts or its addresses."""

    kind: Literal["global", "shared", "conversion"]
    operation: str
    line: int
    """In the TTGIR text, 1-based."""
    place: str
    """`file:line` of the Python source: the innermost line that is not Triton's library."""
    layouts: tuple[str, ...]
    values: tuple[str, ...]
    excess: int
    """Sectors or wavefronts per warp above the minimum, which decide the order."""
    loops: int
    """The number of loops around it."""
    summary: str
    hint: str = ""
    """Where the assembly differs and the likely cause, or why a conversion is there; or an empty string."""
    figures: dict[str, Any] = field(default_factory=dict[str, Any])
    pair: tuple[str, str] | None = None
    """The types in registers and in shared memory whose bank conflicts the compiler can count; or None."""
    chain: tuple[str, ...] = ()
    """`file:line` of every frame, innermost first."""
    by_operation: bool = False
    """Whether the instructions are the operation's own; otherwise those of all operations on its line of Python."""
    access: GlobalAccess | None = None
    """What it asks of global memory; None for shared memory and conversions."""
