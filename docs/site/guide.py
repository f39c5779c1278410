"""The guide to every command, made of what `--help` is made of, with the examples of the other pages."""

from __future__ import annotations

import inspect
import re
import shlex
from collections import defaultdict
from importlib import import_module
from typing import Any

import typer

from irscope.cli import COMMANDS, app

from .pages import DOCS, ROOT, block_commands, blocks

__all__ = ["commands_page"]

_HEAD = """# Every command

Made from what `irscope COMMAND --help` says, with the commands that the other pages show. `irscope --help` lists the
commands. Every command that reads has `--json`; `-o` writes a file. The exit code is 0 if it is done, 1 if it failed
and 2 for misuse.
"""
_EXAMPLES = 4
_FOLDED = ("Recording",)
"""The panels that many commands share: they open where they are clicked."""


def commands_page() -> str:
    """The page as Markdown, with a section for each command in the order of `irscope --help`."""
    for command in COMMANDS.values():
        import_module(command.module)
    group: Any = typer.main.get_command(app)
    examples = _examples()
    parts = [_HEAD]
    panel = ""
    for name, command in COMMANDS.items():
        if command.panel != panel:
            panel = command.panel
            parts.append(f"## {panel}\n")
        parts.append(_section(name, group.commands[name], examples[name]))
    return "\n".join(parts)


def _examples() -> dict[str, list[str]]:
    """The first few commands of the pages by their name, the shortest first."""
    found: dict[str, list[str]] = defaultdict(list)
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        for language, text in blocks(page.read_text("utf-8")):
            for one in block_commands(language, text):
                words = shlex.split(one.command)
                if one.printed is None and len(words) > 1 and one.command not in found[words[1]]:
                    found[words[1]].append(" ".join(one.command.split()))
    return defaultdict(list, {name: sorted(lines, key=len)[:_EXAMPLES] for name, lines in found.items()})


def _section(name: str, command: Any, examples: list[str]) -> str:
    context = typer.Context(command, info_name=f"irscope {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"### {name}", "", *inspect.cleandoc(command.help or "").splitlines(), ""]
    lines += ["```text", f"irscope {name} {usage}", "```", ""]
    if examples:
        lines += ["```sh", *examples, "```", ""]
    panels: dict[str, list[str]] = defaultdict(list)
    for parameter in command.params:
        if parameter.name != "help" and not getattr(parameter, "hidden", False):
            title = getattr(parameter, "rich_help_panel", None) or "Options"
            is_argument = parameter.param_type_name == "argument"
            panels["Arguments" if is_argument else title].append(_row(parameter))
    for title, rows in panels.items():
        table = [f"| {title} | |", "|---|---|", *rows]
        if title in _FOLDED:
            lines += [f'??? note "{title}"', "", *(f"    {row}" for row in table), ""]
        else:
            lines += [*table, ""]
    return "\n".join(lines)


def _row(parameter: Any) -> str:
    names = [] if parameter.param_type_name == "argument" else [*parameter.opts, *parameter.secondary_opts]
    metavar = "" if getattr(parameter, "is_flag", False) else parameter.metavar or ""
    left = " ".join(f"<code>{_cell(word)}</code>" for word in (*names, metavar) if word)
    return f"| {left} | {_cell(getattr(parameter, 'help', '') or '')} |"


def _cell(text: str) -> str:
    """Text as it is, in a cell of a table."""
    return re.sub(r"[^\w\s.,:;()/'\"-]|_", lambda match: f"&#{ord(match[0])};", " ".join(text.split()))
