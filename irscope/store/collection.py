"""A collection: a folder of captures, one file each, with an index that is made again where it is not true."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from irscope.errors import CaptureFormatError
from irscope.model.capture import Capture
from irscope.store.disk import write_atomically
from irscope.store.file import SUFFIX, file_name, is_worse, read_manifest, save
from irscope.store.schema import converted
from irscope.store.shelf import CaptureFacts, CaptureFile, Shelf, StoredCaptures, outline_of

__all__ = ["Added", "Collection", "Entry", "is_collection"]

INDEX = "index.json"
_INDEX_VERSION = 2
_LARGEST_INDEX_BYTES = 256 << 20

Added = Literal["new", "replaced", "kept"]
"""What became of a capture that was added: `kept` if an earlier, complete one of the same compile stays."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One capture of a collection, as its index has it."""

    file: str
    """The name of its file in the folder."""
    modified_ns: int
    bytes: int
    facts: CaptureFacts


def is_collection(path: str | Path) -> bool:
    """Whether a path is a folder that holds captures."""
    path = Path(path)
    try:
        return path.is_dir() and ((path / INDEX).is_file() or next(path.glob(f"*{SUFFIX}"), None) is not None)
    except OSError:
        return False


class Collection:
    """Many captures, each in a file of a folder; the same compile has the same file.

    The index only saves reading the files: an entry counts if the file's size and time are the index's, else the file
    is read. So a process that is killed loses nothing, several may write at once, and files may be copied and removed.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.unreadable: tuple[str, ...] = ()
        """Of the files that `entries` found, those that are not captures, each with the reason."""
        self.added: dict[str, Added] = {}
        """What became of each capture that was added, by its file: of one added again, what the first time did."""

    def path_of(self, capture: Capture) -> Path:
        """Where a capture is kept, or would be."""
        return self.folder / file_name(capture)

    def place_of(self, entry: Entry) -> str:
        """The path of a capture's file."""
        return str(self.folder / entry.file)

    def add(self, capture: Capture) -> Added:
        """Keep a capture, in place of an earlier one of the same compile; raises OSError."""
        path = self.path_of(capture)
        before = path.is_file()
        if before and is_worse(path, capture):
            return self.added.setdefault(path.name, "kept")
        save(capture, path)
        return self.added.setdefault(path.name, "replaced" if before else "new")

    @contextmanager
    def changing(self) -> Generator[Collection]:
        """Write the index when the block ends, however it does; raises OSError where nothing can be written there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write(self.entries())
        try:
            yield self
        finally:
            self.entries()

    def entries(self) -> tuple[Entry, ...]:
        """The captures, by kernel, then by date; the index is written again if it was not true."""
        known = {one.file: one for one in self._indexed()}
        found: list[Entry] = []
        problems: list[str] = []
        for name, modified, size in self._files():
            entry = known.get(name)
            if entry is None or (entry.modified_ns, entry.bytes) != (modified, size):
                try:
                    facts = outline_of(read_manifest(self.folder / name)).facts
                except CaptureFormatError as error:
                    problems.append(str(error))
                    continue
                entry = Entry(name, modified, size, facts)
            found.append(entry)
        self.unreadable = tuple(problems)
        if {one.file: one for one in found} != known:
            # One may read where one may not write.
            with suppress(OSError):
                self._write(found)
        return tuple(sorted(found, key=lambda one: (one.facts.name, one.facts.date, one.file)))

    def captures(self, entries: Iterable[Entry]) -> StoredCaptures:
        """The captures of some entries, each of which is read when it is asked for."""
        shelf = Shelf()
        return StoredCaptures(CaptureFile.listed(shelf, one.facts, self.folder / one.file) for one in entries)

    def _files(self) -> list[tuple[str, int, int]]:
        """(name, time of its last change in nanoseconds, bytes) of each file; other processes may remove some."""
        rows: list[tuple[str, int, int]] = []
        for path in sorted(self.folder.glob(f"*{SUFFIX}")) if self.folder.is_dir() else ():
            with suppress(OSError):
                status = path.stat()
                rows.append((path.name, status.st_mtime_ns, status.st_size))
        return rows

    def _indexed(self) -> tuple[Entry, ...]:
        """What the index says; nothing if there is none, or it is not one that this irscope wrote."""
        path = self.folder / INDEX
        try:
            if path.stat().st_size > _LARGEST_INDEX_BYTES:
                return ()
            held: Any = json.loads(path.read_bytes())
            if held["index"] != _INDEX_VERSION:
                return ()
            return converted(held["captures"], tuple[Entry, ...])
        except (OSError, ValueError, KeyError, TypeError, RecursionError, CaptureFormatError):
            return ()

    def _write(self, entries: Sequence[Entry]) -> None:
        held = {"index": _INDEX_VERSION, "captures": [asdict(one) for one in entries]}
        text = json.dumps(held, separators=(",", ":"))
        write_atomically(self.folder / INDEX, text.encode("utf-8", "surrogatepass"))
