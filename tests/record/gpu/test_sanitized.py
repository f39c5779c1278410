"""Sanitizers: their passes are in the compile, and what they print is read. What they find is in tests/gpu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irscope.device.measurement import Agreement
from irscope.errors import MissingTool, NoDevice, UsageError
from irscope.record.gpu.messages import LaunchChecked, LaunchPlace
from irscope.record.gpu.sanitized import (
    Sanitizer,
    exactly,
    instrumented,
    read_reports,
    require_instrumented,
    sanitize_script,
    sanitizer_named,
)
from irscope.record.gpu.session import ScriptCheck
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "examples" / "softmax.py"


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.newest
def test_the_passes_are_in_the_compile_and_their_reports_become_lines_of_python() -> None:
    pytest.importorskip("torch", reason="the script makes tensors of torch")
    request = request_for(
        SCRIPT, targets=("cuda:90",), launch=1, snapshots="none", layouts=False, disassemble=False, virtual=True
    )
    asserted: dict[Sanitizer, str] = {
        "concurrency": "Buffer being accessed has outstanding writes", "global": "Read after write race detected",
    }  # fmt: skip
    for sanitizer, text in asserted.items():
        with instrumented(sanitizer):
            capture = record_request(request).captures[0]
        require_instrumented([capture], sanitizer)
        with pytest.raises(MissingTool, match="has no fp sanitizer for cuda:90"):
            require_instrumented([capture], "fp")
        assert text in capture.text("llir")
        if sanitizer == "concurrency":
            # tl.max is of the library: the line that calls it is the kernel's.
            file = capture.text("llir").split('c"/')[1].split("\\00")[0]
            assert file.endswith("standard.py")
            number = int(re.split(r"@assertFile_0, i32 (?:noundef )?", capture.text("llir"))[1].split(",")[0])
            printed = f"/{file}:{number}: unknown: block: [2,0,0], thread: [5,0,0] Assertion `{text}` failed.\n"
            (report,) = read_reports(printed * 3, [capture])
            assert (report.what, report.block, report.thread, report.count) == (text, (2, 0, 0), (5, 0, 0), 3)
            assert report.place.startswith(f"{SCRIPT}:")
            assert "tl.max" in SCRIPT.read_text("utf-8").splitlines()[int(report.place.rpartition(":")[2]) - 1]


def test_reports_of_compute_sanitizer_are_read() -> None:
    text = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at copy_past_n+0x1f0 in kernels.py:23
=========     by thread (104,0,0) in block (3,0,0)
=========     Access at 0x7f3e2c000fa0 is out of bounds
========= Invalid __shared__ write of size 8 bytes
=========     at void other<int>(T1 *)+0x70
=========     by thread (1,0,0) in block (0,2,0)
========= ERROR SUMMARY: 2 errors
"""
    first, second = read_reports(text)
    assert (first.what, first.place, first.block) == (
        "Invalid __global__ read of size 4 bytes",
        "kernels.py:23",
        (3, 0, 0),
    )
    assert (second.place, second.thread) == ("", (1, 0, 0))
    assert read_reports("all is well\n") == ()


def test_floats_of_the_ring_are_equal_or_not() -> None:
    verdicts = [Agreement("close", 1.0, 1.0, "x", 3), Agreement("nan", detail="4 NaNs"), Agreement("timeout")]
    place = LaunchPlace(1, 1, "k", (1, 1, 1))
    checked = ScriptCheck(tuple(LaunchChecked(place, one) for one in verdicts), (), None)
    assert [row.agreement.verdict for row in exactly(checked).launches] == ["different", "identical", "timeout"]


def test_a_wrong_name_is_refused() -> None:
    assert sanitizer_named("global") == "global"
    with pytest.raises(UsageError, match="mean 'memory'"):
        sanitizer_named("memroy")


@pytest.mark.triton
@pytest.mark.newest
def test_without_a_gpu_nothing_runs() -> None:
    if any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists():
        pytest.skip("this machine has a GPU")
    pytest.importorskip("torch", reason="the script makes tensors of torch")
    request = request_for(SCRIPT, launch=1, snapshots="none", layouts=False, disassemble=False)
    with pytest.raises(NoDevice, match="compiled with the pass concurrency_sanitizer, none ran"):
        sanitize_script(request, "concurrency")
    with pytest.raises(MissingTool, match="compute-sanitizer, which is not on the PATH"):
        sanitize_script(request, "memory")
