"""Paths as LLVM, ptxas and nvdisasm write them: a folder's name costs no location."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irscope
from irscope.ir.locations.stages import read_locations
from irscope.ir.quoted import SassPaths, unescape_assembly, unescape_ir
from irscope.model.capture import Capture, stage_named
from tests.marks import newest_but

HELPER = """import triton
import triton.language as tl


@triton.jit
def twice(x):
    return x + x


@triton.jit
def masked(x, n, BLOCK: tl.constexpr):
    kept = tl.where(tl.arange(0, BLOCK) < n, x, 0.0)
    return twice(kept)
"""
KERNEL = """import triton
import triton.language as tl
from {helper} import masked, twice


@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    x = masked(x, n, BLOCK) + twice(tl.exp(x))
    tl.store(out_ptr, tl.sum(x))
"""
SIGNATURE = {"kernel": "total", "signature": "*fp32:16, *fp32:16, i32", "constexprs": {"BLOCK": 256}}

# (folder, file, module): spaces, quotes, what shells and assemblers read, accents, combining marks, other scripts.
NAMES = {
    "words": ("josé e\u0301 数据 😀", "kérnel", "hélper"),
    "marks": (r"it's #1 100% a\b \303\251 [x]; {y} $z & c:3:4 @[ k.py:1:2 ]", r"k\251 #%", "helper_"),
    "quote": ('a"b', "kernel", "helper_"),
}


def record(folder: Path, names: Sequence[str], target: str) -> Capture:
    own = folder / names[0]
    own.mkdir()
    (own / f"{names[2]}.py").write_text(HELPER, "utf-8")
    kernel = own / f"{names[1]}.py"
    kernel.write_text(KERNEL.format(helper=names[2]), "utf-8")
    return irscope.record(kernel, target=target, snapshots="none", **SIGNATURE)


def places(capture: Capture, names: Sequence[str]) -> dict[str, list[list[tuple[str, int, int]]]]:
    """For each stage and text line the frames it has, each file by what it is to the kernel."""
    folder = str(Path(capture.launch.kernel.file).parent)
    files = {f"{folder}/{names[1]}.py": "kernel", f"{folder}/{names[2]}.py": "helper"}
    found: dict[str, list[list[tuple[str, int, int]]]] = {}
    texts = {stage: capture.text(stage) for stage in capture.stages if not stage_named(stage).is_binary}
    for stage, text in texts.items():
        locations = read_locations(text, stage_named(stage).kind, llir=texts.get("llir"), ptx=texts.get("ptx"))
        chains = [
            [(files.get(one.file, one.file), one.line, one.column) for one in chain] for chain in locations.chains
        ]
        # How many lines without any there are depends on the path: PTX writes its debug sections byte by byte.
        found[stage] = [chains[index] for index in locations.by_line if index >= 0]
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, list[list[tuple[str, int, int]]]]]:
    """By target: the frames in a kernel whose path is nothing special."""
    names = ("plain", "kernel", "helper")
    return cache(lambda target: places(record(tmp_path_factory.mktemp("plain"), names, target), names))


@pytest.mark.triton
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such file names")
@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
@pytest.mark.parametrize("kind", newest_but([], *NAMES))
def test_every_stage_keeps_every_location(
    plain: Callable[[str], dict[str, list[list[tuple[str, int, int]]]]], tmp_path: Path, kind: str, target: str
) -> None:
    capture = record(tmp_path, NAMES[kind], target)
    found = places(capture, NAMES[kind])
    refused = capture.failure is not None and "Unexpected non-ASCII character" in capture.failure.message
    if target.startswith("cuda") and (kind == "quote" or refused):
        # ptxas itself takes no quote in a path, escaped or not, and that of Triton 3.6 nothing but ASCII.
        assert capture.failure is not None
        assert capture.failure.kind == "assembler"
    else:
        assert capture.status == "ok", capture.failure
        assert set(found) == set(plain(target))
    for stage, lines in found.items():
        assert lines == plain(target)[stage], stage
        assert {frame[0] for chain in lines for frame in chain} >= {"kernel", "helper"}
    assert {Path(source.path).stem for source in capture.sources} >= {NAMES[kind][1], NAMES[kind][2]}


def in_ir(path: str) -> str:
    """As llvm::printEscapedString writes it."""
    data = path.encode("utf-8", "surrogateescape")
    return "".join(chr(one) if 32 <= one < 127 and one not in b'"\\' else f"\\{one:02X}" for one in data)


def in_assembly(path: str) -> str:
    """As LLVM's MCAsmStreamer writes it (PrintQuotedString)."""
    letters = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}
    data = path.encode("utf-8", "surrogateescape")
    return "".join(
        f"\\{letters[one]}" if one in letters else chr(one) if 32 <= one < 127 else f"\\{one:03o}" for one in data
    )


@given(st.binary(max_size=30).map(os.fsdecode))
def test_what_is_escaped_is_unescaped(path: str) -> None:
    assert unescape_ir(in_ir(path)) == path
    assert unescape_assembly(in_assembly(path)) == path
    assert unescape_ir(in_ir(path).replace("\\5C", "\\\\")) == path


SIGNS = st.characters(codec="utf-8", exclude_characters="/")


@given(st.text(SIGNS, max_size=12), st.text(SIGNS, min_size=1, max_size=12))
def test_a_path_of_a_cubin_is_found_with_the_ptx_and_guessed_without(folder: str, name: str) -> None:
    path = f"/{folder}/{name}.py"
    written = in_assembly(path)
    head, slash, base = written.rpartition("/")
    torn = head + slash + "/".join(base.rsplit("\\", 1))
    assert SassPaths([written]).true(torn) == path
    if name.isalpha():
        # A character of several bytes that was torn apart is whole again.
        assert SassPaths().true(torn) == path


def test_a_path_of_another_system_stays_as_it_is() -> None:
    assert SassPaths().true(r"C:\kernels\matmul.py") == r"C:\kernels\matmul.py"


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such file names")
def test_a_path_that_is_no_text_fails_in_the_compilers_words(tmp_path: Path) -> None:
    """Triton's builder takes no such path: a plain compile fails the same way, and nothing of irscope does."""
    names = (os.fsdecode(b"caf\xe9 \xff"), os.fsdecode(b"k\xe9rnel"), "helper_")
    capture = record(tmp_path, names, "cuda:90")
    assert capture.failure is not None
    assert "incompatible function arguments" in capture.failure.message or "surrogates" in capture.failure.message
    stored = str(irscope.save(capture, tmp_path / "failed.irscope"))
    assert irscope.load(stored) == capture
    file = capture.launch.kernel.file
    for words in (["show", stored], ["show", stored, "--json"], ["source", stored], ["dump", file, "-t", "cuda:90"]):
        done = subprocess.run([sys.executable, "-m", "irscope", *words], capture_output=True, check=False)
        assert b"Traceback" not in done.stderr, (words, done.stderr.decode("utf-8", "replace"))
