"""Modules are printed without verifying them again, and nothing else is printed so."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from irscope.record import module_text, triton_api
from irscope.record.library_functions import function_addresses, function_offsets
from irscope.record.module_text import text_of_verified

NAME = "_ZN4mlir27registerAsmPrinterCLOptionsEv"


@pytest.fixture
def builder() -> Any:
    pytest.importorskip("triton", reason="prints modules of the installed compiler's")
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    builder = ir.builder(context)
    builder.context = context
    return builder


def module_of(builder: Any, finished: bool) -> Any:
    """A module with a function, which without its terminator is invalid."""
    module = builder.create_module()
    function = builder.get_or_insert_function(module, "kernel", builder.get_function_ty([], []), "public", False)
    module.push_back(function)
    block = function.add_entry_block()
    if finished:
        builder.set_insertion_point_to_start(block)
        builder.ret([])
    return module


@pytest.mark.triton
def test_the_text_is_that_of_str(builder: Any) -> None:
    module = module_of(builder, finished=True)
    assert text_of_verified(module) == str(module)
    assert "tt.return" in str(module)


@pytest.mark.triton
def test_the_module_is_not_verified_and_the_next_one_is(builder: Any) -> None:
    invalid = module_of(builder, finished=False)
    # What does not verify is printed in the generic form.
    generic = str(invalid)
    assert '"tt.func"() <{' in generic
    assert "tt.func public @kernel()" in text_of_verified(invalid)
    assert str(invalid) == generic


@pytest.mark.triton
def test_without_the_option_it_is_printed_all_the_same(builder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_text, "function_addresses", lambda *_: {})
    module_text._switch.cache_clear()
    try:
        assert "tt.return" in text_of_verified(module_of(builder, finished=True))
    finally:
        module_text._switch.cache_clear()


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


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x01\x01", b"#!/bin/sh\n"])
def test_a_file_that_is_no_library_has_no_functions(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    assert function_offsets(path, ("main",)) == {}
