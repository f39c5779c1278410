"""Options of LLVM and of MLIR's printer in this process: IR in less time, and the compiler's reasons.

Before MLIR prints a module it verifies all of it, so that an invalid one is printed in the generic form: with Triton's
dialects that is half to four fifths of the time. What a front end, a parser or a pass returned is verified already.

Triton's wheels are built with LLVM's debug output in. `TRITON_LLVM_DEBUG_ONLY` takes the names of its parts, the
`DEBUG_TYPE` of each source file, which no library lists: those here are of passes that decide something. All names at
once would print a gigabyte of a matmul, most of it MLIR's and LLVM's own.

Triton's bindings leave the options out: functions of the compiler's library set them, found by symbol. Triton exports
these from 3.7 on; the library of 3.6 names them in its symbol table alone. Reading 265,000 symbols with a library for
ELF takes seconds, finding a name in the table of strings a hundredth of one. Layout of the file: System V ABI, ELF-64
object file format.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import struct
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from irscope.errors import ParseError
from irscope.ir.asm.resources import section_headers
from irscope.record.triton import api as triton_api

# Triton keeps pointers into a list of strings that it moves as the list grows, and short strings move with it: in
# front, the last two would name nothing.
_DEBUG_TYPES = (
    "allocation-shared-memory", "nvgpu-warp-specialization", "nvgpu-ws-buffer", "nvgpu-ws-code-partition",
    "nvgpu-ws-data-partition", "nvgpu-ws-lower-mem", "nvgpu-ws-specialize", "nvgpu-ws-task-partition",
    "nvgpu-ws-utility", "nvws-assign-stage-phase", "nvws-insert-aref", "nvws-lower-aref", "triton-loop-pipeline",
    "triton-loop-pipelining", "triton-loop-unroll", "triton-tensor-memory-allocation", "triton-wgmma-pipeline",
    "tritonamd-accelerate-matmul", "tritonamdgpu-accelerate-matmul", "tritonamdgpu-block-pingpong",
    "tritonamdgpu-canonicalize-pointers", "tritonamdgpu-coalesce-async-copy", "tritonamdgpu-convert-buffer-ops",
    "tritonamdgpu-hoist-layout-conversions", "tritonamdgpu-in-thread-transpose",
    "tritonamdgpu-move-up-prologue-loads", "tritonamdgpu-optimize-buffer-op-ptr",
    "tritonamdgpu-optimize-dot-operands", "tritonamdgpu-optimize-epilogue", "tritonamdgpu-pipeline",
    "tritonamdgpu-pipeline-expand-loops", "tritonamdgpu-pipeline-lower-loops", "tritonamdgpu-range-analysis",
    "tritonamdgpu-reorder-instructions", "tritonamdgpu-schedule-loops", "tritonamdgpu-warp-pipeline",
    "tritongpu-accelerate-matmul", "tritongpu-automatic-warp-specialization", "tritongpu-coalesce",
    "tritongpu-coalesce-async-copy", "tritongpu-fuse-nested-loops", "tritongpu-hoist-tmem-alloc",
    "tritongpu-optimize-accumulator-init", "tritongpu-optimize-dot-operands", "tritongpu-optimize-partition-warps",
    "tritongpu-partition-scheduling", "tritongpu-prefetch", "tritongpu-promote-lhs-to-tmem",
    "tritongpu-reduce-data-duplication", "tritongpu-remove-layout-conversions", "tritongpu-warp-spec-lowering",
    "ttg-utility", "axis-info",
)  # fmt: skip

_TYPES_VARIABLE = "TRITON_LLVM_DEBUG_ONLY"
VARIABLES = {
    "TRITON_ENABLE_LLVM_DEBUG": "1",
    _TYPES_VARIABLE: ",".join(_DEBUG_TYPES),
    "MLIR_ENABLE_DIAGNOSTICS": "remarks",
}
"""The environment variables that make Triton print its reasons."""
_LLVM_OPTIONS = ("--pass-remarks-missed=.*", "--pass-remarks-analysis=.*")
_PRINTER_OPTIONS = ("--mlir-print-debuginfo=true", "--mlir-use-nameloc-as-prefix=true")
"""Operations are printed with their locations, and their values named as in the modules that Triton prints."""
_ASSUME_VERIFIED, _VERIFY = "--mlir-print-assume-verified=true", "--mlir-print-assume-verified=false"

# mlir/IR/OperationSupport.h, void registerAsmPrinterCLOptions(): registers them once, however often it is called.
_REGISTER = "_ZN4mlir27registerAsmPrinterCLOptionsEv"
# llvm-c/Support.h, void LLVMParseCommandLineOptions(int, const char *const *, const char *): swallows what is wrong.
_PARSE = "LLVMParseCommandLineOptions"
# llvm/Support/raw_ostream.h, raw_fd_ostream &errs(), which has no buffer: a log of 2 MB takes half a million writes.
_ERRORS = "_ZN4llvm4errsEv"
# The same, void raw_ostream::SetBuffered(): writes what a buffer holds, and makes a new one.
_BUFFER = "_ZN4llvm11raw_ostream11SetBufferedEv"
_SYMBOLS = (_REGISTER, _PARSE, _ERRORS, _BUFFER)
# <64x64xf16, #shared, #smem>!ttg.memdesc<64x64xf16, #shared, #smem>
_TWICE = re.compile(r"(<[^\n!]{1,1000}?>)![\w.]{1,40}\1")


def text_of_verified(module: Any) -> str:
    """The text of a module that the verifier has passed, as `str(module)` gives it."""
    if not _set_options(_ASSUME_VERIFIED):
        return str(module)
    try:
        return str(module)
    finally:
        _set_options(_VERIFY)


def _set_options(*options: str) -> bool:
    register = _function(_REGISTER, None)
    parse = _function(_PARSE, None, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p)
    if register is None or parse is None:
        return False
    register()
    words = [b"irscope", *(option.encode() for option in options)]
    parse(len(words), (ctypes.c_char_p * len(words))(*words), None)
    return True


def print_reasons(*, verified: bool, parts: Collection[str] = ()) -> None:
    """Let the compiler print its reasons, of all or some `parts`, until this process ends: LLVM cannot be told to stop.

    `verified`: whether it verifies the function before each operation that it prints, which takes most of the time.
    Without, an operation that a pass has half built may end the process, and loses what was printed last: it is written
    in blocks, by `write_errors`, and to be read by `as_printed`.
    """
    os.environ.update(VARIABLES)
    if parts:
        os.environ[_TYPES_VARIABLE] = ",".join(part for part in _DEBUG_TYPES if part in parts)
    _set_options(*_LLVM_OPTIONS, *_PRINTER_OPTIONS)
    if not verified:
        _set_options(_ASSUME_VERIFIED)
        write_errors()


def write_errors() -> None:
    """Write what the compiler's standard error holds back, and let it hold back more."""
    errors, buffer = _function(_ERRORS, ctypes.c_void_p), _function(_BUFFER, None, ctypes.c_void_p)
    if errors is not None and buffer is not None:
        buffer(errors())


def as_printed(text: str) -> str:
    """A text of standard error as it is where nothing is held back.

    MLIR prints a type without its name, and with it again if the stream has not moved: a stream in front of one with a
    buffer does not.
    """
    if ">!" not in text:
        return text
    return "\n".join(_TWICE.sub(r"\1", line) if ">!" in line else line for line in text.split("\n"))


@cache
def _function(symbol: str, result: Any, *arguments: Any) -> Callable[..., Any] | None:
    address = _addresses().get(symbol)
    return None if address is None else ctypes.PYFUNCTYPE(result, *arguments)(address)


@cache
def _addresses() -> dict[str, int]:
    library, exported = triton_api.compiler_library()
    return function_addresses(library, _SYMBOLS, exported)


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
    """The addresses of functions of a loaded library, without those that it lacks; from that of one that it exports."""
    try:
        loaded = ctypes.CDLL(str(library))
    except OSError:
        return {}
    addresses = {name: address for name in names if (address := _exported(loaded, name))}
    missing = [name for name in names if name not in addresses]
    base = _base_of(_exported(loaded, exported))
    if missing and base:
        addresses |= {name: base + offset for name, offset in function_offsets(library, missing).items()}
    return addresses


def function_offsets(library: Path, names: Sequence[str]) -> dict[str, int]:
    """The offsets of functions within a library, from its full symbol table; empty where that was stripped or cut."""
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            rows, _ = section_headers(data)
            table = next(row for row in rows if row[1] == _SYMBOL_TABLE and row[6] < len(rows))
            symbols, strings = (data[row[4] : row[4] + row[5]] for row in (table, rows[table[6]]))
    except (OSError, ParseError, ValueError, StopIteration):
        # An empty file cannot be mapped.
        return {}
    places = {name: strings.find(f"\0{name}\0".encode()) for name in names}
    offsets = {name: _offset_of(symbols, place + 1) for name, place in places.items() if place >= 0}
    return {name: offset for name, offset in offsets.items() if offset is not None}


def _exported(loaded: ctypes.CDLL, name: str) -> int | None:
    function = getattr(loaded, name, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def _base_of(address: int | None) -> int | None:
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
