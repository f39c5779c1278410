"""The overview of commands says what the commands themselves say."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from irscope.cli import COMMANDS, app


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_docstrings_first_sentence(name: str) -> None:
    command = COMMANDS[name]
    module = import_module(command.module)
    (info,) = [info for info in app.registered_commands if info.callback.__module__ == module.__name__]  # type: ignore[union-attr]
    assert (info.name or info.callback.__name__) == name  # type: ignore[union-attr]
    assert info.rich_help_panel == command.panel
    first = (info.callback.__doc__ or "").split("\n\n")[0]  # type: ignore[union-attr]
    assert " ".join(first.split()) == command.summary


def test_help_lists_every_command_and_imports_none() -> None:
    code = "import sys, irscope.__main__ as m; m.run(['--help']); print(*sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in COMMANDS:
        assert f" {name} " in out
    assert "irscope.cli.dump.command" not in out.split()


def test_an_unknown_command_names_the_nearest() -> None:
    answer = subprocess.run([sys.executable, "-m", "irscope", "dmup"], capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "dump" in answer.stderr
