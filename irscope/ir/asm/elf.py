"""Reads ELF files, cubin and hsaco alike: sections and symbols.

Source: the System V ABI's ELF-64 object file format. Only what a 64-bit little-endian file needs is here.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

from irscope.errors import ParseError

_MAGIC = b"\x7fELF"
_LONGEST_NAME = 4096
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")

_TYPES = {
    0: "NULL", 1: "PROGBITS", 2: "SYMTAB", 3: "STRTAB", 4: "RELA", 5: "HASH", 6: "DYNAMIC", 7: "NOTE", 8: "NOBITS",
    9: "REL", 11: "DYNSYM", 0x6FFFFFF6: "GNU_HASH", 0x70000000: "CUDA_INFO", 0x70000001: "CUDA_CALLGRAPH",
}  # fmt: skip
_FLAGS = ((1, "W"), (2, "A"), (4, "X"), (0x10, "M"), (0x20, "S"), (0x40, "I"))
_SYMBOL_KINDS = {0: "NOTYPE", 1: "OBJECT", 2: "FUNC", 3: "SECTION", 4: "FILE"}


@dataclass(frozen=True, slots=True)
class _ElfSection:
    """One section header."""

    name: str
    type: str
    """`PROGBITS`, `NOBITS`, …; a number in hexadecimal where the type has no name."""
    flags: int
    address: int
    offset: int
    """Bytes from the start of the file."""
    size_bytes: int

    @property
    def flag_letters(self) -> str:
        """The generic flags as readelf writes them: `AX`."""
        return "".join(letter for bit, letter in _FLAGS if self.flags & bit)


@dataclass(frozen=True, slots=True)
class _ElfSymbol:
    """One entry of a symbol table."""

    name: str
    kind: str
    """`FUNC`, `OBJECT`, …"""
    value: int
    size_bytes: int
    section: int
    """Index of its section."""


@dataclass(frozen=True, slots=True)
class Elf:
    """An ELF file, its parts read."""

    sections: tuple[_ElfSection, ...]
    symbols: tuple[_ElfSymbol, ...]
    data: bytes

    def section(self, name: str) -> _ElfSection | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def contents(self, section: _ElfSection) -> bytes:
        """The bytes of a section; empty for one that takes no space in the file."""
        return b"" if section.type == "NOBITS" else self.data[section.offset : section.offset + section.size_bytes]

    def function(self, name: str) -> bytes | None:
        """The machine code of one function: its own section in a cubin, its symbol's bytes in an hsaco."""
        own = self.section(f".text.{name}")
        if own is not None:
            return self.contents(own)
        for symbol in self.symbols:
            if symbol.name == name and symbol.kind == "FUNC" and symbol.section < len(self.sections):
                section = self.sections[symbol.section]
                start = symbol.value - section.address
                return self.contents(section)[start : start + symbol.size_bytes] if start >= 0 else None
        return None

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the functions that have code, in the order of the file."""
        named = [section.name.removeprefix(".text.") for section in self.sections if section.name.startswith(".text.")]
        return tuple(named or dict.fromkeys(symbol.name for symbol in self.symbols if symbol.kind == "FUNC"))


def section_headers(data: bytes | mmap.mmap) -> tuple[list[tuple[int, ...]], int]:
    """The section headers of a 64-bit little-endian ELF file, as it has them, and the index of that of the names.

    Raises ParseError if the bytes are not such a file, or are cut short.
    """
    if data[:4] != _MAGIC:
        raise ParseError(f"not an ELF file: it begins with {data[:4]!r}, not with {_MAGIC!r}.")
    if data[4:6] != b"\x02\x01":
        raise ParseError("not a 64-bit little-endian ELF file, which cubin and hsaco files are.")
    if len(data) < _HEADER.size:
        raise ParseError(f"the ELF file ends in its header: {len(data)} bytes of {_HEADER.size}.")
    header: tuple[int, ...] = _HEADER.unpack_from(data)
    table, entry_size, count, names_index = header[6], *header[11:]
    if count and (entry_size < _SECTION.size or table + count * entry_size > len(data)):
        raise ParseError(f"the ELF file is cut short: {count} section headers at byte {table}, of {len(data)} bytes.")
    return [_SECTION.unpack_from(data, table + index * entry_size) for index in range(count)], names_index


def parse_elf(data: bytes) -> Elf:
    """Read a 64-bit little-endian ELF file; raises ParseError if the bytes are not one, or are cut short."""
    rows, names_index = section_headers(data)
    names = _bytes_of(data, rows[names_index]) if names_index < len(rows) else b""
    sections = tuple(
        _ElfSection(_string(names, row[0]), _TYPES.get(row[1], f"0x{row[1]:x}"), *row[2:6]) for row in rows
    )
    table_row = next((row for row in rows if _TYPES.get(row[1]) == "SYMTAB"), None)
    symbols: tuple[_ElfSymbol, ...] = ()
    if table_row is not None:
        symbol_names = _bytes_of(data, rows[table_row[6]]) if table_row[6] < len(rows) else b""
        symbols = _symbols(_bytes_of(data, table_row), symbol_names)
    return Elf(sections, symbols, data)


def _bytes_of(data: bytes, row: tuple[int, ...]) -> bytes:
    return data[row[4] : row[4] + row[5]]


def _string(table: bytes, start: int) -> str:
    end = table.find(b"\0", start, start + _LONGEST_NAME)
    return table[start : end if end >= 0 else start + _LONGEST_NAME].decode("utf-8", "replace")


def _symbols(table: bytes, names: bytes) -> tuple[_ElfSymbol, ...]:
    whole = len(table) - len(table) % _SYMBOL.size
    return tuple(
        _ElfSymbol(_string(names, name), _SYMBOL_KINDS.get(info & 15, str(info & 15)), value, size, section)
        for name, info, _, section, value, size in _SYMBOL.iter_unpack(table[:whole])
    )
