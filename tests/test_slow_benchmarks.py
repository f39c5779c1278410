"""The benchmark of slow kernels runs, with the names that irscope has now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.triton, pytest.mark.newest]


BOTH = """
import sys
from benchmarks.slow import fixes
from benchmarks.slow.__main__ import main
folder, *words = sys.argv[1:]
sys.argv[1:] = words
main()
sys.argv[1:] = ["prepare", folder, *words]
fixes.main()
"""
"""In one process: importing torch and Triton twice takes longer than judging a pair."""


def test_a_pair_is_judged_and_its_fix_prepared(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-c", BOTH, str(tmp_path), "--only", "mask of <= n - 1", "--workers", "1"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "1 of 1 causes are first, 1 twins have no finding above 5%" in answer.stdout
    assert "mask of <= n - 1 slow: < in place of <=" in answer.stdout
