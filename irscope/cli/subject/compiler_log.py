"""Adds to a capture what the compiler says of its reasons, by compiling it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from irscope.cli.output.talk import say
from irscope.cli.subject.captures import run_compile, tell_origin
from irscope.cli.subject.keeping import update_stored
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest


def with_log(capture: Capture, *, run: Callable[[RecordRequest], Capture] = run_compile) -> Capture:
    """A capture with the compiler's log; it is compiled again for that once, by `run`, and this is kept.

    Raises RecordingError where it cannot be compiled again here.
    """
    if capture.log is not None:
        return capture
    from irscope.record.compile.compiler_log import find_log

    tell_origin(capture)
    log = find_log(capture, run)
    if log.differing:
        say(f"Compiled again for its log, {capture.name} came out otherwise: {', '.join(log.differing)}.")
    full = replace(capture, log=log)
    update_stored(capture, full)
    return full
