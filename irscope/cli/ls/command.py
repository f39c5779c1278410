"""`irscope ls`: lists the recent captures, or the kernels in Triton's own cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from irscope.cli import app
from irscope.cli.ls.age import age
from irscope.cli.ls.filters import Filters, with_filters
from irscope.cli.ls.graphs import by_graph
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.talk import say
from irscope.errors import UsageError
from irscope.model.capture import Environment
from irscope.store.index import StoredRow
from irscope.store.recent import CaptureStore


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
    """List the recent captures, the newest first."""
    if cache or folder is not None:
        from irscope.cli.ls.cache import list_cache

        if given := ", ".join(filters.described()):
            raise UsageError(f"{given}: Triton's cache is listed whole; leave this out.")
        list_cache(folder, to)
        return 0
    store = CaptureStore()
    every = store.rows()
    rows = by_graph(filters.chosen(every))
    if store.missing:
        say(f"Nothing is kept: {store.missing}")
    none = "No capture is stored. Record one: irscope dump FILE."
    if every:
        none = f"None of the {len(every)} stored captures fits {', '.join(filters.described())}."
    to.emit(
        lambda: [_as_json(store, row) for row in rows],
        lambda width, color: _table(rows, width, color) if rows else none,
    )
    return 0


def _table(rows: list[StoredRow], width: int | None, color: bool) -> str:
    from irscope.model.telling import telling_columns
    from irscope.render.text.tables import table

    telling, cells = telling_columns([((row.kernel, row.target), row.parts) for row in rows])
    columns = ["id", "kernel", "target", *telling, "status", "plan", "Triton", "age", "KiB"]
    lines = [
        [
            row.id,
            row.kernel,
            row.target,
            *own,
            f"{row.status} ({row.failure})" if row.failure else row.status,
            row.plan,
            row.triton,
            age(row.date),
            row.size // 1024,
        ]
        for row, own in zip(rows, cells, strict=True)
    ]
    if any(row.origin for row in rows):
        columns.append("from")
        lines = [[*line, Environment(origin=row.origin).origin_text] for line, row in zip(lines, rows, strict=True)]
    if any(row.graphs for row in rows):
        columns.append("graph")
        lines = [[*line, ", ".join(row.graphs)] for line, row in zip(lines, rows, strict=True)]
    return table(columns, lines, width=width, color=color)


def _as_json(store: CaptureStore, row: StoredRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "kernel": row.kernel,
        "kernel_file": row.file,
        "line": row.line,
        "target": row.target,
        "status": row.status,
        "failure": row.failure,
        "plan": row.plan,
        "parts": row.parts,
        "triton": row.triton,
        "date": row.date,
        "recording": row.belongs_to,
        "origin": row.origin,
        "file": str(store.folder / row.name),
        "bytes": row.size,
        "graphs": list(row.graphs),
    }
