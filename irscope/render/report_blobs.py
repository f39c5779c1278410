"""A row of compressed values: each is unpacked by itself, and only when it is looked at."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

_LEVEL = 6


class Blobs:
    """Values as JSON, deflated one by one and laid end to end."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, value: Any) -> tuple[int, int]:
        """Append a value; returns (offset, length) of its compressed bytes."""
        data = pack(value)
        place = self._size, len(data)
        self._parts.append(data)
        self._size += len(data)
        return place

    def to_bytes(self) -> bytes:
        """All of them, end to end."""
        return b"".join(self._parts)


def pack(value: Any) -> bytes:
    """A value as JSON in ASCII, deflated with neither header nor checksum."""
    text = json.dumps(value, separators=(",", ":"), default=str)
    return deflate(text.encode("ascii"))


def unpack(data: bytes) -> Any:
    """What `pack` packed."""
    return json.loads(zlib.decompress(data, -zlib.MAX_WBITS))


def deflate(data: bytes) -> bytes:
    """Raw deflate, as `DecompressionStream("deflate-raw")` reads it."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def armored(data: bytes) -> str:
    """Bytes as base64: no character of it means anything to HTML."""
    return base64.b64encode(data).decode("ascii")
