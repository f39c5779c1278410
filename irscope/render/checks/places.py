"""Where a breach is, as tools for source files want it: a path from the root of the checkout, and a line."""

from __future__ import annotations

from pathlib import Path, PurePath
from urllib.parse import quote

from irscope.analysis.checks.results import BreachGroup

__all__ = ["file_and_line", "file_uri"]


def file_and_line(group: BreachGroup, root: Path) -> tuple[str, int]:
    """The path of a breach from `root`, absolute if it is outside of it, and its line, 1-based; empty if not known."""
    first = group.captures[0]
    file, line = group.breach.place[0] if group.breach.place else (first.file, first.line)
    if not file:
        return "", 1
    path = PurePath(file)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    return path.as_posix(), max(1, line)


def file_uri(path: str) -> str:
    """A path as a URI: relative as it is, absolute as `file://`."""
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)
