"""What a loaded kernel would report about itself, read from its binary: registers and spills."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_FRAME_SIZE = 0x11
"""The attribute of `.nv.info` that gives a function's stack frame in bytes."""
_SIZED = 4
"""The format of an `.nv.info` attribute that is followed by its size and its value."""


@dataclass(frozen=True, slots=True)
class BinaryUse:
    """What one kernel takes, as the driver of the real part reports it on loading."""

    registers: int
    spills: int


def binary_use(binary: bytes, kernel: str) -> BinaryUse:
    """Registers and spilled words of one kernel of a cubin or an hsaco file.

    Source: for cubin, the ELF layout that `cuobjdump -res-usage` prints from (the upper byte of `sh_info` of
    `.text.KERNEL`, and EIATTR_FRAME_SIZE in `.nv.info`); for hsaco, the AMDGPU code object metadata (`.vgpr_count`,
    `.vgpr_spill_count`). A binary that does not read so gives the stand-in of 32 registers and no spills, never 0:
    scripts divide by it.
    """
    try:
        if b".vgpr_count" in binary:
            return BinaryUse(_packed_number(binary, b".vgpr_count") or 32, _packed_number(binary, b".vgpr_spill_count"))
        return _cubin_use(binary, kernel)
    except (struct.error, IndexError, ValueError):
        return BinaryUse(32, 0)


def _packed_number(binary: bytes, key: bytes) -> int:
    """The MessagePack integer that follows a key."""
    at = binary.find(key)
    if at < 0:
        return 0
    at += len(key)
    kind = binary[at]
    if kind < 0x80:
        return kind
    size = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}.get(kind, 0)
    return int.from_bytes(binary[at + 1 : at + 1 + size], "big")


def _cubin_use(binary: bytes, kernel: str) -> BinaryUse:
    table_at = struct.unpack_from("<Q", binary, 0x28)[0]
    entry_size, entries, names_index = struct.unpack_from("<HHH", binary, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", binary, table_at + entry_size * index) for index in range(entries)]
    names_at = headers[names_index][4]
    registers, frame_bytes = 0, 0
    for header in headers:
        start = names_at + header[0]
        name = binary[start : binary.index(b"\0", start)].decode("ascii", "replace")
        if name == f".text.{kernel}":
            registers = header[7] >> 24
        elif name == ".nv.info":
            frame_bytes = _frame_bytes(binary[header[4] : header[4] + header[5]])
    return BinaryUse(registers or 32, frame_bytes // 4)


def _frame_bytes(info: bytes) -> int:
    """The largest stack frame that an `.nv.info` section names."""
    at, largest = 0, 0
    while at + 4 <= len(info):
        kind, attribute, size = struct.unpack_from("<BBH", info, at)
        if kind == _SIZED and attribute == _FRAME_SIZE and size >= 8:
            largest = max(largest, struct.unpack_from("<I", info, at + 8)[0])
        at += 4 + (size if kind == _SIZED else 0)
    return largest
