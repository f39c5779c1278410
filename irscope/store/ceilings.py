"""What `doctor --gpu` measured of the GPUs of this machine, kept beside the stored captures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from irscope.errors import CaptureFormatError
from irscope.model.evidence import Ceilings
from irscope.store.disk import default_folder, write_atomically
from irscope.store.schema import converted

__all__ = ["load_ceilings", "save_ceilings"]

_NAME = "ceilings.json"


def save_ceilings(measured: Sequence[Ceilings], folder: Path | None = None) -> Path:
    """Keep what was measured, in place of what was there; raises OSError where the folder cannot be written to."""
    path = (folder or default_folder()) / _NAME
    write_atomically(path, json.dumps([asdict(row) for row in measured], indent=2).encode())
    return path


def load_ceilings(folder: Path | None = None) -> tuple[Ceilings, ...]:
    """What was measured last; empty if nothing was, or the file cannot be read."""
    try:
        rows = json.loads(((folder or default_folder()) / _NAME).read_bytes())
        return converted(rows, tuple[Ceilings, ...])
    except (OSError, ValueError, RecursionError, CaptureFormatError):
        return ()
