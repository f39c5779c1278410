"""Functions of a loaded shared library by their names, those that it does not export included.

Triton exports its compiler's functions from 3.7 on; the libtriton of 3.6 names them in its symbol table alone. Reading
265,000 symbols with a library for ELF takes seconds, finding a name in the table of strings a hundredth of one.
Layout of the file: System V ABI, ELF-64 object file format.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Sequence
from pathlib import Path

from irscope.errors import ParseError
from irscope.ir.asm.elf import section_headers

_SYMBOL_TABLE = 2
_FUNCTION = 2
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
    """The addresses of functions of a library that this process has loaded; without those that the library lacks.

    `library`: the file that was loaded. `names`: the symbols of the functions. `exported`: a function that the library
    exports, from whose address the base of the library follows.
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
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            rows, _ = section_headers(data)
            table = next(row for row in rows if row[1] == _SYMBOL_TABLE and row[6] < len(rows))
            symbols, strings = (data[row[4] : row[4] + row[5]] for row in (table, rows[table[6]]))
    except (ParseError, ValueError, StopIteration):
        # An empty file cannot be mapped.
        return {}
    places = {name: strings.find(f"\0{name}\0".encode()) for name in names}
    offsets = {name: _offset_of(symbols, place + 1) for name, place in places.items() if place >= 0}
    return {name: offset for name, offset in offsets.items() if offset is not None}


def _exported(loaded: ctypes.CDLL, name: str) -> int | None:
    function = getattr(loaded, name, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def _base_of(address: int | None) -> int | None:
    """The address at which the library that holds `address` was loaded; None if that is not known."""
    place = _Place()
    known = address and ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(place))
    return place.base if known else None


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
