"""The guide to every command, made from the declarations that `--help` prints, with the examples of the other pages."""

from __future__ import annotations

import inspect
import re
import shlex
from collections import defaultdict
from typing import Any

import click

from irscope.cli.commands import GROUPS, main_group

from .pages import DOCS, ROOT, block_commands, blocks

__all__ = ["commands_page"]

_HEAD = """# Every command

Made from what `irscope COMMAND --help` prints, with the commands that the other pages show. `irscope --help` lists the
commands, and the section of `record` the recording options, which go with every command that records. Every command
that reads has `--json`; `-o` writes a file. The exit code is 0 if it is done, 1 if it failed and 2 for misuse.
"""
_EXAMPLES = 4


def commands_page() -> str:
    """The page as Markdown, with a section for each command in the order of `irscope --help`."""
    group = main_group()
    context = click.Context(group, info_name="irscope")
    examples = _examples()
    parts = [_HEAD]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_section(name, group.get_command(context, name), examples[name]) for name in names]
    return "\n".join(parts)


def _examples() -> dict[str, list[str]]:
    """The first few commands of the pages by their name, the shortest first."""
    found: dict[str, list[str]] = defaultdict(list)
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        for language, text in blocks(page.read_text("utf-8")):
            for one in block_commands(language, text):
                words = shlex.split(one.command)
                if len(words) > 1 and one.command not in found[words[1]]:
                    found[words[1]].append(" ".join(one.command.split()))
    return defaultdict(list, {name: sorted(lines, key=len)[:_EXAMPLES] for name, lines in found.items()})


def _section(name: str, command: Any, examples: list[str]) -> str:
    context = click.Context(command, info_name=f"irscope {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"### {name}", "", *inspect.cleandoc(command.help or "").splitlines(), ""]
    lines += ["```text", f"irscope {name} {usage}", "```", ""]
    if examples:
        lines += ["```sh", *examples, "```", ""]
    panels: dict[str, list[str]] = defaultdict(list)
    for parameter in command.params:
        if parameter.name != "help" and not (
            getattr(parameter, "hidden", False) or getattr(parameter, "is_hidden", False)
        ):
            title = getattr(parameter, "panel", "Options")
            is_argument = parameter.param_type_name == "argument"
            panels["Arguments" if is_argument else title].append(_row(parameter))
    for title, rows in panels.items():
        table = [f"| {title} | Meaning |", "|---|---|", *rows]
        lines += [*table, ""]
    return "\n".join(lines)


def _row(parameter: Any) -> str:
    names = [] if parameter.param_type_name == "argument" else [*parameter.opts, *parameter.secondary_opts]
    metavar = "" if getattr(parameter, "is_flag", False) else parameter.metavar or ""
    left = " ".join(f"<code>{_cell(word)}</code>" for word in (*names, metavar) if word)
    return f"| {left} | {_cell(getattr(parameter, 'help', '') or getattr(parameter, 'description', ''))} |"


def _cell(text: str) -> str:
    """Text as it is, in a cell of a table."""
    return re.sub(r"[^\w\s.,:;()/'\"-]|_", lambda match: f"&#{ord(match[0])};", " ".join(text.split()))
