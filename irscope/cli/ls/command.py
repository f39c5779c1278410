"""`irscope ls`: lists the recent captures, or the kernels in Triton's own cache."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from irscope.cli import app
from irscope.cli.ls.age import age
from irscope.cli.ls.filters import Filters, with_filters
from irscope.cli.ls.graphs import by_graph
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.talk import say
from irscope.cli.subject.stored import collection_at, entries_of
from irscope.errors import CaptureNotFound, UsageError
from irscope.model.capture import Environment
from irscope.store.recent import CaptureStore
from irscope.store.shelf import StoredRow


@app.command("ls", rich_help_panel="Record and read")
@with_destination
@with_filters
def list_captures(
    cache: Annotated[
        bool, typer.Option("--cache", help="List Triton's cache (TRITON_CACHE_DIR, or ~/.triton/cache).")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--cache-dir", metavar="DIR", help="List the cache in this folder.")
    ] = None,
    *,
    filters: Filters,
    to: Destination,
) -> int:
    """List the recent captures, or those of a collection, the newest first."""
    if cache or folder is not None:
        from irscope.cli.ls.cache import list_cache

        if given := ", ".join(filters.described()):
            raise UsageError(f"{given}: Triton's cache is listed whole; leave this out.")
        list_cache(folder, to)
        return 0
    last: set[str] = set()
    name, _, wanted = (filters.kernel or "").partition("::")
    if (collection := collection_at(name)) is not None:
        entries = entries_of(collection, name, wanted)
        filters = replace(filters, kernel=None)
        every = sorted(
            (replace(row, file=collection.place_of(row)) for row in entries),
            key=lambda row: row.facts.date,
            reverse=True,
        )
        last = {row.file for row in every if row.belongs_to == every[0].belongs_to}
    else:
        store = CaptureStore()
        every = [replace(row, file=str(store.folder / row.file)) for row in store.rows()]
        with suppress(CaptureNotFound):
            last = {str(store.folder / row.file) for row in store.last_recording()} if filters.last else last
        if store.missing:
            say(f"Nothing is kept: {store.missing}")
    rows = by_graph(filters.chosen(every, last))
    none = "No capture is stored. Record one: irscope dump FILE."
    if every:
        none = f"None of the {len(every)} captures fits {', '.join(filters.described())}."
    to.emit(
        lambda: [_as_json(row) for row in rows],
        lambda width, color: _table(rows, width, color) if rows else none,
    )
    return 0


def _table(rows: list[StoredRow], width: int | None, color: bool) -> str:
    from irscope.model.telling import telling_columns
    from irscope.render.text.tables import table

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
            age(one.date),
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


def _as_json(row: StoredRow) -> dict[str, Any]:
    one = row.facts
    return {
        "id": one.id,
        "kernel": one.name,
        "kernel_file": one.file,
        "line": one.line,
        "target": str(one.target),
        "status": one.status,
        "failure": one.failure,
        "plan": one.plan,
        "parts": one.parts,
        "triton": one.triton_version,
        "date": one.date,
        "recording": row.belongs_to,
        "origin": one.origin,
        "file": row.file,
        "bytes": row.bytes,
        "graphs": list(one.graphs),
    }
