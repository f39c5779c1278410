"""A Capture to and from one `.irscope` file, and the store of recent captures.

The file's form is documented in docs/capture-format.md: a zip of plain members, `capture.json` first.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import IO, Any, cast

from irscope.capture import Artifact, Capture, Launch, PassSnapshot, SourceFile, Target
from irscope.capture_schema import SCHEMA_VERSION, Manifest, Members, checked_manifest, converted
from irscope.capture_schema import read_manifest as stored_manifest
from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.plan import PassPlan

SUFFIX = ".irscope"
DEFAULT_STORE_LIMIT_BYTES = 1 << 30
"""What the store of recent captures may hold before its oldest are dropped; `IRSCOPE_STORE_LIMIT_MB` sets another."""

# On IR a file is a sixth smaller than at level 1, for 10 to 25 ms more of a capture with every snapshot.
_COMPRESSION_LEVEL = 5
_LONGEST_NAME_BYTES = 120
_LEASE = ".recording-"
_ABANDONED_S = 3600
_EPOCH = (1980, 1, 1, 0, 0, 0)


def to_bytes(capture: Capture) -> bytes:
    """The capture as the bytes of an `.irscope` file; equal captures give equal bytes."""
    members: dict[str, bytes] = {}
    texts: dict[str, str] = {}

    def member(name: str, data: str | bytes) -> str:
        if isinstance(data, str):
            # A text that stands in the file already (the last pass's is the stage's) is stored once.
            known = texts.setdefault(data, name)
            if known != name:
                return known
            data = data.encode("utf-8", "surrogateescape")
        members[name] = data
        return name

    manifest: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "id": capture.id,
        "name": capture.name,
        "target": str(capture.target),
        "warp_size": capture.target.warp_size,
        "status": capture.status,
        "failure": _plain(capture.failure),
        "plan": str(capture.plan),
        "snapshot_level": capture.snapshot_level,
        "compile_us": capture.compile_us,
        "launch": _plain(capture.launch),
        "resources": _plain(capture.resources),
        "environment": _plain(capture.environment),
        "metadata": dict(capture.metadata),
        "notes": list(capture.notes),
        "layouts": list(capture.layouts),
        "artifacts": [
            {
                "stage": item.stage,
                "duration_us": item.duration_us,
                "binary": isinstance(item.data, bytes),
                "member": member(f"stages/{_safe(item.stage)}", item.data),
            }
            for item in capture.artifacts
        ],
        "snapshots": [
            _without_defaults(item) | ({} if item.text is None else {"text": member(_snapshot_member(item), item.text)})
            for item in capture.snapshots
        ],
        "sources": [
            {"path": item.path, "member": member(f"sources/{number}.py", item.text)}
            for number, item in enumerate(capture.sources)
        ],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL) as archive:
        _write(archive, "capture.json", json.dumps(manifest, indent=1, default=str).encode("utf-8", "surrogateescape"))
        for name, data in members.items():
            _write(archive, name, data)
    return buffer.getvalue()


def from_bytes(data: bytes, name: str = "the capture") -> Capture:
    """Read what `to_bytes` made; raises CaptureFormatError for anything else, naming `name`."""
    with _opened(io.BytesIO(data), len(data), name) as members:
        return _capture(members, checked_manifest(stored_manifest(members)))


def save(capture: Capture, path: str | Path) -> Path:
    """Write the capture to a file, whole or not at all, and return the file's path."""
    path = Path(path)
    write_atomically(path, to_bytes(capture))
    return path


def load(path: str | Path) -> Capture:
    """Read a capture from a file; raises CaptureNotFound or CaptureFormatError."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CaptureNotFound(f"cannot read {str(path)!r}: {error.strerror}.") from error
    return from_bytes(data, repr(str(path)))


def write_atomically(path: Path, data: bytes, times_ns: tuple[int, int] | None = None) -> None:
    """Write a file whole or not at all: another name first, then a rename. Raises OSError.

    `times_ns`: when it was last read and changed, for other times than now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except FileNotFoundError:
        # The folder was deleted this moment.
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        if times_ns is not None:
            os.utime(temporary, ns=times_ns)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class CaptureStore:
    """The recent captures, a folder of `.irscope` files, the oldest of which go once it is over its limit."""

    def __init__(self, folder: Path | None = None, limit_bytes: int | None = None) -> None:
        self.folder = folder or default_folder() / "captures"
        megabytes = os.environ.get("IRSCOPE_STORE_LIMIT_MB", "")
        default = int(megabytes) << 20 if megabytes.isdigit() else DEFAULT_STORE_LIMIT_BYTES
        self.limit_bytes = default if limit_bytes is None else limit_bytes

    def add(self, capture: Capture) -> Path:
        """Store a capture, replacing one with the same id, and drop the oldest past the limit.

        Raises OSError that names `IRSCOPE_HOME` where the folder cannot be written to.
        """
        path = self.path_of(capture)
        try:
            write_atomically(path, to_bytes(capture))
        except OSError as error:
            reason = f"{error.strerror or error}. IRSCOPE_HOME=FOLDER names another place for captures"
            raise OSError(error.errno, reason, str(self.folder)) from error
        self.mark_last(path)
        self._prune(keep=path)
        return path

    def update(self, capture: Capture) -> bool:
        """Write a stored capture's file again; its place among the recent ones stays. False where it is not stored."""
        path = self.path_of(capture)
        try:
            times = path.stat()
        except FileNotFoundError:
            return False
        write_atomically(path, to_bytes(capture), (times.st_atime_ns, times.st_mtime_ns))
        return True

    @contextmanager
    def recording(self) -> Generator[None]:
        """Keep what is stored until the end of the block from being dropped, by this process or another.

        A file in the store is held locked meanwhile: a process that is killed lets go of it.
        """
        file = _lease(self.folder)
        try:
            yield
        finally:
            if file is not None:
                Path(file.name).unlink(missing_ok=True)
                file.close()

    def mark_last(self, path: Path) -> None:
        """Make a stored capture's file the one that `last` names; one that is gone stays so."""
        # The file system's clock ticks in milliseconds, and may be set back: two files would be in no order.
        newest = max((modified for _, modified, _ in self._files()), default=0)
        moment = max(time.time_ns(), newest + 1)
        with suppress(FileNotFoundError):
            os.utime(path, ns=(moment, moment))

    def path_of(self, capture: Capture) -> Path:
        """Where a capture is stored, or would be."""
        # File systems count bytes.
        name = _safe(capture.name).encode("utf-8", "replace")[:_LONGEST_NAME_BYTES].decode("utf-8", "ignore")
        return self.folder / f"{name}-{capture.id}{SUFFIX}"

    def paths(self) -> list[Path]:
        """The stored captures' files, the newest first."""
        return [path for path, _, _ in self._files()]

    def _files(self) -> list[tuple[Path, int, int]]:
        """(file, time of its last change in nanoseconds, bytes), the newest first; other processes write and drop."""
        rows: list[tuple[Path, int, int]] = []
        for path in self.folder.glob(f"*{SUFFIX}") if self.folder.is_dir() else ():
            with suppress(FileNotFoundError):
                status = path.stat()
                rows.append((path, status.st_mtime_ns, status.st_size))
        return sorted(rows, key=lambda row: row[1], reverse=True)

    def summaries(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """(file, manifest) of every readable stored capture, the newest first, with no text unpacked."""
        for path in self.paths():
            try:
                yield path, read_manifest(path)
            except CaptureFormatError:
                continue

    def find(self, text: str) -> Path:
        """The file of a capture given by path, by the beginning of its id, or `last`; raises CaptureNotFound."""
        if Path(text).is_file():
            return Path(text)
        paths = self.paths()
        if not paths:
            raise CaptureNotFound(f"{text!r} is no file, and no capture is stored. Record one: irscope dump FILE.")
        if text == "last":
            return paths[0]
        named = [path for path in paths if len(text) >= 4 and _id_of(path).startswith(text)]
        if len(named) == 1:
            return named[0]
        if named:
            raise CaptureNotFound(f"{text!r} is the beginning of {len(named)} ids: {', '.join(map(_id_of, named))}.")
        raise CaptureNotFound(f"{text!r} is neither a file nor a stored capture's id. 'irscope ls' lists them.")

    def load(self, text: str) -> Capture:
        """Load what `find` finds."""
        return load(self.find(text))

    def _prune(self, keep: Path) -> None:
        files, total = self._files(), 0
        if sum(size for _, _, size in files) <= self.limit_bytes:
            return
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


def _lease(folder: Path) -> IO[bytes] | None:
    """A new file in the store, locked; None where there are no locks, or nothing can be written there."""
    try:
        import fcntl

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


def read_manifest(path: Path) -> dict[str, Any]:
    """The `capture.json` of a file, with no text unpacked; raises CaptureFormatError."""
    try:
        with path.open("rb") as file, _opened(file, os.fstat(file.fileno()).st_size, repr(str(path))) as members:
            return stored_manifest(members)
    except OSError as error:
        raise CaptureFormatError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


@contextmanager
def _opened(file: IO[bytes], size: int, name: str) -> Generator[Members]:
    """The members of a capture file; whatever is wrong with them becomes a CaptureFormatError that names the file."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield Members(archive, size)
    except CaptureFormatError as error:
        raise CaptureFormatError(f"{name} is not a capture that irscope reads: {error}") from error
    except Exception as error:
        # Whatever a hostile or damaged file makes the readers of zip, deflate and text raise.
        raise CaptureFormatError(
            f"{name} is not a capture, or is damaged ({type(error).__name__}: {error}). "
            "A capture is the .irscope file that 'irscope dump -o FILE.irscope' writes."
        ) from error


def default_folder() -> Path:
    """Where irscope keeps things: `$IRSCOPE_HOME`, else the platform's cache folder.

    Raises OSError where the user has no home folder.
    """
    if home := os.environ.get("IRSCOPE_HOME"):
        return Path(home)
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "irscope"
    try:
        user = Path.home()
    except RuntimeError as error:
        raise OSError(None, "there is no home folder to keep captures in: IRSCOPE_HOME=FOLDER names one") from error
    if sys.platform == "darwin":
        return user / "Library" / "Caches" / "irscope"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", user / "AppData" / "Local")) / "irscope" / "Cache"
    return user / ".cache" / "irscope"


def _capture(members: Members, manifest: Manifest) -> Capture:
    backend, _, arch = manifest.target.partition(":")
    return Capture(
        launch=_with_tuples(manifest.launch),
        target=Target(backend, arch, manifest.warp_size),
        plan=PassPlan.parse(manifest.plan),
        artifacts=tuple(
            Artifact(
                item.stage, members.read(item.member) if item.binary else members.text(item.member), item.duration_us
            )
            for item in manifest.artifacts
        ),
        snapshots=tuple(
            item if item.text is None else replace(item, text=members.text(item.text)) for item in manifest.snapshots
        ),
        layouts=manifest.layouts,
        resources=manifest.resources,
        environment=manifest.environment,
        status=manifest.status,
        failure=manifest.failure,
        metadata=tuple((key, tupled(value)) for key, value in (manifest.metadata or {}).items()),
        sources=tuple(SourceFile(item.path, members.text(item.member)) for item in manifest.sources),
        notes=manifest.notes,
        snapshot_level=manifest.snapshot_level,
        compile_us=manifest.compile_us,
    )


def launch_from_json(data: Mapping[str, Any]) -> Launch:
    """A launch, of the plain values that `capture.json` and the recording process's events hold.

    Raises CaptureFormatError that names the field that is off.
    """
    return _with_tuples(converted(data, Launch))


def _with_tuples(launch: Launch) -> Launch:
    chosen = launch.set_options
    return replace(launch, options=_pairs(launch.options), set_options=None if chosen is None else _pairs(chosen))


def _pairs(rows: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((key, tupled(value)) for key, value in rows)


def _without_defaults(snapshot: PassSnapshot) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for field in fields(snapshot):
        value = getattr(snapshot, field.name)
        if field.name != "text" and (field.default is MISSING or value != field.default):
            row[field.name] = value
    return row


def _plain(value: Any) -> Any:
    return None if value is None else asdict(value)


def tupled(value: Any) -> Any:
    """A plain value with tuples where JSON has lists."""
    # JSON has no tuples, and a Capture holds no lists: what was saved equals what is loaded.
    if isinstance(value, list):
        return tuple(tupled(item) for item in cast("list[Any]", value))
    if isinstance(value, dict):
        return {key: tupled(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def _snapshot_member(snapshot: PassSnapshot) -> str:
    folder = "passes" if snapshot.group == "mlir" else f"passes-{snapshot.group}"
    return f"{folder}/{snapshot.index:04d}-{_safe(snapshot.stage)}-{_safe(snapshot.name)[:60]}"


def _safe(name: str) -> str:
    return "".join(char if char.isalnum() or char in "._-" else "_" for char in name) or "_"


def _id_of(path: Path) -> str:
    return path.name.removesuffix(SUFFIX).rpartition("-")[2]


def _write(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # A fixed date: the same capture gives the same bytes.
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data, compresslevel=_COMPRESSION_LEVEL)
