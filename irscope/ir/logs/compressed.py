"""Unpacks what was compressed by gzip or zstd, in one piece or many, within a bound."""

from __future__ import annotations

import io
import zlib
from importlib import import_module
from typing import Any

from irscope.errors import ParseError
from irscope.ir.logs.regular_file import read_at_most

__all__ = ["unpacked"]

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_LARGEST_WINDOW = 1 << 27


def unpacked(data: bytes, name: str, most: int) -> bytes:
    """The data itself, or if it begins like a gzip or zstd file, all that is packed in it, up to `most` bytes and one.

    Raises ParseError that names `name` for what cannot be unpacked.
    """
    if data.startswith(_GZIP):
        return _gzip(data, name, most)
    return _zstd(data, name, most) if data.startswith(_ZSTD) else data


def _gzip(data: bytes, name: str, most: int) -> bytes:
    whole = bytearray()
    try:
        # One member after another: a trace has one for each of its events.
        rest = memoryview(data)
        while bytes(rest[:2]) == _GZIP and len(whole) <= most:
            member = zlib.decompressobj(wbits=31)
            # Logs compress a hundredfold: the unpacked size is bounded.
            whole += member.decompress(rest, most + 1 - len(whole))
            if not member.eof:
                break
            rest = rest[len(rest) - len(member.unused_data) :]
    except zlib.error as error:
        raise ParseError(f"{name} begins like a gzip file, but cannot be unpacked ({error}).") from error
    return bytes(whole)


def _zstd(data: bytes, name: str, most: int) -> bytes:
    try:
        library: Any = import_module("zstandard")
    except ImportError as error:
        raise ParseError(
            f"{name} is compressed by zstd: pip install 'irscope[zstd]', or unpack it (zstd -d)."
        ) from error
    try:
        reader = library.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
        with reader.stream_reader(io.BytesIO(data), read_across_frames=True) as file:
            found = read_at_most(file, most + 1)
    except library.ZstdError as error:
        raise ParseError(f"{name} begins like a zstd file, but cannot be unpacked ({error}).") from error
    if not found:
        raise ParseError(f"{name} begins like a zstd file, but holds no whole frame.")
    return found
