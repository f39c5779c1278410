"""Reads Triton's cache and the folders of TRITON_KERNEL_DUMP as captures of the stages, without passes.

A variant is a folder with `<kernel>.{source,ttir,ttgir,llir,ptx,cubin,amdgcn,hsaco}` and `<kernel>.json`, which the
folders of TRITON_KERNEL_DUMP lack. Damaged and incomplete variants are skipped.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from irscope.ir.logs.files import FileRefused, inside, read_regular
from irscope.ir.logs.launch_text import (
    UNKNOWN_TARGET,
    launch_of_metadata,
    number,
    shown_metadata,
    target_of_metadata,
    target_of_module,
)
from irscope.model.capture import STAGES, Artifact, Capture, Environment, Target, stage_named
from irscope.model.plain import storable

_MAX_STAGE_BYTES = 1 << 28
_MAX_JSON_BYTES = 1 << 24
_MAX_FOLDERS = 1_000_000
# Triton dumps SASS in its own format, not nvdisasm's.
_STAGES = tuple(stage.name for stage in STAGES if stage.name not in ("sass", "edited"))


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One variant of a kernel in Triton's cache."""

    kernel: str
    folder: Path
    target: Target | None
    """None if neither the metadata nor the file names contain it."""
    num_warps: int | None
    num_stages: int | None
    num_ctas: int | None
    hash: str
    """Triton's hash of the variant; the folder's name if the metadata has none."""
    modified: float
    """Seconds since the epoch."""
    stages: tuple[str, ...]
    bytes: int
    """Of all its files."""
    triton_version: str = ""

    @property
    def variant(self) -> str:
        """The folder's name, for `--variant`, which takes a prefix."""
        return self.folder.name


@dataclass(frozen=True, slots=True)
class _Files:
    kernel: str
    root: Path
    """The requested folder: nothing outside it is read."""
    folder: Path
    stages: tuple[tuple[str, Path], ...]
    metadata: Path | None
    modified: float
    bytes: int


class _Damaged(Exception):
    """A variant cannot be read; the message says why."""


def list_cache(folder: Path) -> tuple[CacheEntry, ...]:
    """Every variant of a cache, newest first, without damaged ones. Reads only the metadata."""
    entries: list[CacheEntry] = []
    for files in _variants(folder):
        try:
            entries.append(_entry(files))
        except _Damaged:
            continue
    return tuple(sorted(entries, key=lambda entry: (-entry.modified, entry.variant)))


def read_cache(
    folder: Path, variant: str | None = None, skipped: Callable[[str], None] | None = None
) -> Iterator[Capture]:
    """The captures of a cache, of a dump folder, or of one variant's folder, oldest first.

    `variant`: a prefix of the folder's name or of the hash. `skipped` gets a message for each damaged one.
    """
    for files in sorted(_variants(folder), key=lambda files: (files.modified, files.folder.name, files.kernel)):
        try:
            if variant is None or _is_variant(files, variant):
                yield _capture(files)
        except _Damaged as error:
            if skipped is not None:
                skipped(f"{files.kernel} in {files.folder.name} was skipped: {error}.")


def _is_variant(files: _Files, variant: str) -> bool:
    if files.folder.name.startswith(variant):
        return True
    return files.metadata is not None and str(_metadata(files).get("hash", "")).startswith(variant)


def _variants(folder: Path) -> Iterator[_Files]:
    yield from _files_in(folder, folder)
    for count, child in enumerate(_children(folder)):
        if count >= _MAX_FOLDERS:
            return
        # Triton writes a variant as tmp.pid_…, and renames it when it is complete.
        if child.is_dir() and not child.name.startswith("tmp.pid_") and inside(child, folder):
            yield from _files_in(child, folder)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _files_in(folder: Path, root: Path) -> Iterator[_Files]:
    kernels: dict[str, dict[str, Path]] = {}
    sizes: dict[Path, tuple[int, float]] = {}
    for path in _children(folder):
        kernel, dot, suffix = path.name.rpartition(".")
        if not dot or not kernel or suffix not in (*_STAGES, "json") or kernel.startswith("__grp__"):
            continue
        try:
            if not path.is_file():
                continue
            status = path.stat()
        except OSError:
            continue
        sizes[path] = (status.st_size, status.st_mtime)
        kernels.setdefault(kernel, {})[suffix] = path
    for kernel, found in kernels.items():
        stages = tuple((name, found[name]) for name in _STAGES if name in found)
        if not stages:
            # The cache also contains helper libraries and groups without files.
            continue
        yield _Files(
            kernel,
            root,
            folder,
            stages,
            found.get("json"),
            max(sizes[path][1] for path in found.values()),
            sum(sizes[path][0] for path in found.values()),
        )


def _entry(files: _Files) -> CacheEntry:
    metadata = _metadata(files)
    return CacheEntry(
        files.kernel,
        files.folder,
        target_of_metadata(metadata) or _target_of_stages(files),
        number(metadata.get("num_warps")),
        number(metadata.get("num_stages")),
        number(metadata.get("num_ctas")),
        str(metadata.get("hash") or files.folder.name),
        files.modified,
        tuple(name for name, _ in files.stages),
        files.bytes,
        str(metadata.get("triton_version", "")),
    )


def _metadata(files: _Files) -> Mapping[str, Any]:
    if files.metadata is None:
        return {}
    try:
        data = json.loads(_read(files.metadata, _MAX_JSON_BYTES, files.root))
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"{files.metadata.name} is not JSON ({error})") from error
    if not isinstance(data, dict):
        raise _Damaged(f"{files.metadata.name} holds no metadata")
    return storable(cast("dict[str, Any]", data))


def _read(path: Path, limit: int, root: Path) -> bytes:
    try:
        data = read_regular(path, limit, root)
    except FileRefused as error:
        raise _Damaged(f"{path.name} {error}") from error
    if not data:
        raise _Damaged(f"{path.name} is empty")
    return data


def _capture(files: _Files) -> Capture:
    metadata = _metadata(files)
    artifacts = tuple(_artifact(name, path, files.root) for name, path in files.stages)
    texts = {artifact.stage: artifact.data for artifact in artifacts if isinstance(artifact.data, str)}
    named = (found for text in texts.values() if (found := target_of_module(text)))
    notes = ["Read from Triton's cache: it holds no passes, constants or Python text."]
    if not metadata:
        notes = [
            "Read from a dump folder of Triton, which holds no metadata: options and target are read from the IR. "
            "Of compiles that differ only in options, Triton keeps the last one."
        ]
    if not any(name in ("cubin", "hsaco") for name, _ in files.stages):
        notes.append("The folder holds no binary: the compile failed, or not all was dumped.")
    return Capture(
        launch=launch_of_metadata(files.kernel, metadata, texts),
        target=target_of_metadata(metadata) or next(named, UNKNOWN_TARGET),
        artifacts=artifacts,
        environment=Environment(triton_version=str(metadata.get("triton_version", "")), date=utc_date(files.modified)),
        metadata=shown_metadata(metadata),
        notes=tuple(notes),
        snapshot_level="none",
    )


def _artifact(stage: str, path: Path, root: Path) -> Artifact:
    data = _read(path, _MAX_STAGE_BYTES, root)
    if stage_named(stage).is_binary:
        return Artifact(stage, data)
    try:
        return Artifact(stage, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _Damaged(f"{path.name} is not text") from error


def _target_of_stages(files: _Files) -> Target | None:
    for name, path in files.stages:
        if name in ("ttgir", "glir"):
            try:
                return target_of_module(_read(path, _MAX_STAGE_BYTES, files.root).decode("utf-8", "replace"))
            except _Damaged:
                return None
    return None


def utc_date(seconds: float) -> str:
    """Seconds since the epoch as UTC, ISO 8601; empty for what is no date."""
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""
