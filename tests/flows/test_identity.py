"""Promise: with an empty plan nothing changes, and a capture's own source compiles to the same again.

Two thirds of the examples' kernels on one target each here; `make exhaustive` does all cases of all kernels on each,
`python tests/record/identity.py TARGET` every kernel on one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.marks import newest_but
from tests.record.identity import CASES, ONE_CASE_A_KERNEL

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "cuda:120", "hip:gfx942")
NAMES = list(ONE_CASE_A_KERNEL.values())
LIKE_OTHERS = ("matrix_copy", "matrix_transpose", "flash_attention_1d", "vector_add", "layer_norm_backward")
"""Kernels whose compile is much like that of another one: `make exhaustive` does them."""


@pytest.mark.triton
@pytest.mark.parametrize("target", newest_but(["cuda:90", "hip:gfx942"], *TARGETS, rare={"cuda:80", "cuda:120"}))
def test_tapped_plain_and_made_again_are_the_same_bytes(target: str) -> None:
    check(target, {name for name in NAMES[TARGETS.index(target) :: len(TARGETS)] if name not in LIKE_OTHERS})


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.parametrize("target", TARGETS)
def test_of_every_case(target: str) -> None:
    check(target, {case.name for case in CASES})


def check(target: str, names: set[str]) -> None:
    root = Path(__file__).parents[2]
    answer = subprocess.run(
        [sys.executable, str(root / "tests" / "record" / "identity.py"), target, *names],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)}, timeout=3600, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr
    rows = [line for line in answer.stdout.splitlines() if line.endswith(": identical")]
    assert len(rows) == len(names), answer.stdout
