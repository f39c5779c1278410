"""`--beside`: which columns stand beside machine code, and what they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irscope.cli.options import split_words
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture, stage_named

if TYPE_CHECKING:
    from irscope.render.text.source import BesideColumns, Column


def beside_columns(texts: Sequence[str] | None) -> tuple[Column, ...]:
    """The columns that `--beside` names, each once; raises UsageError where one is none."""
    words = split_words(texts)
    if not words:
        return ()
    from irscope.render.text.source import COLUMNS

    if unknown := next((word for word in words if word not in (*COLUMNS, "all")), None):
        raise UsageError(
            f"--beside {unknown!r} is no column: write {', '.join(COLUMNS)} or all.{did_you_mean(unknown, COLUMNS)}"
        )
    return tuple(column for column in COLUMNS if column in words or "all" in words)


def columns_of(capture: Capture, stage: str | None, columns: Sequence[Column]) -> BesideColumns:
    """The columns of a stage, by default of the machine code; raises UsageError if that has none."""
    from irscope.analysis.source.beside import beside
    from irscope.render.text.source import BesideColumns

    return BesideColumns(beside(capture, stage or ""), columns)


def beside_text(
    capture: Capture, stage: str, columns: Sequence[Column], loc: bool, lines: str | None, color: bool
) -> str:
    """A stage of a capture, or what of it comes from lines of the kernel's file, with columns beside it."""
    from irscope.cli.dump.stages import selected_lines
    from irscope.render.text.source import render_beside

    text, kind = capture.text(stage), stage_named(stage).kind
    only = None if lines is None else frozenset(selected_lines(capture, text, kind, lines))
    return render_beside(text, kind, columns_of(capture, stage, columns), loc=loc, only=only, color=color)


def beside_json(capture: Capture, stage: str | None) -> dict[str, Any]:
    """What stands beside a stage, as JSON."""
    from irscope.analysis.source.beside import beside
    from irscope.render.text import source as texts

    return texts.beside_json(beside(capture, stage or ""))
