"""`irscope profile`: reports read from files, profiles that captures hold, and launches under a stand-in for ncu."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.cli import profile as command
from irscope.ir.asm.instructions import Instruction
from irscope.model.capture import Capture, Environment, Target
from irscope.model.evidence import Profile
from irscope.store.file import load, save
from irscope.store.recent import CaptureStore
from tests.analysis.counters.pages import page_of, small_capture
from tests.cli.product import ROOT, Run

FAKE = ROOT / "tests" / "record" / "device" / "fake_ncu.py"
SCRIPT = ROOT / "tests" / "gpu" / "scripts" / "row_sum.py"


def planted(one: Instruction) -> dict[str, object]:
    """A load that is waited for at the addition, and a store of twice the sectors that it needs."""
    if one.opcode == "FADD":
        return {"# Samples": 40, "stall_long_sb": 30, "stall_wait": 8, "stall_selected": 2}
    if one.opcode.startswith("STG"):
        return {"# Samples": 1, "stall_wait": 1, "L2 Theoretical Sectors Global": 32, "L1 Tag Requests Global": 8}
    return {}


@pytest.fixture
def report(tmp_path: Path) -> tuple[Path, Path]:
    """A capture's file, and the report of its launch."""
    capture = small_capture()
    save(capture, tmp_path / "kernel.irscope")
    (tmp_path / "report.csv").write_text(page_of(capture, planted), "utf-8")
    return tmp_path / "kernel.irscope", tmp_path / "report.csv"


def test_a_report_made_elsewhere_is_joined_and_kept(irscope: Run, report: tuple[Path, Path]) -> None:
    code, out, err = irscope("profile", report[0], "--counters", report[1])
    assert code == 0, err
    head, columns, first, second, *_ = out.splitlines()
    assert "kernel, grid 16×1×1" in head
    assert columns.split()[:3] == ["stalls", "share", "operation"]
    # The addition waits for what the load brings.
    assert first.split()[:6] == ["38", "97.4", "%", "arith.addf", "5", "kernels.py:12"]
    assert "tt.load (4) 78.9 %, a fixed latency 21.1 %" in first
    assert second.split()[:6] == ["1", "2.6", "%", "tt.store", "6", "kernels.py:13"]
    assert "no predictions: the capture holds no record of a launch" in out
    assert "7 instructions of warps; 41 samples, 39 of them of stalled warps" in out
    stored = CaptureStore().load("last")
    assert stored.profile is not None
    assert not stored.profile.own_binary
    assert irscope("profile", stored.id)[1] == out


def test_a_launch_of_another_size_is_not_compared(irscope: Run, tmp_path: Path) -> None:
    source = ROOT / "tests" / "data" / "counters" / "strided.irscope"
    capture = load(source)
    assert "no predictions" not in irscope("profile", source)[1]
    save(replace(capture, launch=replace(capture.launch, grid=(3, 1, 1))), tmp_path / "other.irscope")
    code, out, _ = irscope("profile", tmp_path / "other.irscope", "--json")
    assert code == 0
    (found,) = json.loads(out)
    assert found["uncompared"] == "the profile is of a launch of 8 warps, the capture's has 12"
    assert not any(row["comparisons"] for row in found["operations"])
    assert found["predicted_executed"] is None


def test_the_report_of_other_code_is_refused(irscope: Run, report: tuple[Path, Path]) -> None:
    report[1].write_text(report[1].read_text("utf-8").replace("FADD", "FMUL"), "utf-8")
    code, out, err = irscope("profile", report[0], "--counters", report[1])
    assert (code, out) == (2, "")
    assert "report.csv': it profiled code that differs from kernel" in err
    assert "at 0030 it has 'FMUL R4, R4, R4', the capture 'FADD R4, R4, R4'" in err
    assert CaptureStore().paths() == []


def test_a_capture_of_another_maker_is_refused(irscope: Run, report: tuple[Path, Path]) -> None:
    save(replace(load(report[0]), target=Target.parse("hip:gfx942")), report[0])
    code, _, err = irscope("profile", report[0], "--counters", report[1])
    assert code == 2
    assert "counters of NVIDIA GPUs only. AMD's own tool is rocprofv3" in err


def test_a_capture_without_a_profile_says_how_to_make_one(irscope: Run, report: tuple[Path, Path]) -> None:
    code, _, err = irscope("profile", report[0])
    assert code == 2
    assert "holds no profile" in err
    assert "irscope profile FILE.py on a machine with a GPU" in err


def test_variants_need_the_launch(irscope: Run, report: tuple[Path, Path]) -> None:
    code, _, err = irscope("profile", report[0], "--counters", report[1], "--vs", "-combine")
    assert code == 2
    assert "give the FILE" in err


def test_a_machine_without_nsight_compute(irscope: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = irscope("profile", SCRIPT)
    assert code == 1
    assert "Nsight Compute is not installed" in err


def test_without_operations_the_rows_are_lines_of_python(irscope: Run, report: tuple[Path, Path]) -> None:
    sass = small_capture().text("sass").replace("        0030", '//## File "kernels.py", line 12\n        0030')
    capture = replace(load(report[0]), operations=())
    artifacts = tuple(replace(one, data=sass) if one.stage == "sass" else one for one in capture.artifacts)
    save(replace(capture, artifacts=artifacts), report[0])
    code, out, _ = irscope("profile", report[0], "--counters", report[1])
    assert code == 0
    assert out.splitlines()[2].split()[:4] == ["39", "100", "%", "kernels.py:12"]
    assert "By line of Python, without predictions: operations of instructions are not known" in out


@pytest.fixture
def on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Capture:
    """A recorded launch on a GPU, with a stand-in for Nsight Compute that measures it twice."""
    capture = replace(small_capture(), environment=Environment(gpu="Fake GPU"))
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "ncu"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("FAKE_PAGES", str(tmp_path / "pages.csv"))
    monkeypatch.setenv("FAKE_SAID", str(tmp_path / "said"))
    monkeypatch.setenv("FAKE_SOURCE", capture.text("source"))
    (tmp_path / "pages.csv").write_text(
        page_of(capture, planted) + page_of(capture, lambda one: {"stall_long_sb": 3 * (one.opcode == "FADD")}), "utf-8"
    )
    monkeypatch.setattr(command, "one_capture", lambda *_: (capture, 1))
    monkeypatch.setattr(command, "compiled", lambda *_: capture)
    return capture


def test_a_launch_and_a_variant_side_by_side(irscope: Run, on_a_gpu: Capture) -> None:
    code, out, err = irscope("profile", SCRIPT, "--vs", "num_warps=8")
    assert code == 0, err
    assert f"{on_a_gpu.id[:8]} kernel, grid 16×1×1 on Fake GPU, Nsight Compute 2025.3.1.0" in out
    assert "kernel (num_warps=8), grid" in out
    table = [line.split() for line in out.splitlines() if line.startswith("kernels.py:12")]
    assert table == [["kernels.py:12", "38", "3", "1", "1"]]


def test_json_has_every_variant(irscope: Run, on_a_gpu: Capture) -> None:
    code, out, _ = irscope("profile", SCRIPT, "--vs", "num_warps=8", "--json")
    assert code == 0
    own, other = json.loads(out)
    assert (own["variant"], other["variant"]) == ("", "num_warps=8")
    assert own["own_binary"]
    assert [row["operation"] for row in own["operations"]][:2] == ["arith.addf", "tt.store"]
    assert own["counters"]["stalls"] == {"long_sb": 30, "wait": 9, "selected": 2}


def test_a_launch_needs_a_gpu(irscope: Run, on_a_gpu: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "one_capture", lambda *_: (replace(on_a_gpu, environment=Environment()), 1))
    code, _, err = irscope("profile", SCRIPT)
    assert code == 1
    assert "finds no GPU on this machine" in err


def test_a_capture_keeps_its_profile_in_its_file(tmp_path: Path) -> None:
    capture = replace(small_capture(), profile=Profile(page_of(small_capture(), planted), "a GPU", "a tool", True))
    assert load(save(capture, tmp_path / "kernel.irscope")) == capture
    assert capture.id == small_capture().id
