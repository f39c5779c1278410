"""The text of an MLIR module, printed without verifying it once more.

Before MLIR prints a module it verifies all of it, so that an invalid one is printed in the generic form: with Triton's
dialects that is half to four fifths of the time. What a pass manager returned has just been verified. MLIR has a switch
for that, the command-line option `mlir-print-assume-verified`; Triton has no command line, so the option is registered
and set by two functions of MLIR and LLVM in libtriton.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from irscope.record import triton_api
from irscope.record.library_functions import function_addresses

_OPTION = b"--mlir-print-assume-verified="
# void mlir::registerAsmPrinterCLOptions(), mlir/IR/OperationSupport.h: says so once, however often it is called.
_REGISTER = "_ZN4mlir27registerAsmPrinterCLOptionsEv"
# void LLVMParseCommandLineOptions(int, const char *const *, const char *), llvm-c/Support.h: swallows what is wrong.
_PARSE = "LLVMParseCommandLineOptions"


def text_of_verified(module: Any) -> str:
    """The text of a module that the verifier has passed, as `str(module)` gives it."""
    assume_verified = _switch()
    if assume_verified is None:
        return str(module)
    assume_verified(True)
    try:
        return str(module)
    finally:
        assume_verified(False)


@cache
def _switch() -> Callable[[bool], None] | None:
    """Sets the option in this process; None where this libtriton does not have the two functions."""
    library, exported = triton_api.compiler_library()
    try:
        found = function_addresses(library, (_REGISTER, _PARSE), exported)
    except OSError:
        return None
    if len(found) < 2:
        return None
    # Called with the interpreter's lock held: no other thread sets an option meanwhile.
    ctypes.PYFUNCTYPE(None)(found[_REGISTER])()
    parse = ctypes.PYFUNCTYPE(None, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p)(found[_PARSE])
    arguments = {value: (ctypes.c_char_p * 2)(b"irscope", _OPTION + text) for value, text in _TEXTS.items()}
    return lambda value: parse(2, arguments[value], None)


_TEXTS = {True: b"true", False: b"false"}
