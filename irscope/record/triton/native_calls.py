"""Functions of MLIR and LLVM that libtriton's bindings leave out, called by symbol; texts and debug output by them.

Triton exports its compiler's functions from 3.7 on; the libtriton of 3.6 names them in its symbol table alone. Reading
265,000 symbols with a library for ELF takes seconds, finding a name in the table of strings a hundredth of one.
Layout of the file: System V ABI, ELF-64 object file format.

Before MLIR prints a module it verifies all of it, so that an invalid one is printed in the generic form: with Triton's
dialects that is half to four fifths of the time. And most passes change nothing. MLIR knows better, but Triton's
bindings pass on neither the option `mlir-print-assume-verified` nor the fingerprint that `-mlir-print-ir-after-change`
goes by. And before they run a pass manager they clone the module, for the reproducer that a failure prints: in the LLVM
dialect that takes longer than most passes.

Nothing checks the types of such a call. So calls are made only in the very libraries that they were tried in, by their
digest (a version may name any build), on the machines that they were tried on, and `IRSCOPE_NATIVE=0` switches them
off; modules are then printed by the bindings alone. Each call is noted in a file while it is under way: if the process
ends meanwhile, whoever started it knows which call it was, and starts the process again without such calls, once. A
script is then run a second time from its beginning. A process that ends anywhere else is not started again: that is the
compiler's or the script's own end, and a result.

Triton's wheels are built with LLVM's debug output in. `TRITON_LLVM_DEBUG_ONLY` takes the names of its parts, the
`DEBUG_TYPE` of each source file, which no library lists: those here are of passes that decide something. All names at
once would print a gigabyte of a matmul, most of it MLIR's and LLVM's own.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import re
import signal
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from irscope.errors import IrscopeError, ParseError
from irscope.ir.asm.resources import section_headers
from irscope.record.triton import api as triton_api
from irscope.record.triton.identity import digest_of_file

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


SWITCH = "IRSCOPE_NATIVE"
"""The environment variable that switches the calls off with 0."""

_TRIED_MACHINES = (("Linux", "x86_64"),)
_TRIED_LIBRARIES = {
    "be43a5634e505403": "3.6.0",
    "da1af80fc6f05405": "3.7.1",
    "47d53423ea55b22b": "3.8.0",
    "c454a5a3cd564174": "3.9.0",
}
"""The digests of the libraries that calls were tried with: those of the wheels of these releases for CPython 3.11."""

# mlir/IR/OperationSupport.h, void registerAsmPrinterCLOptions(): registers them once, however often it is called.
_REGISTER = "_ZN4mlir27registerAsmPrinterCLOptionsEv"
# llvm-c/Support.h, void LLVMParseCommandLineOptions(int, const char *const *, const char *): swallows what is wrong.
_PARSE = "LLVMParseCommandLineOptions"
# mlir/IR/OperationSupport.h, OperationFingerPrint(Operation *, bool includeNested): 20 bytes of SHA-1.
_FINGERPRINT = "_ZN4mlir20OperationFingerPrintC1EPNS_9OperationEb"
# mlir/IR/Block.h, Operation *Block::getParentOp().
_PARENT = "_ZN4mlir5Block11getParentOpEv"
# mlir/Pass/PassManager.h, LogicalResult PassManager::run(Operation *), which is a bool.
_RUN = "_ZN4mlir11PassManager3runEPNS_9OperationE"
# llvm/Support/raw_ostream.h, raw_fd_ostream &errs(), which has no buffer: a log of 2 MB takes half a million writes.
_ERRORS = "_ZN4llvm4errsEv"
# The same, void raw_ostream::SetBuffered(): writes what a buffer holds, and makes a new one.
_BUFFER = "_ZN4llvm11raw_ostream11SetBufferedEv"
_PRINT = "mlir-print-assume-verified"

_CALLS = {
    _REGISTER: "mlir::registerAsmPrinterCLOptions",
    _PARSE: "LLVMParseCommandLineOptions",
    _FINGERPRINT: "mlir::OperationFingerPrint",
    _PARENT: "mlir::Block::getParentOp",
    _RUN: "mlir::PassManager::run",
    _ERRORS: "llvm::errs",
    _BUFFER: "llvm::raw_ostream::SetBuffered",
    _PRINT: f"the printer under --{_PRINT}",
}
"""Each symbol's name as a reader knows it."""
_TOGETHER = ((_REGISTER, _PARSE, _FINGERPRINT, _PARENT, _RUN), (_ERRORS, _BUFFER))
"""Symbols whose addresses are found at once."""
_NUMBERS = {name: number for number, name in enumerate(_CALLS, 1)}
# <64x64xf16, #shared, #smem>!ttg.memdesc<64x64xf16, #shared, #smem>
_TWICE = re.compile(r"(<[^\n!]{1,1000}?>)![\w.]{1,40}\1")
_ASSUME_VERIFIED, _VERIFY = f"--{_PRINT}=true", f"--{_PRINT}=false"
_OBJECT_BYTES = object.__basicsize__
"""The size of what every Python object begins with."""
_CONTEXT_OFFSET = 8
"""Where a `mlir::PassManager` holds the address of its context, behind that of its passes."""
_DIGEST_BYTES = 20
_ROOM_BYTES = 64

_NOTE = "native-call"
_NOTED = struct.Struct("<ii")
"""The process, and the number of the call under way; 0 between calls."""
# What else the bindings do as they run a pass manager, python/src/ir.cc.
_SWITCHES_OF_RUN = (
    "MLIR_DISABLE_MULTITHREADING",
    "MLIR_ENABLE_DIAGNOSTICS",
    "MLIR_ENABLE_TIMING",
    "TRITON_ENABLE_LLVM_DEBUG",
    "TRITON_LLVM_DEBUG_ONLY",
    "TRITON_REPRODUCER_PATH",
)
# What a fault in a call, or a check that fails there, ends a process with. SIGKILL comes from outside.
_FAULTS = tuple(
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
)


class NativeCalls:
    """The functions as a process may call them.

    `log`: the file that the process prints to, beside which the call under way is noted; None for no note. `allowed`:
    whether calls are made at all.
    """

    def __init__(self, log: Path | None = None, *, allowed: bool = True) -> None:
        self._allowed = allowed and calls_were_tried()
        self._note: mmap.mmap | None = None
        self._at_rest = _VERIFY
        self._holds_errors = False
        self.note_beside(log)

    def note_beside(self, log: Path | None) -> None:
        """Note the call under way in a file beside another log from now on: that of a fork of the process."""
        if self._allowed and log is not None:
            with suppress(OSError), open(log.with_name(_NOTE), "w+b") as file:
                file.truncate(_NOTED.size)
                # A mapped page outlives the process, and costs no system call.
                self._note = mmap.mmap(file.fileno(), _NOTED.size)

    def text_of_verified(self, module: Any) -> str:
        """The text of a module that the verifier has passed, as `str(module)` gives it.

        What a front end, a parser or a pass manager returned is such a module.
        """
        if not self.set_options(_ASSUME_VERIFIED):
            return str(module)
        try:
            with self._under_way(_PRINT):
                return str(module)
        finally:
            self.set_options(self._at_rest)

    def assume_verified(self) -> None:
        """Let nothing be verified before it is printed, by passes either, until this process ends."""
        self._at_rest = _ASSUME_VERIFIED
        self.set_options(_ASSUME_VERIFIED)

    def fingerprint_of(self, operation: int) -> bytes | None:
        """MLIR's fingerprint of the operation at an address, all that is in it included, or None.

        It hashes every operation's address, attributes, properties, location, operands, successors and result types.
        """
        make = self._function(_FINGERPRINT, None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_bool)
        if make is None:
            return None
        room = ctypes.create_string_buffer(_ROOM_BYTES)
        with self._under_way(_FINGERPRINT):
            make(room, operation, True)
        return room.raw[:_DIGEST_BYTES]

    def operation_of(self, module: Any) -> int | None:
        """The address of a module's operation; None if it is empty."""
        parent_of = self._function(_PARENT, ctypes.c_void_p, ctypes.c_void_p)
        if parent_of is None:
            return None
        # Walked from the inside out: the last operation that stands in a block stands in the module's own.
        blocks: list[Any] = []
        module.walk(lambda operation: blocks.append(operation.get_block()))
        last = next((block for block in reversed(blocks) if block is not None), None)
        if last is None:
            return None
        with self._under_way(_PARENT):
            return parent_of(last.id())

    def run_passes(self, manager: Any, context: Any, operation: int) -> bool | None:
        """Run a pass manager of the bindings on the operation at an address, as they do, but without a clone of it.

        Returns whether its passes succeeded; None if it was not run, and is left to the bindings.
        """
        run = self._function(_RUN, ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, releases_lock=True)
        address = _address_of(manager)
        if run is None or address is None or any(os.environ.get(name) for name in _SWITCHES_OF_RUN):
            return None
        if ctypes.c_size_t.from_address(address + _CONTEXT_OFFSET).value != _address_of(context):
            return None
        with self._under_way(_RUN):
            return run(address, operation)

    def set_options(self, *options: str) -> bool:
        """Set options of LLVM's and of MLIR's printer in this process; whether that could be done."""
        register = self._function(_REGISTER, None)
        parse = self._function(_PARSE, None, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p)
        if register is None or parse is None:
            return False
        with self._under_way(_REGISTER):
            register()
        with self._under_way(_PARSE):
            count = len(options) + 1
            parse(count, (ctypes.c_char_p * count)(b"irscope", *(option.encode() for option in options)), None)
        return True

    def hold_errors(self) -> None:
        """Write what the compiler prints on standard error in blocks from now on; a process that aborts loses the last.

        What is printed then is for `as_printed`.
        """
        self._holds_errors = True
        self.write_errors()

    def write_errors(self) -> None:
        """Write what is held of that."""
        if not self._holds_errors:
            return
        errors, buffer = self._function(_ERRORS, ctypes.c_void_p), self._function(_BUFFER, None, ctypes.c_void_p)
        if errors is None or buffer is None:
            return
        with self._under_way(_ERRORS):
            stream = errors()
        with self._under_way(_BUFFER):
            buffer(stream)

    def as_printed(self, text: str) -> str:
        """A text of standard error as it is without `hold_errors`.

        MLIR prints a type without its name, and with it again if the stream has not moved: a stream in front of one
        with a buffer does not.
        """
        if not self._holds_errors or ">!" not in text:
            return text
        return "\n".join(_TWICE.sub(r"\1", line) if ">!" in line else line for line in text.split("\n"))

    def _function(
        self, symbol: str, result: Any, *arguments: Any, releases_lock: bool = False
    ) -> Callable[..., Any] | None:
        return _function(symbol, result, *arguments, releases_lock=releases_lock) if self._allowed else None

    @contextmanager
    def _under_way(self, symbol: str) -> Iterator[None]:
        if self._note is None:
            yield
            return
        self._note[:] = _NOTED.pack(os.getpid(), _NUMBERS[symbol])
        try:
            yield
        finally:
            self._note[:] = bytes(_NOTED.size)


def _address_of(bound: Any) -> int | None:
    """The address of the C++ object that an object of Triton's bindings holds; None if those are of an unknown kind."""
    at, kind = id(bound), type(type(bound)).__module__
    if kind == "pybind11_builtins":
        # Up to Triton 3.8. pybind11/detail/common.h, struct instance: the pointer is the first field.
        return ctypes.c_size_t.from_address(at + _OBJECT_BYTES).value
    if kind == "nanobind":
        # nanobind's src/nb_internals.h, struct nb_inst: the offset of the object, or of a pointer to it; of the bits
        # behind it, the third says which.
        place = at + ctypes.c_int32.from_address(at + _OBJECT_BYTES).value
        is_direct = ctypes.c_uint32.from_address(at + _OBJECT_BYTES + 4).value & 4
        return place if is_direct else ctypes.c_size_t.from_address(place).value
    return None


def calls_were_tried() -> bool:
    """Whether calls were tried in this very library on such a machine, and are not switched off."""
    if os.environ.get(SWITCH) == "0" or (platform.system(), platform.machine()) not in _TRIED_MACHINES:
        return False
    return _library_digest() in _TRIED_LIBRARIES


@cache
def _library_digest() -> str:
    """The digest of the compiler's library; empty where there is none to read."""
    # Found without importing it: whoever asks may have no other use for it.
    with suppress(IrscopeError, OSError):
        spec = PathFinder.find_spec("libtriton", [str(triton_api.package_folder() / "_C")])
        return digest_of_file(Path(spec.origin)) if spec is not None and spec.origin else ""
    return ""


def call_that_ended(log: Path, process: int, code: int) -> str:
    """The call that a process was in when it ended of itself with this exit code, or an empty string.

    `log`: what the process printed; `code`: a signal as a negative number.
    """
    if code < 0 and -code not in _FAULTS:
        return ""
    with suppress(OSError, struct.error):
        noted, number = _NOTED.unpack(log.with_name(_NOTE).read_bytes())
        # A process that it forked has the same note.
        if noted == process and number:
            return list(_CALLS.values())[number - 1]
    return ""


def note_of_restart(call: str) -> str:
    """What a recording says that was started again without calls."""
    return (
        f"The recording process ended in {call}, which irscope calls in libtriton by its symbol; it was started again "
        f"without such calls. {SWITCH}=0 switches them off from the start."
    )


@cache
def _addresses(names: tuple[str, ...]) -> dict[str, int]:
    library, exported = triton_api.compiler_library()
    try:
        return function_addresses(library, names, exported)
    except OSError:
        return {}


@cache
def _function(symbol: str, result: Any, *arguments: Any, releases_lock: bool) -> Callable[..., Any] | None:
    """A function of the compiler, or None if this libtriton lacks it; a call may release the interpreter's lock."""
    address = _addresses(next(names for names in _TOGETHER if symbol in names)).get(symbol)
    kind = ctypes.CFUNCTYPE if releases_lock else ctypes.PYFUNCTYPE
    return None if address is None else kind(result, *arguments)(address)


_DEBUG_TYPES = (
    "allocation-shared-memory",
    "nvgpu-warp-specialization",
    "nvgpu-ws-buffer",
    "nvgpu-ws-code-partition",
    "nvgpu-ws-data-partition",
    "nvgpu-ws-lower-mem",
    "nvgpu-ws-specialize",
    "nvgpu-ws-task-partition",
    "nvgpu-ws-utility",
    "nvws-assign-stage-phase",
    "nvws-insert-aref",
    "nvws-lower-aref",
    "triton-loop-pipeline",
    "triton-loop-pipelining",
    "triton-loop-unroll",
    "triton-tensor-memory-allocation",
    "triton-wgmma-pipeline",
    "tritonamd-accelerate-matmul",
    "tritonamdgpu-accelerate-matmul",
    "tritonamdgpu-block-pingpong",
    "tritonamdgpu-canonicalize-pointers",
    "tritonamdgpu-coalesce-async-copy",
    "tritonamdgpu-convert-buffer-ops",
    "tritonamdgpu-hoist-layout-conversions",
    "tritonamdgpu-in-thread-transpose",
    "tritonamdgpu-move-up-prologue-loads",
    "tritonamdgpu-optimize-buffer-op-ptr",
    "tritonamdgpu-optimize-dot-operands",
    "tritonamdgpu-optimize-epilogue",
    "tritonamdgpu-pipeline",
    "tritonamdgpu-pipeline-expand-loops",
    "tritonamdgpu-pipeline-lower-loops",
    "tritonamdgpu-range-analysis",
    "tritonamdgpu-reorder-instructions",
    "tritonamdgpu-schedule-loops",
    "tritonamdgpu-warp-pipeline",
    "tritongpu-accelerate-matmul",
    "tritongpu-automatic-warp-specialization",
    "tritongpu-coalesce",
    "tritongpu-coalesce-async-copy",
    "tritongpu-fuse-nested-loops",
    "tritongpu-hoist-tmem-alloc",
    "tritongpu-optimize-accumulator-init",
    "tritongpu-optimize-dot-operands",
    "tritongpu-optimize-partition-warps",
    "tritongpu-partition-scheduling",
    "tritongpu-prefetch",
    "tritongpu-promote-lhs-to-tmem",
    "tritongpu-reduce-data-duplication",
    "tritongpu-remove-layout-conversions",
    "tritongpu-warp-spec-lowering",
    # Triton keeps pointers into a list of strings that it moves as the list grows, and short strings move with it:
    # in front, they would name nothing.
    "ttg-utility",
    "axis-info",
)

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


def print_reasons(native: NativeCalls, *, verified: bool, parts: Collection[str] = ()) -> None:
    """Let the compiler print its reasons until this process ends: LLVM cannot be told to stop.

    `verified`: whether it verifies the whole function before each operation that it prints, and prints what is not
    valid at that moment in the generic form. That takes most of the time; without it, an operation that a pass has half
    built may end the process, and what was printed last is lost with it. `parts`: those that print them, by their debug
    types; by default all that are listed.
    """
    os.environ.update(VARIABLES)
    if parts:
        os.environ[_TYPES_VARIABLE] = ",".join(part for part in _DEBUG_TYPES if part in parts)
    native.set_options(*_LLVM_OPTIONS, *_PRINTER_OPTIONS)
    if not verified:
        native.assume_verified()
        native.hold_errors()


class LatestText:
    """The text of a module, printed again only if the module changed."""

    def __init__(self, native: NativeCalls) -> None:
        self._native = native
        self._text: str | None = None
        self._fingerprint: bytes | None = None
        self._module: Any = None
        self._operation: int | None = None

    @property
    def text(self) -> str | None:
        """The last text; None before the first, and after a change that was not printed."""
        return self._text

    def text_of(self, module: Any) -> str:
        """The current text of a module, which has been verified."""
        fingerprint = self._fingerprint_of(module)
        if self._text is None or fingerprint is None or fingerprint != self._fingerprint:
            self._text = self._native.text_of_verified(module)
        self._fingerprint = fingerprint
        return self._text

    def assume(self, text: str) -> None:
        """Take a text as the last one: it was made in another process."""
        self._text, self._fingerprint = text, None

    def invalidate(self) -> None:
        """Forget the text: the module changed, and is not printed."""
        self._text = self._fingerprint = None

    def release(self) -> None:
        """Drop the reference to the module, and keep its text."""
        self._module = self._operation = self._fingerprint = None

    def operation_of(self, module: Any) -> int | None:
        """The address of a module's operation, looked for once; None if that is not known."""
        if module is not self._module:
            self._module, self._operation = module, self._native.operation_of(module)
        return self._operation

    def _fingerprint_of(self, module: Any) -> bytes | None:
        operation = self.operation_of(module)
        return None if operation is None else self._native.fingerprint_of(operation)
