"""What commands say on standard error: talk, and what is under way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from irscope.cli.streams import raw_stderr
from irscope.render.tables import visible

__all__ = ["echo", "progress", "say"]


def say(text: str) -> None:
    """Talk, on stderr."""
    print(text, file=sys.stderr)


def echo(text: str) -> None:
    """Hand on what a script prints, on stderr."""
    sys.stderr.write(text)
    sys.stderr.flush()


@contextmanager
def progress() -> Generator[Callable[[str], None] | None]:
    """What tells on a terminal what is under way; None where there is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(file=raw_stderr()).status("starting Triton") as status:
        yield lambda text: status.update(escape(visible(text)) if text else "running the script")
