"""A sequence of compressed values, each unpacked by itself and on demand."""

from __future__ import annotations

import json
import zlib
from typing import Any

_LEVEL = 6


class Blobs:
    """Values as JSON, deflated one by one and concatenated."""

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
        """All of them, concatenated."""
        return b"".join(self._parts)


def pack(value: Any) -> bytes:
    """A value as JSON in ASCII, in raw deflate, as `DecompressionStream("deflate-raw")` reads it."""
    text = json.dumps(value, separators=(",", ":"), default=str)
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(text.encode("ascii")) + packer.flush()
