"""Compile every kernel of the examples, on a machine that may have no GPU and no torch.

Each for one target; tests/machine records them all for cuda:90, and `make exhaustive` does all cases for each target.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from compile_cases import CASES, EXAMPLES, ONE_CASE_A_KERNEL, TARGETS

NAMES = list(ONE_CASE_A_KERNEL.values())


def test_every_example_has_a_case():
    assert {script for script, _ in ONE_CASE_A_KERNEL} == {path.stem for path in EXAMPLES.glob("*.py")}


# tests/flows/test_identity.py compiles them under every version.
@pytest.mark.newest
@pytest.mark.triton
def test_each_compiles_for_a_target(tmp_path):
    compile_all({target: NAMES[at :: len(TARGETS)] for at, target in enumerate(TARGETS)}, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.parametrize("target", TARGETS)
def test_every_case_compiles_for_every_target(target, tmp_path):
    compile_all({target: [case.name for case in CASES]}, tmp_path)


def compile_all(names_by_target, cache):
    words = [word for target, names in names_by_target.items() for word in (target, *names)]
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compile_cases.py")), *words],
        env={**os.environ, "TRITON_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert child.returncode == 0, child.stdout + child.stderr
    assert len(child.stdout.splitlines()) == len(words) - len(names_by_target)


def test_each_example_names_the_page_that_explains_it():
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text("utf-8")
    headings = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    scripts = {path.stem: path.read_text("utf-8") for path in EXAMPLES.glob("*.py")}
    assert headings == {*scripts}
    for name, text in scripts.items():
        assert f"docs/examples.md#{name} " in text.split('"""')[1]
