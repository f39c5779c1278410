"""Hands on each capture of a recording when it is complete, while the recording goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from weakref import finalize

from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Capture, FailureKind
from irscope.record.process import events
from irscope.record.process.assembly import Assembly, LateFacts
from irscope.record.process.own_folder import own_folder
from irscope.record.process.requests import RecordRequest
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures

Keep = Callable[[Capture], Path | None]
"""Stores a capture that is complete, and again when more is known of it; returns its file, None if there is none."""


_LONGEST_PATIENCE_S = 0.25
"""How long after its end a compile is held back for what is told of it right after: longer, and a process that is
killed would take more with it."""


class Completion:
    """Feeds an assembly, and hands on a capture once its compile ended, its launch and what is made beside are known.

    From then on its texts are in its file: that of `keep`, or one in a temporary folder that the captures own. A
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
        self._shelf = Shelf(_SpillFolder(), keep)

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
