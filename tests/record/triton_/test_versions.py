"""Which Triton is installed, under whatever name, and that a newer one than was tried is said to be one."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import irscope
from irscope.record.triton import versions
from irscope.record.triton.versions import PRIVATE_NAMES, TRIED_VERSIONS, triton_version, untried_note
from tests.record.fake_distribution import fake

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("version", [*TRIED_VERSIONS, "3.9.1", "3.9.0+git1234abc", "3.6.0.post1", ""])
def test_no_note_of_what_was_tried(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "triton_version", lambda: version)
    assert untried_note() == ""


@pytest.mark.parametrize("version", ["3.10.0", "3.10.0.dev20261101", "3.10.0+git1234abc", "3.10a1", "4.0.0"])
def test_a_newer_one_is_said_not_to_be_tried(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "triton_version", lambda: version)
    assert f"not tested with Triton {version}," in untried_note()


def test_ci_runs_under_the_versions_that_were_tried() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    # The newest one has the whole suite.
    (whole,) = re.findall(r"\btriton==([\d.]+)", script)
    others = re.findall(r"^ *test_version ([\d.]+)", script, re.MULTILINE)
    assert whole == TRIED_VERSIONS[-1]
    assert sorted([*others, whole]) == sorted(TRIED_VERSIONS)


def test_a_build_under_another_name_is_found(tmp_path: Path) -> None:
    fake(tmp_path, "pytorch-triton-rocm", "3.8.0+git1234abc", top_level="triton\n")
    code = "from irscope.record.triton.versions import triton_version; print(triton_version())"
    # Without this environment's own packages.
    command = [sys.executable, "-S", "-c", code]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    answer = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert answer.stdout == "3.8.0+git1234abc\n"


@pytest.mark.triton
def test_doctor_says_so(tmp_path: Path) -> None:
    fake(tmp_path, "triton", "3.10.0", entry_points=distribution("triton").read_text("entry_points.txt") or "")
    command = [sys.executable, "-m", "irscope", "doctor", "--json"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    answer = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    seen = [row for row in json.loads(answer.stdout) if row["component"] == "Triton"]
    assert [row["state"] for row in seen] == ["ok", "note"]
    assert "not tested with Triton 3.10.0" in seen[1]["detail"]


KERNELS = ROOT / "tests" / "record" / "kernels" / "no_torch.py"
RECORD = Path(irscope.__file__).parent / "record"

# Public and documented: `triton.language`, `triton.jit`. A module of the table stands for its documented names.
_PUBLIC = ("triton", "triton.language", "triton.experimental.gluon", "triton.experimental.gluon.language")


def imported_names() -> set[tuple[str, str]]:
    """(module, name) of what irscope/record imports from Triton."""
    found: set[tuple[str, str]] = set()
    for path in RECORD.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "triton":
                found |= {(node.module or "", alias.name) for alias in node.names}
    return found


def test_what_is_imported_of_triton_stands_in_the_table() -> None:
    rows = {f"{row.module}.{row.name}" for row in PRIVATE_NAMES}
    missing = [
        f"{module}.{name}"
        for module, name in imported_names()
        if module not in _PUBLIC and not any(row.startswith(f"{module}.{name}") for row in rows)
    ]
    inside = {row.module for row in PRIVATE_NAMES}
    assert [name for name in missing if name not in inside] == []


@pytest.mark.triton
def test_every_name_is_there_in_the_versions_that_the_table_says() -> None:
    pytest.importorskip("triton")
    wrong = [row.text for row in PRIVATE_NAMES if row.is_present() != (triton_version() in row.tried)]
    assert wrong == []


CHANGES = [
    *(
        f"{row.module},{row.name},remove"
        for row in PRIVATE_NAMES
        # The members of an enumeration cannot be removed, nor can what is not there.
        if row.module != "triton" and "Language." not in row.name and "3.9.0" in row.tried
    ),
    "triton.runtime.jit,JITFunction.create_binder,rename",
    "triton.runtime.jit,JITFunction.is_gluon,move",
    "triton.runtime.jit,JITFunction._pack_args,rename",
    "triton.compiler.compiler,make_backend,move",
    "triton.compiler,ASTSource,rename",
    "triton.backends.compiler,GPUTarget,move",
    "triton.backends.compiler,Language,rename",
    "triton.runtime.cache,triton_key,move",
    "triton.knobs,runtime,rename",
    "triton.knobs,nvidia,move",
    "triton._C.libtriton,ir.pass_manager,rename",
    "triton._C.libtriton,passes,rename",
    "triton._C.libtriton,gluon_ir,remove",
    "triton._C.libtriton,llvm,remove",
    "triton.runtime._allocation,,remove",
    "triton.runtime.autotuner,,remove",
    "triton.testing,,remove",
    "triton.backends.nvidia.driver,,remove",
    "triton.backends.amd.compiler,,remove",
    "triton.runtime.errors,PTXASError,rename",
    # What the table does not hold: attributes of what Triton makes, which are read at a launch or a compile.
    "triton.knobs,nvidia_knobs.dump_ptxas_log,remove",
    "triton.compiler.compiler,CompiledKernel.run,rename",
    "triton.compiler.compiler,ASTSource.hash,rename",
]
SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
from no_torch import axpy

class Tensor:
    dtype = "fp32"
    def data_ptr(self):
        return 4096

axpy[(1,)](Tensor(), Tensor(), 64, 2.0, BLOCK=64)
"""


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize(
    "change",
    [pytest.param(one, marks=[] if place % 24 == 0 else pytest.mark.exhaustive) for place, one in enumerate(CHANGES)],
)
def test_a_triton_of_the_future_is_recorded_or_refused_in_a_sentence(change: str, tmp_path: Path) -> None:
    """Each ends in a capture of the launch, or in one sentence that says what is missing."""
    (tmp_path / "sitecustomize.py").write_text((Path(__file__).parent / "future.py").read_text())
    (script := tmp_path / "script.py").write_text(SCRIPT.format(folder=str(KERNELS.parent)))
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "IRSCOPE_FUTURE_TRITON": change}
    words = [sys.executable, "-m", "irscope", "dump", str(script), "--target", "cuda:90", "-o", "one.irscope"]
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    said = ended.stderr
    assert "Traceback" not in said, said
    if ended.returncode == 0 and (tmp_path / "one.irscope").is_file():
        capture = irscope.load(tmp_path / "one.irscope")
        assert capture.environment.triton_version == "3.10.0"
        assert "cubin" in capture.stages, said
        return
    assert ended.returncode == 1, said
    name = change.split(",")[1] or change.split(",")[0]
    # Where Triton itself uses the name, the sentence is its own.
    assert name.split(".")[-1] in said, said
    assert len(said.splitlines()) < 12, said


def test_the_future_is_one() -> None:
    """The change is made: of a Triton without it, the tests above would say nothing."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("there is no Triton to change")
    path = Path(__file__).parent / "future.py"
    shown = "print(triton.__version__, 'moved' in vars(triton))"
    code = f"import runpy\nrunpy.run_path({str(path)!r})\nimport triton\n{shown}"
    environment = {**os.environ, "IRSCOPE_FUTURE_TRITON": "triton.runtime.jit,JITFunction.is_gluon,move"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["3.10.0", "True"], ended.stderr
