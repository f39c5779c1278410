"""Promise: the operation that is told of each instruction is told by a compile to the same code.

A kernel on each of two targets here; `make exhaustive` does every example's on each,
`python tests/record/operations.py TARGET` on one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.marks import newest_but
from tests.record.operations import ONE_CASE_A_KERNEL

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "cuda:120", "hip:gfx942")
NAMES = list(ONE_CASE_A_KERNEL.values())


@pytest.mark.triton
@pytest.mark.parametrize("target", newest_but(["cuda:80"], "cuda:80", "hip:gfx942"))
def test_the_code_is_the_same(target: str) -> None:
    check(target, NAMES[TARGETS.index(target) :: 3 * len(TARGETS)])


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.parametrize("target", TARGETS)
def test_of_every_kernel(target: str) -> None:
    check(target, NAMES)


def check(target: str, names: list[str]) -> None:
    root = Path(__file__).parents[2]
    answer = subprocess.run(
        [sys.executable, str(root / "tests" / "record" / "operations.py"), target, *names],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)}, timeout=3600, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert len(answer.stdout.splitlines()) == len(names), answer.stdout
