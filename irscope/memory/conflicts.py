"""Shared-memory accesses: how wide they can be, their wavefronts, and the fewest wavefronts possible.

Model: a wavefront serves every bank once, with one word of four bytes; lanes that read the same word share it. A warp's
access of 8 or 16 bytes per lane is served in parts of consecutive lanes, each part as wide as all banks.
Sources: "CUDA C++ Best Practices Guide", section "Shared Memory and Memory Banks"; "Nsight Compute" documentation,
"wavefronts"; AMD "CDNA3 Instruction Set Architecture", chapter "Data Share Operations", for 64-lane waves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irscope.errors import UsageError
from irscope.layout.linear import eliminate, solve, span
from irscope.layout.memory_map import BANK_BYTES, MemoryMap
from irscope.layout.thread_map import ThreadMap

_WIDEST_BITS = 128


@dataclass(frozen=True, slots=True)
class _SharedAccess:
    """The cost of a shared load or store for one warp."""

    bits_a_lane: int
    """Bits per lane of one access: the widest that the two layouts allow."""
    instructions: int
    """Accesses per warp."""
    wavefronts: int
    """Of all accesses together."""
    minimum_wavefronts: int
    """Wavefronts for the same bytes without conflicts."""
    banks: int
    matrices: bool = False
    """Whether it is counted as ldmatrix or stmatrix, by 8×8 matrices."""

    @property
    def ways(self) -> float:
        """1.0 without conflicts; 2.0 for two-way conflicts."""
        return self.wavefronts / max(self.minimum_wavefronts, 1)

    @property
    def excess(self) -> int:
        """Wavefronts above the minimum."""
        return self.wavefronts - self.minimum_wavefronts


def shared_access(registers: ThreadMap, memory: MemoryMap, *, matrices: bool = False) -> _SharedAccess:
    """Count the wavefronts of moving a tensor between registers and shared memory, for one warp.

    Args:
        registers: the layout in registers.
        memory: the layout in shared memory, of the same shape, or of the allocation that the tensor is a part of: the
            offset of the part shifts all its banks alike.
        matrices: whether ldmatrix or stmatrix is used: four bytes per lane, at best one 8×8 matrix per wavefront.

    Raises UsageError if the shapes differ.
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
    vector = 1 << vector_bits
    # Lanes with copies of an element store nothing, and load the same word.
    lanes = span(lane_images)
    together = _together(memory, vector)
    groups = [lanes[at : at + together] for at in range(0, len(lanes), together)]
    instructions = span(others)
    # A linear map meets the banks alike at every instruction, except for padding: some stand for all.
    sample = instructions[:: max(len(instructions) // 32, 1)]
    wavefronts = minimum = 0
    for base in sample:
        for group in groups:
            words = {word for lane in group for word in _words(memory, base ^ lane, vector)}
            wavefronts += max(Counter(word % memory.banks for word in words).values(), default=0)
            minimum += -(-len(words) // memory.banks)
    scale = len(instructions) / len(sample)
    return _SharedAccess(
        int(vector * memory.element_bits),
        len(instructions),
        round(wavefronts * scale),
        round(minimum * scale),
        memory.banks,
        matrices,
    )


def first_request(registers: ThreadMap, memory: MemoryMap) -> frozenset[int]:
    """The elements, by row-major index, that the first lanes of warp 0 access together, in their first access."""
    register_images, lane_images = (_images(registers, memory, name) for name in ("register", "lane"))
    held = [*lane_images, *_images(registers, memory, "warp"), *_images(registers, memory, "block")]
    vector_bits, _ = _vector(register_images, held, memory, _WIDEST_BITS)
    together = _together(memory, 1 << vector_bits)
    offsets = (lane + step for lane in span(lane_images)[:together] for step in range(1 << vector_bits))
    return frozenset(memory.elements[offset] for offset in offsets)


def _together(memory: MemoryMap, vector: int) -> int:
    """Lanes whose accesses of `vector` elements are served together."""
    return max(int(memory.banks * BANK_BYTES // max(vector * memory.element_bits / 8, BANK_BYTES)), 1)


def _images(registers: ThreadMap, memory: MemoryMap, name: str) -> list[int]:
    """The offset, in elements without padding, of each basis vector of an input."""
    pivots, _ = eliminate(memory.layout.flat_vectors("offset"))
    images: list[int] = []
    for vector in registers.layout.vectors(name):
        element = memory.layout.flatten(vector)
        try:
            images.append(solve(pivots, element))
        except UsageError:
            # It is in another CTA's memory, and does not touch this CTA's banks.
            images.append(0)
    return images


def _vector(images: Sequence[int], held: Sequence[int], memory: MemoryMap, widest_bits: int) -> tuple[int, list[int]]:
    """The register bits of the widest access, and the images of the other register bits.

    Registers may be taken in any order, so an access is as wide as there are registers for the offsets 1, 2, 4, …, as
    long as no lane, warp or other register leads into the middle of it, as with a swizzle finer than the access.
    """
    rest = [image for image in images if image]
    bits = 0
    while (1 << bits) in rest and (2 << bits) * memory.element_bits <= widest_bits:
        if any(interval % (2 << bits) for interval, _ in memory.padding):
            break
        others = [image for image in (*rest, *held) if image != 1 << bits]
        if any(image >> bits & 1 for image in others):
            break
        rest.remove(1 << bits)
        bits += 1
    return bits, rest


def _words(memory: MemoryMap, offset: int, count: int) -> Iterable[int]:
    first = memory.byte(offset) // BANK_BYTES
    last = (memory.byte(offset) + max(count * memory.element_bits // 8, 1) - 1) // BANK_BYTES
    return range(first, last + 1)
