"""The process's standard streams: open, able to hold every character, and safe for the terminal behind them.

What a capture holds was written by others: nothing of it may steer the terminal. What goes to standard error is talk,
and is always made harmless; standard output has one way out, `irscope.cli.output`.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from irscope.render.tables import visible

__all__ = ["open_streams", "raw_stderr", "standard_output", "unfiltered_stderr"]

# What irscope itself draws, for terminals and files whose encoding lacks it (cp1252, cp437, latin-1, ASCII).
_PLAIN_SIGNS = str.maketrans(
    {
        "→": "->", "←": "<-", "−": "-", "–": "-", "—": "-", "×": "x", "·": ".", "…": "...", "±": "+-", "≥": ">=",
        "≤": "<=", "µ": "u", "│": "|", "─": "-", "█": "#", "▌": "#", "■": "#", "▲": "^", "▼": "v", "⇄": "<>", "✓": "ok",
    }
)  # fmt: skip


def open_streams() -> None:
    """Make the standard streams usable, whatever the process was started with."""
    for number in range(3):
        # `>&-`: the next file that is opened would become the standard output of all that is started.
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    codecs.register_error("irscope", _in_plain_signs)
    for stream in (sys.stdout, sys.stderr):
        # As Python writes file names: bytes that are no UTF-8 come back as they were.
        utf8 = codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name == "utf-8"
        if hasattr(stream, "reconfigure"):
            cast(Any, stream).reconfigure(errors="surrogateescape" if utf8 else "irscope")
    # Python has no standard error where it was closed: what is said goes nowhere then.
    sys.stderr = cast(TextIO, HarmlessStream(sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")))


def standard_output() -> TextIO:
    """Standard output; raises OSError where the process was started without one."""
    if cast("TextIO | None", sys.stdout) is None:
        raise OSError(None, "standard output is closed: -o FILE writes to a file")
    return sys.stdout


def raw_stderr() -> TextIO:
    """Standard error as it is, for what draws on it by control sequences; its texts must be harmless by themselves."""
    return cast(TextIO, getattr(sys.stderr, "stream", sys.stderr))


@contextmanager
def unfiltered_stderr() -> Generator[None]:
    """Let typer draw its own errors, which speak of the command line alone."""
    before, sys.stderr = sys.stderr, raw_stderr()
    try:
        yield
    finally:
        sys.stderr = before


class HarmlessStream:
    """A text stream that makes control characters visible; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text with its control characters made visible; `\\r\\n` becomes `\\n`."""
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each text."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _in_plain_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN_SIGNS)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end
