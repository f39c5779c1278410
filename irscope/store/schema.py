"""The schema of a capture file: what `capture.json` may hold, field by field, and how much a file may unpack to.

A capture may come from anybody. The types of `irscope.model` are the schema of most of the manifest: msgspec checks
the JSON against them, and what it can't say (which stages a backend has, how large a number may be) is checked here.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, TypedDict, TypeVar, cast

from irscope.errors import CaptureFormatError
from irscope.model.capture import (
    STAGE_NAMES,
    CaptureStatus,
    Environment,
    Failure,
    Launch,
    PassSnapshot,
    Resources,
    SnapshotLevel,
    stage_named,
)
from irscope.model.evidence import CompilerLog, CompileTimes, GraphOrigin, OperationLines, Profile
from irscope.model.layout import LayoutUse
from irscope.model.plain import ANY_VALUE, is_storable

SCHEMA_VERSION = 1
_MANIFEST = "capture.json"
INDEX = "index.json"
"""The member that only a collection of captures has."""

MAX_MANIFEST_BYTES = 24 << 20
"""The largest manifest that is read: of a kernel with every LLVM pass recorded it is about 1 MB."""
_MAX_UNPACKED_BYTES = 384 << 20
"""What all members of one file may unpack to; every snapshot of a large attention kernel takes 35 MB."""
_MAX_RATIO = 200
"""How many times its own size a file above 64 MiB may unpack to; IR compresses 20 to 60 times."""
_MAX_LINES = 8_000_000
_MAX_GRAPH_ROWS = 100_000
"""Nodes, operators and calls of all graphs of a capture; the largest fused kernel of a transformer has 200 nodes."""
_MAX_TEXT_LINES = 500_000
"""Of one text; the largest of an attention kernel has 24,000."""
_MAX_MEMBERS = 20_000
_UNSUSPECTED_BYTES = 64 << 20
_LARGEST_NUMBER = 1 << 53
"""Beyond it a number is not exact in JavaScript, and no size, time or line is that large."""

# ttgir    my-backend.ir
_STAGE = re.compile(r"[A-Za-z_][\w.-]{0,39}")

# cuda:90    hip:gfx942    a dump that names none is of "unknown:"
_TARGET = re.compile(r"[\w.+-]{1,40}:[\w.+-]{1,40}")

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _StoredArtifact:
    stage: str
    member: str
    binary: bool
    duration_us: int | None = None
    processor_us: int | None = None


@dataclass(frozen=True, slots=True)
class _StoredSource:
    path: str
    member: str


class _StoredLayout(TypedDict, total=False):
    """A row of `layouts`, of which `irscope.model.layout` makes a LayoutRow."""

    alias: str
    encoding: str
    shape: tuple[int, ...]
    elements: tuple[str, ...]
    buffers: int
    operations: tuple[LayoutUse, ...]
    bases: dict[str, tuple[tuple[int, ...], ...]]
    out_dims: tuple[tuple[str, int], ...]
    padding: tuple[tuple[int, int], ...]
    note: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `capture.json` holds. A field that a later irscope added is passed over, one it lacks takes its default."""

    schema: int
    target: str
    warp_size: int
    launch: Launch
    artifacts: tuple[_StoredArtifact, ...]
    snapshots: tuple[PassSnapshot, ...]
    """With the name of a member as their text."""
    status: CaptureStatus = "ok"
    failure: Failure | None = None
    plan: str = ""
    snapshot_level: SnapshotLevel = "triton"
    compile_us: int | None = None
    resources: Resources = field(default_factory=Resources)
    environment: Environment = field(default_factory=Environment)
    metadata: dict[str, Any] | None = field(default=None, metadata=ANY_VALUE)
    layouts: tuple[dict[str, Any], ...] = field(default=(), metadata=ANY_VALUE)
    operations: tuple[OperationLines, ...] = ()
    log: CompilerLog | None = None
    """With the name of a member as each pass's text."""
    times: CompileTimes | None = None
    profile: Profile | None = None
    """With the name of a member as its page."""
    sources: tuple[_StoredSource, ...] = ()
    notes: tuple[str, ...] = ()
    graphs: tuple[GraphOrigin, ...] = ()


def converted(value: Any, kind: type[_Value]) -> _Value:
    """A plain value, as JSON gives it, as a value of `kind`; raises CaptureFormatError that names the field."""
    import msgspec

    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        # Expected `int`, got `str` - at `$.launch.kernel.line`
        raise CaptureFormatError(str(error).replace(" - at `$", " at `").replace("`", "'")) from error


class Members:
    """The members of a capture file, each read once, within the bounds of this module."""

    def __init__(self, archive: zipfile.ZipFile, packed_bytes: int) -> None:
        """Raises CaptureFormatError where the file would unpack to more than irscope reads."""
        rows = archive.infolist()
        if len(rows) > _MAX_MEMBERS:
            raise CaptureFormatError(f"it has {len(rows)} members; irscope reads up to {_MAX_MEMBERS}.")
        self._rows = {row.filename: row for row in rows}
        if len(self._rows) < len(rows):
            raise CaptureFormatError(f"its member {_repeated(row.filename for row in rows)!r} occurs twice.")
        total = sum(row.file_size for row in rows)
        if total > _MAX_UNPACKED_BYTES or (total > _UNSUSPECTED_BYTES and total > _MAX_RATIO * packed_bytes):
            raise CaptureFormatError(
                f"it unpacks from {packed_bytes:,} to {total:,} bytes; irscope reads up to {_MAX_UNPACKED_BYTES:,}, "
                f"and above {_UNSUSPECTED_BYTES:,} up to {_MAX_RATIO} times a file's own size."
            )
        for row in rows:
            if row.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise CaptureFormatError(f"its member {row.filename!r} is neither stored nor deflated.")
        self._archive = archive
        self._texts: dict[str, str] = {}
        self._lines = 0

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def size(self, name: str) -> int:
        return self._rows[name].file_size

    def read(self, name: str) -> bytes:
        """The bytes of a member; raises CaptureFormatError where there is none of that name."""
        if name not in self._rows:
            raise CaptureFormatError(f"its capture.json names a member {name!r}, which it does not have.")
        # The size in the directory may lie: zipfile reads no more than that, and checks the sum of what it read.
        return self._archive.read(self._rows[name])

    def text(self, name: str) -> str:
        """The text of a member, read once however often it is named."""
        if name not in self._texts:
            data = self.read(name)
            self.count_lines(name, data)
            self._texts[name] = data.decode("utf-8", "surrogateescape")
        return self._texts[name]

    def count_lines(self, name: str, data: bytes) -> None:
        """Count the lines of a member's text; raises CaptureFormatError where these, or those of all, are too many."""
        lines = data.count(b"\n")
        if lines > _MAX_TEXT_LINES:
            raise CaptureFormatError(f"its {name} has {lines:,} lines; irscope reads up to {_MAX_TEXT_LINES:,}.")
        self._lines += lines
        if self._lines > _MAX_LINES:
            raise CaptureFormatError(f"its texts have more than {_MAX_LINES:,} lines.")


def stored_manifest(members: Members) -> dict[str, Any]:
    """The manifest as plain values, of a schema version that this irscope reads; raises CaptureFormatError."""
    if _MANIFEST not in members and INDEX in members:
        raise CaptureFormatError(
            "it is a collection, and one capture is needed: 'irscope dump COLLECTION::ID -o FILE.irscope' writes one."
        )
    if _MANIFEST not in members:
        raise CaptureFormatError("it is a zip file, but no capture: it has no member capture.json.")
    if members.size(_MANIFEST) > MAX_MANIFEST_BYTES:
        raise CaptureFormatError(
            f"its capture.json has {members.size(_MANIFEST):,} bytes; irscope reads up to {MAX_MANIFEST_BYTES:,}."
        )
    try:
        data = json.loads(members.read(_MANIFEST), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise CaptureFormatError(f"its capture.json is no JSON that irscope reads: {error}.") from error
    schema = cast("dict[str, Any]", data).get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int):
        raise CaptureFormatError("its capture.json names no schema version.")
    if schema > SCHEMA_VERSION:
        raise CaptureFormatError(
            f"it has schema version {schema}; this irscope reads up to {SCHEMA_VERSION}. "
            "Update it: pip install --upgrade irscope."
        )
    return cast("dict[str, Any]", data)


def checked_manifest(data: Mapping[str, Any]) -> Manifest:
    """The manifest with its types; raises CaptureFormatError that names what is off."""
    manifest = converted(data, Manifest)
    _check_numbers(manifest, "")
    if not _TARGET.fullmatch(manifest.target):
        raise CaptureFormatError(f"its target {manifest.target!r} is no BACKEND:ARCH.")
    if not 1 <= manifest.warp_size <= 128:
        raise CaptureFormatError(f"its warp_size is {manifest.warp_size}.")
    backend = manifest.target.partition(":")[0]
    for item in manifest.artifacts:
        _check_stage(item.stage, backend)
        if item.binary is not stage_named(item.stage).is_binary and item.stage in STAGE_NAMES:
            raise CaptureFormatError(f"its stage {item.stage!r} is {'bytes' if item.binary else 'text'}.")
    for snapshot in manifest.snapshots:
        _check_stage(snapshot.stage, backend)
    _check_once((item.stage for item in manifest.artifacts), "stage")
    _check_once(((item.group, item.index) for item in manifest.snapshots), "pass")
    for name, values in (("launch.options", dict(manifest.launch.options)), ("metadata", manifest.metadata or {})):
        for key, value in values.items():
            if not is_storable(key, value):
                raise CaptureFormatError(f"its {name} has {key} = {value!r}.")
    for row in manifest.layouts:
        converted(row, _StoredLayout)
    for row in manifest.operations:
        _check_stage(row.stage, backend)
    _check_once((row.stage for row in manifest.operations), "stage of operations")
    _check_graphs(manifest.graphs)
    if manifest.times is not None:
        _check_times(manifest.times)
    if manifest.log is not None:
        _check_log(manifest.log, manifest.snapshots, backend)
    return manifest


def _check_graphs(graphs: tuple[GraphOrigin, ...]) -> None:
    rows = sum(
        1 + len(graph.nodes) + len(graph.source_nodes) + len(graph.operators) + len(graph.others) for graph in graphs
    )
    if rows > _MAX_GRAPH_ROWS:
        raise CaptureFormatError(f"its graphs have {rows:,} nodes and calls; irscope reads up to {_MAX_GRAPH_ROWS:,}.")


def _check_times(times: CompileTimes) -> None:
    depth = -1
    for span in times.spans:
        if not 0 <= span.depth <= depth + 1:
            raise CaptureFormatError(f"its times have {span.name!r} at depth {span.depth}, within nothing.")
        depth = span.depth


def _check_log(log: CompilerLog, snapshots: Iterable[PassSnapshot], backend: str) -> None:
    passes = {item.index: item.stage for item in snapshots if item.group == "mlir"}
    for name in (*log.differing, *(item.stage for item in log.passes)):
        _check_stage(name, backend)
    for item in log.passes:
        if item.index is not None and passes.get(item.index) != item.stage:
            raise CaptureFormatError(f"its log is of pass {item.index} of {item.stage!r}, which it does not have.")
    _check_once(((item.stage, item.index) for item in log.passes), "log of")


def check_operations(rows: Iterable[OperationLines], texts: Mapping[str, str]) -> None:
    """Raise CaptureFormatError for operations of other lines than a stage has, or that the TTGIR does not have."""
    operations = texts.get("ttgir", "").count("\n") + 1
    for row in rows:
        lines = texts.get(row.stage, "").count("\n") + 1
        if row.runs and (sum(count for _, count in row.runs) != lines or any(at > operations for at, _ in row.runs)):
            raise CaptureFormatError(f"its operations are not of the {lines:,} lines that its {row.stage!r} has.")


def _check_stage(name: str, backend: str) -> None:
    if not _STAGE.fullmatch(name):
        raise CaptureFormatError(f"its stage {name!r} is not the name of a stage.")
    # A third-party backend has stages of its own.
    if backend in ("cuda", "hip") and name not in STAGE_NAMES:
        raise CaptureFormatError(f"{backend} has no stage {name!r}: it has {', '.join(STAGE_NAMES)}.")


def _check_once(names: Iterable[object], what: str) -> None:
    rows = list(names)
    if len(set(rows)) < len(rows):
        raise CaptureFormatError(f"its {what} {_repeated(rows)!r} occurs twice.")


def _repeated(names: Iterable[object]) -> object:
    seen = set[object]()
    return next(name for name in names if name in seen or seen.add(name))


def _check_numbers(value: object, where: str) -> None:
    # Sizes, counts, times and lines: none is negative, and none so large that a table or a picture could not hold it.
    if value is None or isinstance(value, (str, bool)):
        return
    if isinstance(value, (int, float)):
        if not 0 <= value < _LARGEST_NUMBER:
            raise CaptureFormatError(f"its {where} is {value!r}, which is out of range.")
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            _check_numbers(item, where)
    elif is_dataclass(value):
        for name in _checked_fields(type(value)):
            item = getattr(value, name)
            if item is not None and not isinstance(item, str):
                _check_numbers(item, f"{where}.{name}".removeprefix("."))


@cache
def _checked_fields(kind: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind) if not item.metadata.get("any_value"))


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")
