"""A process that ends in a call by symbol is started again without such calls, once, and the recording says so."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from irscope.model.capture import Capture
from irscope.record.compile.second import find_log
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.process.session import Recording, record_request
from irscope.record.triton import api as triton_api
from irscope.record.triton import native_calls
from irscope.record.triton.native_calls import (
    SWITCH,
    LatestText,
    NativeCalls,
    calls_were_tried,
    function_addresses,
    function_offsets,
    note_of_restart,
)
from irscope.record.variants.pool import VariantPool

ROOT = Path(__file__).parents[3]
KERNELS = Path(__file__).parents[1] / "kernels" / "no_torch.py"
CALLS = {
    "_ZN4mlir27registerAsmPrinterCLOptionsEv": "mlir::registerAsmPrinterCLOptions",
    "LLVMParseCommandLineOptions": "LLVMParseCommandLineOptions",
    "_ZN4mlir20OperationFingerPrintC1EPNS_9OperationEb": "mlir::OperationFingerPrint",
    "_ZN4mlir5Block11getParentOpEv": "mlir::Block::getParentOp",
    "_ZN4mlir11PassManager3runEPNS_9OperationE": "mlir::PassManager::run",
}
SAMPLE = ("_ZN4mlir27registerAsmPrinterCLOptionsEv", "_ZN4mlir11PassManager3runEPNS_9OperationE")
"""The first call of a process, and one amid a compile."""
WHERE_TRIED = pytest.mark.skipif(not calls_were_tried(), reason="no calls are made with this Triton, on this machine")
# Imported by every Python that is started with it on its path: the symbol stands where nothing can be called.
FAULT = """
from irscope.record.triton import native_calls as library
found = library.function_addresses
library.function_addresses = lambda *arguments: found(*arguments) | {{ {symbol!r}: 8 }}
"""
# Says each time that it runs, launches a kernel on the virtual GPU, and ends where no call of ours is under way.
SCRIPT = """
import os, sys
sys.path.insert(0, {folder!r})
with open({told!r}, "a") as file:
    file.write("ran\\n")
from no_torch import axpy
class Tensor:
    dtype = "fp32"
    def data_ptr(self): return 0
    def ptr_range(self): return 0
axpy[(4,)](Tensor(), Tensor(), 64, 2.0, BLOCK=16)
os.abort()
"""


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes one of the calls crash in the processes that are started from here on."""

    def make(symbol: str) -> None:
        (tmp_path / "sitecustomize.py").write_text(FAULT.format(symbol=symbol))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))

    return make


def record() -> Recording:
    return record_request(
        RecordRequest(
            mode="signature",
            path=str(KERNELS),
            kernel="tile_product",
            signature="*fp16:16, *fp16:16, *fp32:16, i32:16, 64",
            targets=("cuda:90",),
        )
    )


def texts(capture: Capture) -> list[object]:
    return [
        [(artifact.stage, artifact.data) for artifact in capture.artifacts],
        [(snapshot.label, snapshot.changed, snapshot.text) for snapshot in capture.snapshots],
    ]


@pytest.fixture(scope="module")
def plain() -> Capture:
    """A recording by the bindings alone."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = "0"
    try:
        (capture,) = record().captures
    finally:
        os.environ.pop(SWITCH)
        if before is not None:
            os.environ[SWITCH] = before
    return capture


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.exhaustive
@WHERE_TRIED
@pytest.mark.parametrize("symbol", ["_ZN4llvm4errsEv", "_ZN4llvm11raw_ostream11SetBufferedEv"])
def test_a_log_is_had_without_a_call_that_crashes(symbol: str, faulty: Callable[[str], None], plain: Capture) -> None:
    whole = find_log(plain, parts=("tritongpu-coalesce",), last_stage="ttgir")
    faulty(symbol)
    log = find_log(plain, parts=("tritongpu-coalesce",), last_stage="ttgir")
    counts = [[(item.index, item.text.count("\n[")) for item in one.passes] for one in (log, whole)]
    assert counts[0] == counts[1] != []


@pytest.mark.triton
@pytest.mark.newest
@WHERE_TRIED
@pytest.mark.parametrize(
    "symbol", [symbol if symbol in SAMPLE else pytest.param(symbol, marks=pytest.mark.exhaustive) for symbol in CALLS]
)
def test_a_call_that_crashes_is_done_without(symbol: str, faulty: Callable[[str], None], plain: Capture) -> None:
    faulty(symbol)
    recording = record()
    (capture,) = recording.captures
    assert capture.status == "ok"
    assert texts(capture) == texts(plain)
    assert note_of_restart(CALLS[symbol]) in recording.notes
    assert note_of_restart(CALLS[symbol]) in capture.notes


@pytest.mark.triton
@pytest.mark.parametrize("off", ["variable", "library"])
def test_switched_off_no_call_is_made(
    off: str, faulty: Callable[[str], None], plain: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty("_ZN4mlir5Block11getParentOpEv")
    if off == "variable":
        monkeypatch.setenv(SWITCH, "0")
    else:
        # Of the same version, built by somebody else.
        another = "from irscope.record.triton import native_calls\nnative_calls._library_digest = lambda: 'another'\n"
        with (tmp_path / "sitecustomize.py").open("a") as file:
            file.write(another)
    recording = record()
    (capture,) = recording.captures
    assert texts(capture) == texts(plain)
    assert recording.notes == capture.notes == ()


@pytest.mark.triton
@pytest.mark.newest
@WHERE_TRIED
def test_a_worker_of_the_pool_too(faulty: Callable[[str], None], plain: Capture) -> None:
    faulty("LLVMParseCommandLineOptions")
    requests = [request_from_capture(plain, snapshots=level) for level in ("all", "none", "triton")]
    with VariantPool(jobs=2) as pool:
        captures = dict(pool.compile(requests))
    assert sorted(captures) == [0, 1, 2]
    for capture in captures.values():
        assert capture.artifact("cubin") == replace(plain.artifact("cubin"), duration_us=ANY)
        assert capture.notes == (note_of_restart("LLVMParseCommandLineOptions"),)


@pytest.mark.triton
@WHERE_TRIED
def test_a_script_runs_again_from_its_beginning_once(faulty: Callable[[str], None], tmp_path: Path) -> None:
    faulty("LLVMParseCommandLineOptions")
    capture = check_script(tmp_path, runs=2)
    assert note_of_restart("LLVMParseCommandLineOptions") in capture.notes


@pytest.mark.triton
def test_a_script_that_ends_elsewhere_does_not(tmp_path: Path) -> None:
    check_script(tmp_path, runs=1)


def check_script(folder: Path, runs: int) -> Capture:
    script, told = folder / "script.py", folder / "told"
    script.write_text(SCRIPT.format(folder=str(KERNELS.parent), told=str(told)))
    recording = record_request(RecordRequest(mode="script", path=str(script), virtual=True, targets=("cuda:90",)))
    (capture,) = recording.captures
    assert capture.status == "ok"
    assert told.read_text() == runs * "ran\n"
    assert "SIGABRT" in capture.notes[-1]
    return capture


NAME = "_ZN4mlir27registerAsmPrinterCLOptionsEv"
WHERE_TRIED_of_module_text = pytest.mark.skipif(
    not native_calls.calls_were_tried(), reason="no calls are made with this Triton, on this machine"
)


@pytest.fixture
def builder() -> Any:
    pytest.importorskip("triton", reason="prints modules of the installed compiler")
    return new_builder()


def new_builder() -> Any:
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    builder = ir.builder(context)
    # Modules live as long as their context does.
    builder.context = context
    return builder


def module_of(builder: Any, finished: bool, constant: bool = False) -> Any:
    """A module with a function, which without its terminator is invalid; with a constant that nothing uses."""
    module = builder.create_module()
    function = builder.get_or_insert_function(module, "kernel", builder.get_function_ty([], []), "public", False)
    module.push_back(function)
    block = function.add_entry_block()
    if finished:
        builder.set_insertion_point_to_start(block)
        if constant:
            builder.get_int32(7)
        builder.ret([])
    return module


@pytest.mark.triton
def test_the_text_is_that_of_str(builder: Any) -> None:
    module = module_of(builder, finished=True)
    assert NativeCalls().text_of_verified(module) == str(module)
    assert "tt.return" in str(module)


@pytest.mark.triton
@WHERE_TRIED_of_module_text
def test_the_module_is_not_verified_and_the_next_one_is(builder: Any) -> None:
    invalid = module_of(builder, finished=False)
    # What does not verify is printed in the generic form.
    generic = str(invalid)
    assert '"tt.func"() <{' in generic
    assert "tt.func public @kernel()" in NativeCalls().text_of_verified(invalid)
    assert str(invalid) == generic


@pytest.fixture
def without_functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A libtriton that has none of the functions."""
    found = (native_calls._addresses, native_calls._function)
    monkeypatch.setattr(native_calls, "function_addresses", lambda *_: {})
    for function in found:
        function.cache_clear()
    yield
    for function in found:
        function.cache_clear()


def check_plain(native: NativeCalls, builder: Any) -> None:
    another = new_builder()
    invalid = module_of(another, finished=False)
    assert native.text_of_verified(invalid) == str(invalid)
    module = module_of(builder, finished=True)
    assert "tt.return" in native.text_of_verified(module)
    latest = LatestText(native)
    assert latest.text_of(module) == str(module)
    module.set_attr("ttg.num-warps", builder.get_int32_attr(4))
    assert '"ttg.num-warps" = 4' in latest.text_of(module)


@pytest.mark.triton
@pytest.mark.usefixtures("without_functions")
def test_without_the_functions_it_is_printed_all_the_same(builder: Any) -> None:
    check_plain(NativeCalls(), builder)


@pytest.mark.triton
@pytest.mark.parametrize("off", ["asked", "variable", "version", "machine"])
def test_where_calls_are_off_it_is_printed_plainly(off: str, builder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if off == "variable":
        monkeypatch.setenv(native_calls.SWITCH, "0")
    elif off == "version":
        # The version may be that of a release: its wheel was built by somebody else.
        monkeypatch.setattr(native_calls, "_library_digest", lambda: "0123456789abcdef")
    elif off == "machine":
        monkeypatch.setattr("platform.machine", lambda: "aarch64")
    check_plain(NativeCalls(allowed=off != "asked"), builder)


@pytest.mark.triton
@WHERE_TRIED_of_module_text
def test_it_is_printed_again_only_where_something_changed(builder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []

    def print_it(_: NativeCalls, module: Any) -> str:
        printed.append(str(module))
        return printed[-1]

    monkeypatch.setattr(NativeCalls, "text_of_verified", print_it)
    module, latest = module_of(builder, finished=True), LatestText(NativeCalls())
    assert latest.text is None
    assert latest.text_of(module) == latest.text_of(module) == latest.text == str(module)
    assert len(printed) == 1
    module.set_attr("ttg.num-warps", builder.get_int32_attr(4))
    assert '"ttg.num-warps" = 4' in latest.text_of(module)
    builder.get_int32(7)
    assert latest.text_of(module) == str(module)
    assert len(printed) == 3
    another_builder = new_builder()
    other = module_of(another_builder, finished=True)
    assert latest.text_of(other) == str(other)
    assert len(printed) == 4
    latest.invalidate()
    assert latest.text is None
    latest.text_of(other)
    latest.release()
    assert latest.text == latest.text_of(other)
    assert len(printed) == 6


@pytest.mark.triton
def test_an_empty_module_has_a_text(builder: Any) -> None:
    module, latest = builder.create_module(), LatestText(NativeCalls())
    assert latest.text_of(module) == latest.text_of(module) == str(module)


def canonicalizer(context: Any) -> Any:
    """A pass manager with the one pass that removes what nothing uses."""
    from triton._C.libtriton import ir, passes

    manager = ir.pass_manager(context)
    passes.common.add_canonicalizer(manager)
    return manager


@pytest.mark.triton
@WHERE_TRIED_of_module_text
def test_a_pass_manager_is_run_as_the_bindings_run_it(builder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    native, module = NativeCalls(), module_of(builder, finished=True, constant=True)
    operation, manager = native.operation_of(module), canonicalizer(builder.context)
    assert operation is not None
    # Of another context than it is said to be, or asked for something else of the bindings', it is left to them.
    assert native.run_passes(manager, new_builder().context, operation) is None
    monkeypatch.setenv("MLIR_ENABLE_TIMING", "1")
    assert native.run_passes(manager, builder.context, operation) is None
    monkeypatch.delenv("MLIR_ENABLE_TIMING")
    before = str(module)
    assert native.run_passes(manager, builder.context, operation) is True
    another = new_builder()
    twin = module_of(another, finished=True, constant=True)
    assert str(twin) == before
    canonicalizer(another.context).run(twin, "twin")
    assert str(module) == str(twin) != before


@pytest.mark.triton
@WHERE_TRIED_of_module_text
def test_of_a_pass_manager_that_fails_it_is_known(builder: Any, capfd: pytest.CaptureFixture[str]) -> None:
    invalid = module_of(builder, finished=False)
    manager = canonicalizer(builder.context)
    operation = NativeCalls().operation_of(invalid)
    assert operation is not None
    assert NativeCalls().run_passes(manager, builder.context, operation) is False
    assert "error: " in capfd.readouterr().err


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
