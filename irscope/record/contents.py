"""Digests of files' contents, remembered for the large ones as long as the file stays as it is."""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import struct
from pathlib import Path
from typing import Any

from irscope.recent import default_folder
from irscope.store import write_atomically

DIGEST_DIGITS = 16
"""How many hex digits of SHA-256 a digest has."""

_LARGE_BYTES = 1 << 20
_MOST_REMEMBERED = 64

_ELF_HEADER_BYTES = 64
_LOADED = 1
_seen: dict[str, dict[str, Any]] = {}
"""By path, what this process knows: the file's state, and its digest."""


def digest_of_file(path: Path) -> str:
    """A digest of what a file holds; of a shared library, of what is loaded of it, so that a stripped one is the same.

    Raises OSError where it cannot be read.
    """
    state = path.stat()
    # The inode's own time (ctime) cannot be set back, so a file that was replaced in place is seen.
    known = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev]
    name = str(path.resolve())
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


def digest_of_tree(path: Path) -> str:
    """A digest of a file, or of all the files in a folder with their names; empty where nothing is there."""
    if path.is_file():
        return digest_of_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    rows = [(str(file.relative_to(path)), digest_of_file(file)) for file in files]
    return short_digest(repr(rows).encode()) if rows else ""


def short_digest(data: bytes) -> str:
    """The first hex digits of SHA-256."""
    return hashlib.sha256(data).hexdigest()[:DIGEST_DIGITS]


def _digest(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        if size < _LARGE_BYTES:
            return short_digest(file.read())
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            for start, end in _loaded_ranges(data[:_ELF_HEADER_BYTES], data) or [(0, size)]:
                with view[start:end] as part:
                    digest.update(part)
    return digest.hexdigest()[:DIGEST_DIGITS]


def _loaded_ranges(header: bytes, data: mmap.mmap) -> list[tuple[int, int]]:
    """The (start, end) of what the loader maps of a 64-bit little-endian ELF file; empty for any other file.

    Symbol tables and debug information are not in it. Source: the System V ABI, ELF-64 object file format.
    """
    if not header.startswith(b"\x7fELF\x02\x01"):
        return []
    (offset,) = struct.unpack_from("<Q", header, 32)
    entry_size, count = struct.unpack_from("<HH", header, 54)
    ranges: list[tuple[int, int]] = []
    for index in range(count):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + index * entry_size)
        if kind == _LOADED and length:
            # The ELF header says where the section headers stand, which strip moves.
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
    # Where nothing can be written, the file is read again the next time.
    with contextlib.suppress(OSError):
        write_atomically(_memory(), json.dumps({**kept, name: row}).encode())
