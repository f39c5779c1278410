"""The processes of a recorded program, other than the one that the recording started: each reports by itself.

They connect to a socket in the recording's folder (`meeting`), in which the request lies too.
`irscope.record.programs.joining` is the other side.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from irscope.record.process.annotations import Annotations
from irscope.record.process.assembly import Assembly
from irscope.record.process.child import MessageStream
from irscope.record.process.codec import MessageError, MessageReader, frame_of
from irscope.record.process.completion import Completion, Keep
from irscope.record.process.events import EVENTS, EventSink, Joined, Launched, RecordingEvent, Resumed
from irscope.record.process.meeting import address_in, announced
from irscope.record.process.requests import RecordRequest

__all__ = ["Gathering", "gathering", "read_request"]

_REQUEST = "request"
_MOST_WAITING = 256


@dataclass(slots=True)
class _Member:
    """A process that is connected."""

    stream: MessageStream[RecordingEvent]
    completion: Completion | None = None
    feed: EventSink | None = None
    """What takes its events."""


class Gathering:
    """The processes that report, and what each has compiled."""

    def __init__(
        self,
        folder: Path,
        listener: socket.socket,
        request: RecordRequest,
        keep: Keep | None,
        first: int,
        feed_first: EventSink,
        annotated: Callable[[Completion], Annotations],
    ) -> None:
        """`first`: the number of the program's first process; `feed_first` takes its events. `annotated`: of others."""
        self._folder = folder
        self._listener = listener
        self._request = request
        self._keep = keep
        self._first = first
        self._feeds: dict[int, EventSink] = {first: feed_first}
        """By the number of the process."""
        self._annotated = annotated
        self._members: list[_Member] = []
        self.completions: list[Completion] = []
        """Of each process that is recorded, in the order in which they joined."""
        self.annotated: list[Annotations] = []
        self._families: list[set[int]] = []
        self.are_killed = False
        """Whether the processes are ended by the recording, which says of their compiles why."""

    def descriptors(self) -> Iterator[int]:
        """Those that reports come through."""
        yield self._listener.fileno()
        yield from (member.stream.fileno() for member in self._members)

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
        heard = set[int]().union(*self._families)
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
        self._families = announced(self._folder)
        for member in self._members:
            member.stream.close()
        self._members.clear()
        self._feeds.clear()

    def _feed(self, member: _Member, event: RecordingEvent) -> None:
        if isinstance(event, Resumed):
            member.feed = self._feeds.get(event.pid)
        elif isinstance(event, Joined):
            name = "" if event.pid == self._first else f"{event.command} ({event.pid})"
            member.completion = Completion(Assembly(self._request, process=name), self._request, self._keep)
            self.completions.append(member.completion)
            self.annotated.append(annotated := self._annotated(member.completion))
            self._feeds[event.pid] = member.feed = annotated
        elif member.feed is not None:
            member.feed(event)
            if isinstance(event, Launched) and member.completion is not None:
                # It may have been compiled before the fork.
                for other in self.completions:
                    if other is not member.completion:
                        other.assembly.feed(event)


@contextmanager
def gathering(
    folder: Path,
    request: RecordRequest,
    keep: Keep | None,
    first: int,
    feed_first: EventSink,
    annotated: Callable[[Completion], Annotations],
) -> Iterator[Gathering]:
    """Let the processes of a program report to a socket in `folder`, until the end of the block; as `Gathering`."""
    (folder / _REQUEST).write_bytes(frame_of(request))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, address_in(folder) as address:
        listener.bind(address)
        listener.listen(_MOST_WAITING)
        listener.setblocking(False)
        made = Gathering(folder, listener, request, keep, first, feed_first, annotated)
        try:
            yield made
        finally:
            made.close()


def read_request(folder: Path) -> RecordRequest:
    """The request of the recording of a folder."""
    return next(MessageReader((RecordRequest,)).feed((folder / _REQUEST).read_bytes()))
