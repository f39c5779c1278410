"""The standard streams: open, able to encode every character, and safe for the terminal.

The texts of a capture may come from anybody and must not control the terminal. Standard error carries messages, whose
control characters are always made visible; standard output is written by `irscope.cli.output.destination` only.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from irscope.render.text.tables import visible

__all__ = ["open_streams", "raw_stderr", "standard_output", "unfiltered_stderr"]

# The characters that irscope itself prints, for terminals and files whose encoding lacks them (cp1252, latin-1, ASCII).
_PLAIN_SIGNS = str.maketrans(
    {
        "→": "->", "←": "<-", "−": "-", "–": "-", "—": "-", "×": "x", "·": ".", "…": "...", "±": "+-", "≥": ">=",
        "≤": "<=", "µ": "u", "│": "|", "─": "-", "█": "#", "▌": "#", "■": "#", "▲": "^", "▼": "v", "⇄": "<>", "✓": "ok",
    }
)  # fmt: skip


def open_streams() -> None:
    """Make the standard streams usable, even if the process was started without them."""
    for number in range(3):
        # After `>&-` the next opened file would become the standard output of child processes.
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    codecs.register_error("irscope", _in_plain_signs)
    for stream in (sys.stdout, sys.stderr):
        # As for file names: bytes that are not UTF-8 are written unchanged.
        utf8 = codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name == "utf-8"
        if hasattr(stream, "reconfigure"):
            cast(Any, stream).reconfigure(errors="surrogateescape" if utf8 else "irscope")
    # If standard error was closed, Python has none: messages are discarded.
    sys.stderr = cast(TextIO, HarmlessStream(sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")))


def standard_output() -> TextIO:
    """Standard output; raises OSError if the process was started without one."""
    if cast("TextIO | None", sys.stdout) is None:
        raise OSError(None, "standard output is closed: -o FILE writes to a file")
    return sys.stdout


def raw_stderr() -> TextIO:
    """Standard error without the filter, for progress displays; their texts must be made harmless before."""
    return cast(TextIO, getattr(sys.stderr, "stream", sys.stderr))


@contextmanager
def unfiltered_stderr() -> Generator[None]:
    """Let Typer print its own errors, which quote only the command line."""
    before, sys.stderr = sys.stderr, raw_stderr()
    try:
        yield
    finally:
        sys.stderr = before


class HarmlessStream:
    """A text stream that makes control characters visible, and passes everything else on."""

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
