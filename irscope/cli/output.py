"""Writes what a command made: to a file, to a pager on a terminal, or plainly into a pipe."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from irscope.capture import Artifact, StageKind, stage_named
from irscope.errors import UsageError
from irscope.store import write_atomically


def colored(asked: bool | None) -> bool:
    """Whether standard output gets colour."""
    if asked is not None:
        return asked
    from irscope.render.terminal import use_color

    return use_color(sys.stdout, os.environ)


def width() -> int:
    """Columns of the terminal; 200 in a pipe, where nothing needs to be cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 200


def emit(text: str, output: Path | None = None) -> None:
    """Print a text, through the pager on a terminal, or write it to a file."""
    text = text if text.endswith("\n") or not text else text + "\n"
    if output is not None:
        write_atomically(output, text.encode("utf-8", "surrogateescape"))
    elif sys.stdout.isatty():
        from irscope.render.terminal import page

        page(text, sys.stdout)
    else:
        sys.stdout.write(text)


def emit_json(value: Any, output: Path | None = None) -> None:
    """Print a value as JSON."""
    emit(json.dumps(value, indent=2, default=str), output)


def emit_artifact(artifact: Artifact, text: str | None, color: bool | None, output: Path | None) -> None:
    """Print a text stage highlighted, or write a stage, text or binary, to a file."""
    if isinstance(artifact.data, bytes):
        if output is None:
            raise UsageError(f"stage {artifact.stage} is a binary of {len(artifact.data)} bytes: -o FILE writes it.")
        write_atomically(output, artifact.data)
        return
    shown = artifact.data if text is None else text
    paint = output is None and colored(color)
    emit(paint_text(shown, stage_named(artifact.stage).kind, paint), output)


def paint_text(text: str, kind: StageKind, color: bool) -> str:
    """A text of a stage, highlighted where colour is wanted."""
    if not color:
        return text
    from irscope.render.terminal import highlight

    return highlight(text, kind, color=color)
