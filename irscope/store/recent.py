"""The store of recent captures: a folder of `.irscope` files that several processes write and read."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO, Any

from irscope.errors import CaptureNotFound, UsageError
from irscope.model.capture import Capture
from irscope.store.collection import Collection
from irscope.store.disk import cannot_write, default_folder, write_atomically
from irscope.store.file import SUFFIX, file_name, load, to_bytes
from irscope.store.shelf import StoredRow, capture_files

_DEFAULT_STORE_LIMIT_BYTES = 1 << 30
"""What the store of recent captures may hold before its oldest are dropped; `IRSCOPE_STORE_LIMIT_MB` sets another."""

_EDIT = "edit"
"""The kind of an origin that is the name of an edited variant."""

_LAST = "last.json"
"""The names of the files of the last complete recording, in its order."""
_LEASE = ".recording-"
_ABANDONED_S = 3600


class CaptureStore:
    """The recent captures, the oldest of which go over a limit; empty where there is no place for them."""

    def __init__(self, folder: Path | None = None, limit_bytes: int | None = None) -> None:
        self.missing = ""
        """Why there is no place for captures, or an empty string."""
        try:
            self.folder = folder or default_folder() / "captures"
        except OSError as error:
            # No file can stand below a device.
            self.folder, self.missing = Path(os.devnull) / "captures", str(error.strerror)
        megabytes = os.environ.get("IRSCOPE_STORE_LIMIT_MB", "")
        default = int(megabytes) << 20 if megabytes.isdecimal() and len(megabytes) < 10 else _DEFAULT_STORE_LIMIT_BYTES
        self.limit_bytes = default if limit_bytes is None else limit_bytes
        self._newest_ns = self._stored_bytes = 0
        """As far as this object knows: when a capture was stored last, and the bytes of all; 0 before it looked."""

    def add(self, capture: Capture, *, is_complete: bool = True) -> Path:
        """Store a capture, replacing one with the same id, and drop the oldest past the limit.

        `is_complete`: whether it is a recording by itself. Raises OSError that names `IRSCOPE_HOME`.
        """
        path = self.path_of(capture)
        self._write(path, to_bytes(capture))
        self._mark_newest(path)
        if is_complete:
            self.complete([path])
        self._prune(keep=path)
        return path

    def update(self, capture: Capture) -> bool:
        """Write a stored capture's file again, in its place among the others; False where there is none."""
        path = self.path_of(capture)
        try:
            times = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        self._write(path, to_bytes(capture), (times.st_atime_ns, times.st_mtime_ns))
        return True

    def _write(self, path: Path, data: bytes, times: tuple[int, int] | None = None) -> None:
        if self.missing:
            raise OSError(None, self.missing)
        try:
            write_atomically(path, data, times)
        except OSError as error:
            raise cannot_write(error, self.folder) from error

    @contextmanager
    def recording(self) -> Generator[None]:
        """Keep what is stored from being dropped until the end of the block: a file is held locked meanwhile."""
        file = _lease(self.folder)
        try:
            yield
        finally:
            if file is not None:
                Path(file.name).unlink(missing_ok=True)
                file.close()

    def _mark_newest(self, path: Path) -> None:
        """Make a stored capture's file the newest; one that is gone, or read-only, stays as it is."""
        # The file system's clock ticks in milliseconds, and may be set back: two files would be in no order.
        if not self._newest_ns:
            self._newest_ns = max((modified for other, modified, _ in self._files() if other != path), default=0)
        self._newest_ns = moment = max(time.time_ns(), self._newest_ns + 1)
        with suppress(OSError):
            os.utime(path, ns=(moment, moment))

    def complete(self, paths: Sequence[Path]) -> None:
        """Make these stored captures the last complete recording, which `last` names, in this order; raises OSError."""
        for path in paths if len(paths) > 1 else ():
            self._mark_newest(path)
        self._write(self.folder / _LAST, json.dumps([path.name for path in paths]).encode())

    def path_of(self, capture: Capture) -> Path:
        return self.folder / file_name(capture)

    def paths(self) -> list[Path]:
        return [path for path, _, _ in self._files()]

    def _files(self) -> list[tuple[Path, int, int]]:
        """(file, time of its last change in nanoseconds, bytes), the newest first; other processes write and drop."""
        rows = [
            (self.folder / name, status.st_mtime_ns, status.st_size)
            for name, status in capture_files(self.folder).items()
        ]
        return sorted(rows, key=lambda row: row[1], reverse=True)

    def rows(self) -> list[StoredRow]:
        """What lists every readable stored capture, the newest first."""
        return sorted(Collection(self.folder).entries(), key=lambda row: row.modified_ns, reverse=True)

    def last_recording(self) -> list[StoredRow]:
        """The captures of the last complete recording, in its order; raises CaptureNotFound if there is none."""
        rows = {row.file: row for row in self.rows()}
        names = _names_in(self.folder / _LAST)
        if not rows:
            reason = self.missing or "no capture is stored. Record one: irscope record FILE"
        elif not names:
            reason = "no recording was complete. 'irscope ls' lists the captures that are stored"
        else:
            reason = "the store dropped the last recording (IRSCOPE_STORE_LIMIT_MB). 'irscope ls' lists what it holds"
        if rows_of_last := [rows[name] for name in names if name in rows]:
            return rows_of_last
        raise CaptureNotFound(f"'last' is not a file, and {reason}.")

    def find(self, text: str) -> Path:
        """The file of a capture by path, the beginning of its id, the name of an edit, or `last`."""
        if Path(text).is_file():
            return Path(text)
        if text == "last":
            first, *others = self.last_recording()
            if others:
                raise CaptureNotFound(f"'last' names {1 + len(others)} captures: give the id of one of them.")
            return self.folder / first.file
        paths = self.paths()
        if not paths:
            reason = self.missing or "no capture is stored. Record one: irscope record FILE"
            raise CaptureNotFound(f"{text!r} is not a file, and {reason}.")
        named = [path for path in paths if len(text) >= 4 and _id_of(path).startswith(text)]
        if len(named) == 1:
            return named[0]
        if named:
            raise CaptureNotFound(f"{text!r} is the beginning of {len(named)} ids: {', '.join(map(_id_of, named))}.")
        if (path := self.named(text)) is not None:
            return path
        raise CaptureNotFound(f"{text!r} is neither a file nor a stored capture's id. 'irscope ls' lists them.")

    def named(self, name: str) -> Path | None:
        """The file of the variant that `irscope edit` gave a name; None if there is none."""
        return next((self.folder / row.file for row in self.rows() if (_EDIT, name) in row.facts.origin), None)

    def load(self, text: str) -> Capture:
        return load(self.find(text))

    def _prune(self, keep: Path) -> None:
        # What others add meanwhile they count themselves.
        self._stored_bytes += keep.stat().st_size if self._stored_bytes else 0
        if 0 < self._stored_bytes <= self.limit_bytes:
            return
        files, total = self._files(), 0
        self._stored_bytes = sum(size for _, _, size in files)
        if self._stored_bytes <= self.limit_bytes:
            return
        self._stored_bytes = 0
        spared = min(_leases(self.folder), default=None)
        for path, modified, size in files:
            total += size
            if total > self.limit_bytes and path != keep and (spared is None or modified < spared):
                path.unlink(missing_ok=True)
        # What a process that was killed left half-written.
        for path in self.folder.glob(f".*{SUFFIX}.*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink()


def _names_in(path: Path) -> list[str]:
    try:
        names: Any = json.loads(path.read_bytes())
        return [str(name) for name in names]
    except (OSError, ValueError, TypeError, RecursionError):
        return []


def _lease(folder: Path) -> IO[bytes] | None:
    """A new file in the store, locked; None where there are no locks, or nothing can be written there."""
    try:
        import fcntl
        import tempfile

        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=_LEASE, dir=folder)
        file = open(name, "rb")  # noqa: SIM115
        os.close(handle)
        fcntl.flock(file, fcntl.LOCK_EX)
        return file
    except (ImportError, OSError):
        return None


def _leases(folder: Path) -> Iterator[int]:
    """When each recording that is under way began, in nanoseconds; what ended without a word is cleared away."""
    try:
        import fcntl
    except ImportError:
        return
    for path in folder.glob(f"{_LEASE}*"):
        with suppress(OSError), path.open("rb") as file:
            began = os.fstat(file.fileno()).st_mtime_ns
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield began
            else:
                # Nobody holds it; one that was made this moment is not locked yet.
                if time.time_ns() - began > 10**9:
                    path.unlink(missing_ok=True)
                else:
                    yield began


def _id_of(path: Path) -> str:
    return path.name.removesuffix(SUFFIX).rpartition("-")[2]


# wider   coalesce-1   canonicalizer#2-1
_NAME = re.compile(r"[A-Za-z_][\w#-]{0,63}")
_ID = re.compile(r"[0-9a-f]{4,16}")


def edits_folder() -> Path:
    """Where texts are edited; they stay there. Raises OSError where there is no place for it."""
    return default_folder() / "edits"


def free_name(place: str) -> str:
    """The name of a place and the first number that is not taken."""
    store, folder = CaptureStore(), edits_folder()
    taken = {name for row in store.rows() for kind, name in row.facts.origin if kind == _EDIT}
    taken |= {path.stem for path in folder.glob("*")} if folder.is_dir() else set()
    return next(name for number in count(1) if (name := f"{place}-{number}") not in taken)


def named(variant: Capture, name: str, place: str) -> tuple[str, Capture]:
    """(a variant's name, the variant with its names): that asked for, or one that it has, or the place and a number."""
    store = CaptureStore()
    path = store.path_of(variant)
    origin = variant.environment.origin
    if path.is_file():
        origin += tuple(row for row in store.load(str(path)).environment.origin if row[0] == _EDIT)
    name = name or next((known for kind, known in origin if kind == _EDIT), "") or free_name(place)
    if (_EDIT, name) not in origin:
        origin += ((_EDIT, name),)
    return name, replace(variant, environment=replace(variant.environment, origin=origin))


def refuse_taken(name: str) -> None:
    """Raise UsageError for a name that another capture has, or that a command would take for something else."""
    if not _NAME.fullmatch(name) or _ID.fullmatch(name) or name == "last":
        raise UsageError(
            f"--name {name!r}: write letters, digits, _, # and -, beginning with a letter, such as wider-loads; not "
            "'last', and not a text that reads as an id."
        )
    if (path := CaptureStore().named(name)) is not None:
        raise UsageError(f"--name {name!r} is taken by {path.name}: give another.")
