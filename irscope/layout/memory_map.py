"""MemoryMap: where in shared memory each element of a tensor lies, and in which bank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from irscope.capture import Target
from irscope.errors import UsageError
from irscope.layout.linear import LinearLayout, Preimage

BANK_BYTES = 4
"""A bank is four bytes wide, on every GPU modelled. Source: "CUDA C++ Programming Guide", shared memory."""


@dataclass(frozen=True, slots=True)
class BankModel:
    """How a part's shared memory serves a warp."""

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
    """(interval, padding): after each interval of elements come so many more that hold nothing."""
    banks: int = 32

    @staticmethod
    def of(
        layout: LinearLayout, element_bits: int, padding: Sequence[Sequence[int]] = (), banks: int = 32
    ) -> MemoryMap:
        """The map of a layout whose inputs are offset and block; raises UsageError for another."""
        if not layout.in_dims or layout.in_dims[0] != "offset":
            raise UsageError(f"a memory map needs a layout in shared memory; this one has {', '.join(layout.in_dims)}.")
        pairs = tuple((int(interval), int(pad)) for interval, pad in padding)
        if any(interval < 1 or pad < 0 for interval, pad in pairs):
            raise UsageError(f"the padding {padding!r} is none: it is (interval, padding) in elements.")
        bases = (("offset", layout.vectors("offset")), ("block", layout.vectors("block")))
        return MemoryMap(LinearLayout(bases, layout.out_dims), max(element_bits, 1), pairs, banks)

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's."""
        return self.layout.shape

    @property
    def blocks(self) -> int:
        """CTAs of the cluster that hold parts."""
        return self.layout.in_size("block")

    @property
    def offsets(self) -> int:
        """Offsets of one CTA, padding left out."""
        return self.layout.in_size("offset")

    @property
    def size_bytes(self) -> int:
        """Bytes of one CTA's allocation, padding within it counted."""
        return (self.padded(self.offsets - 1) + 1) * self.element_bits // 8

    def padded(self, offset: int) -> int:
        """Where an offset really lies, in elements: each padding comes once after every whole interval.

        Source: the definition of `padded_shared` in Triton's TritonGPUAttrDefs.td.
        """
        return offset + sum(offset // interval * pad for interval, pad in self.padding)

    def byte(self, offset: int) -> int:
        """The first byte of the element at an offset, the padding counted."""
        return self.padded(offset) * self.element_bits // 8

    def bank(self, offset: int) -> int:
        """The bank of the element at an offset (of its first byte)."""
        return self.byte(offset) // BANK_BYTES % self.banks

    @cached_property
    def elements(self) -> list[int]:
        """The row-major element index at each offset, blocks running slowest."""
        return self.layout.all_elements()

    @cached_property
    def places(self) -> Preimage:
        """For each element its place in `elements` (block × offsets + offset), the lowest; -1 where it has none."""
        return Preimage(self.layout)

    def offset_of(self, *coordinates: int) -> int:
        """The offset of an element in its CTA, in elements, padding left out; raises UsageError where it has none."""
        inside = len(coordinates) == len(self.shape) and all(
            0 <= c < s for c, s in zip(coordinates, self.shape, strict=True)
        )
        place = self.places[self.layout.flatten(coordinates)] if inside else -1
        if place < 0:
            raise UsageError(f"{coordinates!r} has no place: the tensor is {'×'.join(map(str, self.shape))}.")
        return place % self.offsets

    def byte_of_element(self, element: int) -> int:
        """The first byte of the element with a row-major index, in its CTA."""
        return self.byte(self.places[element] % self.offsets)

    def bank_of_element(self, element: int) -> int:
        """The bank of the element with a row-major index."""
        return self.byte_of_element(element) // BANK_BYTES % self.banks
