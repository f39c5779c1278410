"""What `ablate` and `bisect` share: the choice of a launch, checks of the passes named, and progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from irscope.cli.options import split_words
from irscope.cli.output.streams import raw_stderr
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import tell_origin

if TYPE_CHECKING:
    from rich.progress import Progress


def one_capture(subject: str | None, record_options: RecordingOptions) -> tuple[Capture, int]:
    """The launch that a subject names, and its number from 1.

    Of several it is the first, which is said; where autotuning timed its configurations, the first that is launched.
    """
    captures = captures_of(subject, record_options, of_one=True)
    tried = [one.autotuning for one in captures.files]
    index = next((place for place, one in enumerate(tried) if one is None or one.winner is not False), 0)
    capture = captures[index]
    if len(captures) > 1:
        say(
            f"{len(captures)} launches: this is number {index + 1}, {capture.name}. --launch N takes another, "
            "FILE::KERNEL another kernel."
        )
    tell_origin(capture, say)
    return capture, record_options.launch or index + 1


def split_stages(texts: list[str] | None) -> tuple[str, ...]:
    """The stages of `--stage`; empty for all."""
    names = split_words(texts)
    return () if "all" in names else tuple(dict.fromkeys(names))


@contextmanager
def progress_bar() -> Generator[Progress]:
    """A progress bar with an estimate of the time; only on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=Console(file=raw_stderr()), disable=not sys.stderr.isatty(), transient=True
    ) as progress:
        yield progress


@contextmanager
def counted(what: str, count: int) -> Generator[Callable[[], None]]:
    """A progress bar of one task, which is advanced by one whenever what it gives is called."""
    with progress_bar() as progress:
        task = progress.add_task(what, total=count)
        yield lambda: progress.advance(task)
