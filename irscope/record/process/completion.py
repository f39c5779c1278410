"""Hands on each capture of a recording when it is complete, while the recording goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from weakref import finalize

from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Capture
from irscope.model.failure import FailureKind
from irscope.record.process import events
from irscope.record.process.assembly import Assembly
from irscope.record.process.open_capture import LateFacts
from irscope.record.process.own_folder import own_folder
from irscope.record.process.requests import RecordRequest
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures

Keep = Callable[[Capture], Path | None]
"""Stores a capture that is complete, and again when more is known of it; returns its file, None if there is none."""


class Completion:
    """Feeds an assembly, and hands on a capture when its compile ends, and when what is made beside it is there.

    From then on its texts are in its file: that of `keep`, or one in a temporary folder that the captures own. Facts
    that come later still (the grid, if nothing is made beside; the times of an autotuning, a note on the whole
    recording) are added by `finish`.
    """

    def __init__(self, assembly: Assembly, request: RecordRequest, keep: Keep | None) -> None:
        self.assembly = assembly
        self._request = request
        self._keep = keep
        self._missing: dict[int, set[str]] = {}
        """Of each compile, what is being made beside it."""
        self._ended: set[int] = set()
        self._files: dict[int, CaptureFile] = {}
        self._stored_facts: dict[int, LateFacts] = {}
        """Those that the file of each compile holds."""
        self._shelf = Shelf(_SpillFolder(), keep)

    def feed(self, event: events.RecordingEvent) -> None:
        """Take one event."""
        self.assembly.feed(event)
        if not isinstance(event, events.CompileEvent):
            return
        number = event.n
        if isinstance(event, (events.CompileDropped, events.AlreadyStored)):
            self._missing.pop(number, None)
            return
        missing = self._missing.setdefault(number, set())
        if isinstance(event, (events.CompileEnded, events.CompileFailed)):
            self._ended.add(number)
            if not missing:
                self._put(number)
            elif self._keep is not None:
                self._keep(self.assembly.capture(number))
        elif isinstance(event, events.ArtifactMade) and event.stage == "ttgir" and self._request.layouts:
            missing.add("layouts")
        elif isinstance(event, events.ArtifactMade) and event.stage == "cubin" and self._request.disassemble:
            missing.add("sass")
        elif isinstance(event, (events.ArtifactMade, events.StageLeftOut, events.LayoutsKnown)) and missing:
            missing.discard("layouts" if isinstance(event, events.LayoutsKnown) else event.stage)
            if number in self._ended and not missing:
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
        capture = self.assembly.capture(number)
        self._files[number] = CaptureFile(self._shelf, capture, None if self._keep is None else self._keep(capture))
        self._stored_facts[number] = self.assembly.late_facts(number)
        self.assembly.release(number)


class _SpillFolder:
    """A temporary folder that is made when it is needed, and removed with the last capture that may be in it."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._folder: Path | None = None
        finalize(self, self._held.close)

    def __call__(self) -> Path:
        if self._folder is None:
            self._folder = self._held.enter_context(own_folder())
        return self._folder
