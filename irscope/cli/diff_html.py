"""`irscope diff --html`: comparisons as a page of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irscope.analysis.compare import Comparison
from irscope.cli.output import emit_page
from irscope.cli.talk import say
from irscope.render.compare_html import render_comparisons_html


def write_html(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write the page."""
    emit_page(render_comparisons_html(comparisons), path)
    say(f"wrote {path}")
