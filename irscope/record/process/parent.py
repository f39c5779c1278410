"""The side of a child process: it reads commands, sends events, and ends when its parent ends."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from irscope.errors import IrscopeError
from irscope.record.process.codec import MessageReader, MessageWriter
from irscope.record.process.events import Done, Refused
from irscope.record.process.lifeline import end_with_parent

__all__ = ["read_commands", "report_work", "serve_parent"]

_Command = TypeVar("_Command")


def serve_parent(
    descriptor: int, kinds: Iterable[type[_Command]], work: Callable[[Iterator[_Command], MessageWriter], None]
) -> int:
    """Do the commands, of the classes `kinds`, that come through a socket; returns the exit code.

    `work` gets the commands, as they come, and a function that sends events.
    """
    end_with_parent(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - stays open for the script
    commands = read_commands(descriptor, kinds)
    code = report_work(MessageWriter(descriptor), lambda sink: work(commands, sink))
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def report_work(sink: MessageWriter, work: Callable[[MessageWriter], None]) -> int:
    """Do something, and report its end; returns the exit code."""
    code = 0
    try:
        work(sink)
    except IrscopeError as error:
        sink(Refused(type(error).__name__, str(error)))
        code = 1
    sink(Done())
    return code


def read_commands(descriptor: int, kinds: Iterable[type[_Command]]) -> Iterator[_Command]:
    """The commands, of the classes `kinds`, that come through a socket, until its other end is closed."""
    reader = MessageReader(kinds)
    while chunk := os.read(descriptor, 1 << 20):
        yield from reader.feed(chunk)
