"""Global loads and stores: how wide a layout allows them to be, and the sectors and lines that a warp touches.

Model: elements along the fastest dimension are contiguous in memory, each row begins at a line of its own, and one
access is at most 16 bytes per lane. Sources: "CUDA C++ Best Practices Guide", section "Coalesced Access to Global
Memory" (32-byte transactions); "Nsight Compute" documentation, "sectors" (32 bytes) and "cache lines" (128 bytes); AMD
"CDNA3 Instruction Set Architecture", chapter "Flat Memory Instructions" (dwordx4).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from irscope.layout.linear import combined, eliminate
from irscope.layout.thread_map import ThreadMap

_SECTOR_BYTES = 32
_LINE_BYTES = 128
_WIDEST_BITS = 128


@dataclass(frozen=True, slots=True)
class _GlobalAccess:
    """The cost of a global load or store for one warp, as far as the layout decides it."""

    bits_a_lane: int
    """Bits per lane of one access."""
    instructions: int
    """Accesses per warp."""
    sectors: int
    """32-byte sectors, summed over the accesses."""
    minimum_sectors: int
    """Sectors that the warp's distinct bytes fill."""
    lines: int
    """128-byte lines, summed over the accesses."""
    minimum_lines: int

    @property
    def excess(self) -> int:
        """Sectors above the minimum."""
        return self.sectors - self.minimum_sectors


def fastest_dimension(threads: ThreadMap) -> int:
    """The dimension along which a thread, then a warp, holds the longest run: the compiler coalesces along it."""
    rank = len(threads.shape)

    def along(dimension: int) -> tuple[int, int, int]:
        lanes = [vector for vector in threads.layout.vectors("lane") if vector[dimension]]
        first = [i for i, vector in enumerate(threads.layout.vectors("lane")) if vector[dimension]]
        return threads.contiguous(dimension), -min(first, default=99), len(lanes)

    return max(range(rank), key=lambda dimension: (along(dimension), dimension)) if rank else 0


def global_access(
    threads: ThreadMap, element_bits: int, *, contiguity: int | None = None, dimension: int | None = None
) -> _GlobalAccess:
    """Count the accesses, sectors and lines of one warp's global load or store.

    Args:
        threads: the layout of the tensor of pointers.
        element_bits: bits of the elements they point to.
        contiguity: elements that the compiler found to be contiguous and aligned; None for as many as the layout has.
        dimension: the fastest one in memory; None for `fastest_dimension`.
    """
    fastest = fastest_dimension(threads) if dimension is None else dimension
    run = min(threads.contiguous(fastest), contiguity or 1 << 30, max(_WIDEST_BITS // max(element_bits, 1), 1))
    stride = prod(threads.shape[fastest + 1 :])
    extent = threads.shape[fastest] if threads.shape else 1
    sectors = lines = 0
    all_sectors: set[tuple[int, int]] = set()
    all_lines: set[tuple[int, int]] = set()
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
            touched.update((row, sector) for sector in range(first // _SECTOR_BYTES, last // _SECTOR_BYTES + 1))
        touched_lines = {(row, sector * _SECTOR_BYTES // _LINE_BYTES) for row, sector in touched}
        sectors += len(touched)
        lines += len(touched_lines)
        all_sectors |= touched
        all_lines |= touched_lines
    return _GlobalAccess(
        run * element_bits,
        len(starts),
        sectors,
        _least(threads, element_bytes, _SECTOR_BYTES, len(all_sectors)),
        lines,
        _least(threads, element_bytes, _LINE_BYTES, len(all_lines)),
    )


def _least(threads: ThreadMap, element_bytes: int, unit: int, touched: int) -> int:
    """The units that a warp's distinct elements would fill if packed; at most as many as it touches."""
    columns = (*threads.layout.flat_vectors("register"), *threads.layout.flat_vectors("lane"))
    distinct = 1 << len(eliminate(columns)[0])
    return min(-(-distinct * element_bytes // unit), touched)


def _starts(threads: ThreadMap, run: int) -> list[int]:
    """The first register of each access of a thread; registers that hold copies are accessed once."""
    bases = threads.layout.flat_bases()
    starts: dict[int, int] = {}
    for register in range(0, threads.registers, run):
        starts.setdefault(combined(bases, register), register)
    return list(starts.values())
