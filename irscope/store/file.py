"""A Capture to and from one `.irscope` file.

The file's form is documented in docs/capture-format.md: a zip of plain members, `capture.json` first.
"""

from __future__ import annotations

import hmac
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import MISSING, asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Artifact, Capture, Environment, Launch, PassSnapshot, Resources, SourceFile, Target
from irscope.model.layout import layout_from_json, layout_to_json
from irscope.model.plain import finite, tupled
from irscope.plan import PassPlan
from irscope.store.disk import machine_key, write_atomically
from irscope.store.schema import (
    INDEX,
    SCHEMA_VERSION,
    Manifest,
    Members,
    check_operations,
    checked_manifest,
    stored_manifest,
)

if TYPE_CHECKING:
    from irscope.model.evidence import CompilerLog

SUFFIX = ".irscope"
# On IR a file is a sixth smaller than at level 1, for 10 to 25 ms more of a capture with every snapshot.
_COMPRESSION_LEVEL = 5
_AS_JSON = json.JSONEncoder(default=str).encode
_LONGEST_NAME_BYTES = 120

# The last bytes of a file, its comment as a zip archive: the HMAC-SHA256, by this machine's key, of all before them.
_SEAL = b"irscope-seal:"
_SEAL_DIGITS = 64


# What stands for no byte of a file.
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def _encoded(text: str) -> bytes:
    """UTF-8, with the bytes that were not; a lone surrogate, which no file can hold, becomes U+FFFD."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _LONE.sub("\ufffd", text).encode("utf-8", "surrogateescape")


def to_bytes(capture: Capture) -> bytes:
    """The capture as the bytes of an `.irscope` file; on one machine, equal captures give equal bytes.

    A part that could not be read back is left out, with a note. Raises CaptureFormatError for what cannot be left out.
    """
    try:
        return _sealed(_packed(capture), capture)
    except CaptureFormatError:
        readable = _without_unreadable(capture)
        return _sealed(_packed(readable), readable)


def _packed(capture: Capture) -> bytes:
    """The bytes of a file; raises CaptureFormatError for one that `from_bytes` would refuse."""
    members: dict[str, bytes] = {}
    texts: dict[str, str] = {}

    def member(name: str, data: str | bytes) -> str:
        if isinstance(data, str):
            # A text that stands in the file already (the last pass's is the stage's) is stored once.
            known = texts.setdefault(data, name)
            if known != name:
                return known
            data = _encoded(data)
        members[name] = data
        return name

    manifest: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "id": capture.id,
        "name": capture.name,
        "target": str(capture.target),
        "warp_size": capture.target.warp_size,
        "status": capture.status,
        "failure": capture.failure and asdict(capture.failure),
        "plan": str(capture.plan),
        "snapshot_level": capture.snapshot_level,
        "compile_us": capture.compile_us,
        "launch": _launch_row(capture.launch),
        "resources": asdict(capture.resources),
        "environment": _environment_row(capture.environment),
        "metadata": finite(dict(capture.metadata)),
        "notes": list(capture.notes),
        "graphs": [asdict(origin) for origin in capture.graphs],
        "layouts": [layout_to_json(row) for row in capture.layouts],
        "operations": [asdict(row) for row in capture.operations],
        "log": capture.log and _log_row(capture.log, member),
        "times": capture.times and asdict(capture.times),
        "profile": capture.profile and asdict(capture.profile) | {"page": member("profile.csv", capture.profile.page)},
        "artifacts": [
            {
                "stage": item.stage,
                "duration_us": item.duration_us,
                "processor_us": item.processor_us,
                "binary": isinstance(item.data, bytes),
                "member": member(f"stages/{_safe_name(item.stage)}", item.data),
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
        # A line for each field: Python's own encoder, which indents, takes ten times as long.
        fields_as_json = ",\n".join(f"{json.dumps(key)}: {_AS_JSON(value)}" for key, value in manifest.items())
        write = partial(archive.writestr, compress_type=zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL)
        write(member_named("capture.json"), _encoded(f"{{\n{fields_as_json}\n}}\n"))
        for name, data in members.items():
            write(member_named(name), data)
        archive.comment = _SEAL + b"0" * _SEAL_DIGITS
    data = buffer.getvalue()
    with zipfile.ZipFile(buffer) as archive:
        stored = Members(archive, len(data))
        checked = checked_manifest(stored_manifest(stored))
        head_of(checked)
        check_operations(checked.operations, capture.texts)
        for name in texts.values():
            stored.count_lines(name, members[name])
    return data


_LEFT_OUT: dict[str, object] = {
    "profile": None,
    "log": None,
    "times": None,
    "graphs": (),
    "operations": (),
    "layouts": (),
    "metadata": (),
    "sources": (),
    "resources": Resources(),
}
"""The parts of a capture that may be left out, with what stands for them then."""


def _without_unreadable(capture: Capture) -> Capture:
    """The capture without the parts that a file cannot hold so that they are read back, each named in a note."""
    least = replace(
        capture,
        launch=replace(
            capture.launch, options=(), set_options=None, autotuning=None, record=None, others=(), assumptions=()
        ),
        artifacts=(),
        snapshots=(),
        notes=(),
        **_LEFT_OUT,
    )
    _packed(least)
    notes: list[str] = []
    readable = least

    def reads(what: str, tried: Capture) -> bool:
        try:
            _packed(tried)
        except CaptureFormatError as error:
            notes.append(f"The recording holds no {what}, which could not be read back: {error}")
            return False
        return True

    def take(what: str, **changes: Any) -> None:
        nonlocal readable
        tried = replace(readable, **changes)
        readable = tried if reads(what, tried) else readable

    for name in ("options", "set_options", "autotuning", "record", "others", "assumptions"):
        take(name, launch=replace(readable.launch, **{name: getattr(capture.launch, name)}))
    for artifact in capture.artifacts:
        take(f"stage {artifact.stage}", artifacts=(*readable.artifacts, artifact))
    snapshots: list[PassSnapshot] = []
    for snapshot in capture.snapshots:
        bare = replace(snapshot, text=None)
        if reads(f"IR after {snapshot.label}", replace(least, snapshots=(snapshot,))):
            snapshots.append(snapshot)
        elif reads(f"pass {snapshot.label}", replace(least, snapshots=(bare,))):
            snapshots.append(bare)
    take("passes", snapshots=tuple(snapshots))
    for name in _LEFT_OUT:
        take(name, **{name: getattr(capture, name)})
    return replace(readable, notes=(*capture.notes, *notes))


def from_bytes(data: bytes, name: str = "the capture") -> Capture:
    """Read what `to_bytes` made; raises CaptureFormatError for anything else, naming `name`."""
    with _opened(io.BytesIO(data), len(data), name) as members:
        capture = _capture(members, checked_manifest(stored_manifest(members)))
    return replace(capture, environment=replace(capture.environment, is_trusted=_has_own_seal(data)))


def save(capture: Capture, path: str | Path) -> Path:
    """Write the capture to a file, whole or not at all, and return the file's path."""
    path = Path(path)
    write_atomically(path, to_bytes(capture))
    return path


def file_name(capture: Capture) -> str:
    """The name of a capture's file in a folder of several: the kernel's, and the id."""
    # File systems count bytes.
    name = _safe_name(capture.name).encode("utf-8", "replace")[:_LONGEST_NAME_BYTES].decode("utf-8", "ignore")
    return f"{name}-{capture.id}{SUFFIX}"


def is_packed(path: str | Path) -> bool:
    """Whether a file is a collection, and not one capture or something else."""
    path = Path(path)
    if path.suffix != SUFFIX or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False
    return INDEX in names and "capture.json" not in names


def is_worse(path: Path, capture: Capture) -> bool:
    """Whether a compile was ended from outside, but the capture of the same compile that a file holds is complete."""
    if capture.failure is None or capture.failure.kind not in ("interrupt", "resources") or not path.is_file():
        return False
    try:
        return read_manifest(path).get("status") == "ok"
    except CaptureFormatError:
        return False


def load(path: str | Path) -> Capture:
    """Read a capture from a file; raises CaptureNotFound or CaptureFormatError.

    >>> load("matmul-cuda-80.irscope").name
    'matmul_grouped_kernel'
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        one = " 'irscope dump FOLDER::ID -o FILE.irscope' writes one capture of a collection." if path.is_dir() else ""
        raise CaptureNotFound(f"cannot read {str(path)!r}: {error.strerror}.{one}") from error
    return from_bytes(data, repr(str(path)))


def read_manifest(path: Path) -> dict[str, Any]:
    """The `capture.json` of a file, with no text unpacked; raises CaptureFormatError."""
    try:
        with path.open("rb") as file:
            return manifest_in(file, os.fstat(file.fileno()).st_size, repr(str(path)))
    except OSError as error:
        raise CaptureFormatError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def manifest_in(file: IO[bytes], size: int, name: str) -> dict[str, Any]:
    with _opened(file, size, name) as members:
        return stored_manifest(members)


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


def _capture(members: Members, manifest: Manifest) -> Capture:
    artifacts = tuple(
        Artifact(
            item.stage,
            members.read(item.member) if item.binary else members.text(item.member),
            item.duration_us,
            item.processor_us,
        )
        for item in manifest.artifacts
    )
    check_operations(manifest.operations, {item.stage: item.data for item in artifacts if isinstance(item.data, str)})
    log = manifest.log
    if log is not None:
        log = replace(log, passes=tuple(replace(item, text=members.text(item.text)) for item in log.passes))
    return replace(
        head_of(manifest),
        artifacts=artifacts,
        snapshots=tuple(
            item if item.text is None else replace(item, text=members.text(item.text)) for item in manifest.snapshots
        ),
        layouts=tuple(map(layout_from_json, manifest.layouts)),
        operations=manifest.operations,
        log=log,
        times=manifest.times,
        profile=manifest.profile and replace(manifest.profile, page=members.text(manifest.profile.page)),
        sources=tuple(SourceFile(item.path, members.text(item.member)) for item in manifest.sources),
    )


def head_of(manifest: Manifest) -> Capture:
    """The capture of a manifest, without what stands in other members, and without its layouts and operations."""
    backend, _, arch = manifest.target.partition(":")
    return Capture(
        launch=_with_tuples(manifest.launch),
        target=Target(backend, arch, manifest.warp_size),
        plan=PassPlan.parse(manifest.plan),
        resources=manifest.resources,
        environment=manifest.environment,
        status=manifest.status,
        failure=manifest.failure,
        metadata=tuple((key, tupled(value)) for key, value in (manifest.metadata or {}).items()),
        notes=manifest.notes,
        graphs=manifest.graphs,
        snapshot_level=manifest.snapshot_level,
        compile_us=manifest.compile_us,
    )


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


def _log_row(log: CompilerLog, member: Callable[[str, str], str]) -> dict[str, Any]:
    row = asdict(log)
    for item in row["passes"]:
        place = "stage" if item["index"] is None else f"{item['index']:04d}"
        item["text"] = member(f"logs/{place}-{_safe_name(item['stage'])}", item["text"])
    return row


def _snapshot_member(snapshot: PassSnapshot) -> str:
    folder = "passes" if snapshot.group == "mlir" else f"passes-{snapshot.group}"
    return f"{folder}/{snapshot.index:04d}-{_safe_name(snapshot.stage)}-{_safe_name(snapshot.name)[:60]}"


def _launch_row(launch: Launch) -> dict[str, Any]:
    row = asdict(launch)
    return row | {name: finite(row[name]) for name in ("options", "set_options")}


def _environment_row(environment: Environment) -> dict[str, Any]:
    row = asdict(environment)
    # What a file states of its own trust is worth nothing: its seal is.
    del row["is_trusted"]
    return row


def _sealed(data: bytes, capture: Capture) -> bytes:
    """The bytes of a file, with this machine's seal in place of the empty one if the capture's code is trusted."""
    key = machine_key(create=True) if capture.environment.is_trusted else None
    if key is None:
        return data
    body = data[:-_SEAL_DIGITS]
    return body + hmac.new(key, body, "sha256").hexdigest().encode()


def _has_own_seal(data: bytes) -> bool:
    """Whether the bytes end in the seal that this machine gives to them: any other byte makes it another seal."""
    body, stated = data[:-_SEAL_DIGITS], data[-_SEAL_DIGITS:]
    key = machine_key() if body.endswith(_SEAL) else None
    return key is not None and hmac.compare_digest(hmac.new(key, body, "sha256").hexdigest().encode(), stated)


def _safe_name(name: str) -> str:
    return "".join(char if char.isalnum() or char in "._-" else "_" for char in name) or "_"


def member_named(name: str) -> zipfile.ZipInfo:
    """A member of an archive, with a fixed date: the same captures give the same bytes."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    return info
