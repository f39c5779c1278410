"""What `doctor --gpu` measured of the GPUs of this machine, kept beside the stored captures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from irscope.model.ceilings import Ceilings
from irscope.store.file import write_atomically
from irscope.store.recent import default_folder

__all__ = ["load_ceilings", "save_ceilings"]

_NAME = "ceilings.json"


def save_ceilings(measured: Sequence[Ceilings], folder: Path | None = None) -> Path:
    """Keep what was measured, in place of what was there; raises OSError where the folder cannot be written to."""
    path = (folder or default_folder()) / _NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps([asdict(one) for one in measured], indent=2).encode())
    return path


def load_ceilings(folder: Path | None = None) -> tuple[Ceilings, ...]:
    """What was measured last; empty if nothing was, or the file cannot be read."""
    try:
        rows: Any = json.loads(((folder or default_folder()) / _NAME).read_bytes())
        return tuple(
            Ceilings(
                str(row["device"]), str(row["target"]), float(row["bytes_per_s"]),
                tuple((str(name), float(rate)) for name, rate in row["flops_per_s"]), str(row["date"]),
            )
            for row in rows
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return ()
