"""What the driver reports of a loaded kernel, read from its binary: registers and spills."""

from __future__ import annotations

from irscope.errors import ParseError
from irscope.ir.asm.elf import parse_elf
from irscope.ir.asm.resources import read_cubin


def binary_use(binary: bytes, name: str) -> tuple[int, int]:
    """(registers, spilled words) of one kernel of a cubin or an hsaco file, as the driver reports them on loading.

    Source: for hsaco, the AMDGPU code object metadata (`.vgpr_count`, `.vgpr_spill_count`). A binary that cannot be
    read gives 32 registers as a placeholder value, and no spills; never 0 registers, for scripts divide by that number.
    """
    registers: int | None = None
    spills = 0
    if b".vgpr_count" in binary:
        registers = _packed_number(binary, b".vgpr_count")
        spills = _packed_number(binary, b".vgpr_spill_count")
    else:
        try:
            kernel = read_cubin(parse_elf(binary)).get(name)
        except ParseError:
            kernel = None
        if kernel is not None:
            registers, spills = kernel.registers, (kernel.stack_bytes or 0) // 4
    return registers or 32, spills


def _packed_number(binary: bytes, key: bytes) -> int:
    """The MessagePack integer that follows a key; 0 without one."""
    after = binary.partition(key)[2]
    if not after or after[0] < 0x80:
        return after[0] if after else 0
    size = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}.get(after[0], 0)
    return int.from_bytes(after[1 : 1 + size], "big")
