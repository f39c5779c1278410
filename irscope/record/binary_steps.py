"""What comes after a binary: its disassembly, made beside the rest, and the Python files its locations name."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from irscope.ir.quoted import unescape_ir
from irscope.record import triton_api
from irscope.record.events import Event, EventSink
from irscope.record.request import RecordRequest

if TYPE_CHECKING:
    from irscope.record.binaries import Disassembly

DISASSEMBLY_TIMEOUT_S = 60.0
_MAX_SOURCE_BYTES = 4 << 20

# #loc1 = loc("/kernels/matmul.py":31:20)
_LOCATION_FILE = re.compile(r'loc\("([^"\n]+\.py)":\d+:\d+')


class BinarySteps:
    """A sink that passes events on, and adds what is made of the artifacts it sees; the last of it on leaving."""

    def __init__(self, sink: EventSink, request: RecordRequest) -> None:
        self._sink = sink
        self._request = request
        self._running: list[tuple[int, Disassembly]] = []
        self._files: set[str] = set()
        self._kernels: dict[int, str] = {}

    def __enter__(self) -> EventSink:
        return self

    def __call__(self, event: Event) -> None:
        """Pass an event on, and start what it makes possible."""
        self._sink(event)
        if event.kind == "compile-begin":
            self._tell_file(str(event["launch"]["kernel"].get("file", "")))
        elif event.kind == "artifact" and event["stage"] == "source" and isinstance(event.data, str):
            for path in dict.fromkeys(_LOCATION_FILE.findall(event.data)):
                self._tell_file(unescape_ir(path))
        elif self._is_to_disassemble(event) and isinstance(event.data, bytes):
            # Its readers take a while to import, and not every recording needs them.
            from irscope.record.binaries import Disassembly

            tools = triton_api.nvidia_tools()
            self._running.append((event["n"], Disassembly.start(event.data, tools.get("nvdisasm"))))
        self._collect(wait=False)

    def _is_to_disassemble(self, event: Event) -> bool:
        return self._request.disassemble and event.kind == "artifact" and event["stage"] == "cubin"

    def _collect(self, wait: bool) -> None:
        for row in list(self._running):
            number, disassembly = row
            if not wait and not disassembly.done():
                continue
            self._running.remove(row)
            text = disassembly.result(DISASSEMBLY_TIMEOUT_S)
            if text:
                self._sink(Event("artifact", {"n": number, "stage": "sass"}, text))

    def _tell_file(self, path: str) -> None:
        if not path or path in self._files or self._request.mode == "text":
            return
        self._files.add(path)
        file = Path(path)
        if file.suffix == ".py" and file.is_file() and file.stat().st_size <= _MAX_SOURCE_BYTES:
            self._sink(Event("source-file", {"path": path}, file.read_text("utf-8", "replace")))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._collect(wait=True)
