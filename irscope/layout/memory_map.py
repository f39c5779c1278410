"""MemoryMap: at which offset of shared memory each element of a tensor lies, and in which bank."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from irscope.errors import UsageError
from irscope.layout.linear import Preimage
from irscope.model.capture import Target
from irscope.model.layout import LinearLayout

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
        """The shape of the tensor."""
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
            raise UsageError(f"element {element} lies nowhere in this layout.")
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
