"""The user's line of a location: the innermost frame outside of Triton's own library, and its callers."""

from __future__ import annotations

import re

from irscope.ir.locations.model import Chain

Place = tuple[tuple[str, int], ...]
"""(file, 1-based line) of each frame outside of the library, innermost first."""

# …/site-packages/triton/language/standard.py
_LIBRARY = re.compile(r"(?:^|[/\\])triton[/\\](?:language|experimental|runtime|compiler|tools)[/\\]")


def is_library(path: str) -> bool:
    """Whether a file is Triton's own: its lines are attributed to the line that called them."""
    return _LIBRARY.search(path) is not None


def place_of(chain: Chain, kernel_file: str = "") -> Place:
    """The frames of a chain outside of the library; the kernel's own file never counts as library.

    The first one is the user's line, which tables with one line per operation show.
    """
    return tuple((frame.file, frame.line) for frame in chain if frame.file == kernel_file or not is_library(frame.file))


def line_text(place: Place) -> str:
    """The user's line in tables, `file:line`; empty if all frames are the library's."""
    return f"{place[0][0]}:{place[0][1]}" if place else ""


def chain_texts(chain: Chain) -> tuple[str, ...]:
    """Every frame of a chain as `file:line`, the library's included, innermost first."""
    return tuple(f"{frame.file}:{frame.line}" for frame in chain)
