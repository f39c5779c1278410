"""A sequence of captures of which one is in memory: each of the others is loaded from its file when it is asked for."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import overload
from weakref import ref

from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Capture, CaptureStatus
from irscope.model.launch_record import Autotuning
from irscope.store.disk import write_atomically
from irscope.store.facts import CaptureFacts, Outline, outline_of
from irscope.store.file import SUFFIX, from_bytes, load, manifest_in, read_manifest, save, to_bytes
from irscope.target import Target

__all__ = ["CaptureFile", "Shelf", "StoredCaptures"]

_MOST_OPEN = 128
"""Files that are held open: these can be read even after they were removed."""


class Shelf:
    """Holds the texts of the capture used last; those of the others are in their files.

    `spill_folder`: makes the folder for captures that have no file yet; without it they stay in memory. `lease`: lives
    as long as the captures do, and keeps their files.
    """

    def __init__(self, spill_folder: Callable[[], Path] | None = None, lease: object = None) -> None:
        self.spill_folder = spill_folder
        self._lease = lease
        self.open_count = 0
        self._latest: Callable[[], CaptureFile | None] = lambda: None

    def use(self, file: CaptureFile) -> None:
        """Make this the capture in memory."""
        latest = self._latest()
        if latest is not None and latest is not file:
            latest.release()
        self._latest = ref(file)


class CaptureFile:
    """One capture: the facts that list it, and the file that holds the rest."""

    def __init__(self, shelf: Shelf, capture: Capture, path: Path | None = None) -> None:
        self._shelf = shelf
        self._descriptor: int | None = None
        self.put(capture, path)

    @classmethod
    def listed(
        cls, shelf: Shelf, facts: CaptureFacts | None, path: Path, part: tuple[int, int] | None = None
    ) -> CaptureFile:
        """A capture of which at most the facts were read; `part`: (offset, bytes) where it is a part of its file."""
        file = cls.__new__(cls)
        file._shelf, file._descriptor = shelf, None
        file._facts, file.path, file._capture, file._outline, file._part = facts, path, None, None, part
        return file

    def put(self, capture: Capture, path: Path | None) -> None:
        """Take a capture, which `path` holds; None if no file does yet."""
        self._facts: CaptureFacts | None = CaptureFacts.of(capture)
        self._capture: Capture | None = capture
        self.path: Path | None = path
        self._outline: Outline | None = None
        self._part: tuple[int, int] | None = None
        self._close()
        if path is not None and self._shelf.open_count < _MOST_OPEN:
            try:
                self._descriptor = os.open(path, os.O_RDONLY)
                self._shelf.open_count += 1
            except OSError:
                self.path = None
        self._shelf.use(self)

    @property
    def facts(self) -> CaptureFacts:
        """What lists it; raises CaptureFormatError or CaptureNotFound where that must be read, and cannot be."""
        if self._facts is None:
            self._facts = self.outline().facts
        return self._facts

    @property
    def id(self) -> str:
        """Of the capture."""
        return self.facts.id

    @property
    def name(self) -> str:
        """Of the kernel."""
        return self.facts.name

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return self.facts.target

    @property
    def status(self) -> CaptureStatus:
        """Whether it failed."""
        return self.facts.status

    @property
    def has_compiled(self) -> bool:
        """Whether there is a binary."""
        return self.facts.has_compiled

    @property
    def autotuning(self) -> Autotuning | None:
        """The configuration that it is of, if it was autotuned."""
        return self.facts.autotuning

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages it holds."""
        return self.facts.stages

    def outline(self) -> Outline:
        """What is known of it without its texts; raises as `load` does."""
        if self._capture is not None:
            return Outline(self._facts or CaptureFacts.of(self._capture), self._capture)
        if (held := self._held()) is not None:
            return outline_of(manifest_in(io.BytesIO(held), len(held), repr(str(self.path))))
        if self._outline is None:
            if self.path is None or not self.path.is_file():
                raise CaptureNotFound(f"cannot read {str(self.path)!r}: it was removed meanwhile.")
            self._outline = outline_of(read_manifest(self.path))
        return self._outline

    def load(self) -> Capture:
        """The whole capture; raises CaptureNotFound if its file was removed meanwhile."""
        if self._capture is None:
            self._capture = self._read()
            self._shelf.use(self)
        return self._capture

    def save(self, capture: Capture) -> bool:
        """Take a capture of which more is known, and write its file again; False where it has no file of its own.

        The file keeps its times, which order the recent captures.
        """
        if self.path is None or self._part is not None:
            return False
        try:
            times = self.path.stat()
            write_atomically(self.path, to_bytes(capture), (times.st_atime_ns, times.st_mtime_ns))
        except (OSError, CaptureFormatError):
            return False
        self.put(capture, self.path)
        return True

    def release(self) -> None:
        """Leave the texts to the file; without one, and without a place for one, they stay in memory."""
        if self.path is None and self._capture is not None and self._shelf.spill_folder is not None:
            try:
                self.path = save(self._capture, self._shelf.spill_folder() / f"{id(self):x}{SUFFIX}")
            except OSError:
                return
        if self.path is not None:
            self._capture = None

    def _read(self) -> Capture:
        held = self._held()
        return load(self.path or "") if held is None else from_bytes(held, repr(str(self.path)))

    def _held(self) -> bytes | None:
        """The bytes of a file that is held open, or of a part of one; None for any other."""
        if self._descriptor is not None:
            return os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        if self._part is None or self.path is None:
            return None
        offset, size = self._part
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise CaptureNotFound(f"cannot read {str(self.path)!r}: {error.strerror}.") from error

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._shelf.open_count -= 1
            self._descriptor = None

    def __del__(self) -> None:
        self._close()


class StoredCaptures(Sequence[Capture]):
    """Captures in the order of `files`; iterating loads one after another and keeps none but the last."""

    def __init__(self, files: Iterable[CaptureFile] = ()) -> None:
        self.files = tuple(files)

    @staticmethod
    def of(captures: Iterable[Capture]) -> StoredCaptures:
        """Captures that are in memory, and stay there."""
        return StoredCaptures(CaptureFile(Shelf(), capture) for capture in captures)

    @overload
    def __getitem__(self, index: int) -> Capture: ...
    @overload
    def __getitem__(self, index: slice) -> StoredCaptures: ...
    def __getitem__(self, index: int | slice) -> Capture | StoredCaptures:
        return StoredCaptures(self.files[index]) if isinstance(index, slice) else self.files[index].load()

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        return f"<{len(self)} captures: {', '.join(f'{file.name} ({file.target})' for file in self.files[:8])}>"
