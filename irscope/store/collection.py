"""A collection: a folder of captures, one file each, with an index; or the same in one file."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from irscope.errors import CaptureFormatError
from irscope.model.capture import Capture
from irscope.store.disk import write_atomically
from irscope.store.file import SUFFIX, file_name, is_worse, manifest_in, read_manifest, save
from irscope.store.schema import converted
from irscope.store.shelf import CaptureFacts, CaptureFile, Shelf, StoredCaptures, outline_of

INDEX = "index.json"
_INDEX_VERSION = 2
_LARGEST_INDEX_BYTES = 256 << 20

_Added = Literal["new", "replaced", "kept"]
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
        self.added: dict[str, _Added] = {}
        """What became of each capture that was added, by its file: of one added again, what the first time did."""

    def path_of(self, capture: Capture) -> Path:
        """Where a capture is kept, or would be."""
        return self.folder / file_name(capture)

    def place_of(self, entry: Entry) -> str:
        """The path of a capture's file."""
        return str(self.folder / entry.file)

    def add(self, capture: Capture) -> _Added:
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


_VERSION = 1
_MOST_CAPTURES = 100_000
_HEADER_BYTES = 30


def working_folder(path: Path) -> Path:
    """The folder beside the file in which its captures are while it is being made; what is left of one that ended."""
    return path.with_name(f"{path.name}.partial")


def pack(collection: Collection, path: Path) -> None:
    """Write the captures of a folder as one file, whole or not at all; raises OSError."""
    entries = collection.entries()
    held = {"index": _VERSION, "captures": [asdict(replace(one, modified_ns=0)) for one in entries]}
    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_member(INDEX), json.dumps(held, separators=(",", ":")).encode("utf-8", "surrogatepass"))
            for one in entries:
                archive.writestr(_member(one.file), (collection.folder / one.file).read_bytes())
        os.replace(made, path)
    finally:
        made.unlink(missing_ok=True)


def _member(name: str) -> zipfile.ZipInfo:
    # A fixed date: the same captures give the same bytes.
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    return info


def unpack(path: Path, folder: Path) -> None:
    """Write each capture of a file to a folder, but none that is there already; raises CaptureFormatError, OSError."""
    for one, data in PackedCollection(path).files():
        if not (folder / one.file).exists():
            write_atomically(folder / one.file, data)


class PackedCollection:
    """The captures in one file, each read when it is asked for; raises CaptureFormatError where it is no such file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.unreadable: tuple[str, ...] = ()
        """Of the captures in it, those that cannot be read, each with the reason."""
        self._parts = _parts(self.path)

    def entries(self) -> tuple[Entry, ...]:
        """The captures, by kernel, then by date."""
        known = {one.file: one for one in self._indexed()}
        found: list[Entry] = []
        problems: list[str] = []
        for name, (_, size) in self._parts.items():
            entry = known.get(name)
            if entry is None or entry.bytes != size:
                # Somebody put a capture into it.
                try:
                    manifest = manifest_in(io.BytesIO(self._bytes(name)), size, repr(f"{self.path}::{name}"))
                    entry = Entry(name, 0, size, outline_of(manifest).facts)
                except CaptureFormatError as error:
                    problems.append(str(error))
                    continue
            found.append(entry)
        self.unreadable = tuple(problems)
        return tuple(sorted(found, key=lambda one: (one.facts.name, one.facts.date, one.file)))

    def captures(self, entries: Iterable[Entry]) -> StoredCaptures:
        """The captures of some entries, each of which is read when it is asked for."""
        shelf = Shelf()
        return StoredCaptures(CaptureFile.listed(shelf, one.facts, self.path, self._parts[one.file]) for one in entries)

    def files(self) -> Iterable[tuple[Entry, bytes]]:
        """Each capture with the bytes of its file."""
        return ((one, self._bytes(one.file)) for one in self.entries())

    def place_of(self, entry: Entry) -> str:
        """How a command line names a capture."""
        return f"{self.path}::{entry.facts.id}"

    def _bytes(self, name: str) -> bytes:
        offset, size = self._parts[name]
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def _indexed(self) -> tuple[Entry, ...]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                if archive.getinfo(INDEX).file_size > _LARGEST_INDEX_BYTES:
                    return ()
                held: Any = json.loads(archive.read(INDEX))
            return converted(held["captures"], tuple[Entry, ...]) if held["index"] == _VERSION else ()
        except (OSError, ValueError, KeyError, TypeError, RecursionError, zipfile.BadZipFile, CaptureFormatError):
            return ()


def _parts(path: Path) -> dict[str, tuple[int, int]]:
    """Where each capture's file stands in the archive: (offset, bytes)."""
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            rows = [row for row in archive.infolist() if row.filename.endswith(SUFFIX)]
            if len(rows) > _MOST_CAPTURES:
                raise CaptureFormatError(f"{str(path)!r} holds {len(rows)} captures; irscope reads {_MOST_CAPTURES:,}.")
            parts: dict[str, tuple[int, int]] = {}
            for row in rows:
                if row.compress_type != zipfile.ZIP_STORED or row.file_size != row.compress_size:
                    raise CaptureFormatError(f"{str(path)!r}: its {row.filename!r} was compressed again.")
                if Path(row.filename).name != row.filename or "\\" in row.filename:
                    raise CaptureFormatError(f"{str(path)!r}: its {row.filename!r} is no name of a file in a folder.")
                file.seek(row.header_offset)
                header = file.read(_HEADER_BYTES)
                # The lengths of the name and of the extra field, which may differ from those in the directory.
                skipped = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
                parts[row.filename] = row.header_offset + _HEADER_BYTES + skipped, row.file_size
            return parts
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        raise CaptureFormatError(f"{str(path)!r} is no collection, or is damaged: {error}") from error
