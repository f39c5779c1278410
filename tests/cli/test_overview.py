"""The overview of commands says what the commands themselves say, and both are short."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import irscope as irscope_package
from irscope.cli.command import Command
from irscope.cli.commands import COMMANDS, EVERYDAY, GROUPS, main_group
from tests.cli.conftest import Run

MOST_COMMANDS = 28
MOST_OPTIONS = 15
TITLES = ["Every day", "Record", "See", "Explain", "Change and compare", "Guard"]


def command(name: str) -> Command:
    group = main_group()
    loaded = group.get_command(click.Context(group), name)
    assert isinstance(loaded, Command)
    return loaded


def shown_options(name: str) -> list[click.Option]:
    """The options that the help of a command shows."""
    return [one for one in command(name).params if isinstance(one, click.Option) and not one.hidden]


def test_commands_are_few_and_in_five_groups() -> None:
    assert len(COMMANDS) == len({*COMMANDS}) <= MOST_COMMANDS
    titles = re.findall(r"^(\w[\w ]*):$", main_group().get_help(click.Context(main_group())), re.MULTILINE)
    assert [title for title in titles if title != "Options"] == TITLES


def test_the_ten_everyday_commands_are_named_first_and_lead_their_groups() -> None:
    overview = main_group().get_help(click.Context(main_group()))
    assert re.findall(r"\w+", overview.partition("Every day:")[2].partition("Record:")[0]) == [*EVERYDAY]
    assert len(EVERYDAY) == 10
    for names in GROUPS.values():
        everyday = [name in EVERYDAY for name in names]
        assert everyday == sorted(everyday, reverse=True), names


@pytest.mark.parametrize("name", [one for one in COMMANDS if one != "record"])
def test_the_help_of_a_command_shows_few_options(name: str) -> None:
    """The options of a recording stand in the help of `record` alone."""
    assert len(shown_options(name)) <= MOST_OPTIONS, [one.name for one in shown_options(name)]
    assert "None" not in command(name).get_help(click.Context(command(name)))


def test_an_option_has_one_meaning() -> None:
    """What a recording takes is no command's own; and a name takes the same kind of value everywhere."""
    recording = {name for one in shown_options("record") for name in one.opts} - {"-o", "--output", "--json"}
    kinds: dict[str, set[str]] = {}
    for command_name in COMMANDS:
        if command_name == "record":
            continue
        for option in shown_options(command_name):
            # The values of a launch are computed on the CPU by both: `show` prints those of one that is stored.
            is_of_both = (command_name, option.opts) == ("show", ["--values"])
            assert is_of_both or not {*option.opts} & recording, (command_name, option.opts)
            what = "flag" if option.is_flag else option.type.name
            kinds.setdefault(option.opts[0], set()).add(what)
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_docstrings_first_sentence(name: str) -> None:
    assert command(name).name == name
    first = (command(name).help or "").split("\n\n")[0]
    overview = " ".join(main_group().get_help(click.Context(main_group())).split())
    assert f" {name} {' '.join(first.split())} " in f"{overview} "


def test_help_lists_every_command_and_imports_none() -> None:
    code = "import sys, irscope.__main__ as m; m.run(['--help']); print(*sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in COMMANDS:
        assert f" {name} " in out
    assert not {"irscope.cli.dump", "irscope.cli.recording", "rich", "pydantic"} & {*out.split()}


def test_help_of_a_command(irscope: Run) -> None:
    for name in ("diff", "record"):
        assert irscope("help", name) == irscope(name, "--help")
        assert irscope(name, "-h")[1].startswith(f"Usage: irscope {name}")
    assert irscope("help") == irscope("--help") == irscope()


def test_an_unknown_command_names_the_nearest(irscope: Run) -> None:
    code, _, err = irscope("dmup")
    assert code == 2
    assert "No such command 'dmup'. Did you mean 'dump'?" in err


def test_completion_knows_the_commands() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "irscope"],
        env={"_IRSCOPE_COMPLETE": "bash_complete", "COMP_WORDS": "irscope sho", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "plain,show" in answer.stdout


def test_a_command_that_is_named_has_the_options_that_follow_it() -> None:
    """In messages, help and documents: `irscope COMMAND … --option`."""
    options = {
        name: {one for option in command(name).params for one in (*option.opts, *option.secondary_opts)}
        for name in COMMANDS
    }
    # irscope reduce CAPTURE --python-output FILE
    named = re.compile(rf"irscope ({'|'.join(COMMANDS)})\b((?:[^.;:,)`\n]|\.(?=\w))*)")
    package = Path(irscope_package.__file__).parent
    texts = {path: list(_strings(path)) for path in package.rglob("*.py") if "--" in path.read_text("utf-8")}
    documents = [*package.parent.glob("*.md"), *package.parent.glob("docs/**/*.md")]
    texts |= {path: [path.read_text(encoding="utf-8")] for path in documents}
    wrong = {
        (path.name, match[0])
        for path, strings in texts.items()
        for text in strings
        for match in named.finditer(text)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", match[2].partition(" -- ")[0])
        if option not in options[match[1]] | {"--help", "--debug", "--color", "--no-color"}
    }
    assert wrong == set()


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
