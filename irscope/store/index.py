"""The index of the store of recent captures: what lists and finds a capture, kept in one file beside them.

It is derived: a row counts only while its file has the size and the number that the row gives, and any other file is
read. A line is added for each file that is written, and the last one of a file is valid.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from irscope.errors import CaptureFormatError
from irscope.model.capture import Capture
from irscope.store.disk import write_atomically
from irscope.store.facts import CaptureFacts, outline_of
from irscope.store.file import SUFFIX, read_manifest
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

    def is_of(self, status: os.stat_result) -> bool:
        """Whether the row is of a file as it is now: each save makes another file."""
        return (self.size, self.inode) == (status.st_size, status.st_ino)


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
            if row is None or not row.is_of(status):
                before = row.recording if row else ""
                try:
                    facts = outline_of(read_manifest(Path(entry.path))).facts
                except CaptureFormatError:
                    continue
                row = StoredRow(entry.name, status.st_size, status.st_ino, facts, before)
                fresh.append(row)
            rows.append(replace(row, modified_ns=status.st_mtime_ns))
    with suppress(OSError):
        if lines + len(fresh) > 2 * len(rows) + _SPARE_LINES:
            _compact(folder, rows)
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
    with _locked_index(folder) as handle:
        os.write(handle, b"".join(map(_line, rows)))


def _compact(folder: Path, rows: Iterable[StoredRow]) -> None:
    """Write the index again with these rows, and with what other processes added to it meanwhile."""
    with _locked_index(folder):
        added, _ = _read(folder)
        valid: dict[str, StoredRow] = {}
        for row in (*rows, *added.values()):
            with suppress(FileNotFoundError):
                if row.name == Path(row.name).name and row.is_of((folder / row.name).stat()):
                    valid[row.name] = row
        write_atomically(folder / _INDEX, b"".join(map(_line, valid.values())))


@contextmanager
def _locked_index(folder: Path) -> Generator[int]:
    """A descriptor that appends to the index, which no other process changes within the block."""
    while True:
        handle = os.open(folder / _INDEX, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            with suppress(ImportError):
                # No system without these locks records.
                import fcntl

                # Released when it is closed.
                fcntl.flock(handle, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(folder / _INDEX)):
                    yield handle
                    return
            # Another process wrote the index again while this one waited: that file is none any more.
        finally:
            os.close(handle)


def _line(row: StoredRow) -> bytes:
    values = asdict(row)
    del values["modified_ns"]
    return json.dumps(values).encode() + b"\n"
