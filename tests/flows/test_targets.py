"""Several targets: each is what it is alone, and a stored launch follows the rules of the target it is compiled for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import irscope
from irscope.__main__ import run
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.record.compile.recompile import with_attributes
from irscope.record.process.requests import request_for, request_from_capture
from irscope.record.process.session import Recording, record_request
from irscope.record.triton.versions import untried_note
from irscope.store.file import from_bytes, to_bytes
from tests.cli.product import Run
from tests.recording import record_without_sass

HERE = Path(__file__).parents[1] / "record"
KERNELS = HERE / "kernels" / "no_torch.py"
LAUNCHES = HERE / "scripts" / "launches.py"
AXPY: dict[str, Any] = {"signature": "*fp32:16, *fp32, i32:16, fp32", "constexprs": {"BLOCK": 256}, "kernel": "axpy"}
PRODUCT: dict[str, Any] = {
    "signature": "*fp16:16, *fp16:16, *fp32:16, i32:16",
    "constexprs": {"BLOCK": 64},
    "kernel": "tile_product",
}


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process."""

    def command(*arguments: object) -> tuple[int, str, str]:
        code = run([str(one) for one in arguments])
        answer = capsys.readouterr()
        return code, answer.out, answer.err

    return command


def launched(how: str, *targets: str) -> Recording:
    request = request_for(LAUNCHES, targets=targets, arguments=(how,), snapshots="none", virtual=True)
    return record_request(replace(request, disassemble=False, layouts=False))


def of_signature(
    kernel: dict[str, Any], targets: tuple[str, ...], options: Mapping[str, int] = MappingProxyType({})
) -> tuple[Capture, ...]:
    request = request_for(KERNELS, **kernel, targets=targets, options=options, snapshots="none", disassemble=False)
    return tuple(record_request(replace(request, layouts=False)).captures)


def again(capture: Capture, target: str) -> Capture:
    request = request_from_capture(capture, targets=(target,), snapshots="none")
    (fresh,) = record_request(replace(request, disassemble=False, layouts=False)).captures
    return fresh


def texts(capture: Capture) -> dict[str, str | bytes]:
    """All but the disassembly, and the cubin, of which ptxas may make another from the same PTX."""
    return {item.stage: item.data for item in capture.artifacts if item.stage not in ("sass", "cubin")}


@pytest.mark.triton
def test_an_llvm_text_becomes_the_assembly_of_the_compile_it_is_of(tmp_path: Path) -> None:
    """A fresh process has none of LLVM's flags that the stage before sets."""
    for target, assembly in (("cuda:90", "ptx"), ("hip:gfx942", "amdgcn")):
        whole = record_without_sass(KERNELS, **PRODUCT, target=target, snapshots="none", layouts=False)
        path = tmp_path / "tile_product.llir"
        path.write_text(whole.text("llir"))
        fresh = record_without_sass(path, target=target, snapshots="none", layouts=False)
        assert fresh.text(assembly) == whole.text(assembly)


@pytest.mark.newest
@pytest.mark.triton
def test_a_signature_for_several_targets_has_each_ones_defaults() -> None:
    targets = ("cuda:90", "hip:gfx942")
    several = of_signature(AXPY, targets)
    assert [str(capture.target) for capture in several] == list(targets)
    for capture, target in zip(several, targets, strict=True):
        (alone,) = of_signature(AXPY, (target,))
        assert capture.id == alone.id
        assert texts(capture) == texts(alone)
    assert [capture.launch.option("num_stages") for capture in several] == [3, 2]
    assert [note for note in several[1].notes if note != untried_note()] == [
        "Compiled from a signature: the tensors' sizes are not known, so tt.pointer_range=32 is left out."
    ]


@pytest.mark.newest
@pytest.mark.triton
def test_a_stored_signature_is_that_signature_for_another_target() -> None:
    first, *others = of_signature(PRODUCT, ("cuda:90", "hip:gfx942", "cuda:80"), {"num_warps": 8})
    for other in others:
        fresh = again(first, str(other.target))
        assert fresh.launch.set_options == (("num_warps", 8),)
        assert fresh.id == other.id
        assert texts(fresh) == texts(other)
        assert any("may choose other" in note for note in fresh.notes)


@pytest.mark.newest
@pytest.mark.triton
def test_an_old_capture_says_what_was_taken_for_granted() -> None:
    (first,) = of_signature(AXPY, ("cuda:90",), {"num_warps": 8})
    old = from_bytes(to_bytes(replace(first, launch=replace(first.launch, set_options=None))))
    fresh = again(old, "hip:gfx942")
    assert (fresh.launch.option("num_warps"), fresh.launch.option("num_stages")) == (8, 2)
    assert any("(num_warps=8)" in note for note in fresh.notes)
    assert any("no record of its launch" in note and "tt.pointer_range=32" in note for note in fresh.notes)


@pytest.mark.triton
def test_a_launch_is_recorded_with_what_it_was_given_and_followed_elsewhere() -> None:
    recording = launched("well", "cuda:90", "cuda:80")
    first, _, own, _ = recording.captures
    assert first.launch.set_options == (("num_warps", 8),)
    assert first.launch.record == LaunchRecord(
        (
            Argument("x_ptr", "tensor", "fp32", None, (1000, 2), (2, 1), None, 8000, 512),
            Argument("pair[0]", "tensor", "fp32", None, (1000, 2), (2, 1), None, 8000, 4),
            Argument("pair[1]", "scalar", "int", 32),
            Argument("n", "scalar", "int", 1000),
            Argument("value", "scalar", "float", 1.0),
        )
    )
    assert from_bytes(to_bytes(first)) == first
    # The kernel is told its GPU, so the program's own compile there differs in that constant alone.
    assert dict(own.launch.constants)["ARCH"] == "80"
    assert replace(own.launch, constants=(), options=()) == replace(first.launch, constants=(), options=())
    fresh = again(first, "hip:gfx942")
    assert dict(fresh.launch.attributes) == {
        "x_ptr": "tt.divisibility=16, tt.pointer_range=32",
        "pair[0]": "tt.pointer_range=32",
        "pair[1]": "tt.divisibility=16",
    }
    assert fresh.text("source").count("tt.pointer_range = 32 : i32") == 2
    assert (fresh.launch.option("num_warps"), fresh.launch.option("num_stages")) == (8, 2)
    back = again(fresh, "cuda:90")
    assert back.id == first.id
    assert texts(back) == texts(first)


@pytest.mark.newest
@pytest.mark.triton
def test_what_triton_finds_in_its_cache_is_the_first_launch() -> None:
    captures = launched("again", "cuda:90").captures
    assert [(capture.launch.grid, capture.launch.option("num_warps")) for capture in captures] == [
        ((3, 2, 1), 8),
        ((5, 1, 1), 4),
    ]


@pytest.mark.triton
def test_a_launch_that_reuses_a_tuned_configuration_has_its_label(tmp_path: Path) -> None:
    script = tmp_path / "tuned.py"
    buffer = LAUNCHES.read_text().partition("@triton.jit")[0]
    script.write_text(
        buffer
        + """
@triton.autotune([triton.Config({"B": 64}, num_warps=2), triton.Config({"B": 128}, num_warps=4)], key=["n"])
@triton.jit
def fill_kernel(x_ptr, n, B: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B), 1.0, mask=tl.arange(0, B) < n)

for address in (4096, 4100):
    fill_kernel[(1,)](Buffer(address), 1000)
"""
    )
    request = request_for(script, targets=("cuda:90",), snapshots="none", virtual=True)
    captures = record_request(replace(request, disassemble=False, layouts=False)).captures
    labels = [capture.launch.autotuning for capture in captures]
    assert [(label.index, label.count) for label in labels if label is not None] == [(0, 2), (0, 2)]
    assert dict(captures[1].launch.attributes).get("x_ptr") is None


@pytest.mark.newest
@pytest.mark.triton
def test_a_target_that_fails_leaves_the_others_alone(command: Run) -> None:
    recording = launched("fails-on-80", "cuda:80", "cuda:90")
    assert [(str(capture.target), capture.status) for capture in recording.captures] == [
        ("cuda:80", "failed"),
        ("cuda:80", "ok"),
        ("cuda:90", "ok"),
        ("cuda:90", "ok"),
    ]
    assert not recording.stopped
    assert not recording.refusals
    options = ("--virtual", "-t", "cuda:80", "-t", "cuda:90", "--snapshots", "none")
    code, out, err = command("dump", LAUNCHES, *options, "--launch", 2, "-s", "ttir", "--", "refuses-80")
    assert code == 1
    assert "stopped on cuda:80: NotImplementedError: not for this GPU; the 2 compiled so far are kept." in err
    assert out.count("tt.func public") == 1
    code, out, err = command("dump", LAUNCHES, *options, "--launch", 2, "-s", "ttir", "--", "well")
    assert (code, err.replace(untried_note(), "").strip()) == (0, "")
    assert "// fill_kernel · cuda:80 · ttir" in out
    assert "// fill_kernel · cuda:90 · ttir" in out


@pytest.mark.newest
@pytest.mark.triton
def test_a_script_that_raises_after_a_launch_fails_with_its_captures_kept(command: Run) -> None:
    code, out, err = command("dump", LAUNCHES, "--virtual", "-t", "cuda:90", "--snapshots", "none", "--", "raises")
    assert code == 1
    assert out.count("fill_kernel") == 2
    assert "ValueError: after the launches; the 2 compiled so far are kept." in err


@pytest.mark.triton
def test_a_missing_device_library_fails_the_stage_that_links_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_LIBDEVICE_PATH", "/no/such/libdevice.bc")
    failure = irscope.record(KERNELS, **AXPY, target="cuda:90").failure
    assert failure is not None
    assert failure.stage == "llir"
    assert "/no/such/libdevice.bc" in failure.message


@pytest.mark.triton
@pytest.mark.newest
def test_a_program_for_several_targets_is_that_program_alone_on_each() -> None:
    """A sample; `python tests/record/targets.py TARGET...` does every part, Liger's where it is installed."""
    command = [sys.executable, HERE / "targets.py", "cuda:80", "hip:gfx942", "--", LAUNCHES, "well"]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.count(": 2 kernels, alone 2, different 0") == 2, answer.stdout + answer.stderr


def test_attributes_are_set_by_the_place_of_the_argument() -> None:
    text = (
        "  tt.func public @k(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc(#a), %t.0: !tt.ptr<!tt.ptr<i8>>, "
        "%n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {\n    %a: i32 {x}\n"
    )
    changed, unplaced = with_attributes(
        text,
        "k",
        {"a": "*fp32", "B": "constexpr", "t": "(**i8, constexpr)", "n": "i32"},
        {"a": (), "t[0]": (("tt.pointer_range", 32), ("tt.divisibility", 16)), "gone": (("x", 1),)},
    )
    assert changed == (
        "  tt.func public @k(%a: !tt.ptr<f32> loc(#a), %t.0: !tt.ptr<!tt.ptr<i8>> {tt.divisibility = 16 : i32, "
        "tt.pointer_range = 32 : i32}, %n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {\n"
        "    %a: i32 {x}\n"
    )
    assert unplaced == ("gone",)
