"""`irscope reproduce`: the file compiles to the capture's own bytes, and the check finds what differs."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irscope.__main__ import run
from irscope.model.capture import Artifact, Capture, Failure
from irscope.model.launch_record import Argument, LaunchRecord, without_largest
from irscope.store.file import load, save
from tests.analysis.recorded import stored
from tests.marks import newest_but


def put(capture: Capture, folder: Path) -> str:
    path = folder / "it.irscope"
    save(capture, path)
    return str(path)


def test_the_file_is_written_without_triton(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(stored("chains", "cuda:90"), tmp_path)
    assert run(["reproduce", path, "-o", str(tmp_path / "file.py")]) == 0
    assert run(["reproduce", path, "--verify"]) == 2
    assert (
        "was not recorded here, nor derived from one that was, and --verify runs its Python" in capsys.readouterr().err
    )
    text = (tmp_path / "file.py").read_text("utf-8")
    assert "irscope" not in re.sub(r'^""".*?"""', "", text, flags=re.DOTALL)
    assert text.index("def scaled(x, factor)") < text.index("def chains(x_ptr")


def test_a_failure_without_ir_and_python_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = stored("chains", "cuda:90")
    kernel = replace(capture.launch.kernel, source="", file="gone.py")
    failed = replace(
        capture, launch=replace(capture.launch, kernel=kernel), artifacts=(), sources=(), status="failed",
        failure=Failure("compile", "NameError: x"),
    )  # fmt: skip
    assert run(["reproduce", put(failed, tmp_path)]) == 1
    assert "holds no IR. Record the script again" in " ".join(capsys.readouterr().err.split())


KERNELS = """
import triton
import triton.language as tl

LIMIT = tl.constexpr(7)


@triton.jit
def scaled(x, factor: tl.constexpr):
    tl.static_assert(factor < LIMIT, "the factor is too large")
    return x * factor


@triton.autotune(configs=[], key=[])
@triton.jit
def loop(x_ptr, n, BLOCK: tl.constexpr, FACTOR: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += scaled(tl.load(x_ptr + start + tl.arange(0, BLOCK)), FACTOR)
    tl.store(x_ptr + tl.arange(0, BLOCK), total)
"""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A kernel compiled as it is, with a pass off, and with an assertion of its own that fails."""
    from irscope.plan import PassPlan
    from irscope.record.process.requests import request_for
    from irscope.record.process.session import record_request

    folder = tmp_path_factory.mktemp("reproduce")
    script = folder / "kernels.py"
    script.write_text(KERNELS.replace("@triton.autotune(configs=[], key=[])\n", ""), "utf-8")
    made: dict[str, Path] = {}
    for name, factor, plan in [
        ("plain", "5", ""),
        ("off", "5", "-ttir:inliner"),
        ("failed", "9", ""),
    ]:
        request = request_for(
            script, kernel="loop", targets="cuda:90", disassemble=False, layouts=False, signature="*fp32:16, i32",
            constexprs={"BLOCK": "128", "FACTOR": factor}, plan=PassPlan.parse(plan),
        )  # fmt: skip
        made[name] = folder / f"{name}.irscope"
        save(record_request(request).captures[0], made[name])
    return made


@pytest.mark.triton
@pytest.mark.parametrize("name", newest_but([], "plain", "off", "failed"))
def test_the_file_makes_the_same_bytes(
    captures: dict[str, Path], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["reproduce", str(captures[name]), "--verify", "--trust"])
    said = capsys.readouterr()
    assert code == 0, said
    if name == "failed":
        assert "it failed in the front end as recorded" in said.out
    else:
        # Without the inliner 3.6 fails after that, and so does the file.
        assert said.out.startswith("identical: source, ttir" + (", ttgir, llir, ptx, cubin" if name == "plain" else ""))


@pytest.mark.newest
@pytest.mark.triton
def test_what_differs_is_found(captures: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, off = load(captures["plain"]), load(captures["off"])
    changed = replace(
        plain,
        artifacts=tuple(Artifact("llir", "other") if one.stage == "llir" else one for one in plain.artifacts),
        failure=Failure("pass", "it failed", "llir"),
        status="failed",
    )
    assert run(["reproduce", put(changed, tmp_path), "--verify", "--trust"]) == 1
    said = capsys.readouterr().out
    assert "different: llir\nidentical: source, ttir, ttgir, ptx, cubin\n" in said
    assert "failure: it compiled, and the capture failed in stage llir" in said
    # So the file of the other could not have made its bytes without the plan.
    assert plain.text("ttir") != off.text("ttir")


@pytest.mark.newest
@pytest.mark.triton
def test_from_ir_where_the_python_text_is_not_enough(
    captures: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = replace(load(captures["plain"]), sources=())
    run(["reproduce", put(capture, tmp_path), "--verify", "--trust", "-o", str(tmp_path / "file.py")])
    made = capsys.readouterr()
    said = " ".join(made.err.split())
    assert "resumes from the IR of stage source" in said
    assert "the capture does not hold scaled, which loop uses" in said
    assert re.search(r"^(identical|different): .*source, ", made.out, re.MULTILINE)
    environment = {**os.environ, "PYTHONPATH": ""}
    ended = subprocess.run(
        [sys.executable, str(tmp_path / "file.py")], capture_output=True, text=True, env=environment, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["compiled for cuda:90", "not launched: compiled from IR"]


GATHER = """
import torch
import triton
import triton.language as tl


@triton.jit
def gather(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.store(out_ptr + places, tl.load(x_ptr + tl.load(index_ptr + places)))


index = (torch.arange(128, device="cuda") * 7 % 128 + 3)[::2]
gather[(1,)](torch.randn(200, device="cuda"), index, torch.empty(64, device="cuda"), BLOCK=64)
"""


@pytest.mark.newest
@pytest.mark.triton
def test_tensors_have_the_values_that_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Random ones within the range of the script's own, and with --data its own and what the launch left."""
    torch = pytest.importorskip("torch", reason="it makes tensors with torch")
    (script := tmp_path / "gather.py").write_text(GATHER)
    index = (torch.arange(128) * 7 % 128 + 3)[::2]
    made = {}
    for name, words in (("data", ("--data",)), ("range", ())):
        assert run(["reproduce", str(script), "--target", "cuda:90", *words, "-o", str(tmp_path / f"{name}.py")]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert "Without data" not in said
        text = (tmp_path / f"{name}.py").read_text("utf-8").replace('device="cuda"', 'device="cpu"')
        namespace = {"__name__": name, "torch": torch}
        exec(compile(text, str(tmp_path / f"{name}.py"), "exec"), namespace)
        made[name] = namespace["arguments"]()[1]
    assert made["data"].tolist() == index.tolist()
    assert made["data"].stride() == made["range"].stride() == (2,)
    assert int(index.min()) <= int(made["range"].min()) < int(made["range"].max()) <= int(index.max())
    # Without a GPU the CPU says what the launch left.
    text = (tmp_path / "data.py").read_text("utf-8").replace('device="cuda"', 'device="cpu"')
    namespace = {"__name__": "data", "torch": torch}
    exec(compile(text, str(tmp_path / "data.py"), "exec"), namespace)
    given = namespace["arguments"]()
    (out,) = [one for one in given if getattr(one, "shape", None) == (64,) and one.is_floating_point()]
    # The kernel takes no stride: it reads the first half of the storage.
    out[:] = given[0][(torch.arange(128) * 7 % 128 + 3)[:64]]
    assert namespace["what_differs"](given) == "\nthe result is the one that irscope computed on the CPU, bit for bit"


@pytest.mark.newest
def test_the_results_of_the_launch_are_compared_by_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a launch reads and leaves goes through the record into the file, and one element that differs is found."""
    torch = pytest.importorskip("torch", reason="it makes tensors with torch")
    from irscope.record.programs.launch_watch import launch_contents

    capture = stored("chains", "cuda:90")
    signature = (("x_ptr", "*fp32"), ("out_ptr", "*fp32"), ("n", "i32"))
    capture = replace(capture, launch=replace(capture.launch, signature=signature))
    names = [name for name, _ in signature]
    tensors = {name: torch.arange(64.0) for name, kind in capture.launch.signature if kind.startswith("*")}
    last = [*tensors][-1]
    kernel = SimpleNamespace(src=SimpleNamespace(fn=SimpleNamespace(arg_names=names)))
    values = tuple(tensors.get(name, 7) for name in names)
    _, contents = launch_contents(kernel, values, 1 << 20, lambda: tensors[last].mul_(2))
    assert [path for path, _, result in contents if result] == [last]
    assert launch_contents(kernel, values, 100, lambda: 5) == (5, tuple((name, "", "") for name in tensors))
    assert launch_contents(kernel, values[1:], 1 << 20, lambda: 5) == (5, ())

    record = LaunchRecord(
        tuple(
            Argument(name, "tensor", "float32", shape=(64,), strides=(1,))
            if name in tensors
            else Argument(name, "scalar", "int", 7)
            for name in names
        )
    )
    launch = replace(capture.launch, record=record.with_contents(contents), grid=(1, 1, 1))
    held = load(Path(put(replace(capture, launch=launch), tmp_path)))
    assert held.launch.record == launch.record
    assert run(["reproduce", str(tmp_path / "it.irscope"), "--data", "-o", str(tmp_path / "file.py")]) == 0
    text = (tmp_path / "file.py").read_text("utf-8").replace('device="cuda"', 'device="cpu"')
    namespace: dict[str, Any] = {"torch": torch, "zlib": zlib, "base64": base64, "tl": None}
    exec(compile(text[text.index("\nGRID = ") : text.index("\ndef main")], "file.py", "exec"), namespace)
    given = namespace["arguments"]()
    assert given[names.index(last)].tolist() == torch.arange(64.0).tolist()
    given[names.index(last)].mul_(2)
    assert namespace["what_differs"](given) == "\nthe result is the one that irscope computed on the CPU, bit for bit"
    given[names.index(last)][5] += 0.5
    assert namespace["what_differs"](given) == (
        f"\n{last}: 1 of 64 elements are not those of the one that irscope computed on the CPU, by up to 0.5"
    )
    capsys.readouterr()

    # Of a tensor that was too large the size is said, and no results are compared.
    lost = record.with_contents((path, "" if path == last else data, "") for path, data, _ in contents)
    large = replace(
        lost, arguments=tuple(replace(one, shape=(1 << 20,)) if one.path == last else one for one in lost.arguments)
    )
    put(replace(capture, launch=replace(launch, record=large)), tmp_path)
    words = ("--data", "--data-limit", "2", "-o", str(tmp_path / "file.py"))
    assert run(["reproduce", str(tmp_path / "it.irscope"), *words]) == 0
    assert f"larger than --data-limit 2: {last} (4 MiB)" in " ".join(capsys.readouterr().err.split())
    assert "EXPECTED" not in (tmp_path / "file.py").read_text("utf-8")


def test_what_is_too_large_together_is_left_out_from_the_largest_on() -> None:
    kept = without_largest({"a": "x" * (6 << 20), "b": "y", "c": "z" * (7 << 20), "d": ""})
    assert {path for path, data in kept.items() if data} == {"a", "b"}
