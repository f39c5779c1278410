"""What the recording process tells as it goes: events, and their form on a pipe.

A frame is the length of its header (4 bytes, little endian), the header as JSON, and the payload, whose length and
kind stand in the header. Reading executes nothing of what was written, and a frame that was cut ends the stream.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in the recording process."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    data: str | bytes | None = None
    """A text or a binary too large for the header."""

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]


EventSink = Callable[[Event], None]


class EventWriter:
    """Writes events to a pipe, each whole before the next; usable from several threads."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        data = event.data
        payload = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else (data or b"")
        kind = None if data is None else ("text" if isinstance(data, str) else "bytes")
        header = json.dumps([event.kind, event.fields, kind, len(payload)], default=str).encode()
        with self._lock:
            self._stream.write(_LENGTH.pack(len(header)) + header + payload)
            # Flushed at once: what comes next may end the process.
            self._stream.flush()


class FrameReader:
    """Turns the bytes of a stream, as they come, into events; what was cut off at the end is no event."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that the bytes so far complete."""
        self._buffer += chunk
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            body = start + _LENGTH.size
            if len(self._buffer) < body + length:
                break
            kind, fields, payload_kind, size = json.loads(self._buffer[body : body + length])
            end = body + length + size
            if len(self._buffer) < end:
                break
            payload = bytes(self._buffer[body + length : end])
            start = end
            data = payload.decode("utf-8", "surrogateescape") if payload_kind == "text" else payload
            yield Event(kind, fields, None if payload_kind is None else data)
        del self._buffer[:start]
