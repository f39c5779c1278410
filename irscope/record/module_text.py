"""The text of an MLIR module, made no more often, and at no more cost, than it must be.

Before MLIR prints a module it verifies all of it, so that an invalid one is printed in the generic form: with Triton's
dialects that is half to four fifths of the time. And most passes change nothing. MLIR knows better, but Triton's
bindings pass on neither the option `mlir-print-assume-verified` nor the fingerprint that `-mlir-print-ir-after-change`
goes by: both are had from functions of MLIR and LLVM that libtriton contains.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from irscope.record import triton_api
from irscope.record.library_functions import function_addresses

# mlir/IR/OperationSupport.h, void registerAsmPrinterCLOptions(): registers them once, however often it is called.
_REGISTER = "_ZN4mlir27registerAsmPrinterCLOptionsEv"
# llvm-c/Support.h, void LLVMParseCommandLineOptions(int, const char *const *, const char *): swallows what is wrong.
_PARSE = "LLVMParseCommandLineOptions"
# mlir/IR/OperationSupport.h, OperationFingerPrint(Operation *, bool includeNested): 20 bytes of SHA-1.
_FINGERPRINT = "_ZN4mlir20OperationFingerPrintC1EPNS_9OperationEb"
# mlir/IR/Block.h, Operation *Block::getParentOp().
_PARENT = "_ZN4mlir5Block11getParentOpEv"

_ARGUMENTS = {value: b"--mlir-print-assume-verified=" + text for value, text in ((True, b"true"), (False, b"false"))}
_DIGEST_BYTES = 20
_ROOM_BYTES = 64


def text_of_verified(module: Any) -> str:
    """The text of a module that the verifier has passed, as `str(module)` gives it.

    What a front end, a parser or a pass manager returned is such a module.
    """
    assume_verified = _assume_verified()
    if assume_verified is None:
        return str(module)
    assume_verified(True)
    try:
        return str(module)
    finally:
        assume_verified(False)


class LatestText:
    """The text of a module that passes work on, printed again only where something of it changed."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._fingerprint: bytes | None = None
        self._module: Any = None
        self._operation: int | None = None

    @property
    def text(self) -> str | None:
        """The text that was made last; None where there is none yet, or where what came after it was not printed."""
        return self._text

    def of(self, module: Any) -> str:
        """The text of the module as it is now; it has been verified."""
        fingerprint = self._fingerprint_of(module)
        if self._text is None or fingerprint is None or fingerprint != self._fingerprint:
            self._text = text_of_verified(module)
        self._fingerprint = fingerprint
        return self._text

    def miss(self) -> None:
        """Something ran whose result is not printed."""
        self._text = self._fingerprint = None

    def let_go(self) -> None:
        """Hold the module no longer; its text stays known."""
        self._module = self._operation = self._fingerprint = None

    def _fingerprint_of(self, module: Any) -> bytes | None:
        if module is not self._module:
            self._module, self._operation = module, _operation_of(module)
        return None if self._operation is None else fingerprint_of(self._operation)


def fingerprint_of(operation: int) -> bytes | None:
    """MLIR's fingerprint of the operation at an address, all that is in it included; None where it can't be had.

    It hashes every operation's address, attributes, properties, location, operands, successors and result types.
    """
    make = _function(_FINGERPRINT, None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_bool)
    if make is None:
        return None
    room = ctypes.create_string_buffer(_ROOM_BYTES)
    make(room, operation, True)
    return room.raw[:_DIGEST_BYTES]


def _operation_of(module: Any) -> int | None:
    """The address of a module's operation; None where it is empty."""
    parent_of = _function(_PARENT, ctypes.c_void_p, ctypes.c_void_p)
    if parent_of is None:
        return None
    # Walked from the inside out: the last operation that stands in a block stands in the module's own.
    blocks: list[Any] = []
    module.walk(lambda operation: blocks.append(operation.get_block()))
    last = next((block for block in reversed(blocks) if block is not None), None)
    return None if last is None else parent_of(last.id())


@cache
def _addresses() -> dict[str, int]:
    library, exported = triton_api.compiler_library()
    try:
        return function_addresses(library, (_REGISTER, _PARSE, _FINGERPRINT, _PARENT), exported)
    except OSError:
        return {}


@cache
def _function(name: str, result: Any, *arguments: Any) -> Callable[..., Any] | None:
    """A function of the compiler's, called with the interpreter's lock held; None where this libtriton has it not."""
    address = _addresses().get(name)
    return None if address is None else ctypes.PYFUNCTYPE(result, *arguments)(address)


@cache
def _assume_verified() -> Callable[[bool], None] | None:
    """Sets the option in this process."""
    register = _function(_REGISTER, None)
    parse = _function(_PARSE, None, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p)
    if register is None or parse is None:
        return None
    register()
    command_lines = {value: (ctypes.c_char_p * 2)(b"irscope", argument) for value, argument in _ARGUMENTS.items()}
    return lambda value: parse(2, command_lines[value], None)
