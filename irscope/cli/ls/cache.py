"""`irscope ls --cache`: lists the compiled kernels in Triton's own cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from irscope.cli.ls.age import age
from irscope.cli.output.destination import Destination
from irscope.errors import CaptureNotFound
from irscope.ir.logs.cache import CacheEntry, utc_date
from irscope.ir.logs.cache import list_cache as entries_of


def _cache_folder() -> Path:
    """Where Triton keeps its cache: `$TRITON_CACHE_DIR`, else `$TRITON_HOME/.triton/cache`, else the home folder's."""
    if folder := os.environ.get("TRITON_CACHE_DIR"):
        return Path(folder)
    home = os.environ.get("TRITON_HOME")
    return Path(home or os.path.expanduser("~")) / ".triton" / "cache"


def list_cache(folder: Path | None, to: Destination) -> None:
    """Print the variants in a cache, the newest first; None for Triton's own cache."""
    from irscope.render.text.tables import table

    chosen = _cache_folder() if folder is None else folder
    if folder is not None and not chosen.is_dir():
        raise CaptureNotFound(f"{str(folder)!r} is not a folder.")
    rows = [_row(entry) for entry in entries_of(chosen)]
    columns = ["variant", "kernel", "target", "warps", "stages", "CTAs", "IR", "Triton", "age", "KiB"]
    cells = [
        [
            row["variant"][:12],
            row["kernel"],
            row["target"] or "–",
            *("–" if row[name] is None else row[name] for name in ("num_warps", "num_stages", "num_ctas")),
            " ".join(row["stages"]),
            row["triton"],
            age(row["date"]),
            row["bytes"] // 1024,
        ]
        for row in rows
    ]
    none = f"Triton's cache {chosen} holds no kernel."
    hint = f"\nirscope import {chosen} --variant VARIANT makes a capture of one.\n"
    to.emit(lambda: rows, lambda width, color: table(columns, cells, width=width, color=color) + hint if rows else none)


def _row(entry: CacheEntry) -> dict[str, Any]:
    return {
        "variant": entry.variant,
        "kernel": entry.kernel,
        "target": None if entry.target is None else str(entry.target),
        "num_warps": entry.num_warps,
        "num_stages": entry.num_stages,
        "num_ctas": entry.num_ctas,
        "hash": entry.hash,
        "triton": entry.triton_version,
        "date": utc_date(entry.modified),
        "stages": list(entry.stages),
        "bytes": entry.bytes,
        "folder": str(entry.folder),
    }
