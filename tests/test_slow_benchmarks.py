"""The benchmark of slow kernels runs, with the names that irscope has now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.triton, pytest.mark.newest]


def test_a_pair_is_judged_and_its_fix_prepared(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = ("--only", "mask of <= n - 1", "--workers", "1")
    commands = (["benchmarks.slow", *words], ["benchmarks.slow.fixes", "prepare", str(tmp_path), *words])
    answers = [
        subprocess.run([sys.executable, "-m", *one], cwd=ROOT, capture_output=True, text=True, check=False)
        for one in commands
    ]
    assert [one.returncode for one in answers] == [0, 0], [one.stderr for one in answers]
    assert "1 of 1 causes are first, 1 twins have no finding above 5%" in answers[0].stdout
    assert "mask of <= n - 1 slow: < in place of <=" in answers[1].stdout
