"""Functions of a loaded shared library by their names, those that it does not export included.

Triton exports its compiler's functions from 3.7 on; the libtriton of 3.6 names them in its symbol table alone. Reading
265,000 symbols with a library for ELF takes seconds, finding a name in the table of strings a hundredth of one.
Layout of the file: System V ABI, ELF-64 object file format.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

_ELF_64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_SYMBOL_TABLE = 2
_FUNCTION = 2
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class _Place(ctypes.Structure):
    # Dl_info of <dlfcn.h>
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def function_addresses(library: Path, names: Sequence[str], exported: str) -> dict[str, int]:
    """Where functions of a library that this process has loaded stand in memory; those it has not are left out.

    Args:
        library: the file that was loaded.
        names: of the functions, as the linker has them.
        exported: a function that the library does export, to tell where it was loaded.
    """
    loaded = ctypes.CDLL(str(library))
    found = {name: address for name in names if (address := _exported(loaded, name))}
    missing = [name for name in names if name not in found]
    base = _base_of(_exported(loaded, exported))
    if missing and base:
        found |= {name: base + offset for name, offset in function_offsets(library, missing).items()}
    return found


def function_offsets(library: Path, names: Sequence[str]) -> dict[str, int]:
    """The offsets of functions within a library, from its full symbol table; empty where that was stripped or cut."""
    with library.open("rb") as file:
        sections = list(_sections(file))
        table = next((row for row in sections if row[1] == _SYMBOL_TABLE and row[6] < len(sections)), None)
        if table is None:
            return {}
        at, size, link = table[4:7]
        strings_at, strings_size = sections[link][4:6]
        strings = _read(file, strings_at, strings_size)
        symbols = _read(file, at, size)
    places = {name: strings.find(f"\0{name}\0".encode()) for name in names}
    offsets = {name: _offset_of(symbols, place + 1) for name, place in places.items() if place >= 0}
    return {name: offset for name, offset in offsets.items() if offset is not None}


def _exported(loaded: ctypes.CDLL, name: str) -> int | None:
    function = getattr(loaded, name, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def _base_of(address: int | None) -> int | None:
    """Where the library that an address belongs to was loaded."""
    place = _Place()
    known = address and ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(place))
    return place.base if known else None


def _sections(file: BinaryIO) -> Iterator[tuple[int, ...]]:
    header = _read(file, 0, 64)
    if not header.startswith(_ELF_64_LITTLE_ENDIAN) or len(header) < 64:
        return
    (at,) = struct.unpack_from("<Q", header, 0x28)
    size, count = struct.unpack_from("<HH", header, 0x3A)
    rows = _read(file, at, size * count)
    if size < _SECTION.size or len(rows) < size * count:
        return
    for number in range(count):
        yield _SECTION.unpack_from(rows, number * size)


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


def _offset_of(symbols: bytes, name_at: int) -> int | None:
    key = struct.pack("<I", name_at)
    at = symbols.find(key)
    while at >= 0:
        if at % _SYMBOL.size == 0:
            _, info, _, section, value, _ = _SYMBOL.unpack_from(symbols, at)
            if info & 0xF == _FUNCTION and section:
                return value
        at = symbols.find(key, at + 1)
    return None
