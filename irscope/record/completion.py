"""Hands on each capture of a recording when it is complete, while the recording goes on."""

from __future__ import annotations

from collections.abc import Callable

from irscope.capture import Capture
from irscope.record.assembly import Assembly
from irscope.record.events import Event
from irscope.record.request import RecordRequest

Keep = Callable[[Capture], None]
"""Takes a capture that is complete; and takes it again when more is known of it."""


class Completion:
    """Feeds an assembly, and hands on a capture when its compile ends, and when what is made beside it is there.

    What is known later still (the grid, where nothing is made beside; the times of an autotuning, a note on the whole
    recording) comes with `finish`.
    """

    def __init__(self, assembly: Assembly, request: RecordRequest, keep: Keep | None) -> None:
        self._assembly = assembly
        self._request = request
        self._keep = keep
        self._missing: dict[int, set[str]] = {}
        """Of each compile, what is being made beside it."""
        self._ended: set[int] = set()

    def feed(self, event: Event) -> None:
        """Take one event."""
        self._assembly.feed(event)
        number = event.fields.get("n")
        if self._keep is None or number is None:
            return
        missing = self._missing.setdefault(number, set())
        if event.kind in ("compile-end", "compile-failed"):
            self._ended.add(number)
            self._keep(self._assembly.capture(number))
        elif event.kind == "artifact" and event["stage"] == "ttgir" and self._request.layouts:
            missing.add("layouts")
        elif event.kind == "artifact" and event["stage"] == "cubin" and self._request.disassemble:
            missing.add("sass")
        elif missing:
            missing.discard(event["stage"] if event.kind == "artifact" else event.kind)
            if number in self._ended and not missing:
                self._keep(self._assembly.capture(number))

    def finish(self) -> tuple[Capture, ...]:
        """All captures, each of which was handed on as it is now."""
        captures = self._assembly.captures()
        if self._keep is not None:
            for capture in captures:
                self._keep(capture)
        return captures
