"""Global loads and stores: how wide the layout lets them be, and the sectors and lines a warp touches.

Model: consecutive elements along the fastest dimension lie side by side, each row begins at a line of its own; one
access is 16 bytes a lane at most. Sources: "CUDA C++ Best Practices Guide", section "Coalesced Access to Global Memory"
(32-byte transactions); "Nsight Compute" documentation, "sectors" (32 bytes) and "cache lines" (128 bytes); AMD "CDNA3
Instruction Set Architecture", chapter "Flat Memory Instructions" (dwordx4).
"""

from __future__ import annotations

from dataclasses import dataclass

from irscope.layout.linear import combined, eliminate
from irscope.layout.thread_map import ThreadMap

SECTOR_BYTES = 32
LINE_BYTES = 128
_WIDEST_BITS = 128


@dataclass(frozen=True, slots=True)
class GlobalAccess:
    """What one warp's share of a global load or store takes, as far as the layout decides it."""

    bits_a_lane: int
    """Bits of one access of one lane."""
    instructions: int
    """Accesses of a warp."""
    sectors: int
    """32-byte sectors, summed over the accesses."""
    minimum_sectors: int
    """Sectors that hold the warp's bytes."""
    lines: int
    """128-byte lines, summed over the accesses."""
    minimum_lines: int
    dimension: int
    """The dimension that is taken for the fastest."""

    @property
    def efficiency(self) -> float:
        """Bytes wanted of each byte moved, 0 to 1."""
        return self.minimum_sectors / max(self.sectors, 1)

    @property
    def excess(self) -> int:
        """Sectors above the minimum."""
        return self.sectors - self.minimum_sectors


def fastest_dimension(threads: ThreadMap) -> int:
    """The dimension along which one thread, then a warp, holds most side by side: the compiler coalesces along it."""
    rank = len(threads.shape)

    def along(dimension: int) -> tuple[int, int, int]:
        lanes = [vector for vector in threads.layout.vectors("lane") if vector[dimension]]
        first = [i for i, vector in enumerate(threads.layout.vectors("lane")) if vector[dimension]]
        return threads.contiguous(dimension), -min(first, default=99), len(lanes)

    return max(range(rank), key=lambda dimension: (along(dimension), dimension)) if rank else 0


def global_access(
    threads: ThreadMap, element_bits: int, *, contiguity: int | None = None, dimension: int | None = None
) -> GlobalAccess:
    """Count what one warp's global access takes.

    Args:
        threads: the layout of the tensor of pointers.
        element_bits: bits of what they point to.
        contiguity: elements that the compiler found to be side by side and aligned; None for as many as the layout
            holds.
        dimension: the fastest one; None for the one that the layout is made for.
    """
    fastest = fastest_dimension(threads) if dimension is None else dimension
    run = min(threads.contiguous(fastest), contiguity or 1 << 30, max(_WIDEST_BITS // max(element_bits, 1), 1))
    stride = 1
    for size in threads.shape[fastest + 1 :]:
        stride *= size
    extent = threads.shape[fastest] if threads.shape else 1
    sectors = lines = 0
    wanted: set[tuple[int, int]] = set()
    wanted_lines: set[tuple[int, int]] = set()
    register_bits = threads.registers.bit_length() - 1
    element_bytes = max(element_bits, 8) // 8
    starts = _starts(threads, run)
    bases = threads.layout.flat_bases()
    for register in starts:
        touched: set[tuple[int, int]] = set()
        for lane in range(threads.lanes):
            element = combined(bases, lane << register_bits | register)
            at = element // stride % extent
            row = element - at * stride
            first, last = at * element_bytes, (at + run) * element_bytes - 1
            touched.update((row, sector) for sector in range(first // SECTOR_BYTES, last // SECTOR_BYTES + 1))
        touched_lines = {(row, sector * SECTOR_BYTES // LINE_BYTES) for row, sector in touched}
        sectors += len(touched)
        lines += len(touched_lines)
        wanted |= touched
        wanted_lines |= touched_lines
    minimum = _least(threads, element_bytes, SECTOR_BYTES, len(wanted))
    return GlobalAccess(
        run * element_bits,
        len(starts),
        sectors,
        minimum,
        lines,
        _least(threads, element_bytes, LINE_BYTES, len(wanted_lines)),
        fastest,
    )


def _least(threads: ThreadMap, element_bytes: int, unit: int, touched: int) -> int:
    """The units that a warp's distinct elements fill, were they packed; never more than it touches."""
    columns = [
        threads.layout.flatten(vector) for name in ("register", "lane") for vector in threads.layout.vectors(name)
    ]
    distinct = 1 << len(eliminate(columns)[0])
    return min(-(-distinct * element_bytes // unit), touched)


def _starts(threads: ThreadMap, run: int) -> list[int]:
    """The first register of each access of a thread; registers that only hold copies are accessed once."""
    seen: set[int] = set()
    starts: list[int] = []
    bases = threads.layout.flat_bases()
    for register in range(0, threads.registers, run):
        element = combined(bases, register)
        if element not in seen:
            seen.add(element)
            starts.append(register)
    return starts
