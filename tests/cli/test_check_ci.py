"""The workflow of docs/ci.md: its steps run, in a folder with the files that it names."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
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


def _commands(script: str) -> list[list[str]]:
    """The calls of irscope in a script of a shell, as words; variables stay as they are."""
    lines = (line.strip() for line in script.splitlines())
    return [shlex.split(re.split(r" \|\| ", line)[0])[1:] for line in lines if line.startswith("irscope ")]


def _scripts() -> dict[str, str]:
    yaml = pytest.importorskip("yaml", reason="PyYAML, which reads the templates, is not installed")
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    assert action["runs"]["using"] == "composite"
    steps = action["runs"]["steps"]
    assert all(("uses" in step) != ("run" in step and step["shell"] == "bash") for step in steps)
    named = {name for step in steps for name in re.findall(r"inputs\.([\w-]+)", json.dumps(step))}
    assert named == {*action["inputs"]}
    # A text of an input reaches a shell as a variable alone, never inside the script.
    assert not any("${{" in step.get("run", "") for step in steps)
    job = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text("utf-8"))
    assert {*re.findall(r"IRSCOPE_[A-Z_]+", json.dumps(job["irscope"]["script"]))} <= {*job["variables"]}
    return {"action": "\n".join(step.get("run", "") for step in steps), "gitlab": "\n".join(job["irscope"]["script"])}


def test_the_templates_call_commands_that_are_there() -> None:
    from irscope.cli.command import Command
    from irscope.cli.commands import COMMANDS, main_group

    for name, script in _scripts().items():
        commands = _commands(script)
        assert {words[0] for words in commands} == {"report", "check", "verify", "upgrade"}, name
        for command, *words in commands:
            assert command in COMMANDS
            loaded = main_group().get_command(click.Context(main_group()), command)
            assert isinstance(loaded, Command)
            known = {option for one in loaded.params for option in one.opts}
            assert {word for word in words if word.startswith("-")} <= known, (name, command)


def test_the_scripts_of_the_templates_are_bash() -> None:
    for script in _scripts().values():
        assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0
