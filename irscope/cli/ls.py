"""`irscope ls`: the captures recorded of late, or what lies in Triton's own cache."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from irscope.cli import app, options
from irscope.cli.output import colored, emit, emit_json, width
from irscope.recent import CaptureStore


@app.command("ls", rich_help_panel="Record and read")
def list_captures(
    cache: Annotated[
        bool, typer.Option("--cache", help="List Triton's cache (~/.triton/cache, or TRITON_CACHE_DIR).")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--cache-dir", metavar="DIR", help="A cache elsewhere; implies --cache.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
) -> None:
    """List the recent captures, the newest first."""
    from irscope.render.terminal import table

    if cache or folder is not None:
        from irscope.cli.cache import list_cache

        list_cache(folder, as_json, color)
        return
    rows = [_row(path, manifest) for path, manifest in CaptureStore().summaries()]
    if as_json:
        emit_json(rows)
        return
    if not rows:
        emit("No capture is stored. Record one: irscope dump FILE.")
        return
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
    emit(table(columns, cells, width=width(), color=colored(color)), painted=colored(color))


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
        "file": str(path),
        "bytes": path.stat().st_size,
    }


def age(date: str) -> str:
    """`5 min` since a UTC date in ISO 8601; empty for a text that is none."""
    try:
        seconds = time.time() - datetime.datetime.fromisoformat(date).timestamp()
    except ValueError:
        return ""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
