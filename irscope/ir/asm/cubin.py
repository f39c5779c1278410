"""The resources that a cubin states for each kernel: registers, stack, barriers, constants, code size, instructions.

`.nv.info` sections hold attributes: a format byte, an attribute byte and two bytes that are either the value or the
length of what follows. `cuobjdump -elf` prints their names; those that are read here, with their numbers, are
EIATTR_FRAME_SIZE 0x11, EIATTR_REGCOUNT 0x2f and EIATTR_NUM_BARRIERS 0x4c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from irscope.ir.asm.elf import Elf
from irscope.model.capture import Resources

_FRAME_SIZE, _REGISTER_COUNT, _BARRIER_COUNT = 0x11, 0x2F, 0x4C
_SIZED = 4  # the format whose last two header bytes are a length
_INSTRUCTION_BYTES = 16
_OPCODE_MASK, _NOP, _BRANCH = 0xFFF, 0x918, 0x947
# The displacement of a branch to itself: −16 bytes, in bytes up to Ampere, in words of 4 bytes after it.
_TO_ITSELF = (0xFFFFFFF0, 0xFFFFFFFC)


def read_cubin(elf: Elf) -> dict[str, Resources]:
    """The resources of each kernel of a cubin, by name; None if the file does not state it.

    Shared memory is not among them: the file knows the static part only, and Triton's is dynamic.
    """
    return {name: _read_kernel(elf, name) for name in elf.kernels}


def count_instructions(code: bytes) -> int:
    """How many 128-bit instructions (Volta and later) a function's code has, its padding left out.

    The padding is the NOPs at the end, and before them a branch to itself.
    """
    words = [int.from_bytes(code[at : at + 8], "little") for at in range(0, len(code) - 15, _INSTRUCTION_BYTES)]
    while words and words[-1] & _OPCODE_MASK == _NOP:
        words.pop()
    if words and words[-1] & _OPCODE_MASK == _BRANCH and words[-1] >> 32 in _TO_ITSELF:
        words.pop()
    return len(words)


def _read_kernel(elf: Elf, name: str) -> Resources:
    text = elf.section(f".text.{name}")
    constants = elf.section(f".nv.constant0.{name}")
    code = elf.function(name)
    by_symbol = dict(_attributes(elf, ".nv.info"))
    own = dict(_attributes(elf, f".nv.info.{name}"))
    symbol = next((i for i, item in enumerate(elf.symbols) if item.name == name and item.kind == "FUNC"), -1)
    barriers = own.get((_BARRIER_COUNT, None))
    if barriers is None and text is not None:
        barriers = text.flags >> 20 & 0x7F  # before sm_90 the count stands in the flags of the code's section
    stack_bytes = by_symbol.get((_FRAME_SIZE, symbol))
    spills = 0 if stack_bytes == 0 else None  # with no stack there is nowhere to spill to
    return Resources(
        registers=by_symbol.get((_REGISTER_COUNT, symbol)),
        stack_bytes=stack_bytes,
        spill_store_bytes=spills,
        spill_load_bytes=spills,
        barriers=barriers,
        constant_bytes=constants.size_bytes if constants else None,
        code_bytes=len(code) if code is not None else None,
        instruction_count=count_instructions(code) if code is not None else None,
    )


def _attributes(elf: Elf, section_name: str) -> Iterator[tuple[tuple[int, int | None], int]]:
    """((attribute, symbol index or None), value) of the attributes that hold one number."""
    section = elf.section(section_name)
    data = elf.contents(section) if section else b""
    at = 0
    while at + 4 <= len(data):
        kind, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if kind != _SIZED:
            yield (attribute, None), value & 0xFF if kind == 2 else value
            continue
        if value == 8 and at + 8 <= len(data):
            symbol, number = struct.unpack_from("<II", data, at)
            yield (attribute, symbol), number
        at += value
