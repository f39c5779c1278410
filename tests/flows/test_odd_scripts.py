"""Programs that do odd things behave as without irscope, and lose no compile, with one process and with workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="it records, and Triton is not installed")

from tests.record.odd_scripts import SCRIPTS, recorded, run_plainly, write

pytestmark = [pytest.mark.triton, pytest.mark.newest]

_SAMPLE = (
    "asyncio.to_thread",
    "opens files with the numbers that it closed",
    "stdout without flush",
    "launches in atexit",
    "os.environ.clear()",
    "removes irscope-* from TMPDIR",
    "a stage has no memory",
)


def check(name: str, folder: Path) -> None:
    script = write(name, folder)
    plain = run_plainly(script)
    one, several = (recorded(script, jobs) for jobs in (1, 2))
    for each in (one, several):
        assert (each.said, each.code, each.compiled) == (plain.said, plain.code, plain.compiled)
        assert each.left == ()
    assert several.captures == one.captures
    assert several.notes == one.notes


@pytest.mark.parametrize("name", _SAMPLE)
def test_an_odd_script_is_recorded_as_it_runs(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in _SAMPLE])
def test_every_odd_script(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.parametrize("jobs", [pytest.param("1", marks=pytest.mark.exhaustive), "2"])
def test_a_parent_that_ignores_sigchld(jobs: str, tmp_path: Path) -> None:
    script = write("caught", tmp_path)
    dump = [sys.executable, "-m", "irscope", "dump", script, "--target", "cuda:90", "--jobs", jobs, "--json"]
    # Every process has it from its parent, and learns of no child how it ended.
    command = ["bash", "-c", "trap '' CHLD; exec \"$@\"", "bash", *dump]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    failed = [one["failure"] is not None for one in json.loads(done.stdout)]
    assert (done.returncode, failed) == (1, [False, False, True, False]), done.stderr
