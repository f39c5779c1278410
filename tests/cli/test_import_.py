"""`irscope import`, `irscope ls --cache` and `irscope dump --via mlir-dump`."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
import tracemalloc
from pathlib import Path

import pytest

import irscope
from irscope.__main__ import run
from irscope.store.recent import CaptureStore
from tests.hostile.viewing import run_quietly
from tests.ir.logs.test_cache import variant

DUMPS = Path(__file__).parent.parent / "data" / "dumps"
EXAMPLE = str(Path(__file__).parent.parent.parent / "examples" / "vector_add.py")
SCRIPT = """
import triton
import triton.language as tl

class Buffer:
    dtype = "fp32"
    def data_ptr(self):
        return 4096

@triton.jit
def double(x, out):
    offsets = tl.arange(0, 1024)
    tl.store(out + offsets, 2 * tl.load(x + offsets))

double[(1,)](Buffer(), Buffer())
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "mlir.log"
    path.write_bytes(lzma.decompress((DUMPS / "3.9.0.cuda90.mlir.xz").read_bytes()))
    return path


def test_a_log_becomes_stored_captures(log: Path, capsys: Captured) -> None:
    assert run(["import", str(log)]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("cuda:90") == 5
    assert printed.err == ""
    stored = [irscope.load(path) for path in CaptureStore().paths()]
    assert sorted(capture.name for capture in stored) == ["add", "add", "calls", "dot", "dot"]
    assert all(capture.environment.date for capture in stored)
    assert run(["show", stored[0].id, "--stage", "ttgir"]) == 0


def test_one_kernel_of_a_log_as_a_file(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "calls.irscope"
    assert run(["import", str(log), "--kernel", "calls", "-o", str(output)]) == 0
    assert irscope.load(output).name == "calls"


def test_json_tells_of_each_capture(log: Path, capsys: Captured) -> None:
    assert run(["import", str(log), "--kernel", "add", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["kernel"] for row in rows] == ["add", "add"]
    assert [row["passes"] for row in rows] == [72, 72]


def test_one_bad_trace_of_a_folder_is_left_out(tmp_path: Path, capsys: Captured) -> None:
    """Nor is a link followed that leads out of the folder, as one in an archive that came by mail may."""
    good = (DUMPS.parent / "tritonparse" / "softmax.bin.ndjson").read_bytes()
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "b.ndjson").write_bytes(good)
    (folder / "a.ndjson.gz").write_bytes(b"\x1f\x8b no trace")
    (folder / "c.ndjson").write_bytes(b"")
    (tmp_path / "outside.ndjson").write_bytes(good)
    (folder / "d.ndjson").symlink_to(tmp_path / "outside.ndjson")
    assert run(["import", str(folder), "--json"]) == 1
    printed = capsys.readouterr()
    left_out = [line for line in printed.err.splitlines() if "left out" in line]
    assert [name for line in left_out for name in "acd" if f"{name}.ndjson" in line] == ["a", "c", "d"]
    assert "is a link that leads out of traces" in left_out[2]
    alone = len(json.loads(printed.out))
    for path in (folder / "a.ndjson.gz", folder / "c.ndjson", folder / "d.ndjson"):
        path.unlink()
    assert run(["import", str(folder), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == alone > 0


def test_standard_input_and_packed_logs(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    assert run(["import", "-"]) == 0
    packed = tmp_path / "mlir.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert run(["import", str(packed)]) == 0
    first, second = capsys.readouterr().out.split("irscope show")[:2]
    assert first.count("cuda:90") == second.count("cuda:90") == 5
    packed.write_bytes(packed.read_bytes()[:20] + b"\xff" * 30)
    assert run(["import", str(packed)]) == 1


def test_a_failed_compile_is_imported_and_told_of(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "failing.log"
    path.write_bytes(lzma.decompress((DUMPS / "3.6.0.failing.xz").read_bytes()))
    assert run(["import", str(path)]) == 0
    printed = capsys.readouterr()
    assert "FAILED" in printed.out
    assert "failed in llir:to_llvmir#1" in printed.err


def test_a_cache_and_one_variant(tmp_path: Path, capsys: Captured) -> None:
    variant(tmp_path / "cache")
    variant(tmp_path / "cache", "OTHER", "dot")
    variant(tmp_path / "cache", "BROKEN", "dot", json="{")
    assert run(["import", str(tmp_path / "cache")]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("cuda:90") == 2
    assert "BROKEN" in printed.err
    assert run(["import", str(tmp_path / "cache"), "--variant", "OTH"]) == 0
    assert capsys.readouterr().out.count("cuda:90") == 1
    assert run(["import", str(tmp_path / "cache"), "--variant", "OTHERR"]) == 1
    assert "Did you mean 'OTHER'" in capsys.readouterr().err


def test_the_list_of_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    variant(tmp_path / "cache")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    assert run(["ls", "--cache"]) == 0
    text = capsys.readouterr().out
    assert "3JCWGALOBQQ6" in text
    assert "source ttgir cubin" in text
    assert run(["ls", "--cache-dir", str(tmp_path / "cache"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["kernel"], row["target"], row["num_warps"], row["num_stages"]) == ("add", "cuda:90", 8, 3)
    monkeypatch.delenv("TRITON_CACHE_DIR")
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    assert run(["ls", "--cache"]) == 0
    assert str(tmp_path / ".triton" / "cache") in capsys.readouterr().out
    assert run(["ls", "--cache-dir", str(tmp_path / "nowhere")]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nothing.log"], 1, "nothing.log"),
        (["{log}", "--variant", "X"], 2, "is a log"),
        (["{log}", "-o", "x.json"], 2, "ends in .irscope"),
        (["{log}", "--kernel", "ad"], 1, "Did you mean 'add'"),
        (["{script}"], 1, "holds no IR dump"),
        (["{folder}"], 1, "holds no Triton kernel"),
        ([], 2, "Missing argument"),
    ],
)
def test_what_cannot_be_imported(log: Path, capsys: Captured, arguments: list[str], code: int, words: str) -> None:
    names = {"log": str(log), "script": EXAMPLE, "folder": str(DUMPS)}
    assert run(["import", *(argument.format(**names) for argument in arguments)]) == code
    assert words in capsys.readouterr().err


@pytest.mark.triton
@pytest.mark.slow
def test_dump_via_mlir_dump(capsys: Captured, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert run(["dump", str(script), "--via", "mlir-dump", "--target", "cuda:90", "--launch", "1", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert any("MLIR_ENABLE_DUMP" in note for note in row["notes"])
    capture = CaptureStore().load(row["id"])
    assert "cubin" in capture.stages
    assert [snapshot.index for snapshot in capture.snapshots] == list(range(len(capture.snapshots)))
    assert any(snapshot.name == "coalesce" and snapshot.changed for snapshot in capture.snapshots)
    # A stored capture is recorded in the same way.
    assert run(["dump", row["id"], "--via", "mlir-dump", "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)
    assert again["passes"] == row["passes"]


def test_a_plan_needs_the_tap(capsys: Captured) -> None:
    assert run(["dump", EXAMPLE, "--via", "mlir-dump", "--disable-pass", "combine"]) == 2
    assert "cannot switch passes off" in capsys.readouterr().err


def test_a_short_log_takes_little_memory(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("nothing of a compiler")
    tracemalloc.start()
    try:
        code, _, told = run_quietly(("import", str(log)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert code == 1
    assert "holds no IR dump" in told
    # Whatever the limit of a log's size is.
    assert most < 64 << 20


def test_where_memory_ends_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr("irscope.ir.logs.files.read_at_most", full)
    code, _, told = run_quietly(("import", __file__))
    assert code == 1
    assert told.startswith("irscope: not enough memory for 'irscope import")
    assert "internal error" not in told
