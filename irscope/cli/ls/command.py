"""`irscope ls`: lists the recent captures, or the kernels in Triton's own cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from irscope.cli import app
from irscope.cli.ls.age import age
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.talk import say
from irscope.model.capture import Environment
from irscope.store.recent import CaptureStore


@app.command("ls", rich_help_panel="Record and read")
@with_destination
def list_captures(
    cache: Annotated[
        bool, typer.Option("--cache", help="List Triton's cache (TRITON_CACHE_DIR, or ~/.triton/cache).")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--cache-dir", metavar="DIR", help="List the cache in this folder.")
    ] = None,
    *,
    to: Destination,
) -> int:
    """List the recent captures, the newest first."""
    from irscope.render.text.tables import table

    if cache or folder is not None:
        from irscope.cli.ls.cache import list_cache

        list_cache(folder, to)
        return 0
    store = CaptureStore()
    rows = [_row(path, manifest) for path, manifest in store.summaries()]
    if store.missing:
        say(f"Nothing is kept: {store.missing}")
    columns = ["id", "kernel", "target", "status", "plan", "Triton", "age", "KiB"]
    cells = [
        [
            row["id"],
            row["kernel"],
            row["target"],
            f"{row['status']} ({row['failure']})" if row["failure"] else row["status"],
            row["plan"],
            row["triton"],
            age(row["date"]),
            row["bytes"] // 1024,
        ]
        for row in rows
    ]
    if any(row["origin"] for row in rows):
        columns.append("from")
        for cell, row in zip(cells, rows, strict=True):
            cell.append(Environment(origin=row["origin"]).origin_text)
    none = "No capture is stored. Record one: irscope dump FILE."
    to.emit(lambda: rows, lambda width, color: table(columns, cells, width=width, color=color) if rows else none)
    return 0


def _row(path: Path, manifest: dict[str, Any] | Any) -> dict[str, Any]:
    environment = manifest.get("environment", {})
    return {
        "id": manifest.get("id", ""),
        "kernel": manifest.get("name", ""),
        "target": manifest.get("target", ""),
        "status": manifest.get("status", ""),
        "failure": cast("dict[str, Any]", manifest.get("failure") or {}).get("kind", ""),
        "plan": manifest.get("plan", ""),
        "triton": environment.get("triton_version", ""),
        "date": environment.get("date", ""),
        "origin": tuple((str(row[0]), str(row[1])) for row in environment.get("origin", ()) if len(row) == 2),
        "file": str(path),
        "bytes": path.stat().st_size,
    }
