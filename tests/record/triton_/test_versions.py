"""Which Triton is installed, under whatever name, and that a newer one than was tried is said to be one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from irscope.record.triton import versions
from irscope.record.triton.versions import TRIED_VERSIONS, untried_note
from tests.record.fake_distribution import fake

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("version", [*TRIED_VERSIONS, "3.9.1", "3.9.0+git1234abc", "3.6.0.post1", ""])
def test_no_note_of_what_was_tried(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "triton_version", lambda: version)
    assert untried_note() == ""


@pytest.mark.parametrize("version", ["3.10.0", "3.10.0.dev20261101", "3.10.0+git1234abc", "3.10a1", "4.0.0"])
def test_a_newer_one_is_said_not_to_be_tried(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "triton_version", lambda: version)
    assert f"not tried with Triton {version}," in untried_note()


def test_ci_runs_under_the_versions_that_were_tried() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    # The newest one has the whole suite.
    (whole,) = re.findall(r"\btriton==([\d.]+)", script)
    others = re.findall(r"^ *test_version ([\d.]+)", script, re.MULTILINE)
    assert whole == TRIED_VERSIONS[-1]
    assert sorted([*others, whole]) == sorted(TRIED_VERSIONS)


def test_a_build_under_another_name_is_found(tmp_path: Path) -> None:
    fake(tmp_path, "pytorch-triton-rocm", "3.8.0+git1234abc", top_level="triton\n")
    code = "from irscope.record.triton.versions import triton_version; print(triton_version())"
    # Without this environment's own packages.
    command = [sys.executable, "-S", "-c", code]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    answer = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert answer.stdout == "3.8.0+git1234abc\n"


@pytest.mark.triton
def test_doctor_says_so(tmp_path: Path) -> None:
    fake(tmp_path, "triton", "3.10.0", entry_points=distribution("triton").read_text("entry_points.txt") or "")
    command = [sys.executable, "-m", "irscope", "doctor", "--json"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    answer = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    seen = [row for row in json.loads(answer.stdout) if row["what"] == "Triton"]
    assert [row["state"] for row in seen] == ["ok", "note"]
    assert "not tried with Triton 3.10.0" in seen[1]["found"]
