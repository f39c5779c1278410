"""Maps of layouts: elements to threads and to banks, the algebra over GF(2) below both, and what conversions move.

Whether the thread, warp or CTA that needs an element holds it in the source already follows from the bases alone: both
maps are linear, so it holds for all inputs if it holds for each basis vector.
Source: "Linear Layouts" (Zhou et al., 2025, arXiv:2505.23819), section on layout conversions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, NamedTuple

from irscope.errors import UsageError
from irscope.model.capture import Target
from irscope.model.layout import LinearLayout


def kernel(layout: LinearLayout) -> tuple[int, ...]:
    """A basis of the inputs that lead to element 0: combinations of input bits that change nothing."""
    return eliminate(layout.flat_bases())[1]


def is_surjective(layout: LinearLayout) -> bool:
    """Whether every element has an input that leads to it."""
    return len(eliminate(layout.flat_bases())[0]) == layout.out_bits


class Preimage:
    """For each element, by its row-major index, the least input that leads to it; -1 if none does.

    The least input is linear in the element too, so it is computed from the bases for the elements that are asked for,
    however large the tensor is.
    """

    def __init__(self, layout: LinearLayout) -> None:
        self._pivots, copies = eliminate(layout.flat_bases())
        same = eliminate(copies)[0]
        self._same = [same[bit][0] for bit in sorted(same, reverse=True)]
        self.size = 1 << layout.out_bits
        surjective = len(self._pivots) == layout.out_bits
        self._columns = [self._least(1 << bit) for bit in range(layout.out_bits)] if surjective else None

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, element: int) -> int:
        if not 0 <= element < self.size:
            raise IndexError(element)
        if self._columns is None:
            return self._least(element)
        return _combined(self._columns, element)

    def _least(self, element: int) -> int:
        rest, place = _reduce(self._pivots, element, 0)
        if rest:
            return -1
        for vector in self._same:
            place = min(place, place ^ vector)
        return place


def eliminate(columns: Sequence[int]) -> tuple[dict[int, tuple[int, int]], tuple[int, ...]]:
    """Gaussian elimination over GF(2).

    Returns, for each pivot bit, (vector, the combination of columns that makes it), and a basis of the combinations
    that make 0. Bit i of a combination stands for column i.
    """
    pivots: dict[int, tuple[int, int]] = {}
    null: list[int] = []
    for number, column in enumerate(columns):
        vector, combination = _reduce(pivots, column, 1 << number)
        if vector:
            pivots[vector.bit_length() - 1] = (vector, combination)
        else:
            null.append(combination)
    return pivots, tuple(null)


def solve(pivots: Mapping[int, tuple[int, int]], vector: int) -> int:
    """The combination of columns that makes a vector; raises UsageError if there is none."""
    rest, combination = _reduce(pivots, vector, 0)
    if rest:
        raise UsageError(f"no input maps to element {vector}.")
    return combination


def _reduce(pivots: Mapping[int, tuple[int, int]], vector: int, combination: int) -> tuple[int, int]:
    while vector and (found := pivots.get(vector.bit_length() - 1)) is not None:
        vector ^= found[0]
        combination ^= found[1]
    return vector, combination


def _combined(vectors: Iterable[int], choice: int) -> int:
    """The exclusive or of the chosen vectors: bit i of `choice` stands for the i-th."""
    result = 0
    for vector in vectors:
        if choice & 1:
            result ^= vector
        choice >>= 1
    return result


def span(vectors: Iterable[int]) -> list[int]:
    """Every combination of the vectors, the first vector varying fastest."""
    values = [0]
    for vector in vectors:
        values += [value ^ vector for value in values]
    return values


IN_DIMS = ("register", "lane", "warp", "block")
"""The inputs of a layout in registers, in the order of their bits."""


class Owner(NamedTuple):
    """One register of one thread."""

    block: int
    warp: int
    lane: int
    register: int

    def __str__(self) -> str:
        block = f"C{self.block} " if self.block else ""
        return f"{block}w{self.warp} t{self.lane} r{self.register}"


@dataclass(frozen=True)
class ThreadMap:
    """A layout in registers, from (register, lane, warp, block) to elements and back."""

    layout: LinearLayout

    @staticmethod
    def of(layout: LinearLayout) -> ThreadMap:
        """The map of a layout in registers; raises UsageError if it has inputs other than `IN_DIMS`."""
        strange = [name for name in layout.in_dims if name not in IN_DIMS]
        if strange:
            raise UsageError(f"a thread map needs a layout in registers; this one has {', '.join(strange)}.")
        bases = tuple((name, layout.vectors(name)) for name in IN_DIMS)
        return ThreadMap(LinearLayout(bases, layout.out_dims))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def size(self) -> int:
        return 1 << self.layout.out_bits

    @cached_property
    def _bits(self) -> tuple[int, ...]:
        return tuple(len(self.layout.vectors(name)) for name in IN_DIMS)

    @property
    def registers(self) -> int:
        """Elements per thread, copies included."""
        return 1 << self._bits[0]

    @property
    def lanes(self) -> int:
        return 1 << self._bits[1]

    @property
    def warps(self) -> int:
        return 1 << self._bits[2]

    @property
    def blocks(self) -> int:
        """CTAs per cluster."""
        return 1 << self._bits[3]

    @cached_property
    def elements(self) -> list[int]:
        """The row-major element index at each place: registers vary fastest, then lanes, warps and blocks."""
        return self.layout.all_elements()

    @cached_property
    def first_owners(self) -> Preimage:
        """For each element the lowest place in `elements` that holds it; -1 if none does."""
        return Preimage(self.layout)

    @cached_property
    def _copies(self) -> list[int]:
        """The differences (by exclusive or) between the places of one element."""
        return span(kernel(self.layout))

    def owners_at(self, index: int) -> tuple[Owner, ...]:
        """All holders of the element with a row-major index, in order."""
        first = self.first_owners[index]
        return () if first < 0 else tuple(self.owner(place) for place in sorted(first ^ copy for copy in self._copies))

    def owner(self, place: int) -> Owner:
        register_bits, lane_bits, warp_bits, _ = self._bits
        register = place & (self.registers - 1)
        place >>= register_bits
        lane = place & (self.lanes - 1)
        place >>= lane_bits
        return Owner(place >> warp_bits, place & (self.warps - 1), lane, register)

    @cached_property
    def replication(self) -> _Replication:
        """The copies of each element within a thread, a warp, a CTA and the cluster."""
        columns: list[int] = []
        ranks = [0]
        for name in IN_DIMS:
            columns += self.layout.flat_vectors(name)
            ranks.append(len(eliminate(columns)[0]))
        free = [bits - rank + before for bits, rank, before in zip(self._bits, ranks[1:], ranks, strict=False)]
        return _Replication(*(1 << bits for bits in free))

    def contiguous(self, dimension: int | None = None) -> int:
        """Consecutive elements along a dimension (the last by default) in consecutive registers of a thread."""
        stride = 1 if dimension is None else prod(self.shape[dimension + 1 :])
        extent = self.shape[-1 if dimension is None else dimension] if self.shape else 1
        run = 1
        for element in self.layout.flat_vectors("register"):
            if run >= extent or element != run * stride:
                break
            run *= 2
        return run


@dataclass(frozen=True, slots=True)
class _Replication:
    """How many copies of each element there are."""

    registers: int
    """Registers of one thread that hold the same element."""
    lanes: int
    """Lanes of a warp that hold the same elements."""
    warps: int
    blocks: int

    @property
    def threads(self) -> int:
        """Threads per CTA that hold the same elements."""
        return self.lanes * self.warps

    @property
    def total(self) -> int:
        """Registers in the whole cluster that hold the same element."""
        return self.registers * self.threads * self.blocks

    @property
    def wasted(self) -> float:
        """The share of a CTA's registers that hold copies of others, 0 to 1."""
        return 1 - 1 / (self.registers * self.threads)

    def __str__(self) -> str:
        parts = [("registers", self.registers), ("lanes", self.lanes), ("warps", self.warps), ("CTAs", self.blocks)]
        return ", ".join(f"{count} {name}" for name, count in parts if count > 1) or "none"


BANK_BYTES = 4
"""A bank is four bytes wide, on every GPU modelled. Source: "CUDA C++ Programming Guide", shared memory."""


@dataclass(frozen=True, slots=True)
class BankModel:
    """The banks of a target's shared memory."""

    banks: int
    """Banks of four bytes."""
    source: str
    """The document that says so."""

    @staticmethod
    def of(target: Target) -> BankModel:
        """The model of a target: 32 banks; 64 on gfx950 and on RDNA parts in whole-workgroup mode."""
        if target.backend == "hip" and target.arch.startswith("gfx950"):
            return BankModel(64, "AMD CDNA4 Instruction Set Architecture: LDS of 160 KiB in 64 banks")
        if target.backend == "hip" and not target.arch.startswith("gfx9"):
            return BankModel(64, "AMD RDNA Instruction Set Architectures: LDS of a WGP, 64 banks of four bytes")
        if target.backend == "hip":
            return BankModel(32, "AMD CDNA3 Instruction Set Architecture: LDS of 64 KiB in 32 banks")
        return BankModel(32, "CUDA C++ Programming Guide: shared memory has 32 banks of 32-bit words")


@dataclass(frozen=True)
class MemoryMap:
    """A layout in shared memory: offset ↔ element, in elements and in bytes."""

    layout: LinearLayout
    """From `offset` (in elements) and `block` to the tensor."""
    element_bits: int
    padding: tuple[tuple[int, int], ...] = ()
    """(interval, padding): after each interval of elements so many more hold nothing."""
    banks: int = 32

    @staticmethod
    def of(
        layout: LinearLayout, element_bits: int, padding: tuple[tuple[int, int], ...] = (), banks: int = 32
    ) -> MemoryMap:
        """The map of a layout from offset and block; raises UsageError for other inputs or impossible padding."""
        if not layout.in_dims or layout.in_dims[0] != "offset":
            raise UsageError(f"a memory map needs a layout in shared memory; this one has {', '.join(layout.in_dims)}.")
        if any(interval < 1 or pad < 0 for interval, pad in padding):
            raise UsageError(f"the padding {padding!r} is not (interval, padding) in elements.")
        bases = (("offset", layout.vectors("offset")), ("block", layout.vectors("block")))
        return MemoryMap(LinearLayout(bases, layout.out_dims), max(element_bits, 1), padding, banks)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def blocks(self) -> int:
        """CTAs of the cluster that hold a part of the tensor."""
        return self.layout.in_size("block")

    @property
    def offsets(self) -> int:
        """Offsets of one CTA, without padding."""
        return self.layout.in_size("offset")

    @property
    def size_bytes(self) -> int:
        """Bytes of one CTA's allocation, with the padding inside it."""
        return (self.padded(self.offsets - 1) + 1) * self.element_bits // 8

    @property
    def padding_bytes(self) -> int:
        """Bytes of one CTA's allocation that hold nothing."""
        return self.size_bytes - self.offsets * self.element_bits // 8

    def padded(self, offset: int) -> int:
        """The offset with padding, in elements: each padding comes once after every whole interval.

        Source: the definition of `padded_shared` in Triton's TritonGPUAttrDefs.td.
        """
        return offset + sum(offset // interval * pad for interval, pad in self.padding)

    def byte(self, offset: int) -> int:
        """The first byte of the element at an offset, with padding."""
        return self.padded(offset) * self.element_bits // 8

    def place(self, element: int) -> tuple[int, int]:
        """(CTA, first byte) of an element, by its row-major index; raises UsageError if it lies nowhere."""
        place = self.places[element]
        if place < 0:
            raise UsageError(f"element {element} is not in this layout.")
        return place // self.offsets, self.byte(place % self.offsets)

    def bank(self, offset: int) -> int:
        """The bank of the first byte of the element at an offset."""
        return self.byte(offset) // BANK_BYTES % self.banks

    @cached_property
    def elements(self) -> list[int]:
        """The row-major element index at each offset, blocks varying slowest."""
        return self.layout.all_elements()

    @cached_property
    def places(self) -> Preimage:
        """For each element its place in `elements` (block × offsets + offset), the lowest; -1 if it has none."""
        return Preimage(self.layout)


_Movement = Literal["nothing", "registers", "lanes", "warps", "CTAs"]

_LEVELS: tuple[tuple[int, _Movement], ...] = ((3, "CTAs"), (2, "warps"), (1, "lanes"))


def what_moves(source: ThreadMap, destination: ThreadMap) -> _Movement:
    """The smallest unit within which every element stays; raises UsageError for different shapes."""
    if source.shape != destination.shape:
        raise UsageError(
            f"a {'×'.join(map(str, source.shape))} tensor can't be converted to "
            f"{'×'.join(map(str, destination.shape))}: a conversion keeps the shape."
        )
    for level, name in _LEVELS:
        if _new_directions(source, destination, level):
            return name
    same = all(source.layout.vectors(name) == destination.layout.vectors(name) for name in IN_DIMS)
    return "nothing" if same else "registers"


class Moves:
    """Which elements of a tensor have no holder in common in two layouts.

    The threads that hold an element are a coset of the kernel. Two cosets meet if their difference is a combination of
    both kernels, and that difference is linear in the element.
    """

    def __init__(self, first: ThreadMap, second: ThreadMap) -> None:
        """Raises UsageError if the shapes differ, or a layout leaves elements out."""
        what_moves(first, second)
        copies: list[int] = []
        owners: list[Preimage] = []
        for threads in (first, second):
            if not is_surjective(threads.layout):
                raise UsageError("one of the layouts leaves elements out, so the moves are undefined.")
            shift = threads.registers.bit_length() - 1
            copies += [place >> shift for place in kernel(threads.layout)]
            owners.append(threads.first_owners)
        self._owners = tuple(owners)
        self._shifts = tuple(threads.registers.bit_length() - 1 for threads in (first, second))
        pivots = eliminate(copies)[0]
        self._same = [pivots[bit][0] for bit in sorted(pivots, reverse=True)]
        self._rank = len(eliminate([self._difference(1 << bit) for bit in range(first.layout.out_bits)])[0])

    @property
    def share(self) -> float:
        """The share of the elements that moved, 0 to 1."""
        return 1 - 0.5**self._rank

    def __getitem__(self, element: int) -> bool:
        return self._difference(element) != 0

    def _difference(self, element: int) -> int:
        ours, theirs = (owners[element] >> shift for owners, shift in zip(self._owners, self._shifts, strict=True))
        difference = ours ^ theirs
        for vector in self._same:
            difference = min(difference, difference ^ vector)
        return difference


def _new_directions(source: ThreadMap, destination: ThreadMap, level: int) -> int:
    """The codimension of the places in the destination whose holder has the element in the source already.

    A holder is counted from `IN_DIMS[level]` outwards. Those places are a subspace: their element differs from one the
    holder has by a combination of the inner bases.
    """
    pivots, _ = eliminate([base for name in IN_DIMS[:level] for base in source.layout.flat_vectors(name)])
    columns = [vector for vector, _ in pivots.values()]
    beyond = 0
    for index, name in enumerate(IN_DIMS):
        wanted, held = destination.layout.flat_vectors(name), source.layout.flat_vectors(name)
        if index >= level:
            # A holder that only the destination has held nothing in the source.
            beyond += max(0, len(wanted) - len(held))
            wanted = tuple(a ^ b for a, b in zip(wanted, held, strict=False))
        columns += wanted
    return len(eliminate(columns)[0]) - len(pivots) + beyond


def moved_share(source: ThreadMap, destination: ThreadMap) -> float:
    """The share of the destination's registers whose element the same thread did not hold in the source, 0 to 1."""
    return 1 - 0.5 ** _new_directions(source, destination, 1)
