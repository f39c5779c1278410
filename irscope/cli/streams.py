"""The standard streams, messages and progress: open, able to encode every character, and safe for the terminal."""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from irscope.render.text.tables import display_width, shorten, visible

if TYPE_CHECKING:
    from rich.progress import Progress


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
            cast("Any", stream).reconfigure(errors="surrogateescape" if utf8 else "irscope")
    # If standard error was closed, Python has none: messages are discarded.
    sys.stderr = cast("TextIO", HarmlessStream(sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")))


def standard_output() -> TextIO:
    """Standard output; raises OSError if the process was started without one."""
    if cast("TextIO | None", sys.stdout) is None:
        raise OSError(None, "standard output is closed: -o FILE writes to a file")
    return sys.stdout


def _raw_stderr() -> TextIO:
    """Standard error without the filter, for progress displays; their texts must be made harmless before."""
    return cast("TextIO", getattr(sys.stderr, "stream", sys.stderr))


@contextmanager
def unfiltered_stderr() -> Generator[None]:
    """Let Typer print its own errors, which quote only the command line."""
    before, sys.stderr = sys.stderr, _raw_stderr()
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


_SPINNER_COLUMNS = 2
# ████░░░░ 12 of 28 variants
_BAR = re.compile("^[█░]{1,80} ")


def say(text: str) -> None:
    """Print a message on standard error."""
    print(text, file=sys.stderr)


def echo(text: str) -> None:
    """Pass output of a script on to standard error."""
    sys.stderr.write(text)
    sys.stderr.flush()


@contextmanager
def progress(first: str = "starting Triton") -> Generator[Callable[[str], None] | None]:
    """A function that shows on a terminal what is going on, `first` until it is called; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(file=_raw_stderr())

    def told(text: str) -> str:
        return escape(fitting(visible(text), console.width - _SPINNER_COLUMNS)) if text else "running the script"

    with console.status(first) as status:
        yield lambda text: status.update(told(text))


def fitting(text: str, width: int) -> str:
    """The lines of a text, each cut to a width: one that wraps would jump as its figures grow. First goes the bar."""
    lines = [_BAR.sub("", line) if display_width(line) > width else line for line in text.split("\n")]
    return "\n".join(shorten(line, width) for line in lines)


@contextmanager
def progress_bar() -> Generator[Progress]:
    """A progress bar with an estimate of the time; only on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=Console(file=_raw_stderr()), disable=not sys.stderr.isatty(), transient=True
    ) as progress:
        yield progress


@contextmanager
def updated(what: str) -> Generator[Callable[[int, int], None]]:
    """A progress bar of one task, which gets how much is done, of how much."""
    with progress_bar() as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def counted(what: str, count: int) -> Generator[Callable[[], None]]:
    """A progress bar of one task, which is advanced by one whenever what it gives is called."""
    with progress_bar() as progress:
        task = progress.add_task(what, total=count)
        yield lambda: progress.advance(task)
