"""What a matrix instruction of PTX reads of shared memory, and accesses in tensor memory, by its descriptors.

Sources: "PTX ISA", sections "Matrix Descriptor" and "Strides" of wgmma, and "Shared memory descriptor" and
"Instruction descriptor" of tcgen05. The parts of rows that a single instruction leaves out are counted as read: no
other operand lies between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.errors import NotRun
from irscope.ir.asm.instructions import Instruction

WGMMA_SWIZZLES = {0: 16, 1: 128, 2: 64, 3: 32}
TENSOR_SWIZZLES = {0: 16, 2: 128, 4: 64, 6: 32}
_ELEMENT_BYTES = {
    "f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "f8f6f4": 1, "i8": 1,
    "mxf8f6f4": 1, "mxf4": 1, "mxf4nvf4": 1,
}  # fmt: skip
_DEPTH_BYTES = 32
"""Of K, of each instruction."""


@dataclass(frozen=True, slots=True)
class _TensorAccess:
    """A rectangle of tensor memory."""

    lanes: tuple[int, ...]
    column: int
    columns: int
    writes: bool


def matrix_accesses(item: Instruction, values: Sequence[int]) -> tuple[list[tuple[int, int]], list[_TensorAccess]]:
    """(first byte and bytes of each part of shared memory that it reads, what it accesses in tensor memory).

    Of a `wgmma.mma_async` or a `tcgen05.mma`; `values`: of its operands, 0 for a vector of registers.
    """
    return _tensor(item, values) if item.opcode.startswith("tcgen05") else (_warp_group(item, values), [])


def _warp_group(item: Instruction, values: Sequence[int]) -> list[tuple[int, int]]:
    # {d}, a, b, scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b; with A in registers only imm-trans-b
    parts = item.opcode.split(".")
    shape = next(part for part in parts if part.startswith("m64n"))
    columns = int(shape[4:].partition("k")[0])
    size = _ELEMENT_BYTES.get(parts[-1])
    if size is None:
        raise NotRun(f"line {item.line} of the PTX: {item.opcode} is not followed")
    operands = item.arguments
    in_registers = operands[1].kind == "vector"
    flags = list(values[6:])
    found: list[tuple[int, int]] = []
    if not in_registers:
        found += _parts(values[1], WGMMA_SWIZZLES[values[1] >> 62 & 3], 64, size, bool(flags[:1] and flags[0]))
    is_transposed = bool(flags and flags[-1])
    found += _parts(values[2], WGMMA_SWIZZLES[values[2] >> 62 & 3], columns, size, is_transposed)
    return found


def _tensor(item: Instruction, values: Sequence[int]) -> tuple[list[tuple[int, int]], list[_TensorAccess]]:
    # [d], a-desc or [a], b-desc, idesc, with block_scale [scale-a] and [scale-b], enable-input-d
    kind = next((part[6:] for part in item.opcode.split(".") if part.startswith("kind::")), "")
    size = _ELEMENT_BYTES.get(kind)
    if size is None or "cta_group::2" in item.opcode:
        raise NotRun(f"line {item.line} of the PTX: {item.opcode} is not followed")
    form = values[3]
    rows, columns = (form >> 24 & 31) * 16, (form >> 17 & 63) * 8
    lanes = tuple(range(128)) if rows == 128 else tuple(lane for lane in range(128) if lane % 32 < 16)

    def rectangle(address: int, width: int, *, writes: bool) -> _TensorAccess:
        shifted = tuple(lane + (address >> 16) for lane in lanes)
        return _TensorAccess(shifted, address & 0xFFFF, width, writes)

    tensor = [rectangle(values[0], columns, writes=True)]
    found: list[tuple[int, int]] = []
    if item.arguments[1].kind == "address":
        tensor.append(rectangle(values[1], _DEPTH_BYTES // 4, writes=False))
    else:
        found += _parts(values[1], _swizzle(item, values[1]), rows, size, bool(form >> 15 & 1))
    found += _parts(values[2], _swizzle(item, values[2]), columns, size, bool(form >> 16 & 1))
    if "block_scale" in item.opcode:
        for address, count in zip(values[4:6], (rows, columns), strict=True):
            tensor.append(_TensorAccess(tuple(range(128)), address & 0xFFFF, -(-count // 32), writes=False))
    return found, tensor


def _swizzle(item: Instruction, descriptor: int) -> int:
    swizzle = TENSOR_SWIZZLES.get(descriptor >> 61 & 7)
    if swizzle is None:
        raise NotRun(f"line {item.line} of the PTX: the swizzle of its descriptor is not followed")
    return swizzle


def _parts(descriptor: int, width: int, rows: int, size: int, is_transposed: bool) -> list[tuple[int, int]]:
    """The atoms of eight rows of the swizzle's width that an operand lies in."""
    address, leading, stride = ((descriptor >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
    atom = 8 * width
    base = address & ~(atom - 1)
    if is_transposed:
        # Without a swizzle the two are exchanged.
        leading, stride = (stride, leading) if width == 16 else (leading, stride)
        # The fastest dimension is M or N: atoms of `width` bytes along it, of eight rows of K.
        across = range(-(-rows * size // width))
        return [
            (base + one * leading + two * stride, atom) for one in across for two in range(_DEPTH_BYTES // size // 8)
        ]
    along = range(2) if width == 16 else range(1)
    return [(base + one * stride + two * leading, atom) for one in range(rows // 8) for two in along]
