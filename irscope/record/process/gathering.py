"""Gathers the captures of a recording as they are complete, from the process that it started and from all others.

They connect to a socket in the recording's folder (`meeting`), in which the request lies too.
`irscope.record.programs.joining` is the other side.
"""

from __future__ import annotations

import contextlib
import math
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Capture, FailureKind
from irscope.record.process import events
from irscope.record.process.annotations import Annotations
from irscope.record.process.assembly import Assembly, LateFacts
from irscope.record.process.child import MessageStream
from irscope.record.process.events import EVENTS, EventSink, Joined, Launched, RecordingEvent, Resumed
from irscope.record.process.meeting import address_in, announced
from irscope.record.process.messages import MessageError, MessageReader, frame_of
from irscope.record.process.requests import RecordRequest
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures

Keep = Callable[[Capture], Path | None]
"""Stores a capture that is complete, and again when more is known of it; returns its file, None if there is none."""


_LONGEST_PATIENCE_S = 0.25
"""How long after its end a compile is held back for what is told of it right after: longer, and a process that is
killed would take more with it."""


class Completion:
    """Feeds an assembly, and hands on a capture once its compile ended, its launch and what is made beside are known.

    From then on its texts are in its file: that of `keep`, or a temporary one that the captures own. A
    capture of which that takes longer is kept meanwhile. Facts that come later still (the times of an autotuning, a
    note on the whole recording) are added by `finish`.
    """

    def __init__(self, assembly: Assembly, request: RecordRequest, keep: Keep | None) -> None:
        self.assembly = assembly
        self._request = request
        self._keep = keep
        self._missing: dict[int, set[str]] = {}
        """Of each compile, what is being made beside it."""
        self._waits: dict[int, float] = {}
        """The compiles that ended and are not handed on, each with when it is to be kept as it is."""
        self._files: dict[int, CaptureFile] = {}
        self._stored_facts: dict[int, LateFacts] = {}
        """Those that the file of each compile holds."""
        self._shelf = Shelf(spills=True, lease=keep)

    def feed(self, event: events.RecordingEvent) -> None:
        """Take one event."""
        if isinstance(event, events.CompileBegun):
            # Its thread has launched the kernel before, or never does.
            self._hand_on(of_launches=False)
        self.assembly.feed(event)
        if isinstance(event, events.Launched):
            self._hand_on()
        if not isinstance(event, events.CompileEvent):
            return
        number = event.n
        if isinstance(event, (events.CompileDropped, events.AlreadyStored)):
            self._missing.pop(number, None)
            return
        missing = self._missing.setdefault(number, set())
        if isinstance(event, (events.CompileEnded, events.CompileFailed)):
            self._waits[number] = time.monotonic() + _LONGEST_PATIENCE_S
        elif isinstance(event, events.ArtifactMade) and event.stage == "ttgir" and self._request.layouts:
            missing.add("layouts")
        elif isinstance(event, events.ArtifactMade) and event.stage == "cubin" and self._request.disassemble:
            missing.add("sass")
        elif isinstance(event, (events.ArtifactMade, events.StageLeftOut, events.LayoutsKnown)):
            missing.discard("layouts" if isinstance(event, events.LayoutsKnown) else event.stage)
        if number in self._waits:
            self._hand_on()

    def settle(self) -> None:
        """Hand on, or at least keep, what ended a while ago."""
        now = time.monotonic()
        for number, until in list(self._waits.items()):
            if until > now:
                continue
            if not self._missing[number]:
                self._put(number)
            elif self._keep is not None:
                self._waits[number] = math.inf
                self._keep(self.assembly.capture(number))

    def _hand_on(self, *, of_launches: bool = True) -> None:
        """Hand on the compiles of which all is known; without `of_launches`, that may be all but the launch."""
        for number in list(self._waits):
            if not self._missing[number] and not (of_launches and self.assembly.awaits_launch(number)):
                self._put(number)

    def fail(self, number: int, kind: FailureKind, message: str, output: bytes) -> None:
        """Hand on a compile whose process ended before it did, as failed."""
        self.assembly.fail(number, kind, message, output)
        self._put(number)

    def finish(self) -> StoredCaptures:
        """All captures, each of which was handed on as it is now."""
        for number in self.assembly.numbers:
            file = self._files.get(number)
            if file is None:
                self._put(number)
            elif self._stored_facts[number] != (facts := self.assembly.late_facts(number)):
                # A file that is gone stays so.
                with suppress(CaptureNotFound, CaptureFormatError):
                    self.replace(file, facts.added_to(file.load()))
        return StoredCaptures(self._files[number] for number in self.assembly.numbers)

    def replace(self, file: CaptureFile, capture: Capture) -> None:
        """Hand on a capture again, of which more is known."""
        file.put(capture, None if self._keep is None else self._keep(capture))

    def _put(self, number: int) -> None:
        self._waits.pop(number, None)
        capture = self.assembly.capture(number)
        self._files[number] = CaptureFile(self._shelf, capture, None if self._keep is None else self._keep(capture))
        self._stored_facts[number] = self.assembly.late_facts(number)
        self.assembly.release(number)


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
