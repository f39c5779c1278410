"""The index of the store of recent captures: what lists and finds a capture, kept in one file beside them.

It is derived: a row counts only while its file has the size and the number that the row gives, and any other file is
read. A line is added for each file that is written, and the last one of a file is valid.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from irscope.errors import CaptureFormatError
from irscope.model.capture import Capture
from irscope.store.facts import CaptureFacts
from irscope.store.file import SUFFIX, read_manifest, write_atomically
from irscope.store.schema import converted

__all__ = ["StoredRow", "note_stored", "stored_rows"]

_INDEX = "index.jsonl"
_SPARE_LINES = 200
"""How many lines the index may have that are not valid, beside as many as there are files."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A stored capture: its file, and what lists it and finds it."""

    name: str
    """Of its file."""
    size: int
    inode: int
    facts: CaptureFacts
    recording: str = ""
    """The same for all captures of one recording."""
    modified_ns: int = 0
    """When the capture was stored, or chosen last; not in the index."""

    @property
    def belongs_to(self) -> str:
        """The recording; where it is not known, the command and when it began."""
        return self.recording or f"{self.facts.date} {self.facts.command}"


def note_stored(path: Path, capture: Capture, recording: str = "") -> None:
    """Add a stored capture to the index; where that cannot be written, `stored_rows` reads the file."""
    with suppress(OSError):
        status = path.stat()
        row = StoredRow(path.name, status.st_size, status.st_ino, CaptureFacts.of(capture), recording)
        _append(path.parent, [row])


def stored_rows(folder: Path) -> list[StoredRow]:
    """A row for every readable capture in the store, the one stored or chosen last first."""
    known, lines = _read(folder)
    rows: list[StoredRow] = []
    fresh: list[StoredRow] = []
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return []
    for entry in entries:
        if not entry.name.endswith(SUFFIX) or entry.name.startswith("."):
            continue
        with suppress(FileNotFoundError):
            status = entry.stat()
            row = known.get(entry.name)
            if row is None or (row.size, row.inode) != (status.st_size, status.st_ino):
                before = row.recording if row else ""
                try:
                    facts = CaptureFacts.of_manifest(read_manifest(Path(entry.path)))
                except CaptureFormatError:
                    continue
                row = StoredRow(entry.name, status.st_size, status.st_ino, facts, before)
                fresh.append(row)
            rows.append(replace(row, modified_ns=status.st_mtime_ns))
    with suppress(OSError):
        if lines + len(fresh) > 2 * len(rows) + _SPARE_LINES:
            write_atomically(folder / _INDEX, b"".join(map(_line, rows)))
        elif fresh:
            _append(folder, fresh)
    return sorted(rows, key=lambda row: row.modified_ns, reverse=True)


def _read(folder: Path) -> tuple[dict[str, StoredRow], int]:
    """The valid lines of the index by file, and how many lines there are."""
    rows: dict[str, StoredRow] = {}
    try:
        lines = (folder / _INDEX).read_bytes().splitlines()
    except OSError:
        return {}, 0
    for line in lines:
        # A line that was cut off, or one of another version, is none.
        with suppress(ValueError, RecursionError, CaptureFormatError):
            row = converted(json.loads(line), StoredRow)
            before = rows.get(row.name)
            # Who adds to a capture does not know its recording.
            rows[row.name] = replace(row, recording=before.recording) if before and not row.recording else row
    return rows, len(lines)


def _append(folder: Path, rows: Iterable[StoredRow]) -> None:
    # In one write, at the end: that of another process is before it or after it.
    handle = os.open(folder / _INDEX, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(handle, b"".join(map(_line, rows)))
    finally:
        os.close(handle)


def _line(row: StoredRow) -> bytes:
    values = asdict(row)
    del values["modified_ns"]
    return json.dumps(values).encode() + b"\n"
