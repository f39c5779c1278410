"""Compile every kernel of the examples, on a machine that may have no GPU and no torch.

All of them for a target of each vendor, each for one of the others too; `make exhaustive` does all for each.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.marks import newest_but

sys.path.insert(0, str(Path(__file__).parent))
from compile_cases import CASES, EXAMPLES, ONE_CASE_A_KERNEL, TARGETS

WHOLE = ("cuda:90", "hip:gfx942")
OTHERS = [one for one in TARGETS if one not in WHOLE]
NAMES = list(ONE_CASE_A_KERNEL.values())


def test_every_example_has_a_case():
    assert {script for script, _ in ONE_CASE_A_KERNEL} == {path.stem for path in EXAMPLES.glob("*.py")}


@pytest.mark.triton
@pytest.mark.parametrize("target", newest_but(["cuda:90"], *WHOLE))
def test_examples_compile(target, tmp_path):
    compile_all(target, NAMES, tmp_path)


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize("target", OTHERS)
def test_each_compiles_for_another_target(target, tmp_path):
    compile_all(target, NAMES[OTHERS.index(target) :: len(OTHERS)], tmp_path)


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.parametrize("target", TARGETS)
def test_every_case_compiles_for_every_target(target, tmp_path):
    compile_all(target, [case.name for case in CASES], tmp_path)


def compile_all(target, names, cache):
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compile_cases.py")), target, *names],
        env={**os.environ, "TRITON_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert child.returncode == 0, child.stdout + child.stderr
    assert len(child.stdout.splitlines()) == len(names)


def test_each_example_names_the_page_that_explains_it():
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text("utf-8")
    headings = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    scripts = {path.stem: path.read_text("utf-8") for path in EXAMPLES.glob("*.py")}
    assert headings == {*scripts}
    for name, text in scripts.items():
        assert f"docs/examples.md#{name} " in text.split('"""')[1]
