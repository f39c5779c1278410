"""Adds a `layouts` event for each TTGIR of a recording; another process asks the compiler."""

from __future__ import annotations

from collections.abc import Mapping

from irscope.model.capture import Target
from irscope.record.layouts.messages import Module
from irscope.record.layouts.server import LayoutJob, LayoutServer
from irscope.record.process.events import ArtifactMade, CompileBegun, EventSink, LayoutsKnown, RecordingEvent


class LayoutSteps:
    """A sink that passes events on, and emits a `layouts` event for every TTGIR among them, the last ones on exit.

    The answers come from a child process, so that a crash of the compiler at a question does not reach the recording.
    """

    def __init__(self, sink: EventSink, server: LayoutServer, targets: Mapping[int, Target] | None = None) -> None:
        """`server`: who is asked. `targets`: of compiles that have begun."""
        self._sink = sink
        self._server = server
        self._targets: dict[int, Target] = dict(targets or {})
        self._jobs: dict[int, LayoutJob] = {}

    def __enter__(self) -> EventSink:
        return self

    def __call__(self, event: RecordingEvent) -> None:
        """Pass an event on, ask for the layouts of a TTGIR, and emit those that have been answered."""
        self._sink(event)
        if isinstance(event, CompileBegun):
            self._targets[event.n] = event.target
        elif isinstance(event, ArtifactMade) and event.stage == "ttgir" and isinstance(event.data, str):
            self._jobs[event.n] = self._server.ask(Module.of(self._targets[event.n]), text=event.data)
        if self._jobs:
            self._server.poll()
            self._emit()

    def _emit(self) -> None:
        for number, job in list(self._jobs.items()):
            if job.ended:
                del self._jobs[number]
                self._sink(LayoutsKnown(number, tuple(job.answered_rows())))

    def __exit__(self, *_: object) -> None:
        for job in self._jobs.values():
            self._server.wait(job)
            job.ended = True
        self._emit()
