"""Writes the report's page, opened at the view of a command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.cli.output.destination import emit_page
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.render.report.facts import Between
    from irscope.render.report.results import Results

__all__ = ["emit_report", "is_page"]


def is_page(path: Path | None) -> bool:
    """Whether a file's name asks for a page."""
    return path is not None and path.suffix.lower() in (".html", ".htm")


def emit_report(
    captures: Iterable[Capture],
    view: Mapping[str, object],
    output: Path | None,
    *,
    between: Mapping[tuple[int, int], Between] | None = None,
    results: Results | None = None,
) -> None:
    """Write the report of some captures, each once, to a file or to standard output.

    Args:
        captures: what it shows.
        view: what is shown first, as the page's fragment has it: `{"tab": "compare", "a": 1, "b": 2}`.
        output: the file; None for standard output.
        between: what is known of pairs of layouts of the first capture, by their numbers.
        results: those of many compiles, a view of its own.
    """
    from irscope.render.report.page import render_report

    each = {capture.id: capture for capture in captures}
    emit_page(render_report(tuple(each.values()), view=view, between=between or {}, results=results), output)
