"""Triton's cache and its dump folders: real ones, and damaged ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irscope.ir.logs.cache import list_cache, read_cache
from irscope.store.file import from_bytes, to_bytes

DUMPS = Path(__file__).parents[2] / "data" / "dumps"
METADATA = {
    "hash": "da4563016e0c21e2",
    "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
    "num_warps": 8,
    "num_ctas": 1,
    "num_stages": 3,
    "maxnreg": None,
    "allowed_dot_input_precisions": ["tf32", "ieee"],
    "extern_libs": [["libdevice", "/usr/lib/libdevice.10.bc"]],
    "TRITON_DEFAULT_FP_FUSION": "true",
    "triton_version": "3.6.0",
    "shared": 128,
    "name": "add",
}
TTIR = """#loc = loc("kernels.py":12:1)
#loc1 = loc("x"(#loc))
module {
  tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32 loc("n"(#loc))) {
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
TTGIR = (
    'module attributes {"ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {\n}\n'
)


def variant(cache: Path, name: str = "3JCWGALOBQQ6", kernel: str = "add", **files: str | bytes | None) -> Path:
    folder = cache / name
    folder.mkdir(parents=True)
    chosen: dict[str, str | bytes | None] = {
        "json": json.dumps(METADATA),
        "source": TTIR,
        "ttgir": TTGIR,
        "cubin": b"\x7fELF",
    }
    for suffix, data in {**chosen, **files}.items():
        if data is not None:
            (folder / f"{kernel}.{suffix}").write_bytes(data.encode() if isinstance(data, str) else data)
    (folder / f"__grp__{kernel}.json").write_text("{}")
    return folder


def skipped_of(folder: Path, which: str | None = None) -> tuple[int, list[str]]:
    said: list[str] = []
    return len(list(read_cache(folder, which, said.append))), said


def test_a_variant_is_a_capture(tmp_path: Path) -> None:
    variant(tmp_path)
    (capture,) = read_cache(tmp_path)
    assert (capture.name, str(capture.target), capture.stages) == ("add", "cuda:90", ("source", "ttgir", "cubin"))
    assert capture.launch.signature == (("x", "*fp32"), ("n", "i32"))
    assert capture.launch.attributes == (("x", "tt.divisibility=16"),)
    assert (capture.launch.kernel.file, capture.launch.kernel.line) == ("kernels.py", 12)
    options = dict(capture.launch.options)
    assert options["num_warps"] == 8
    assert options["allowed_dot_input_precisions"] == ("tf32", "ieee")
    assert not options.keys() & {"shared", "hash", "extern_libs", "TRITON_DEFAULT_FP_FUSION", "name"}
    assert dict(capture.metadata)["shared"] == 128
    assert capture.environment.triton_version == "3.6.0"
    assert capture.environment.date
    assert capture.notes
    assert from_bytes(to_bytes(capture)) == capture


def test_the_list_reads_no_more_than_metadata(tmp_path: Path) -> None:
    folder = variant(tmp_path)
    os.utime(folder / "add.json", (1, 1))
    variant(tmp_path, "OTHER", "dot", json=json.dumps({**METADATA, "num_warps": 2, "hash": "ff"}))
    newest, oldest = sorted(list_cache(tmp_path), key=lambda entry: entry.kernel == "add")
    assert (newest.kernel, newest.num_warps, newest.num_stages, newest.num_ctas) == ("dot", 2, 3, 1)
    assert (oldest.variant, oldest.hash, str(oldest.target)) == (folder.name, "da4563016e0c21e2", "cuda:90")
    assert oldest.stages == ("source", "ttgir", "cubin")
    assert oldest.bytes == sum(path.stat().st_size for path in folder.glob("add.*"))
    assert oldest.triton_version == "3.6.0"


def test_one_variant_by_the_beginning_of_its_name_or_hash(tmp_path: Path) -> None:
    variant(tmp_path)
    variant(tmp_path, "OTHER", json=json.dumps({**METADATA, "hash": "ff00"}))
    assert len(list(read_cache(tmp_path))) == 2
    assert [capture.name for capture in read_cache(tmp_path, "3JC")] == ["add"]
    assert len(list(read_cache(tmp_path, "ff"))) == 1
    assert list(read_cache(tmp_path, "none")) == []
    assert len(list(read_cache(tmp_path / "OTHER"))) == 1


def test_a_dump_folder_has_no_metadata(tmp_path: Path) -> None:
    variant(tmp_path, json=None, source=None, ttir=TTIR, sass="--:-:1 EXIT")
    (capture,) = read_cache(tmp_path)
    assert str(capture.target) == "cuda:90"
    assert capture.launch.option("num_warps") == 8
    assert capture.launch.signature[0] == ("x", "*fp32")
    assert capture.stages == ("ttir", "ttgir", "cubin")
    assert any("no metadata" in note for note in capture.notes)
    (entry,) = list_cache(tmp_path)
    assert str(entry.target) == "cuda:90"


def test_targets_of_every_form(tmp_path: Path) -> None:
    for number, (target, expected) in enumerate(
        (
            ({"backend": "hip", "arch": "gfx942", "warp_size": 64}, ("hip:gfx942", 64)),
            ({"backend": "npu", "arch": "x1", "warp_size": 0}, ("npu:x1", 32)),
            ("nonsense", ("unknown:unknown", 32)),
        )
    ):
        folder = variant(tmp_path / str(number), json=json.dumps({**METADATA, "target": target}), ttgir=None)
        (capture,) = read_cache(folder)
        assert (str(capture.target), capture.target.warp_size) == expected


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"json": "{"}, "not JSON"),
        ({"json": "[]"}, "no metadata"),
        ({"json": "[" * 100_000}, "not JSON"),
        ({"ttgir": ""}, "empty"),
        ({"source": b"\xff\xfe\x00"}, "not text"),
    ],
)
def test_a_damaged_variant_is_passed_over_with_a_note(tmp_path: Path, damage: dict[str, str | bytes], why: str) -> None:
    variant(tmp_path, **damage)
    variant(tmp_path, "WHOLE")
    count, said = skipped_of(tmp_path)
    assert count == 1
    assert len(said) == 1
    assert why in said[0]
    assert "3JCWGALOBQQ6" in said[0]
    list_cache(tmp_path)


def test_what_is_no_variant_is_no_business_of_ours(tmp_path: Path) -> None:
    (tmp_path / "HELPER").mkdir()
    (tmp_path / "HELPER" / "cuda_utils.cpython.so").write_bytes(b"\x7fELF")
    (tmp_path / "tmp.pid_7_ab").mkdir()
    (tmp_path / "tmp.pid_7_ab" / "add.ttir").write_text("half")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "LINKS").mkdir()
    (tmp_path / "LINKS" / "add.ttir").symlink_to(tmp_path / "nowhere")
    (tmp_path / "FOLDER").mkdir()
    (tmp_path / "FOLDER" / "add.ttir").mkdir()
    assert skipped_of(tmp_path) == (0, [])
    assert list_cache(tmp_path) == ()
    assert list_cache(tmp_path / "missing") == ()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(METADATA)), inner, max_size=6)
        ),
    ),
    st.text(max_size=30),
)
def test_any_metadata_and_any_text_are_read(
    tmp_path_factory: pytest.TempPathFactory, metadata: object, text: str
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    variant(folder, json=json.dumps(metadata), source=TTIR + text, ttgir=text.encode("utf-8", "replace"))
    list_cache(folder)
    for capture in read_cache(folder, skipped=lambda _: None):
        assert from_bytes(to_bytes(capture)) == capture


@pytest.mark.triton
@pytest.mark.slow
def test_what_triton_leaves_behind(tmp_path: Path) -> None:
    command = [sys.executable, "kernels.py", "cuda:90", "add", "add:BLOCK=128", "dot:num_warps=4"]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache"), "TRITON_KERNEL_DUMP": "1"}
    environment |= {"TRITON_DUMP_DIR": str(tmp_path / "dumped"), "TRITON_DEFAULT_FP_FUSION": "1"}
    subprocess.run(command, check=True, cwd=DUMPS, env=environment, capture_output=True)
    cached = list(read_cache(tmp_path / "cache"))
    assert sorted(capture.name for capture in cached) == ["add", "add", "dot"]
    assert len({capture.id for capture in cached}) == 3
    entries = list_cache(tmp_path / "cache")
    assert sorted((entry.kernel, entry.num_warps) for entry in entries) == [("add", 1), ("add", 1), ("dot", 4)]
    for capture in cached:
        assert capture.stages == ("source", "ttir", "ttgir", "llir", "ptx", "cubin")
        assert capture.launch.kernel.file.endswith("kernels.py")
    dumped = list(read_cache(tmp_path / "dumped"))
    assert sorted(capture.ttgir for capture in dumped) == sorted(capture.ttgir for capture in cached)
    assert sorted(str(capture.launch.option("num_warps")) for capture in dumped) == ["1", "1", "4"]
