"""The side of a child process: it reads commands, sends events, and ends when its parent ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from irscope.errors import IrscopeError
from irscope.record.process.codec import MessageReader, frame_of, write_all
from irscope.record.process.events import Done, Refused, Resumed
from irscope.record.process.meeting import connected
from irscope.record.process.own_folder import keep_parent_of_temporaries, parent_of_temporaries

__all__ = ["MOST_DESCRIPTORS", "Channel", "flush_streams", "read_commands", "report_work", "serve_parent"]

_Command = TypeVar("_Command")
MOST_DESCRIPTORS = 4096
_HIGH_DESCRIPTOR, _ROOM = 1024, 32


def serve_parent(
    descriptor: int, kinds: Iterable[type[_Command]], work: Callable[[Iterator[_Command], Callable[[Any], None]], None]
) -> int:
    """Do the commands, of the classes `kinds`, that come through a socket; returns the exit code.

    `work` gets the commands, as they come, and a function that sends events.
    """
    _end_with_parent(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    keep_parent_of_temporaries()
    channel = Channel(descriptor, parent_of_temporaries())
    commands = read_commands(channel.descriptor, kinds)
    code = report_work(channel, lambda sink: work(commands, sink))
    flush_streams()
    return code


def flush_streams() -> None:
    """Write what is held back of the output, as far as the program's own streams can."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _out_of_the_way(descriptor: int) -> int:
    """Move a descriptor to where programs look for none, and hide it from what they start."""
    # Viewing, which reads this module's neighbours, needs no POSIX.
    import fcntl
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = max(3, min(_HIGH_DESCRIPTOR, soft) - _ROOM)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(descriptor)
    return moved


def _end_with_parent(descriptor: int) -> None:
    """Have this process's group ended once the other end of a pipe is closed, however that comes.

    A process in the group waits for it: it works on every system, while the compiler runs, and when this process is
    gone but what it started is not. To be called before there are threads, in a process that leads its group.
    """
    if os.getpgrp() != os.getpid():
        # Started by hand: the group is a shell's.
        return
    try:
        pid = os.fork()
    except OSError:
        return
    if pid:
        # Where a process ignores SIGCHLD, from its own parent on, the wait ends with this error.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        return
    try:
        # No child of this process's, which may wait for all of its own.
        if os.fork() == 0:
            _wait(descriptor)
    finally:
        os._exit(0)


def _wait(descriptor: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    # Above all the pipe of events, whose end shows that the recording process is gone.
    os.dup2(descriptor, 0)
    os.closerange(1, MOST_DESCRIPTORS)
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


class Channel:
    """Writes messages to the parent, each whole before the next; usable from several threads.

    The process runs a program, which may close every descriptor, and open files with their numbers: what is not the
    socket any more is not written to, but another connection is made, to the socket in the recording's folder. Once the
    recording has ended, nothing is written: the program may go on after that.
    """

    def __init__(self, descriptor: int, folder: str | None) -> None:
        self._process = os.getpid()
        self._folder = folder
        self._lock = threading.Lock()
        self._is_open = True
        self._take(_out_of_the_way(descriptor))

    def __call__(self, message: object) -> None:
        # A process that was forked past Python's hooks has the descriptor, and is not the one that it is for.
        if os.getpid() != self._process or not self._is_open:
            return
        frame = frame_of(message)
        with self._lock:
            try:
                if not self._is_own():
                    self._reconnect()
                write_all(self.descriptor, frame)
            except OSError:
                self._is_open = False

    def _take(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._identity = _identity_of(descriptor)

    def _is_own(self) -> bool:
        try:
            return _identity_of(self.descriptor) == self._identity
        except OSError:
            return False

    def _reconnect(self) -> None:
        if self._folder is None:
            raise FileNotFoundError("the connection was closed, and no folder has another one")
        self._take(_out_of_the_way(connected(Path(self._folder)).detach()))
        write_all(self.descriptor, frame_of(Resumed(self._process)))


def _identity_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def report_work(sink: Callable[[Any], None], work: Callable[[Callable[[Any], None]], None]) -> int:
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
