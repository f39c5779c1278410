"""The workflow of docs/ci.md: its steps run, in a folder with the files that it names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.product import ROOT, Run

STEP = re.compile(
    r"^      - name: (?P<name>.+)\n(?:        .+\n)*?        run: (?P<script>\|\n(?:          .+\n)+|.+\n)",
    re.MULTILINE,
)


def steps() -> dict[str, str]:
    """The shell scripts of the workflow, by name."""
    (workflow,) = re.findall(
        r"^```yaml\n(name: kernels\n.*?)^```$", (ROOT / "docs" / "ci.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    found = {match["name"]: match["script"] for match in STEP.finditer(workflow)}
    return {name: re.sub(r"^ {10}", "", text.removeprefix("|\n"), flags=re.MULTILINE) for name, text in found.items()}


@pytest.mark.triton
@pytest.mark.newest
def test_the_workflow(irscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(steps()) == ["Install", "Check", "Tests"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text((ROOT / "tests" / "record" / "scripts" / "without_torch.py").read_text())
    words = ["kernels.py", "--target", "cuda:90", "--baseline", "baseline.json", "--update"]
    assert irscope("check", *words)[0] == 0
    # Somebody writes down that there were fewer instructions.
    held = tmp_path / "baseline.json"
    held.write_text(re.sub(r'"instruction_count": \d+', '"instruction_count": 1', held.read_text(), count=1))
    environment = os.environ | {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "PYTHONPATH": str(ROOT)}
    program = f'irscope() {{ {sys.executable} -m irscope "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", program + steps()["Check"]],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=kernels.py,line=")
    assert "| instructions 1" in (tmp_path / "summary.md").read_text().replace("instructions 1 →", "| instructions 1")
    (run,) = json.loads((tmp_path / "check.sarif").read_text())["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["baseline"]


def test_the_hook_names_a_command_that_is_there() -> None:
    from irscope.cli.commands import COMMANDS

    text = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    (entry,) = re.findall(r"^  entry: irscope (\w+)$", text, re.MULTILINE)
    assert entry in COMMANDS
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    assert re.findall(r"^- id: (\S+)$", text, re.MULTILINE) == re.findall(r"^      - id: (\S+)$", page, re.MULTILINE)
