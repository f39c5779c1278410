"""`irscope ls`: lists the recent captures, those of a collection, or the kernels in Triton's own cache."""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irscope.cli.captures import collection_at, entries_of
from irscope.cli.output import Destination
from irscope.cli.streams import say
from irscope.errors import CaptureNotFound, TargetError, UsageError
from irscope.ir.logs.cache import CacheEntry, list_cache, utc_date
from irscope.model.capture import Environment
from irscope.model.plain import picked
from irscope.model.telling import telling_columns
from irscope.render.text.tables import table
from irscope.store.recent import CaptureStore
from irscope.store.shelf import StoredRow
from irscope.target import Target

if TYPE_CHECKING:
    from irscope.store.collection import Collection, PackedCollection


# 30min  |  2 h  |  1.5d
_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of listed captures; without filters all are listed.

    Options:
        kernel = [KERNEL|COLLECTION[::KERNEL]]: Part of the kernel's name, or a pattern: 'matmul*'; or a collection to
            list.
        --where KEY=VALUE: target=cuda:90 (or hip, h100, …), file=PART of the path of the kernel's file, or a compile
            option or constant: BLOCK_M=64; repeatable.
        --failed: Those that failed, or do not fit the GPU.
        --since WHEN: Recorded since: 30min, 2h, 3d, 2026-01-31, ….
        --last: Those of the last recording.
    """

    kernel: str | None = None
    where: list[str] | None = None
    failed: bool = False
    since: str | None = None
    last: bool = False

    def chosen(self, rows: Sequence[StoredRow], last: set[str]) -> list[StoredRow]:
        """The rows that fit, in their order; raises UsageError for a value that is none.

        `last`: the names of the last recording's files.
        """
        pairs = [_pair(text) for text in self.where or ()]
        targets = [_target(value) for key, value in pairs if key == "target"]
        files = [value for key, value in pairs if key == "file"]
        parts = {(key, value) for key, value in pairs if key not in ("target", "file")}
        since = None if self.since is None else _moment(self.since)

        def fits(row: StoredRow) -> bool:
            one, target = row.facts, row.facts.target
            return (
                (self.kernel is None or self.kernel in one.name or fnmatchcase(one.name, self.kernel))
                and all(part in one.file for part in files)
                and (not targets or any(wanted in (str(target), target.backend) for wanted in targets))
                and parts <= one.parts.items()
                and (not self.failed or one.status == "failed")
                and (since is None or _timestamp(one.date) >= since)
                and (not self.last or row.file in last)
            )

        return [row for row in rows if fits(row)]

    def described(self) -> Iterator[str]:
        """The filters that are given, as they are written."""
        if self.kernel is not None:
            yield self.kernel
        yield from (f"--where {text}" for text in self.where or ())
        if self.since is not None:
            yield f"--since {self.since}"
        yield from (name for name, given in (("--failed", self.failed), ("--last", self.last)) if given)


def ls(cache: bool = False, folder: Path | None = None, *, filters: Filters, to: Destination) -> int:
    """List the recent captures, or those of a collection, the newest first.

    Options:
        --cache: List Triton's cache (TRITON_CACHE_DIR, or ~/.triton/cache).
        folder = --cache-dir DIR: List the cache in this folder.
    """
    if cache or folder is not None:
        if given := ", ".join(filters.described()):
            raise UsageError(f"{given}: Triton's cache is listed whole; leave this out.")
        _list_cache(folder, to)
        return 0
    last: set[str] = set()
    name, _, wanted = (filters.kernel or "").partition("::")
    if (collection := collection_at(name)) is not None:
        filters = replace(filters, kernel=None)
        every = collection_rows(collection, entries_of(collection, name, wanted))
        last = {row.file for row in every if row.recording == every[0].recording}
    else:
        store = CaptureStore()
        every = [replace(row, file=str(store.folder / row.file)) for row in store.rows()]
        with suppress(CaptureNotFound):
            last = {str(store.folder / row.file) for row in store.last_recording()} if filters.last else last
        if store.missing:
            say(f"Nothing is kept: {store.missing}")
    rows = _by_graph(filters.chosen(every, last))
    none = "No capture is stored. Record one: irscope record FILE."
    if every:
        none = f"None of the {len(every)} captures matches {', '.join(filters.described())}."
    to.emit(partial(rows_json, rows), partial(rows_text, rows) if rows else lambda width, color: none)
    return 0


def collection_rows(collection: Collection | PackedCollection, entries: Sequence[StoredRow]) -> list[StoredRow]:
    """The captures of a collection, the newest first."""
    rows = [replace(row, file=collection.place_of(row)) for row in entries]
    return sorted(rows, key=lambda row: row.facts.date, reverse=True)


def rows_text(rows: Sequence[StoredRow], width: int | None, color: bool) -> str:
    """Rows as a table, with what the variants of a kernel differ in."""

    telling, cells = telling_columns([((row.facts.name, row.facts.target), row.facts.parts) for row in rows])
    columns = ["id", "kernel", "target", *telling, "status", "plan", "Triton", "age", "KiB"]
    listed = [row.facts for row in rows]
    lines = [
        [
            one.id,
            one.name,
            str(one.target),
            *own,
            f"{one.status} ({one.failure})" if one.failure else one.status,
            one.plan,
            one.triton_version,
            _age(one.date),
            row.bytes // 1024,
        ]
        for row, one, own in zip(rows, listed, cells, strict=True)
    ]
    if any(one.origin for one in listed):
        columns.append("from")
        lines = [[*line, Environment(origin=one.origin).origin_text] for line, one in zip(lines, listed, strict=True)]
    if any(one.graphs for one in listed):
        columns.append("graph")
        lines = [[*line, ", ".join(one.graphs)] for line, one in zip(lines, listed, strict=True)]
    return table(columns, lines, width=width, color=color)


def rows_json(rows: Sequence[StoredRow]) -> list[dict[str, Any]]:
    """Rows as JSON."""
    names = (
        "id=facts.id kernel=facts.name kernel_file=facts.file line=facts.line target=facts.target status=facts.status "
        "failure=facts.failure plan=facts.plan parts=facts.parts triton=facts.triton_version date=facts.date "
        "recording origin=facts.origin file bytes graphs=facts.graphs"
    )
    return [picked(row, names) for row in rows]


def _target(text: str) -> str:
    if text in ("cuda", "hip"):
        return text
    try:
        return str(Target.parse(text))
    except TargetError as error:
        raise UsageError(f"--where target={text}: write a backend (cuda, hip) or a target. {error}") from error


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--where {text!r}: write KEY=VALUE, such as target=hip, num_warps=8 or BLOCK_M=64.")
    return name.strip(), value.strip()


def _moment(text: str) -> float:
    if found := _AGO.fullmatch(text.strip()):
        now = datetime.datetime.now(datetime.timezone.utc).timestamp()
        return now - float(found[1]) * _UNITS[found[2]]
    try:
        # Without a zone it is the user's own time.
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise UsageError(f"--since {text!r}: write 30min, 2h, 3d, or a date such as 2026-01-31.") from None


def _timestamp(date: str) -> float:
    try:
        return datetime.datetime.fromisoformat(date).timestamp()
    except ValueError:
        return 0.0


def _age(date: str) -> str:
    """`5 min` since a UTC date in ISO 8601; empty for a text that is none."""
    if not (then := _timestamp(date)):
        return ""
    seconds = time.time() - then
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _by_graph(rows: Iterable[StoredRow]) -> list[StoredRow]:
    """The rows with those of one graph of one recording together, where the first of them stands."""
    groups: dict[Any, list[StoredRow]] = {}
    for number, row in enumerate(rows):
        one = row.facts
        graph = one.graphs[0] if one.graphs else number
        groups.setdefault((one.date, one.target, graph), []).append(row)
    return [row for group in groups.values() for row in group]


def _cache_folder() -> Path:
    """Where Triton keeps its cache: `$TRITON_CACHE_DIR`, else `$TRITON_HOME/.triton/cache`, else the home folder's."""
    if folder := os.environ.get("TRITON_CACHE_DIR"):
        return Path(folder)
    home = os.environ.get("TRITON_HOME")
    return Path(home or os.path.expanduser("~")) / ".triton" / "cache"


def _list_cache(folder: Path | None, to: Destination) -> None:
    """Print the variants in a cache, the newest first; None for Triton's own cache."""

    chosen = _cache_folder() if folder is None else folder
    if folder is not None and not chosen.is_dir():
        raise CaptureNotFound(f"{str(folder)!r} is not a folder.")
    rows = [_row(entry) for entry in list_cache(chosen)]
    columns = ["variant", "kernel", "target", "warps", "stages", "CTAs", "IR", "Triton", "age", "KiB"]
    cells = [
        [
            row["variant"][:12],
            row["kernel"],
            row["target"] or "–",
            *("–" if row[name] is None else row[name] for name in ("num_warps", "num_stages", "num_ctas")),
            " ".join(row["stages"]),
            row["triton"],
            _age(row["date"]),
            row["bytes"] // 1024,
        ]
        for row in rows
    ]
    none = f"Triton's cache {chosen} holds no kernel."
    hint = f"\nirscope import {chosen} --variant VARIANT makes a capture of one.\n"
    to.emit(lambda: rows, lambda width, color: table(columns, cells, width=width, color=color) + hint if rows else none)


def _row(entry: CacheEntry) -> dict[str, Any]:
    names = "variant kernel target num_warps num_stages num_ctas hash triton=triton_version stages bytes"
    return picked(entry, names, date=utc_date(entry.modified), folder=str(entry.folder))
