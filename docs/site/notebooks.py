"""Notebooks of pages: prose as it is, commands as cells, and what the page shows of their output below them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .pages import DOCS, block_commands, written

__all__ = ["NOTEBOOKS", "notebook"]

NOTEBOOKS = tuple(DOCS / "cases" / f"{name}.ipynb" for name in ("narrow-loads", "spills"))
"""Each is made of the page of its name."""

_BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
# [findings](../findings.md)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
_FIRST = "# The commands run in the repository's root.\n%cd -q ../.."


def notebook(page: Path) -> str:
    """The text of an `.ipynb` of a page."""
    text = page.read_text("utf-8")
    cells = [_code(_FIRST)]
    at = 0
    for match in _BLOCK.finditer(text):
        cells += _prose(text[at : match.start()])
        at = match.end()
        cells += _cells(match[1], match[2])
    cells += _prose(text[at:])
    cells[0], cells[1] = cells[1], cells[0]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _prose(text: str) -> list[dict[str, Any]]:
    prose = _LINK.sub(r"\1", text.strip())
    return [{"cell_type": "markdown", "metadata": {}, "source": prose.splitlines(keepends=True)}] if prose else []


def _cells(language: str, text: str) -> list[dict[str, Any]]:
    """A block of commands as a cell, with what they print, and the pictures that they write in a cell after it."""
    # Not `!`, which gives a command a terminal: it would show its progress.
    commands = [" ".join(one.command.split()) for one in block_commands(language, text)]
    printed = text.partition("\n")[2] if language == "console" else ""
    pictures = [name for command in commands if (name := written(command))]
    shows = ["from IPython.display import SVG, display", *(f'display(SVG("{name}"))' for name in pictures)]
    cells = [_code("\n".join(["%%bash", *commands]), printed)]
    return [*cells, _code("\n".join(shows))] if pictures else cells


def _code(source: str, printed: str = "") -> dict[str, Any]:
    outputs = (
        [{"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}] if printed else []
    )
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": outputs,
        "source": source.splitlines(keepends=True),
    }
