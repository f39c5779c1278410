"""`torch.compile(dynamic=…)` on the virtual GPU: sizes are symbols where Dynamo makes them symbols."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request

pytest.importorskip("torch", reason="torch.compile needs torch, which is not installed")
pytestmark = [pytest.mark.triton, pytest.mark.newest]

PROGRAM = """
import torch

@torch.compile(dynamic=True)
def symbolic(x, n):
    return x * n + x.shape[0]

@torch.compile(dynamic=False)
def constant(x):
    return x - 1

@torch.compile
def automatic(x):
    return x / 3

for size in (640, 128, 1000):
    x = torch.randn(size, 48, device="cuda")
    for result in (symbolic(x, size), constant(x), automatic(x)):
        assert result.shape == x.shape and result.is_cuda
torch._dynamo.reset()
symbolic(torch.randn(64, 48, device="cuda"), 5)
"""


def test_a_symbolic_size_is_an_argument_of_one_kernel(tmp_path: Path) -> None:
    script = tmp_path / "sizes.py"
    script.write_text(PROGRAM, "utf-8")
    request = request_for(script, snapshots="none", config="first")
    recording = record_request(replace(request, disassemble=False, layouts=False))
    assert not recording.stopped, recording.stopped
    assert not [note for note in recording.notes if "torch.compile" in note]
    arguments: dict[str, list[bool]] = {}
    for capture in recording.captures:
        # TorchInductor passes the number of elements either way, and its kernel reads it only where it is a symbol.
        reads_size = capture.text("ttir").count("%xnumel") > 1
        arguments.setdefault(capture.graphs[0].nodes[-1].code.strip(), []).append(reads_size)
    assert arguments == {
        "return x * n + x.shape[0]": [True],
        "return x - 1": [False] * 3,
        # The second call makes the size that differs a symbol.
        "return x / 3": [False, True],
    }


@pytest.mark.parametrize(
    "programs", [pytest.param(4, marks=pytest.mark.exhaustive), pytest.param(120, marks=pytest.mark.exhaustive)]
)
def test_the_symbols_are_dynamos(programs: int) -> None:
    command = [sys.executable, "-m", "tests.record.virtual.torch.dynamic_shapes", str(programs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{programs} programs, " in done.stdout
