"""The index of the store of recent captures: what lists and finds a capture, kept in one file beside them.

It is derived: a row counts only while its file has the size and the number that the row gives, and any other file is
read. A line is added for each file that is written, and the last one of a file is valid.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irscope.errors import CaptureFormatError
from irscope.model.capture import Capture, Kernel, Launch
from irscope.model.plain import tupled
from irscope.model.telling import parts_of
from irscope.store.file import SUFFIX, read_manifest, write_atomically
from irscope.store.schema import converted

if TYPE_CHECKING:
    from irscope.model.graph_origin import GraphOrigin

__all__ = ["StoredRow", "note_stored", "stored_rows"]

_INDEX = "index.jsonl"
_SPARE_LINES = 200
"""How many lines the index may have that are not valid, beside as many as there are files."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """What lists a stored capture, and what it is found by."""

    name: str
    """Of its file."""
    size: int
    inode: int
    id: str = ""
    kernel: str = ""
    file: str = ""
    """Of the kernel."""
    line: int = 0
    target: str = ""
    status: str = ""
    failure: str = ""
    """The kind of failure; empty if there is none."""
    plan: str = ""
    triton: str = ""
    date: str = ""
    command: str = ""
    snapshots: str = ""
    stages: tuple[str, ...] = ()
    parts: dict[str, str] = field(default_factory=dict[str, str])
    """The launch's constants, types and options."""
    graphs: tuple[str, ...] = ()
    """The graphs of TorchInductor's that the kernel is of: `0 forward`."""
    origin: tuple[tuple[str, str], ...] = ()
    """As `Environment.origin` has it: a test, a cell, a process."""
    recording: str = ""
    """The same for all captures of one recording."""
    modified_ns: int = 0
    """When the capture was stored, or chosen last; not in the index."""

    @property
    def belongs_to(self) -> str:
        """The recording; where it is not known, the command and when it began."""
        return self.recording or f"{self.date} {self.command}"


def note_stored(path: Path, capture: Capture, recording: str = "") -> None:
    """Add a stored capture to the index; where that cannot be written, `stored_rows` reads the file."""
    with suppress(OSError):
        status = path.stat()
        environment = capture.environment
        row = StoredRow(
            path.name,
            status.st_size,
            status.st_ino,
            capture.id,
            capture.name,
            capture.launch.kernel.file,
            capture.launch.kernel.line,
            str(capture.target),
            capture.status,
            capture.failure.kind if capture.failure else "",
            str(capture.plan),
            environment.triton_version,
            environment.date,
            environment.command,
            capture.snapshot_level,
            capture.stages,
            parts_of(capture.launch),
            _graph_names(capture.graphs),
            environment.origin,
            recording,
        )
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
                row = _row_of_file(Path(entry.path), status, row)
                if row is None:
                    continue
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
        with suppress(ValueError, TypeError, KeyError):
            row = _row_of_line(json.loads(line))
            before = rows.get(row.name)
            # Who adds to a capture does not know its recording.
            rows[row.name] = replace(row, recording=before.recording) if before and not row.recording else row
    return rows, len(lines)


def _row_of_line(values: Any) -> StoredRow:
    known: dict[str, Any] = dict(values)
    if known.keys() != _FIELDS:
        raise KeyError("not this version's")
    known["graphs"], known["origin"] = tuple(map(str, known["graphs"])), _pairs(known["origin"])
    known["stages"], known["parts"] = tuple(map(str, known["stages"])), _texts(known["parts"])
    row = StoredRow(**known)
    if not all(isinstance(getattr(row, name), kind) for name, kind in _KINDS.items()):
        raise TypeError("not this version's")
    return row


_KINDS = {item.name: int if item.type == "int" else str for item in fields(StoredRow) if item.type in ("int", "str")}
_FIELDS = {item.name for item in fields(StoredRow)} - {"modified_ns"}


def _row_of_file(path: Path, status: os.stat_result, before: StoredRow | None) -> StoredRow | None:
    """The row of a file that the index lacks; None if it is no capture."""
    try:
        manifest = read_manifest(path)
        return _row_of_manifest(path, status, manifest, before.recording if before else "")
    except (CaptureFormatError, TypeError, ValueError, KeyError, AttributeError):
        return None


def _row_of_manifest(path: Path, status: os.stat_result, manifest: Any, recording: str) -> StoredRow:
    # Anybody may have written it: what does not fit raises.
    launch: Any = manifest.get("launch") or {}
    environment: Any = manifest.get("environment") or {}
    kernel: Any = launch.get("kernel") or {}
    failure: Any = manifest.get("failure") or {}
    rows: dict[str, Any] = {
        name: _pairs(launch.get(name)) for name in ("signature", "constants", "attributes", "options")
    }
    return StoredRow(
        path.name,
        status.st_size,
        status.st_ino,
        str(manifest.get("id", "")),
        str(manifest.get("name", "")),
        str(kernel.get("file", "")),
        int(kernel.get("line", 0)),
        str(manifest.get("target", "")),
        str(manifest.get("status", "")),
        str(failure.get("kind", "")),
        str(manifest.get("plan", "")),
        str(environment.get("triton_version", "")),
        str(environment.get("date", "")),
        str(environment.get("command", "")),
        str(manifest.get("snapshot_level", "")),
        tuple(str(item["stage"]) for item in manifest.get("artifacts") or ()),
        parts_of(Launch(Kernel(""), **rows)),
        _graphs_of(manifest),
        _pairs(environment.get("origin")),
        recording,
    )


def _graphs_of(manifest: Any) -> tuple[str, ...]:
    """The graphs that the manifest of a capture names; none where it names them otherwise."""
    if not (rows := manifest.get("graphs")):
        return ()
    from irscope.model.graph_origin import GraphOrigin

    try:
        return _graph_names(converted(rows, tuple[GraphOrigin, ...]))
    except CaptureFormatError:
        return ()


def _graph_names(origins: tuple[GraphOrigin, ...]) -> tuple[str, ...]:
    return tuple(f"{origin.graph} {origin.part}".rstrip() for origin in origins)


def _pairs(rows: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(tupled(value))) for name, value in rows or ())


def _texts(values: Mapping[Any, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in values.items()}


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
