"""Compiles that go on in forks of the recording process: each reports to a file of its own, which is read here."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path

from irscope.record.process.assembly import Assembly
from irscope.record.process.child import Outcome
from irscope.record.process.codec import MessageReader
from irscope.record.process.completion import Completion
from irscope.record.process.events import EVENTS, Done, HandedBack, HandedOver, RecordingEvent
from irscope.record.triton.native_calls import call_that_ended

__all__ = ["ERROR", "EVENTS_FILE", "LOG", "CompilesApart"]

LOG, EVENTS_FILE, ERROR = "log", "events", "error"
"""The files of a fork: what it prints, what it reports, what its compile raised."""
_CHUNK = 1 << 20


@dataclass(slots=True)
class _Stream:
    folder: Path
    read: int = 0
    reader: MessageReader[RecordingEvent] = field(default_factory=lambda: MessageReader(EVENTS))


class CompilesApart:
    """Feeds a completion with the events of the recording process, and with those of its forks."""

    def __init__(self, completion: Completion, timeout_s: float) -> None:
        self.completion = completion
        self._timeout_s = timeout_s
        self._streams: dict[int, _Stream] = {}
        self.ended_in = ""
        """The native call that a fork ended in, if one did."""

    @property
    def assembly(self) -> Assembly:
        """What is known of the compiles of the recording process and its forks."""
        return self.completion.assembly

    def feed(self, event: RecordingEvent) -> None:
        """Take one event of the recording process."""
        self.completion.feed(event)
        if isinstance(event, HandedOver):
            self._streams[event.n] = _Stream(Path(event.folder))
        elif isinstance(event, HandedBack):
            self._ended(event)

    def read(self) -> None:
        """Take what the forks have reported since."""
        for stream in self._streams.values():
            self._read(stream)

    def _read(self, stream: _Stream) -> None:
        try:
            with open(stream.folder / EVENTS_FILE, "rb") as file:
                file.seek(stream.read)
                while chunk := file.read(_CHUNK):
                    stream.read += len(chunk)
                    for event in stream.reader.feed(chunk):
                        if not isinstance(event, Done):
                            self.completion.feed(event)
        except FileNotFoundError:
            # The fork has not begun to report.
            return

    def _ended(self, event: HandedBack) -> None:
        stream = self._streams.pop(event.n)
        self._read(stream)
        if not self.completion.assembly.has_ended(event.n):
            log = stream.folder / LOG
            self.ended_in = self.ended_in or call_that_ended(log, event.pid, event.code)
            output = log.read_bytes() if log.exists() else b""
            if event.code == -getattr(signal, "SIGALRM", 0):
                message = f"the compile took longer than {self._timeout_s:g} s and was ended."
                self.completion.fail(event.n, "timeout", message, output)
            else:
                self.completion.fail(event.n, "abort", f"the compiler {Outcome(event.code)}.", output)
        (stream.folder / EVENTS_FILE).unlink(missing_ok=True)
