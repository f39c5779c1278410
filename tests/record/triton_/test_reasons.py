"""The functions that make the compiler print its reasons are found in its library; a file that is none has none."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

import pytest

from irscope.record.triton import api as triton_api
from irscope.record.triton.reasons import function_addresses, function_offsets

NAME = "_ZN4mlir27registerAsmPrinterCLOptionsEv"


@pytest.mark.triton
def test_the_symbol_table_says_what_the_loader_says() -> None:
    pytest.importorskip("triton", reason="reads libtriton")
    library, exported = triton_api.compiler_library()
    loaded = ctypes.CDLL(str(library))
    offsets = function_offsets(library, (NAME, exported, "no_such_function"))
    assert list(offsets) == [NAME, exported]
    base = address_of(loaded, exported) - offsets[exported]
    assert function_addresses(library, (NAME, "no_such_function"), exported) == {NAME: base + offsets[NAME]}
    if hasattr(loaded, NAME):
        assert address_of(loaded, NAME) == base + offsets[NAME]


def address_of(loaded: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value or 0


HEADER = b"\x7fELF\x02\x01".ljust(0x28, b"\0")
# Where its sections stand, and how many there are of how many bytes: beyond the end of the file, and too small.
CUT = (HEADER + struct.pack("<Q10xHH2x", 4096, 64, 3), HEADER + struct.pack("<Q10xHH2x", 64, 8, 3) + bytes(64))


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x01\x01", b"#!/bin/sh\n", HEADER, *CUT])
def test_a_file_that_is_no_library_has_no_functions(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    assert function_offsets(path, ("main",)) == {}
