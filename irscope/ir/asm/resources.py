"""The resources of a compiled kernel, gathered from its artifacts, its metadata and the assembler's log.

In a cubin, `.nv.info` sections hold attributes: a format byte, an attribute byte and two bytes that are either the
value or the length of what follows. `cuobjdump -elf` prints their names; those that are read here, with their numbers,
are EIATTR_FRAME_SIZE 0x11, EIATTR_REGCOUNT 0x2f and EIATTR_NUM_BARRIERS 0x4c.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from irscope.errors import ParseError
from irscope.ir.asm.readers import AmdgcnFunction, parse_amdgcn
from irscope.ir.asm.sass import SassFunction, parse_sass
from irscope.model.capture import Resources

# ── Reads ELF files, cubin and hsaco alike: sections and symbols ────────────────────────────────────────────────────
# Source: the System V ABI's ELF-64 object file format. Only what a 64-bit little-endian file needs is here.

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
    name: str
    type: str
    """`PROGBITS`, `NOBITS`, …; a number in hexadecimal where the type has no name."""
    flags: int
    address: int
    offset: int
    size_bytes: int

    @property
    def flag_letters(self) -> str:
        """The generic flags as readelf writes them: `AX`."""
        return "".join(letter for bit, letter in _FLAGS if self.flags & bit)


@dataclass(frozen=True, slots=True)
class _ElfSymbol:
    name: str
    kind: str
    """`FUNC`, `OBJECT`, …"""
    value: int
    size_bytes: int
    section: int


@dataclass(frozen=True, slots=True)
class _Elf:
    sections: tuple[_ElfSection, ...]
    symbols: tuple[_ElfSymbol, ...]
    data: bytes

    def section(self, name: str) -> _ElfSection | None:
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
        named = [section.name.removeprefix(".text.") for section in self.sections if section.name.startswith(".text.")]
        return tuple(named or dict.fromkeys(symbol.name for symbol in self.symbols if symbol.kind == "FUNC"))


def section_headers(data: bytes | mmap.mmap) -> tuple[list[tuple[int, ...]], int]:
    """The section headers of a 64-bit little-endian ELF file, and the index of that of the names; raises ParseError."""
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


def parse_elf(data: bytes) -> _Elf:
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
    return _Elf(sections, symbols, data)


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


# ptxas info    : Compiling entry function 'matmul_kernel' for 'sm_90a'
_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
#     584 bytes stack frame, 772 bytes spill stores, 716 bytes spill loads
# ptxas info    : Used 32 registers, used 1 barriers, 584 bytes cumulative stack size, 416 bytes cmem[0]
_AMOUNT = re.compile(
    r"(?P<amount>\d{1,12}) (?:bytes )?"
    r"(?P<what>stack frame|spill stores|spill loads|registers|barriers|cumulative stack size|cmem\[0\])"
)

_FRAME_SIZE, _REGISTER_COUNT, _BARRIER_COUNT = 0x11, 0x2F, 0x4C
_SIZED = 4  # the format whose last two header bytes are a length
_INSTRUCTION_BYTES = 16
_OPCODE_MASK, _NOP, _BRANCH = 0xFFF, 0x918, 0x947
# The displacement of a branch to itself: −16 bytes, in bytes up to Ampere, in words of 4 bytes after it.
_TO_ITSELF = (0xFFFFFFF0, 0xFFFFFFFC)


def read_resources(
    stage_texts: Mapping[str, str | bytes], metadata: Mapping[str, Any] | None = None, ptxas_log: str = ""
) -> Resources:
    """The resources of a kernel, by `cubin`, `sass` or `amdgcn`; a number that no source gives is None. Never raises.

    Of Triton's metadata `name`, `shared` and `tmem_size` are read; `ptxas_log` is the output of `ptxas -v`.
    """
    metadata = metadata or {}
    name = str(metadata.get("name") or "")
    amdgcn = stage_texts.get("amdgcn")
    if isinstance(amdgcn, str):
        found = _of_amdgcn(_named(parse_amdgcn(amdgcn), name))
    else:
        logged = parse_ptxas_log(ptxas_log)
        found = _fill(logged.get(name) or _only(logged) or Resources(), _of_cuda(stage_texts, name))
    shared = metadata.get("shared")
    columns = metadata.get("tmem_size")
    return replace(
        found,
        shared_bytes=shared if isinstance(shared, int) else found.shared_bytes,
        tensor_memory_columns=columns if isinstance(columns, int) and columns else None,
    )


def parse_ptxas_log(text: str) -> dict[str, Resources]:
    """Read the output of `ptxas -v`: entry function to resources. Unknown lines are skipped."""
    found: dict[str, Resources] = {}
    name = ""
    for line in text.splitlines():
        entry = _ENTRY.search(line)
        if entry is not None:
            name = entry["name"]
            found[name] = Resources()
            continue
        if name:
            found[name] = _read_log_line(line, found[name])
    return found


def _read_log_line(line: str, known: Resources) -> Resources:
    amounts = {match["what"]: int(match["amount"]) for match in _AMOUNT.finditer(line)}
    if "spill loads" in amounts:  # one such line for the kernel, and one for each function that it calls
        return replace(
            known,
            stack_bytes=amounts.get("stack frame") if known.stack_bytes is None else known.stack_bytes,
            spill_store_bytes=(known.spill_store_bytes or 0) + amounts.get("spill stores", 0),
            spill_load_bytes=(known.spill_load_bytes or 0) + amounts["spill loads"],
        )
    if "registers" not in amounts:
        return known
    return replace(
        known,
        registers=amounts["registers"],
        barriers=amounts.get("barriers", known.barriers),
        stack_bytes=amounts.get("cumulative stack size", known.stack_bytes),
        constant_bytes=amounts.get("cmem[0]", known.constant_bytes),
    )


def _of_cuda(stages: Mapping[str, str | bytes], name: str) -> Resources:
    found = Resources()
    cubin = stages.get("cubin")
    if isinstance(cubin, bytes):
        try:
            kernels = read_cubin(parse_elf(cubin))
        except ParseError:
            kernels = {}
        found = kernels.get(name) or _only(kernels) or found
    sass = stages.get("sass")
    if isinstance(sass, str):
        found = _fill(found, _of_sass(_named(parse_sass(sass), name)))
    return found


def _of_sass(function: SassFunction | None) -> Resources:
    """Spills are counted as ptxas counts them: the bytes of every store to, and load from, local memory in the text."""
    if function is None:
        return Resources()
    function = function.without_padding()
    spilled = {"st.local": 0, "ld.local": 0}
    for item in function.instructions:
        access, _, bits = (item.family or "").rpartition(".")
        if access in spilled:
            spilled[access] += int(bits) // 8
    return Resources(
        spill_store_bytes=spilled["st.local"],
        spill_load_bytes=spilled["ld.local"],
        instruction_count=len(function.instructions),
    )


def _of_amdgcn(function: AmdgcnFunction | None) -> Resources:
    if function is None:
        return Resources()
    number = function.number
    accumulators = _first(number("NumAgprs"), number("num_agpr"), number("agpr_count"))
    total = number("vgpr_count")
    # vgpr_count counts both kinds of register, the accumulators from the next multiple of four on
    plain = total if not accumulators else None
    spilled = number("vgpr_spill_count")
    spill_bytes = None if spilled is None else 4 * spilled
    return Resources(
        registers=_first(number("NumVgprs"), number("num_vgpr"), plain),
        accumulator_registers=accumulators,
        scalar_registers=_first(number("sgpr_count"), number("TotalNumSgprs")),
        spill_store_bytes=spill_bytes,
        scalar_spills=number("sgpr_spill_count"),
        stack_bytes=_first(number("private_segment_fixed_size"), number("ScratchSize")),
        shared_bytes=_first(number("group_segment_fixed_size"), number("LDSByteSize")),
        constant_bytes=None,
        code_bytes=number("codeLenInByte"),
        instruction_count=len(function.instructions),
    )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _fill(known: Resources, other: Resources) -> Resources:
    """`known`, with unknown values taken from `other`."""
    missing = {name: getattr(other, name) for name in Resources.__slots__ if getattr(known, name) is None}
    return replace(known, **missing)


def _only(found: Mapping[str, Resources]) -> Resources | None:
    return next(iter(found.values())) if len(found) == 1 else None


def _named(items: tuple[Any, ...], name: str) -> Any:
    match = next((item for item in items if item.name == name), None)
    return match if match is not None else (items[0] if len(items) == 1 else None)


def read_cubin(elf: _Elf) -> dict[str, Resources]:
    """The resources of each kernel of a cubin, by name; None if the file does not state it.

    Shared memory is not among them: the file knows the static part only, and Triton's is dynamic.
    """
    return {name: _read_kernel(elf, name) for name in elf.kernels}


def count_instructions(code: bytes) -> int:
    """How many 128-bit instructions a function's code has, without the NOPs and branch to itself that fill its end."""
    words = [int.from_bytes(code[at : at + 8], "little") for at in range(0, len(code) - 15, _INSTRUCTION_BYTES)]
    while words and words[-1] & _OPCODE_MASK == _NOP:
        words.pop()
    if words and words[-1] & _OPCODE_MASK == _BRANCH and words[-1] >> 32 in _TO_ITSELF:
        words.pop()
    return len(words)


def _read_kernel(elf: _Elf, name: str) -> Resources:
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


def _attributes(elf: _Elf, section_name: str) -> Iterator[tuple[tuple[int, int | None], int]]:
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
