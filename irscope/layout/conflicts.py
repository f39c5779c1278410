"""Shared-memory accesses: how wide they can be, and how many wavefronts they take against the fewest possible.

Model: a wavefront serves every bank once, with one word of four bytes; lanes that read the same word share it. A warp's
access of 8 or 16 bytes a lane is served in as many parts as its bytes fill lines of banks, of consecutive lanes.
Sources: "CUDA C++ Best Practices Guide", section "Shared Memory and Memory Banks"; "Nsight Compute" documentation,
"wavefronts"; AMD "CDNA3 Instruction Set Architecture", chapter "Data Share Operations", for 64-lane waves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irscope.errors import UsageError
from irscope.layout.linear import eliminate, solve, span
from irscope.layout.memory_map import BANK_BYTES, MemoryMap
from irscope.layout.thread_map import ThreadMap

_WIDEST_BITS = 128


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """What one warp's share of a shared load or store costs."""

    bits_a_lane: int
    """Bits of one access of one lane: the widest that the two layouts allow."""
    instructions: int
    """Accesses of a warp."""
    wavefronts: int
    """Of all its accesses together."""
    minimum: int
    """Wavefronts that the same bytes would take with no conflict."""
    banks: int
    matrices: bool = False
    """Whether it is counted as ldmatrix or stmatrix, by 8×8 matrices."""

    @property
    def ways(self) -> float:
        """1.0 without conflicts; 2.0 for two-way conflicts."""
        return self.wavefronts / max(self.minimum, 1)

    @property
    def excess(self) -> int:
        """Wavefronts above the minimum."""
        return self.wavefronts - self.minimum


def shared_access(registers: ThreadMap, memory: MemoryMap, *, matrices: bool = False) -> SharedAccess:
    """Count the wavefronts of moving a tensor between registers and shared memory, for one warp.

    Args:
        registers: the layout in registers.
        memory: the layout in shared memory, of the same shape; or of the allocation that the tensor is a part of: where
            the part begins moves all its banks alike.
        matrices: whether ldmatrix or stmatrix is used: four bytes a lane then, an 8×8 matrix a wavefront at best.

    Raises UsageError where the shapes differ.
    """
    fits = len(registers.shape) == len(memory.shape)
    if not fits or any(a > b for a, b in zip(registers.shape, memory.shape, strict=True)):
        raise UsageError(
            f"registers hold {'×'.join(map(str, registers.shape))}, shared memory {'×'.join(map(str, memory.shape))}: "
            "the two must be one shape, or the first a part of the second."
        )
    register_images = _images(registers, memory, "register")
    lane_images = _images(registers, memory, "lane")
    widest = 4 * 8 if matrices else _WIDEST_BITS
    held = [*lane_images, *_images(registers, memory, "warp"), *_images(registers, memory, "block")]
    vector_bits, others = _vector(register_images, held, memory, widest)
    element_bytes = memory.element_bits / 8
    vector = 1 << vector_bits
    # Lanes that hold copies store nothing, and load what another loads.
    lanes = span(lane_images)
    together = max(int(memory.banks * BANK_BYTES // max(vector * element_bytes, BANK_BYTES)), 1)
    groups = [lanes[at : at + together] for at in range(0, len(lanes), together)]
    instructions = span(others)
    wavefronts = minimum = 0
    for base in _sample(instructions):
        for group in groups:
            words = {word for lane in group for word in _words(memory, base ^ lane, vector)}
            wavefronts += _most_in_a_bank(words, memory.banks)
            minimum += -(-len(words) // memory.banks)
    scale = len(instructions) / len(_sample(instructions))
    return SharedAccess(
        int(vector * memory.element_bits),
        len(instructions),
        round(wavefronts * scale),
        round(minimum * scale),
        memory.banks,
        matrices,
    )


def bank_map(registers: ThreadMap, memory: MemoryMap, instruction: int = 0, warp: int = 0) -> list[list[int]]:
    """For each lane of a warp, the banks that one access touches, in order."""
    register_images = _images(registers, memory, "register")
    warp_images = _images(registers, memory, "warp")
    held = [*_images(registers, memory, "lane"), *warp_images, *_images(registers, memory, "block")]
    vector_bits, others = _vector(register_images, held, memory, _WIDEST_BITS)
    starts = span(others)
    warp_offset = span(warp_images)[warp]
    base = starts[instruction % len(starts)] ^ warp_offset
    return [
        [word % memory.banks for word in sorted(set(_words(memory, base ^ lane, 1 << vector_bits)))]
        for lane in span(_images(registers, memory, "lane"))
    ]


def _images(registers: ThreadMap, memory: MemoryMap, name: str) -> list[int]:
    """The offset (in elements, padding left out) that each basis vector of an input leads to."""
    pivots, _ = eliminate([memory.layout.flatten(vector) for vector in memory.layout.vectors("offset")])
    images: list[int] = []
    for vector in registers.layout.vectors(name):
        element = memory.layout.flatten(vector)
        try:
            images.append(solve(pivots, element))
        except UsageError:
            # It lies in another CTA's memory: that costs this CTA's banks nothing.
            images.append(0)
    return images


def _vector(images: Sequence[int], held: Sequence[int], memory: MemoryMap, widest_bits: int) -> tuple[int, list[int]]:
    """The bits of the widest access, and the images of the registers that are left to go through one by one.

    Registers may be taken in any order, so an access is as wide as there are registers for offsets 1, 2, 4, …; but no
    lane, warp or other register may lead into the middle of it, as a swizzle finer than the access makes them do.
    """
    rest = [image for image in images if image]
    bits = 0
    while (1 << bits) in rest and (2 << bits) * memory.element_bits <= widest_bits and _unbroken(memory, 2 << bits):
        others = [image for image in (*rest, *held) if image != 1 << bits]
        if any(image >> bits & 1 for image in others):
            break
        rest.remove(1 << bits)
        bits += 1
    return bits, rest


def _unbroken(memory: MemoryMap, elements: int) -> bool:
    return all(interval % elements == 0 for interval, _ in memory.padding)


def _words(memory: MemoryMap, offset: int, count: int) -> Iterable[int]:
    first = memory.byte(offset) // BANK_BYTES
    last = (memory.byte(offset) + max(count * memory.element_bits // 8, 1) - 1) // BANK_BYTES
    return range(first, last + 1)


def _most_in_a_bank(words: Iterable[int], banks: int) -> int:
    counts: dict[int, int] = {}
    for word in words:
        counts[word % banks] = counts.get(word % banks, 0) + 1
    return max(counts.values(), default=0)


def _sample(instructions: list[int]) -> list[int]:
    # A linear map meets the banks alike at every instruction, but for padding: some stand for all.
    return instructions[:: max(len(instructions) // 32, 1)]
