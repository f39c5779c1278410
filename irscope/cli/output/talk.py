"""Messages and progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from irscope.cli.output.streams import raw_stderr
from irscope.render.text.tables import visible

__all__ = ["echo", "progress", "say"]


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

    with Console(file=raw_stderr()).status(first) as status:
        yield lambda text: status.update(escape(visible(text)) if text else "running the script")
