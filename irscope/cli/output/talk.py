"""Messages and progress on standard error."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from irscope.cli.output.streams import raw_stderr
from irscope.render.text.tables import display_width, shorten, visible

__all__ = ["echo", "fitting", "progress", "say"]

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

    console = Console(file=raw_stderr())

    def told(text: str) -> str:
        return escape(fitting(visible(text), console.width - _SPINNER_COLUMNS)) if text else "running the script"

    with console.status(first) as status:
        yield lambda text: status.update(told(text))


def fitting(text: str, width: int) -> str:
    """The lines of a text, each cut to a width: one that wraps would jump as its figures grow. First goes the bar."""
    lines = [_BAR.sub("", line) if display_width(line) > width else line for line in text.split("\n")]
    return "\n".join(shorten(line, width) for line in lines)
