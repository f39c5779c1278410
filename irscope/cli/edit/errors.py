"""What a compiler says of a text that was edited, at the line of that text."""

from __future__ import annotations

import re
from pathlib import Path

from irscope.model.capture import Capture
from irscope.render.text.failure import failure_text

__all__ = ["error_in"]

# loc("/tmp/irscope-recording-x/thin.ttgir":19:15): error: custom op 'arith.constnt' is unknown
_PARSER = re.compile(r'loc\("[^"\n]*":(\d{1,7}):(\d{1,5})\): (?=error: )')


def error_in(fresh: Capture, text: str, path: Path) -> str:
    """Why a compile of an edited text failed; where the parser refuses it with its line, and a caret under that.

    Other failures name lines themselves, of the text or of Python, which are in its locations.
    """
    said = failure_text(fresh)
    if fresh.failure is None or fresh.failure.kind != "parse" or (place := _PARSER.search(said)) is None:
        return said
    line, column = int(place[1]), int(place[2])
    lines = text.splitlines()
    message = said[place.end() :].partition("\n")[0]
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    caret = re.sub(r"[^\t]", " ", shown[: column - 1]) + "^"
    return f"{path}:{line}:{column}: {message}\n{shown}\n{caret}"
