"""Captures that are listed without being loaded, and shelves that hold one in memory."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, overload
from weakref import finalize, ref

from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Capture
from irscope.model.facts import CaptureFacts, Outline
from irscope.model.telling import telling_texts
from irscope.store.disk import write_atomically
from irscope.store.file import SUFFIX, from_bytes, head_of, load, manifest_in, read_manifest, to_bytes
from irscope.store.schema import checked_manifest

_LEAST_DIGITS = 4

# 5a1f0c3e99d2b740
_ID = re.compile(r"[0-9a-f]{16}")

_LARGE_PARTS = ("snapshots", "layouts", "operations", "sources")
_RARE_PARTS = ("log", "profile", "times")


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A stored capture: its file, and what lists it and finds it."""

    file: str
    """The name of its file in the folder."""
    modified_ns: int
    """When the file was changed, in the store: when the capture was stored, or chosen last."""
    bytes: int
    facts: CaptureFacts

    @property
    def recording(self) -> str:
        """The same for all captures of one recording: when it began, and its command."""
        return f"{self.facts.date} {self.facts.command}"


def capture_files(folder: Path) -> dict[str, os.stat_result]:
    """The captures' files in a folder, by name; other processes may write and remove some meanwhile."""
    files: dict[str, os.stat_result] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
                with suppress(FileNotFoundError):
                    files[entry.name] = entry.stat()
    return files


def passed_over(facts: Sequence[CaptureFacts]) -> set[int]:
    """The configurations that do not fit, of autotuned kernels of which another one does: the autotuner skips them."""
    fitting = {(one.name, one.target) for one in facts if one.autotuning is not None and one.status == "ok"}
    return {
        place
        for place, one in enumerate(facts)
        if one.status != "ok" and one.has_compiled and one.autotuning is not None and (one.name, one.target) in fitting
    }


def differences(captures: Sequence[CaptureFacts]) -> list[str]:
    """What tells each capture from the others of its kernel: `BLOCK=64 num_warps=8`; empty where none of these does."""
    return telling_texts(
        [
            (
                facts.name,
                {"target": str(facts.target), "plan": facts.plan, "Triton": facts.triton_version} | facts.parts,
            )
            for facts in captures
        ]
    )


def chosen(rows: Sequence[StoredRow], text: str) -> list[StoredRow]:
    """The rows that a text names: a kernel, a pattern of its name (`soft*`), or the first digits of an id."""
    if named := [row for row in rows if row.facts.name == text]:
        return named
    if any(sign in text for sign in "*?["):
        return [row for row in rows if fnmatchcase(row.facts.name, text)]
    return [row for row in rows if len(text) >= _LEAST_DIGITS and row.facts.id.startswith(text)]


def outline_of(manifest: Mapping[str, Any], name: str) -> Outline:
    """The outline of the `capture.json` of a file; raises CaptureFormatError that names it if it is not valid."""
    try:
        # Most of a manifest is of passes and layouts, which are checked where the capture is read.
        checked = checked_manifest({**manifest, **dict.fromkeys(_LARGE_PARTS, ()), **dict.fromkeys(_RARE_PARTS)})
        head = head_of(checked)
    except Exception as error:
        # Whatever a hostile manifest makes of a plan or a launch.
        raise CaptureFormatError(f"{name} is not a capture that irscope reads: {error}") from error
    stated = manifest.get("id")
    facts = replace(
        CaptureFacts.of(head),
        id=stated if isinstance(stated, str) and _ID.fullmatch(stated) else "",
        plan=checked.plan,
        stages=tuple(artifact.stage for artifact in checked.artifacts),
    )
    return Outline(facts, head)


_MOST_OPEN = 128
"""Files that are held open: these can be read even after they were removed."""


class Shelf:
    """Holds the texts of the capture used last; `spills`: those without a file get one. `lease`: keeps their files."""

    def __init__(self, *, spills: bool = False, lease: object = None) -> None:
        self.spills = spills
        self._spilled: IO[bytes] | None = None
        self._lease = lease
        self.open_count = 0
        self._latest: Callable[[], CaptureFile | None] = lambda: None

    def use(self, file: CaptureFile) -> None:
        latest = self._latest()
        if latest is not None and latest is not file:
            latest.release()
        self._latest = ref(file)

    def spill(self, data: bytes) -> tuple[int, int]:
        """Write the bytes of a capture; returns their (offset, size). Raises OSError."""
        if self._spilled is None:
            # It has no name: no script can remove it, and it ends with this process.
            self._spilled = tempfile.TemporaryFile()  # noqa: SIM115
            finalize(self, self._spilled.close)
        offset = self._spilled.seek(0, os.SEEK_END)
        self._spilled.write(data)
        self._spilled.flush()
        return offset, len(data)

    def spilled(self, part: tuple[int, int]) -> bytes:
        offset, size = part
        return b"" if self._spilled is None else os.pread(self._spilled.fileno(), size, offset)


class CaptureFile:
    """One capture: the facts that list it, and the file that holds the rest."""

    def __init__(self, shelf: Shelf, capture: Capture, path: Path | None = None) -> None:
        self._shelf = shelf
        self._descriptor: int | None = None
        self._label = ""
        self.put(capture, path)

    @classmethod
    def listed(
        cls, shelf: Shelf, facts: CaptureFacts | None, path: Path, part: tuple[int, int] | None = None, label: str = ""
    ) -> CaptureFile:
        """A capture of which at most the facts were read; `part`: (offset, bytes) in a file, `label`: its name."""
        file = cls.__new__(cls)
        file._shelf, file._descriptor, file._label = shelf, None, label
        file._facts, file.path, file._capture, file._outline, file._part = facts, path, None, None, part
        return file

    def put(self, capture: Capture, path: Path | None) -> None:
        """Take a capture, which `path` holds; None if no file does yet."""
        self._facts: CaptureFacts | None = CaptureFacts.of(capture)
        self._capture: Capture | None = capture
        self.path: Path | None = path
        self._outline: Outline | None = None
        self._part: tuple[int, int] | None = None
        """Where it is in its file, or without one in that of the shelf."""
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

    def outline(self) -> Outline:
        """What is known of it without its texts; raises as `load` does."""
        if self._capture is not None:
            return Outline(self._facts or CaptureFacts.of(self._capture), self._capture)
        if (data := self._data()) is not None:
            name = self._name
            return outline_of(manifest_in(io.BytesIO(data), len(data), name), name)
        if self._outline is None:
            if self.path is None or not self.path.is_file():
                raise CaptureNotFound(f"cannot read {str(self.path)!r}: it was removed meanwhile.")
            self._outline = outline_of(read_manifest(self.path), self._name)
        return self._outline

    def load(self) -> Capture:
        """The whole capture; raises CaptureNotFound if its file was removed meanwhile."""
        if self._capture is None:
            self._capture = self._read()
            self._shelf.use(self)
        return self._capture

    def save(self, capture: Capture) -> bool:
        """Take a capture of which more is known, and write its file again, with its times; False where it has none."""
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
        if self.path is None and self._part is None and self._capture is not None and self._shelf.spills:
            try:
                self._part = self._shelf.spill(to_bytes(self._capture))
            except (OSError, CaptureFormatError):
                return
        if self.path is not None or self._part is not None:
            self._capture = None

    def _read(self) -> Capture:
        data = self._data()
        return load(self.path or "") if data is None else from_bytes(data, self._name)

    @property
    def _name(self) -> str:
        return "the capture" if self.path is None else repr(self._label or str(self.path))

    def _data(self) -> bytes | None:
        """The bytes of a file that is held open, or of a part of one; None for any other."""
        if self._descriptor is not None:
            return os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        if self._part is None:
            return None
        if self.path is None:
            return self._shelf.spilled(self._part)
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
    def __init__(self, files: Iterable[CaptureFile] = ()) -> None:
        self.files = tuple(files)

    @staticmethod
    def of(captures: Iterable[Capture]) -> StoredCaptures:
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
        shown = [file.facts for file in self.files[:8]]
        return f"<{len(self)} captures: {', '.join(f'{facts.name} ({facts.target})' for facts in shown)}>"
