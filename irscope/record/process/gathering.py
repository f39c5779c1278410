"""The processes of a recorded program, other than the one that the recording started: each reports by itself.

They connect to a socket in the recording's folder, in which the request lies too; an environment variable names it.
`irscope.record.programs.joining` is the other side.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from irscope.record.process.assembly import Assembly
from irscope.record.process.child import MessageStream
from irscope.record.process.codec import MessageError, MessageReader, frame_of
from irscope.record.process.completion import Completion, Keep
from irscope.record.process.events import EVENTS, Joined, Launched, RecordingEvent
from irscope.record.process.requests import RecordRequest

__all__ = ["PROGRAM_VARIABLE", "Gathering", "connected", "gathering", "read_request"]

PROGRAM_VARIABLE = "IRSCOPE_PROGRAM"
"""The environment variable with the path of the folder, for the Python processes of a program that is recorded."""

_SOCKET, _REQUEST = "socket", "request"
_MOST_WAITING = 256


@dataclass(slots=True)
class _Member:
    """A process that is connected."""

    stream: MessageStream[RecordingEvent]
    completion: Completion | None = None


class Gathering:
    """The processes that report, and what each has compiled."""

    def __init__(self, listener: socket.socket, request: RecordRequest, keep: Keep | None, first: int) -> None:
        """`first`: the number of the program's first process."""
        self._listener = listener
        self._request = request
        self._keep = keep
        self._first = first
        self._members: list[_Member] = []
        self.completions: list[Completion] = []
        """Of each process that is recorded, in the order in which they joined."""
        self.are_killed = False
        """Whether the processes are ended by the recording, which says of their compiles why."""
        self._families: list[set[int]] = []
        """Of each process that was started and took part: its number, and those of its ancestors."""

    def wait(self, descriptor: int, timeout_s: float) -> None:
        """Wait until something comes, here or through another descriptor."""
        poll = select.poll()
        for one in (descriptor, self._listener.fileno(), *(member.stream.fileno() for member in self._members)):
            poll.register(one, select.POLLIN)
        poll.poll(timeout_s * 1000)

    def read(self) -> None:
        """Take what came."""
        with contextlib.suppress(BlockingIOError, OSError):
            while True:
                connection, _ = self._listener.accept()
                self._members.append(_Member(MessageStream(connection.detach(), EVENTS)))
        for member in list(self._members):
            try:
                while member.stream.has_data():
                    for event in member.stream.read(0):
                        self._feed(member, event)
            except MessageError as error:
                if member.completion is not None:
                    member.completion.assembly.notes.append(f"A process of the program is not recorded on: {error}")
                member.stream.at_end = True
            if member.stream.at_end:
                member.stream.close()
                self._members.remove(member)
                if member.completion is not None and not self.are_killed:
                    member.completion.assembly.fail_open("abort", "its process ended in the compile.", b"")

    def unheard(self, started: list[tuple[int, str]]) -> list[str]:
        """The commands of those Python processes, of (number or 0, command), that did not take part."""
        known = {pid for pid, _ in started}
        heard = set().union(*self._families)
        # os.system does not tell the number of what it starts.
        others = sum(1 for family in self._families if not family & known)
        unheard: list[str] = []
        for pid, command in started:
            if pid == 0 and others:
                others -= 1
            elif pid not in heard:
                unheard.append(command)
        return unheard

    def close(self) -> None:
        """Take the rest, and disconnect."""
        self.read()
        for member in self._members:
            member.stream.close()
        self._members.clear()

    def _feed(self, member: _Member, event: RecordingEvent) -> None:
        if isinstance(event, Joined):
            if not event.recorded:
                self._families.append({event.pid, *event.ancestors})
            if event.recorded:
                name = "" if event.pid == self._first else f"{event.command} ({event.pid})"
                member.completion = Completion(Assembly(self._request, process=name), self._request, self._keep)
                self.completions.append(member.completion)
        elif member.completion is not None:
            member.completion.feed(event)
            if isinstance(event, Launched):
                # It may have been compiled before the fork.
                for other in self.completions:
                    other.assembly.feed(event)


@contextmanager
def gathering(folder: Path, request: RecordRequest, keep: Keep | None, first: int) -> Iterator[Gathering]:
    """Let the processes of a program report to a socket in `folder`, until the end of the block."""
    (folder / _REQUEST).write_bytes(frame_of(request))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, _short_path(folder / _SOCKET) as address:
        listener.bind(address)
        listener.listen(_MOST_WAITING)
        listener.setblocking(False)
        made = Gathering(listener, request, keep, first)
        try:
            yield made
        finally:
            made.close()


def is_gathering(folder: Path) -> bool:
    """Whether a recording takes reports in a folder."""
    return (folder / _SOCKET).exists()


def connected(folder: Path) -> socket.socket:
    """A connection to the recording of a folder; raises OSError if that has ended."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _short_path(folder / _SOCKET) as address:
        made.connect(address)
    return made


def read_request(folder: Path) -> RecordRequest:
    """The request of the recording of a folder."""
    return next(MessageReader((RecordRequest,)).feed((folder / _REQUEST).read_bytes()))


@contextmanager
def _short_path(path: Path) -> Iterator[str]:
    """A path of the same file that is short enough for a socket's address, which has some hundred bytes."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
