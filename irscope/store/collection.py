"""A collection: a folder of captures, one file each, with an index; or the same in one file."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Capture
from irscope.model.facts import CaptureFacts
from irscope.store.disk import write_atomically
from irscope.store.file import SUFFIX, file_name, is_worse, member_named, save
from irscope.store.schema import INDEX, converted
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures, StoredRow, capture_files

_FOLDER_VERSION, _FILE_VERSION = 2, 1
"""Of the index in a folder, and of that in one file."""
_LARGEST_INDEX_BYTES = 256 << 20
_MOST_CAPTURES = 100_000
_HEADER_BYTES = 30

_Added = Literal["new", "replaced", "kept"]
"""What became of a capture that was added: `kept` if an earlier, complete one of the same compile stays."""


def is_collection(path: str | Path) -> bool:
    """Whether a path is a folder that holds captures."""
    path = Path(path)
    try:
        return path.is_dir() and ((path / INDEX).is_file() or next(path.glob(f"*{SUFFIX}"), None) is not None)
    except OSError:
        return False


class _Indexed:
    """Captures with an index, which only saves reading them: a row counts if the file has the row's size and time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.unreadable: tuple[str, ...] = ()
        """Of the captures that `entries` found, those that cannot be read, each with the reason."""

    def entries(self) -> tuple[StoredRow, ...]:
        """The captures, by kernel, then by date."""
        indexed = {row.file: row for row in self._read_index()}
        rows: dict[str, StoredRow] = {}
        problems: list[str] = []
        for name, modified_ns, size in self._files():
            row = indexed.get(name)
            if row is None or (row.modified_ns, row.bytes) != (modified_ns, size):
                try:
                    row = StoredRow(name, modified_ns, size, self._file(name).facts)
                except (CaptureFormatError, CaptureNotFound) as error:
                    problems.append(str(error))
                    continue
            rows[name] = row
        self.unreadable = tuple(problems)
        if rows != indexed:
            # One may read where one may not write.
            with suppress(OSError):
                self._write_index(rows.values())
        return tuple(sorted(rows.values(), key=lambda row: (row.facts.name, row.facts.date, row.file)))

    def captures(self, entries: Iterable[StoredRow]) -> StoredCaptures:
        shelf = Shelf()
        return StoredCaptures(self._file(row.file, row.facts, shelf) for row in entries)

    def _files(self) -> Iterator[tuple[str, int, int]]:
        """(name, time of its last change in nanoseconds, bytes) of each capture's file."""
        raise NotImplementedError

    def _file(self, name: str, facts: CaptureFacts | None = None, shelf: Shelf | None = None) -> CaptureFile:
        raise NotImplementedError

    def _read_index(self) -> tuple[StoredRow, ...]:
        raise NotImplementedError

    def _write_index(self, rows: Iterable[StoredRow]) -> None:
        """Write the index again, where it has a file of its own."""


def _index_text(rows: Iterable[StoredRow], version: int) -> bytes:
    text = json.dumps({"index": version, "captures": list(map(asdict, rows))}, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _index_rows(text: bytes, version: int) -> tuple[StoredRow, ...]:
    """The rows of an index; none if it is not one that this irscope wrote."""
    try:
        index: Any = json.loads(text)
        return converted(index["captures"], tuple[StoredRow, ...]) if index["index"] == version else ()
    except (ValueError, KeyError, TypeError, RecursionError, CaptureFormatError):
        return ()


class Collection(_Indexed):
    """Many captures, each in a file of a folder; several processes may write, and files be copied and removed."""

    def __init__(self, folder: str | Path, *, keeps_elements: bool = True) -> None:
        super().__init__(folder)
        self._keeps_elements = keeps_elements
        self.added: dict[str, _Added] = {}
        """What became of each capture that was added, by its file: of one added again, what the first time did."""

    def path_of(self, capture: Capture) -> Path:
        return self.path / file_name(capture)

    def place_of(self, entry: StoredRow) -> str:
        return str(self.path / entry.file)

    def add(self, capture: Capture) -> _Added:
        """Keep a capture, in place of an earlier one of the same compile; raises OSError."""
        path = self.path_of(capture)
        before = path.is_file()
        if before and is_worse(path, capture):
            return self.added.setdefault(path.name, "kept")
        save(capture if self._keeps_elements else capture.without_elements(), path)
        return self.added.setdefault(path.name, "replaced" if before else "new")

    @contextmanager
    def changing(self) -> Generator[Collection]:
        """Write the index when the block ends; a folder that is made for the block, and stays empty, is removed."""
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        self._write_index(self.entries())
        try:
            yield self
        finally:
            if not self.entries() and is_new:
                with suppress(OSError):
                    (self.path / INDEX).unlink()
                    self.path.rmdir()

    def _files(self) -> Iterator[tuple[str, int, int]]:
        for name, status in sorted(capture_files(self.path).items()):
            yield name, status.st_mtime_ns, status.st_size

    def _file(self, name: str, facts: CaptureFacts | None = None, shelf: Shelf | None = None) -> CaptureFile:
        return CaptureFile.listed(shelf or Shelf(), facts, self.path / name)

    def _read_index(self) -> tuple[StoredRow, ...]:
        path = self.path / INDEX
        try:
            if path.stat().st_size > _LARGEST_INDEX_BYTES:
                return ()
            return _index_rows(path.read_bytes(), _FOLDER_VERSION)
        except OSError:
            return ()

    def _write_index(self, rows: Iterable[StoredRow]) -> None:
        write_atomically(self.path / INDEX, _index_text(rows, _FOLDER_VERSION))


def working_folder(path: Path) -> Path:
    """The folder beside the file in which its captures are while it is being made; what is left of one that ended."""
    return path.with_name(f"{path.name}.partial")


def pack(collection: Collection, path: Path) -> None:
    """Write the captures of a folder as one file, whole or not at all; raises OSError."""
    entries = [replace(row, modified_ns=0) for row in collection.entries()]
    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(member_named(INDEX), _index_text(entries, _FILE_VERSION))
            for row in entries:
                archive.writestr(member_named(row.file), (collection.path / row.file).read_bytes())
        os.replace(made, path)
    finally:
        made.unlink(missing_ok=True)


def unpack(path: Path, folder: Path) -> None:
    """Write each capture of a file to a folder, but none that is there already; raises CaptureFormatError, OSError."""
    packed = PackedCollection(path)
    for row in packed.entries():
        if not (folder / row.file).exists():
            write_atomically(folder / row.file, packed.bytes_of(row.file))


class PackedCollection(_Indexed):
    """The captures in one file, each read when it is asked for; raises CaptureFormatError where it is no such file."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._parts = _parts(self.path)

    def bytes_of(self, name: str) -> bytes:
        offset, size = self._parts[name]
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def place_of(self, entry: StoredRow) -> str:
        return f"{self.path}::{entry.facts.id}"

    def _files(self) -> Iterator[tuple[str, int, int]]:
        for name, (_, size) in self._parts.items():
            yield name, 0, size

    def _file(self, name: str, facts: CaptureFacts | None = None, shelf: Shelf | None = None) -> CaptureFile:
        return CaptureFile.listed(shelf or Shelf(), facts, self.path, self._parts[name], f"{self.path}::{name}")

    def _read_index(self) -> tuple[StoredRow, ...]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                if archive.getinfo(INDEX).file_size > _LARGEST_INDEX_BYTES:
                    return ()
                return _index_rows(archive.read(INDEX), _FILE_VERSION)
        except (OSError, KeyError, zipfile.BadZipFile):
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
                    raise CaptureFormatError(
                        f"{str(path)!r}: its {row.filename!r} is not the name of a file in a folder."
                    )
                file.seek(row.header_offset)
                header = file.read(_HEADER_BYTES)
                # The lengths of the name and of the extra field, which may differ from those in the directory.
                skipped = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
                parts[row.filename] = row.header_offset + _HEADER_BYTES + skipped, row.file_size
            return parts
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        raise CaptureFormatError(f"{str(path)!r} is not a collection, or is damaged: {error}") from error
