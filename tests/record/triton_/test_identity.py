"""The identity holds what Triton is: its sources, libraries, tools and variables, by what is in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from irscope.analysis.diff.captures import diff
from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.record.triton import api as triton_api
from irscope.record.triton.identity import compiler_fingerprint, digest_of_file
from irscope.render.text.diff import render_comparison
from irscope.store.file import from_bytes, to_bytes
from irscope.target import Target

KERNELS = Path(__file__).parents[1] / "kernels"
AXPY = {"signature": "*fp32:16, *fp32:16, i32:16, fp32", "constexprs": {"BLOCK": 256}, "kernel": "axpy"}

pytestmark = pytest.mark.triton


def record_axpy(target: str = "cuda:90") -> Capture:
    request = request_for(KERNELS / "no_torch.py", targets=(target,), snapshots="none", **AXPY)
    (capture,) = record_request(replace(request, disassemble=False, layouts=False)).captures
    return capture


@pytest.fixture(scope="module")
def plain() -> dict[str, Capture]:
    """By target: what the installed Triton compiles, with no variable set."""
    return {target: record_axpy(target) for target in ("cuda:90", "cuda:100", "hip:gfx942")}


def differences(left: Capture, right: Capture) -> dict[str, tuple[object, object]]:
    return {change.name: (change.left, change.right) for change in diff(left, right, stages=()).differences}


def assert_told_apart(left: Capture, right: Capture, *names: str) -> None:
    """The ids differ, and `diff` names what differs, and nothing else."""
    assert left.id != right.id
    assert set(differences(left, right)) == set(names)
    text = render_comparison(diff(left, right), stages=())
    assert "no difference in the inputs" not in text
    for name in names:
        assert name in text


@pytest.fixture(scope="module")
def installed() -> Path:
    spec = find_spec("triton")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture
def copied(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The installed Triton elsewhere, which a recording finds first; what is large in it is linked."""

    def copy(source: str, target: str) -> None:
        (os.symlink if os.path.getsize(source) > 1 << 20 else shutil.copyfile)(source, target)

    folder = tmp_path / "elsewhere" / "triton"
    left_out = shutil.ignore_patterns("__pycache__", "include", "cupti*", "profiler", "plugins", "FileCheck")
    shutil.copytree(installed, folder, copy_function=copy, ignore=left_out)
    path = [str(folder.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    return folder


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, "utf-8")


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("target", ["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.exhaustive)])
def test_the_same_triton_elsewhere_gives_the_same_id(target: str, plain: dict[str, Capture]) -> None:
    there = record_axpy(target)
    assert there.environment.parts
    assert there.id == plain[target].id
    assert not differences(plain[target], there)


@pytest.mark.newest
def test_a_patched_source_is_another_compiler_for_the_targets_it_makes_code_for(
    copied: Path, plain: dict[str, Capture]
) -> None:
    cuda, hip = plain["cuda:90"], plain["hip:gfx942"]
    path = copied / "backends" / "nvidia" / "compiler.py"
    text = path.read_text("utf-8")
    path.write_text(text.replace("passes.ttgpuir.add_coalesce(pm)", "pass"), "utf-8")
    after = record_axpy()
    assert len(list(after.passes())) == len(list(cuda.passes())) - 1
    assert_told_apart(cuda, after, "triton/backends/nvidia/compiler.py")
    assert record_axpy("hip:gfx942").id == hip.id
    # A comment is a change too.
    append(copied / "compiler" / "compiler.py", "\n# patched\n")
    assert_told_apart(hip, record_axpy("hip:gfx942"), "triton/compiler/compiler.py")


@pytest.mark.newest
@pytest.mark.parametrize("target", ["cuda:90", "cuda:100"])
def test_another_ptxas_is_another_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, plain: dict[str, Capture]
) -> None:
    before = plain[target]
    real = triton_api.assembler(Target.parse(target))
    assert real is not None
    variable = {"ptxas": "TRITON_PTXAS_PATH", "ptxas-blackwell": "TRITON_PTXAS_BLACKWELL_PATH"}[real.name]
    other = tmp_path / "ptxas"
    other.write_text(f'#!/bin/sh\nexec "{real}" -O1 "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv(variable, str(other))
    assert_told_apart(before, record_axpy(target), "ptxas")
    # The same program in another place is the same.
    shutil.copyfile(real, other)
    assert record_axpy(target).id == before.id


@pytest.mark.newest
@pytest.mark.parametrize("target", ["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.exhaustive)])
def test_other_bitcode_is_another_compiler(copied: Path, target: str, plain: dict[str, Capture]) -> None:
    before = plain[target]
    name, part = ("nvidia/lib/libdevice.10.bc", "libdevice") if target == "cuda:90" else ("amd/lib/ocml.bc", "ocml")
    with open(copied / "backends" / name, "ab") as file:
        file.write(b"\0\0\0\0")
    assert_told_apart(before, record_axpy(target), f"bitcode {part}")


@pytest.mark.parametrize(
    ("target", "variable", "value"),
    [
        ("cuda:90", "DISABLE_PTXAS_OPT", "1"),
        pytest.param("cuda:90", "TRITON_DISABLE_LINE_INFO", "1", marks=pytest.mark.exhaustive),
        pytest.param("hip:gfx942", "AMDGCN_USE_BUFFER_OPS", "0", marks=pytest.mark.exhaustive),
        ("hip:gfx942", "AMDGCN_SCALARIZE_PACKED_FOPS", "1"),
    ],
)
def test_a_variable_that_decides_code_is_named(
    monkeypatch: pytest.MonkeyPatch, target: str, variable: str, value: str, plain: dict[str, Capture]
) -> None:
    before = plain[target]
    monkeypatch.setenv(variable, value)
    after = record_axpy(target)
    assert before.id != after.id
    assert variable in differences(before, after)


@pytest.mark.newest
def test_a_variable_that_decides_nothing_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plain: dict[str, Capture]
) -> None:
    before = plain["cuda:90"]
    for name, value in {
        "TRITON_HOME": str(tmp_path),
        "TRITON_DUMP_DIR": str(tmp_path / "dump"),
        "TRITON_ALWAYS_COMPILE": "1",
        "MLIR_ENABLE_DIAGNOSTICS": "remarks",
        "LLVM_ENABLE_TIMING": "1",
        "AMDGCN_USE_BUFFER_OPS": "0",
        "TRITON_DEFAULT_FP_FUSION": "1",
        "DISABLE_LLVM_OPT": "0",
    }.items():
        monkeypatch.setenv(name, value)
    after = record_axpy()
    assert after.id == before.id
    assert not differences(before, after)


@pytest.mark.newest
def test_what_the_script_itself_sets_counts(tmp_path: Path) -> None:
    """A knob that is set between two compiles: the second is another compile."""
    script = tmp_path / "knobs_set.py"
    script.write_text(
        (KERNELS / "no_torch.py").read_text("utf-8")
        + """
from triton.compiler import ASTSource
signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "a": "fp32", "BLOCK": "constexpr", "EVEN": "constexpr"}
for off in (False, True):
    triton.knobs.nvidia.disable_ptxas_opt = off
    triton.compile(ASTSource(axpy, signature, {"BLOCK": 256, "EVEN": True}))
"""
    )
    request = request_for(script, targets=("cuda:90",), snapshots="none", layouts=False, disassemble=False)
    first, second = record_request(request).captures
    assert first.id != second.id
    assert differences(first, second)["DISABLE_PTXAS_OPT"] == (None, "true")


def test_a_capture_without_the_fields_keeps_its_id(plain: dict[str, Capture]) -> None:
    capture = plain["cuda:90"]
    old = replace(capture, environment=replace(capture.environment, parts=(), variables=()))
    again = from_bytes(to_bytes(old))
    assert again.id == old.id != capture.id
    assert from_bytes(to_bytes(capture)) == capture
    assert differences(old, capture) == {"compiler's contents": ("not recorded", "recorded")}


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("strip") is None, reason="needs strip of GNU binutils")
def test_a_stripped_library_is_the_same_library(installed: Path, tmp_path: Path) -> None:
    """Also a wheel that was made smaller: what is loaded of it is what it was."""
    for library in ("backends/nvidia/bin/cuobjdump", "_C/libproton.so"):
        whole, stripped = installed / library, tmp_path / "stripped"
        if not whole.is_file():
            continue
        subprocess.run(["strip", "--strip-unneeded", "-o", stripped, whole], check=True)
        copy = tmp_path / "copy"
        shutil.copyfile(whole, copy)
        assert digest_of_file(copy) == digest_of_file(whole)
        assert digest_of_file(stripped) == digest_of_file(whole)
        data = bytearray(copy.read_bytes())
        # In the middle of what is loaded: another program.
        data[1 << 13] ^= 1
        copy.write_bytes(data)
        assert digest_of_file(copy) != digest_of_file(whole)


def test_a_file_replaced_in_place_with_its_old_times_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"a" * (2 << 20))
    state, first = file.stat(), digest_of_file(file)
    file.write_bytes(b"b" * (2 << 20))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert digest_of_file(file) != first


def test_the_fingerprint_changes_with_every_python_file_and_every_variable_of_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `upgrade` calls the same Triton, and what keeps variants for the next time."""
    source, copied = triton_api.package_folder(), tmp_path / "triton"
    files = sorted(path.relative_to(source) for path in source.rglob("*.py"))
    for path in files:
        (copied / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / path, copied / path)
    monkeypatch.setattr(triton_api, "package_folder", lambda: copied)
    seen = {compiler_fingerprint()}
    assert {compiler_fingerprint()} == seen
    for path in files[:: len(files) // 12]:
        before = (copied / path).read_bytes()
        (copied / path).write_bytes(before + b"\n# a change\n")
        fingerprint = compiler_fingerprint()
        assert fingerprint not in seen, path
        seen.add(fingerprint)
        (copied / path).write_bytes(before)
    for name, value in (("PTXAS_OPTIONS", "-O1"), ("DISABLE_LLVM_OPT", "disable-lsr"), ("TRITON_F32_DEFAULT", "ieee")):
        with monkeypatch.context() as variables:
            variables.setenv(name, value)
            fingerprint = compiler_fingerprint()
            assert fingerprint not in seen, name
            seen.add(fingerprint)
