"""Run each example and case study on the GPU as a user would: its exit status says whether its result is torch's."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted([*ROOT.glob("examples/*.py"), *ROOT.glob("docs/cases/*.py")])


@pytest.mark.gpu
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_checks_itself(script):
    child = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stdout + child.stderr
    assert "relative error" in child.stdout
