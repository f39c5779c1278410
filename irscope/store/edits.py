"""The names of variants that were edited, and the folder with their texts."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from pathlib import Path

from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.store.disk import default_folder
from irscope.store.recent import EDIT, CaptureStore

# wider   coalesce-1   canonicalizer#2-1
_NAME = re.compile(r"[A-Za-z_][\w#-]{0,63}")
_ID = re.compile(r"[0-9a-f]{4,16}")


def edits_folder() -> Path:
    """Where texts are edited; they stay there. Raises OSError where there is no place for it."""
    return default_folder() / "edits"


def free_name(place: str) -> str:
    """The name of a place and the first number that is not taken."""
    store, folder = CaptureStore(), edits_folder()
    taken = {name for row in store.rows() for kind, name in row.facts.origin if kind == EDIT}
    taken |= {path.stem for path in folder.glob("*")} if folder.is_dir() else set()
    return next(name for number in count(1) if (name := f"{place}-{number}") not in taken)


def named(variant: Capture, name: str, place: str) -> tuple[str, Capture]:
    """(a variant's name, the variant with its names): one that was made before keeps those that it has.

    `name`: as it was asked for; empty for a name that it has, or else the place and a number.
    """
    store = CaptureStore()
    path = store.path_of(variant)
    origin = variant.environment.origin
    if path.is_file():
        origin += tuple(row for row in store.load(str(path)).environment.origin if row[0] == EDIT)
    name = name or next((known for kind, known in origin if kind == EDIT), "") or free_name(place)
    if (EDIT, name) not in origin:
        origin += ((EDIT, name),)
    return name, replace(variant, environment=replace(variant.environment, origin=origin))


def refuse_taken(name: str) -> None:
    """Raise UsageError for a name that another capture has, or that a command would take for something else."""
    if not _NAME.fullmatch(name) or _ID.fullmatch(name) or name == "last":
        raise UsageError(
            f"--name {name!r}: write letters, digits, _, # and -, beginning with a letter, such as wider-loads; not "
            "'last', and nothing that reads as an id."
        )
    if (path := CaptureStore().named(name)) is not None:
        raise UsageError(f"--name {name!r} is taken by {path.name}: give another.")
