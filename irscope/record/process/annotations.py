"""What is made of a compile's artifacts next to it: the layouts of its TTGIR, and the disassembly of its cubin."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from irscope.model.capture import Target
from irscope.record.process.events import (
    ArtifactMade,
    Begun,
    CompileBegun,
    EventSink,
    LayoutsKnown,
    RecordingEvent,
    StageLeftOut,
)
from irscope.record.process.layout_server import LayoutJob, LayoutServer, Module
from irscope.record.process.requests import RecordRequest
from irscope.tools import POLL_S

if TYPE_CHECKING:
    from irscope.record.process.disassembly import Disassembly

__all__ = ["Annotations"]

_PAUSE_S = 0.01
_PAUSES_OF_A_POLL = round(POLL_S / _PAUSE_S)


class Annotations:
    """A sink that passes events on, and adds those of layouts and disassembly; usable from several threads.

    Nothing of that is made in the process that compiles: a crash of the compiler at a question for layouts does not
    reach it, and it has no children of irscope's.
    """

    def __init__(self, sink: EventSink, request: RecordRequest, server: LayoutServer) -> None:
        """`server`: is asked for layouts."""
        self._sink = sink
        self._request = request
        self._server = server
        self._nvdisasm = ""
        self._targets: dict[int, Target] = {}
        self._layouts: dict[int, LayoutJob] = {}
        self._disassemblies: dict[int, Disassembly] = {}
        self._lock = threading.RLock()

    @property
    def is_done(self) -> bool:
        """Whether nothing is under way."""
        return not self._layouts and not self._disassemblies

    def __call__(self, event: RecordingEvent) -> None:
        """Pass an event on, begin what it makes possible, and add what is there."""
        with self._lock:
            self._sink(event)
            if isinstance(event, Begun):
                self._nvdisasm = event.nvdisasm
            elif isinstance(event, CompileBegun):
                self._targets[event.n] = event.target
            elif isinstance(event, ArtifactMade):
                self._begin(event)
            self.collect()

    def _begin(self, event: ArtifactMade) -> None:
        if event.stage == "ttgir" and self._request.layouts and isinstance(event.data, str):
            self._layouts[event.n] = self._server.ask(Module.of(self._targets[event.n]), text=event.data)
        elif event.stage == "cubin" and self._request.disassemble and isinstance(event.data, bytes):
            # Its readers take a while to import, and not every recording needs them.
            from irscope.record.process.disassembly import Disassembly

            self._disassemblies[event.n] = Disassembly(event.data, self._nvdisasm or None)

    def collect(self) -> None:
        """Add what was made meanwhile."""
        with self._lock:
            if self._layouts:
                self._server.poll()
            for number, job in list(self._layouts.items()):
                if job.ended:
                    del self._layouts[number]
                    self._sink(LayoutsKnown(number, tuple(job.answered_rows())))
            for number, disassembly in list(self._disassemblies.items()):
                if disassembly.done():
                    del self._disassemblies[number]
                    text = disassembly.result().text
                    self._sink(ArtifactMade(number, "sass", text) if text else StageLeftOut(number, "sass"))

    def finish(self, stops: Callable[[], object] = lambda: False) -> None:
        """Wait for what is under way, and add it; what `stops()` interrupts is left out."""
        pauses = 0
        while self._disassemblies and not stops():
            self.collect()
            time.sleep(_PAUSE_S)
            pauses += 1
            if pauses % _PAUSES_OF_A_POLL == 0:
                for disassembly in self._disassemblies.values():
                    disassembly.count_poll()
        for job in list(self._layouts.values()):
            if not stops():
                self._server.wait(job)
            job.ended = True
        for disassembly in self._disassemblies.values():
            disassembly.close()
        self._disassemblies.clear()
        self.collect()
