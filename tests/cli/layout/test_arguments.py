"""`--compare` with one layout and with two."""

from __future__ import annotations

import pytest

import irscope.cli.layout.command
from irscope.cli import app
from irscope.cli.layout.arguments import LayoutCommand

assert irscope.cli.layout.command  # registers the command


@pytest.mark.parametrize(
    ("arguments", "subject", "compared"),
    [
        (["#a", "--compare", "#b"], "#a", ["#b"]),
        (["#a", "--compare", "#b", "--json"], "#a", ["#b"]),
        (["last", "--compare", "#b", "#c"], "last", ["#b", "#c"]),
        (["--compare", "#b", "#c", "last"], "last", ["#b", "#c"]),
        (["last", "--compare", "#b", "--compare", "#c"], "last", ["#b", "#c"]),
        (["last", "--compare=#b", "--json"], "last", ["#b"]),
        (["last", "--", "--compare", "1", "2"], "last", None),
        (["last"], "last", None),
    ],
)
def test_one_or_two(arguments: list[str], subject: str, compared: list[str] | None) -> None:
    import typer.main

    group = typer.main.get_command(app)
    command = group.commands["layout"]  # type: ignore[attr-defined]
    assert isinstance(command, LayoutCommand)
    context = command.make_context("layout", arguments)
    assert context.params["subject"] == subject
    assert list(context.params["compare"] or ()) == (compared or [])
