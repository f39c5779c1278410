"""A real Ctrl-C, sent to the process group of a real `irscope reduce` that reduces a compile that does not end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.cli.reduce import default_limit_s
from irscope.model.capture import Artifact, Capture, Failure
from irscope.store.file import save
from tests.analysis.recorded import stored

HANG = Failure("timeout", "the compile took longer than 3 s and was ended.", "cubin")
ROOTS = """module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>, %x: f32) {
    %0 = math.rsqrt %x : f32
    %1 = arith.addf %0, %x : f32
    %2 = arith.mulf %1, %x : f32
    tt.store %p, %2 : !tt.ptr<f32>
    tt.return
  }
}
"""


def hanging(**durations: float) -> Capture:
    """A capture of which some stages took so many seconds, and whose assembler did not end."""
    artifacts = tuple(Artifact(stage, ROOTS, duration_us=round(1e6 * took)) for stage, took in durations.items())
    return replace(stored("chains", "cuda:90"), status="failed", failure=HANG, artifacts=artifacts)


def test_the_limit_follows_from_what_ended() -> None:
    limits = {0.01: 2.0, 0.5: 5.0, 1.0: 10.0, 9.0: 20.0}
    assert {took: default_limit_s(hanging(ttgir=took / 2, llir=took / 2)) for took in limits} == limits
    assert default_limit_s(stored("chains", "cuda:90")) == 20.0


@pytest.fixture
def assembler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Notes each call in the file it returns, and does not end where a square root is taken."""
    calls, program = tmp_path / "calls", tmp_path / "ptxas"
    calls.touch()
    program.write_text(
        f"""#!/bin/sh
case "$*" in *--version*) echo 'Cuda compilation tools, release 12.9, V12.9.86'; exit 0;; esac
for file in "$@"; do case "$file" in *.ptx)
    echo called >> {calls}
    if grep -q rsqrt "$file"; then exec sleep 321.75; fi;;
esac; done
echo 'no such instruction' >&2
exit 1
"""
    )
    program.chmod(0o755)
    for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        monkeypatch.setenv(name, str(program))
    return calls


def count_running(text: str) -> int:
    """How many processes have this in their command line."""
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return sum(text in line for line in lines)


def waited_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while process.poll() is None and not condition():
        time.sleep(0.02)


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(("calls", "times"), [(1, 1), (4, 1), (4, 2)])
def test_the_best_is_written(
    calls: int, times: int, assembler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(scratch := tmp_path / "scratch"))
    scratch.mkdir()
    save(hanging(ttgir=0.01, llir=0.01), tmp_path / "k.irscope")
    file = tmp_path / "made" / "reduced.mlir"
    file.parent.mkdir()
    command = [sys.executable, "-m", "irscope", "reduce", str(tmp_path / "k.irscope")]
    with subprocess.Popen(
        [*command, "-o", str(file), "-j", "1", "--limit", "1.5"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        for number in range(times):
            waited_for(lambda number=number: assembler.read_text().count("called") >= calls + number, process)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert (out, count_running("321.75"), [*scratch.iterdir()]) == ("", 0, [])
    assert {one.name for one in file.parent.iterdir()} <= {file.name}
    if calls == 1:
        # That it hangs is not known yet.
        assert "interrupted" in err
        return
    assert "kept: it hangs in" in err
    assert "the same command, without --fresh, resumes" in err
    text = file.read_text()
    assert "rsqrt" in text
    assert text.count("{") == text.count("}")
    assert "--timeout 1.5" in text
