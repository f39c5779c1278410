"""Digests of files' contents; those of large files are stored until the file changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import struct
from functools import cache
from pathlib import Path
from typing import Any

from irscope.store.disk import default_folder, write_atomically

_DIGEST_DIGITS = 16
"""Hex digits of SHA-256 per digest."""

_LARGE_BYTES = 1 << 20
_MOST_REMEMBERED = 64

_ELF_HEADER_BYTES = 64
_LOADED = 1
_seen: dict[str, dict[str, Any]] = {}
"""By path: the file's state and its digest, as known to this process."""


def digest_of_file(path: Path) -> str:
    """A digest of a file's contents; of a shared library, of the loaded parts only, so that stripping changes nothing.

    Raises OSError where it cannot be read.
    """
    state = path.stat()
    # The inode's change time cannot be set back, so it shows a file that was replaced in place.
    known = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev]
    name = _resolved(path)
    large = state.st_size >= _LARGE_BYTES
    if large and name not in _seen:
        _seen.update({key: row for key, row in _remembered().items() if key not in _seen})
    row = _seen.get(name)
    if row is not None and row["state"] == known:
        return row["digest"]
    digest = _digest(path, state.st_size)
    _seen[name] = {"state": known, "digest": digest}
    if large:
        _remember(name, _seen[name])
    return digest


@cache
def _resolved(path: Path) -> str:
    return str(path.resolve())


def digest_of_tree(path: Path) -> str:
    """A digest of a file, or of all files in a folder with their names; an empty string if there is none."""
    if path.is_file():
        return digest_of_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    rows = [(str(file.relative_to(path)), digest_of_file(file)) for file in files]
    return short_digest(repr(rows).encode()) if rows else ""


def short_digest(data: bytes) -> str:
    """The first hex digits of SHA-256."""
    return hashlib.sha256(data).hexdigest()[:_DIGEST_DIGITS]


def _digest(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        if size < _LARGE_BYTES:
            return short_digest(file.read())
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            for start, end in _loaded_ranges(data[:_ELF_HEADER_BYTES], data) or [(0, size)]:
                with view[start:end] as part:
                    digest.update(part)
    return digest.hexdigest()[:_DIGEST_DIGITS]


def _loaded_ranges(header: bytes, data: mmap.mmap) -> list[tuple[int, int]]:
    """The (start, end) of each loaded segment of a 64-bit little-endian ELF file; empty for any other file.

    Symbol tables and debug information are not loaded. Source: the System V ABI, ELF-64 object file format.
    """
    if not header.startswith(b"\x7fELF\x02\x01"):
        return []
    (offset,) = struct.unpack_from("<Q", header, 32)
    entry_size, count = struct.unpack_from("<HH", header, 54)
    ranges: list[tuple[int, int]] = []
    for index in range(count):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + index * entry_size)
        if kind == _LOADED and length:
            # The ELF header has the position of the section headers, which strip changes.
            ranges.append((max(start, _ELF_HEADER_BYTES), start + length))
    return ranges


def _memory() -> Path:
    return default_folder() / "contents.json"


def _remembered() -> dict[str, dict[str, Any]]:
    try:
        rows = json.loads(_memory().read_text("utf-8"))
        return {key: row for key, row in rows.items() if isinstance(row["digest"], str) and row["state"]}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _remember(name: str, row: dict[str, Any]) -> None:
    rows = {key: other for key, other in _remembered().items() if key != name and os.path.exists(key)}
    kept = dict(list(rows.items())[-_MOST_REMEMBERED + 1 :])
    # Without a writable folder, the file is read again the next time.
    with contextlib.suppress(OSError):
        write_atomically(_memory(), json.dumps({**kept, name: row}).encode())
