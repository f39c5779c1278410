"""Shared-memory accesses: how wide they can be, their wavefronts, and the fewest wavefronts possible.

Model: a wavefront serves every bank once, with one word of four bytes; lanes that read the same word share it. A warp's
access of 8 or 16 bytes per lane is served in parts (`irscope.memory.conflicts`). `ldmatrix` and `stmatrix` move one
matrix of eight rows of 16 bytes at a time, wherever its rows lie.
Sources: "CUDA C++ Best Practices Guide", section "Shared Memory and Memory Banks"; "Nsight Compute" documentation,
"wavefronts"; AMD "CDNA3 Instruction Set Architecture", chapter "Data Share Operations", for 64-lane waves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irscope.errors import UsageError
from irscope.layout.maps import BANK_BYTES, BankModel, MemoryMap, ThreadMap, eliminate, solve, span
from irscope.target import Target

_EIGHTS = ((0, 20), (4, 16), (8, 28), (12, 24))
"""First lanes of the two runs of four that one `ds_read_b128` serves together, and again 32 lanes higher."""
_SIXTEENS = ((0, 12, 20, 24), (4, 8, 16, 28))
"""The same with 64 banks."""


def lane_groups(
    target: Target, bits_per_thread: int, lanes: int, *, store: bool, alike: bool = False
) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """(banks, the groups of lanes that are served together) of an access of `bits_per_thread` by `lanes` lanes.

    `alike`: every lane loads what lane ^ 1 loads, or every lane what lane ^ 2 loads.
    """
    banks = BankModel.of(target).banks
    wide = target.backend == "hip" and lanes == 64 and bits_per_thread == 128
    if target.backend == "hip" and target.arch.startswith("gfx950") and store:
        banks = 32
    if wide and not store:
        runs = _SIXTEENS if banks == 64 else _EIGHTS
        halves = [tuple(half + first + lane for first in run for lane in range(4)) for half in (0, 32) for run in runs]
        return banks, tuple(halves)
    together = max(banks * BANK_BYTES // max(bits_per_thread // 8, BANK_BYTES), 1)
    if alike and not store and target.backend == "cuda" and bits_per_thread > 8 * BANK_BYTES:
        together *= 2
    return banks, tuple(tuple(range(at, min(at + together, lanes))) for at in range(0, lanes, together))


_WIDEST_BITS = 128
_ROW_BITS = 128
"""A row of a matrix that ldmatrix, stmatrix, wgmma or tcgen05 moves."""
_NVIDIA = Target("cuda", "", 32)


@dataclass(frozen=True, slots=True)
class _SharedAccess:
    """The cost of a shared load or store for one warp."""

    bits_per_thread: int
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
        return self.wavefronts / max(self.minimum_wavefronts, 1)

    @property
    def excess(self) -> int:
        return self.wavefronts - self.minimum_wavefronts


def shared_access(
    registers: ThreadMap,
    memory: MemoryMap,
    *,
    packed: Sequence[int] | None = None,
    store: bool = False,
    target: Target = _NVIDIA,
    widest_bits: int = _WIDEST_BITS,
) -> _SharedAccess:
    """Count the wavefronts of moving a tensor between registers and shared memory, for one warp.

    `memory`: of the same shape, or of the allocation that the tensor is a part of: the offset of the part shifts all
    its banks alike. `packed`: of ldmatrix or stmatrix, one of `matrix_choices`. `widest_bits`: per lane, of the widest
    instruction that is used. Raises UsageError if the shapes differ.
    """
    fits = len(registers.shape) == len(memory.shape)
    if not fits or any(a > b for a, b in zip(registers.shape, memory.shape, strict=True)):
        raise UsageError(
            f"registers hold {'×'.join(map(str, registers.shape))}, shared memory {'×'.join(map(str, memory.shape))}: "
            "both must have one shape, or the first be a part of the second."
        )
    register_images = _images(registers, memory, "register")
    lane_images = _images(registers, memory, "lane")
    # Lanes with copies of an element store nothing, and load the same word.
    lanes = span(lane_images)
    if packed is not None:
        vector, others = span(packed), [image for image in register_images if image and image not in packed]
        bits_per_thread, banks, groups = 32, memory.banks, (tuple(range(len(lanes))),)
    else:
        held = [*lane_images, *_images(registers, memory, "warp"), *_images(registers, memory, "block")]
        vector_bits, others = _vector(register_images, held, memory, widest_bits)
        # One element of each word.
        vector = list(range(0, 1 << vector_bits, max(32 // memory.element_bits, 1)))
        bits_per_thread = memory.element_bits << vector_bits
        alike = 0 in lane_images[:2]
        banks, groups = lane_groups(target, bits_per_thread, len(lanes), store=store, alike=alike)
    instructions = span(others)
    # A linear map meets the banks alike at every instruction, except for padding: some stand for all.
    sample = instructions[:: max(len(instructions) // 32, 1)]
    wavefronts = minimum = 0
    for base in sample:
        for group in groups:
            words = {word for lane in group for one in vector for word in _words(memory, base ^ lanes[lane] ^ one)}
            wavefronts += max(Counter(word % banks for word in words).values(), default=0)
            minimum += -(-len(words) // banks)
    scale = len(instructions) / len(sample)
    return _SharedAccess(
        bits_per_thread, len(instructions), round(wavefronts * scale), round(minimum * scale), banks, packed is not None
    )


def first_request(
    registers: ThreadMap, memory: MemoryMap, *, store: bool = False, target: Target = _NVIDIA
) -> frozenset[int]:
    """The elements, by row-major index, that the first lanes of warp 0 access together, in their first access."""
    register_images, lane_images = (_images(registers, memory, name) for name in ("register", "lane"))
    held = [*lane_images, *_images(registers, memory, "warp"), *_images(registers, memory, "block")]
    vector_bits, _ = _vector(register_images, held, memory, _WIDEST_BITS)
    lanes = span(lane_images)
    alike = 0 in lane_images[:2]
    _, groups = lane_groups(target, memory.element_bits << vector_bits, len(lanes), store=store, alike=alike)
    offsets = (lanes[lane] + step for lane in groups[0] for step in range(1 << vector_bits))
    return frozenset(memory.elements[offset] for offset in offsets)


def matrix_choices(registers: ThreadMap, memory: MemoryMap) -> tuple[tuple[int, ...], ...]:
    """How ldmatrix or stmatrix can move a tensor: the offsets of the registers that share 32 bits; empty if it cannot.

    A matrix is eight rows of 16 bytes. As it stands, its rows lie along the upper three bits of the lane, so there is
    one choice. Transposed, they lie along the lower two and a bit of the register, of which Triton 3.9 takes the one
    with the fewest conflicts, and before 3.9 the first.
    Source: Triton's third_party/nvidia/lib/TritonNVIDIAGPUToLLVM/Utility.cpp, `lowerLdStMatrix`.
    """
    row = _ROW_BITS // memory.element_bits
    inside = [1 << bit for bit in range(row.bit_length() - 1)]
    lanes, held = _images(registers, memory, "lane"), _images(registers, memory, "register")
    if memory.padding or len(lanes) != 5:
        return ()
    packed = len(inside) - 2
    if lanes[:2] == inside[packed:] and set(inside[:packed]) <= set(held) and not any(lane % row for lane in lanes[2:]):
        return (tuple(inside[:packed]),)
    if memory.element_bits == 16 and lanes[2:] == inside and not any(lane % row for lane in lanes[:2]):
        return tuple((image,) for image in held if image and image % row == 0)
    return ()


def core_matrix_ways(memory: MemoryMap) -> float | None:
    """How often wgmma or tcgen05 meets a bank in a core matrix: eight rows of 16 bytes, along either dimension.

    1.0 without conflicts. None if no 16 bytes lie together. Source: "PTX ISA", wgmma and tcgen05, "Core matrices".
    """
    pivots, _ = eliminate(memory.layout.flat_vectors("offset"))
    rank, row = len(memory.shape), _ROW_BITS // memory.element_bits

    def images(dimension: int, count: int) -> list[int]:
        steps = [1 << bit for bit in range(count.bit_length() - 1) if 1 << bit < memory.shape[dimension]]
        flat = [memory.layout.flatten(tuple(step if at == dimension else 0 for at in range(rank))) for step in steps]
        return [_image(pivots, element) for element in flat]

    for fast, slow in ((rank - 1, rank - 2), (rank - 2, rank - 1)):
        inside, rows = images(fast, row), images(slow, 8)
        if inside == [1 << bit for bit in range(row.bit_length() - 1)]:
            words = {word for base in span(rows) for one in range(row) for word in _words(memory, base ^ one)}
            return max(Counter(word % memory.banks for word in words).values()) / max(-(-len(words) // memory.banks), 1)
    return None


def _images(registers: ThreadMap, memory: MemoryMap, name: str) -> list[int]:
    """The offset, in elements without padding, of each basis vector of an input."""
    pivots, _ = eliminate(memory.layout.flat_vectors("offset"))
    return [_image(pivots, memory.layout.flatten(vector)) for vector in registers.layout.vectors(name)]


def _image(pivots: dict[int, tuple[int, int]], element: int) -> int:
    """The offset of an element; 0 for one in another CTA's memory, which does not touch this CTA's banks."""
    try:
        return solve(pivots, element)
    except UsageError:
        return 0


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


def _words(memory: MemoryMap, offset: int) -> Iterable[int]:
    first = memory.byte(offset) // BANK_BYTES
    last = (memory.byte(offset) + max(memory.element_bits // 8, 1) - 1) // BANK_BYTES
    return range(first, last + 1)
