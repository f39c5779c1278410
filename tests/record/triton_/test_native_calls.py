"""A process that ends in a call by symbol is started again without such calls, once, and the recording says so."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import pytest

from irscope.model.capture import Capture
from irscope.record.compile.compiler_log import find_log
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.process.session import Recording, record_request
from irscope.record.triton.native_calls import SWITCH, calls_were_tried, note_of_restart
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
from irscope.record.triton import library_functions as library
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
