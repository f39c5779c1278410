"""`irscope diff --html`: comparisons as a page of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irscope.analysis.compare import Comparison
from irscope.cli.subject import say
from irscope.render.compare_html import render_comparisons_html
from irscope.store import write_atomically


def write_html(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write the page."""
    write_atomically(path, render_comparisons_html(comparisons).encode("utf-8", "replace"))
    say(f"wrote {path}")
