"""What a report's script elements hold."""

from __future__ import annotations

import base64
import zlib


def bytes_of(text: str) -> bytes:
    """The bytes that a script element of a report stands for."""
    return base64.b85decode(text.translate(str.maketrans(",./", "<>&")))


def unpacked(text: str) -> bytes:
    """What was packed into a script element: a script, or JSON."""
    return zlib.decompress(bytes_of(text), -zlib.MAX_WBITS)
