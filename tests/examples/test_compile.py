"""Compile every kernel of the examples for every target, on a machine that may have no GPU and no torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from compile_cases import CASES, EXAMPLES, TARGETS

EVERY_VERSION = ("cuda:90", "cuda:100", "hip:gfx942")
ONE_CASE_A_KERNEL = {(case.script, case.kernel): case.name for case in reversed(CASES)}


def test_every_example_has_a_case():
    assert {script for script, _ in ONE_CASE_A_KERNEL} == {path.stem for path in EXAMPLES.glob("*.py")}


@pytest.mark.triton
@pytest.mark.parametrize(
    "target",
    [pytest.param(one, marks=() if one in EVERY_VERSION else pytest.mark.newest) for one in TARGETS],
)
def test_examples_compile(target, tmp_path):
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compile_cases.py")), target, *ONE_CASE_A_KERNEL.values()],
        env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert child.returncode == 0, child.stdout + child.stderr
    assert len(child.stdout.splitlines()) == len(ONE_CASE_A_KERNEL)
