"""The user's line of a location: the innermost frame outside of Triton's own library, and the frames that called it."""

from __future__ import annotations

import re

from irscope.ir.locations_model import Chain

Place = tuple[tuple[str, int], ...]
"""(file, 1-based line) of each frame outside of the library, innermost first."""

# …/site-packages/triton/language/standard.py
_LIBRARY = re.compile(r"(?:^|[/\\])triton[/\\](?:language|experimental|runtime|compiler|tools)[/\\]")


def is_library(path: str) -> bool:
    """Whether a file is Triton's own: its lines are shown as such, and count for the line that called them."""
    return _LIBRARY.search(path) is not None


def place_of(chain: Chain, kernel_file: str = "") -> Place:
    """The frames of a chain that stand outside of the library; the kernel's own file always does.

    The first one is the user's line: every table that has one line an operation names it.
    """
    return tuple((frame.file, frame.line) for frame in chain if frame.file == kernel_file or not is_library(frame.file))


def line_text(place: Place) -> str:
    """The user's line as tables name it, `file:line`; empty where the chain is of the library alone."""
    return f"{place[0][0]}:{place[0][1]}" if place else ""


def chain_texts(chain: Chain) -> tuple[str, ...]:
    """Every frame of a chain as `file:line`, the library's among them, innermost first."""
    return tuple(f"{frame.file}:{frame.line}" for frame in chain)
