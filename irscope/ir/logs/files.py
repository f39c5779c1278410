"""Reads regular files from a folder that is not trusted, and unpacks what gzip or zstd compressed, within a bound."""

from __future__ import annotations

import io
import os
import stat
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from irscope.errors import ParseError, installing

# ── Reads regular files from a folder that is not trusted ───────────────────────────────────────────────────────────


class FileRefused(Exception):
    """A file is refused; the message says why, without the file name."""


def inside(path: Path, folder: Path) -> bool:
    """Whether a path stays within a folder when its symbolic links are followed."""
    try:
        return path.resolve(strict=True).is_relative_to(folder.resolve(strict=True))
    except (OSError, RuntimeError):  # RuntimeError: a cycle of links, before Python 3.13
        return False


def read_at_most(file: BinaryIO, most: int) -> bytes:
    """The bytes of a file, at most so many; `file.read(most)` takes the memory of all of them whatever is there."""
    data = bytearray()
    while len(data) < most and (part := file.read(min(most - len(data), 1 << 20))):
        data += part
    return bytes(data)


def read_regular(path: Path, limit_bytes: int, folder: Path | None = None) -> bytes:
    """The bytes of a regular file.

    A device or a pipe is not opened for reading: it could block, or have no end. With `folder`, a symbolic link that
    leads out of it is not followed: a cache that came by mail may name any file of this machine.

    Raises FileRefused, also for a file of more than `limit_bytes`.
    """
    if folder is not None:
        if not inside(path, folder):
            raise FileRefused(f"is a link that leads out of {folder.name or folder}")
        path = path.resolve()
    try:
        # Not to block on a pipe that nobody writes to; regular files know no such flag.
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (getattr(os, "O_NOFOLLOW", 0) if folder else 0)
        )
    except OSError as error:
        raise FileRefused(f"cannot be read ({error.strerror})") from error
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileRefused("is not a regular file")
        try:
            data = read_at_most(file, limit_bytes + 1)
        except OSError as error:
            raise FileRefused(f"cannot be read ({error.strerror})") from error
    if len(data) > limit_bytes:
        raise FileRefused(f"is larger than {limit_bytes:,} bytes, the most that is read")
    return data


_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# ── Unpacks what was compressed by gzip or zstd, in one piece or many, within a bound ───────────────────────────────

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
        raise ParseError(f"{name} is compressed by zstd: {installing('zstd')}, or unpack it (zstd -d).") from error
    try:
        reader = library.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
        with reader.stream_reader(io.BytesIO(data), read_across_frames=True) as file:
            found = read_at_most(file, most + 1)
    except library.ZstdError as error:
        raise ParseError(f"{name} begins like a zstd file, but cannot be unpacked ({error}).") from error
    if not found:
        raise ParseError(f"{name} begins like a zstd file, but holds no complete frame.")
    return found
