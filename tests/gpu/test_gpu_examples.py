"""Run each example on the GPU as a user would: it checks itself against torch, and its exit status says so."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.gpu
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_checks_itself(script):
    child = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stdout + child.stderr
    assert "relative error" in child.stdout
