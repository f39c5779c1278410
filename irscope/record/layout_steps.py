"""Adds the layouts of each compile to what a recording tells: asked beside the compile, told when they are there."""

from __future__ import annotations

from types import TracebackType

from irscope.capture import Target
from irscope.record.events import Event, EventSink
from irscope.record.layouts import LayoutJob, LayoutServer


class LayoutSteps:
    """A sink that passes events on, and tells a `layouts` event of every TTGIR it sees; the last of them on leaving.

    Nothing that the compiler does to the question reaches the recording: the answers come from a child process.
    """

    def __init__(self, sink: EventSink, fork: bool = True) -> None:
        self._sink = sink
        self._server = LayoutServer(fork=fork)
        self._targets: dict[int, Target] = {}
        self._jobs: dict[int, LayoutJob] = {}

    def __enter__(self) -> EventSink:
        return self

    def __call__(self, event: Event) -> None:
        """Pass an event on, ask for the layouts of a TTGIR, and tell what was answered meanwhile."""
        self._sink(event)
        if event.kind == "compile-begin":
            backend, _, arch = str(event["target"]).partition(":")
            self._targets[event["n"]] = Target(backend, arch, int(event["warp_size"]))
        elif event.kind == "artifact" and event["stage"] == "ttgir" and isinstance(event.data, str):
            target = self._targets.get(event["n"])
            if target is not None:
                self._jobs[event["n"]] = self._server.ask(event.data, target)
        if self._jobs:
            self._server.poll()
            self._tell()

    def _tell(self) -> None:
        for number, job in list(self._jobs.items()):
            if job.ended:
                del self._jobs[number]
                self._sink(Event("layouts", {"n": number, "layouts": job.result()}))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._server:
            for number, job in list(self._jobs.items()):
                rows = self._server.wait(job)
                del self._jobs[number]
                self._sink(Event("layouts", {"n": number, "layouts": rows}))
