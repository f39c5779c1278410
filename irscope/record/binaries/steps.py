"""Adds the disassembly of binaries, made in the background, and the Python files that locations name."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.ir.quoted import unescape_ir
from irscope.record.process import events
from irscope.record.process.events import EventSink
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api

if TYPE_CHECKING:
    from irscope.record.binaries.disassembly import Disassembly

_MAX_SOURCE_BYTES = 4 << 20

# #loc1 = loc("/kernels/matmul.py":31:20)   |   loc("<stdin>":4:8)   |   loc("/kernels/matmul.ipynb#cell3":4:8)
_LOCATION_FILE = re.compile(r'loc\("([^"\n]+(?:\.py|>|\.ipynb#cell\d+))":\d+:\d+')


class BinarySteps:
    """A sink that passes events on, and adds the SASS and the Python files of the artifacts it sees."""

    def __init__(self, sink: EventSink, request: RecordRequest) -> None:
        self._sink = sink
        self._request = request
        self._running: list[tuple[int, Disassembly]] = []
        self._files: set[str] = set()

    def __enter__(self) -> EventSink:
        return self

    def __call__(self, event: events.RecordingEvent) -> None:
        """Pass an event on, and start the work it makes possible."""
        self._sink(event)
        if isinstance(event, events.CompileBegun):
            self._report_file(event.launch.kernel.file)
        elif isinstance(event, events.ArtifactMade) and event.stage == "source" and isinstance(event.data, str):
            for path in dict.fromkeys(_LOCATION_FILE.findall(event.data)):
                self._report_file(unescape_ir(path))
        elif isinstance(event, events.ArtifactMade) and event.stage == "cubin" and self._request.disassemble:
            # Its readers take a while to import, and not every recording needs them.
            from irscope.record.binaries.disassembly import Disassembly

            if isinstance(event.data, bytes):
                self._running.append((event.n, Disassembly(event.data, triton_api.nvidia_tools().get("nvdisasm"))))
        self._collect(wait=False)

    def _collect(self, wait: bool) -> None:
        for row in list(self._running):
            number, disassembly = row
            if not wait and not disassembly.done():
                continue
            self._running.remove(row)
            text = disassembly.result().text
            self._sink(events.ArtifactMade(number, "sass", text) if text else events.StageLeftOut(number, "sass"))

    def _report_file(self, path: str) -> None:
        if not path or path in self._files or self._request.mode == "text":
            return
        self._files.add(path)
        file = Path(path)
        if file.suffix == ".py" and file.is_file() and file.stat().st_size <= _MAX_SOURCE_BYTES:
            self._sink(events.SourceRead(path, file.read_text("utf-8", "replace")))
        elif path in linecache.cache and (lines := linecache.getlines(path)):
            # A cell of a notebook, or standard input.
            self._sink(events.SourceRead(path, "".join(lines)))

    def __exit__(self, *_: object) -> None:
        self._collect(wait=True)
