"""The captures of a subject that are there already: a file, one of the store, or those of a collection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.cli.output.talk import say
from irscope.cli.subject.endings import note_incomplete
from irscope.errors import CaptureFormatError, CaptureNotFound, RecordingError, UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.store.file import SUFFIX, is_packed
from irscope.store.recent import CaptureStore
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures, StoredRow, chosen, differences

if TYPE_CHECKING:
    from irscope.store.collection import Collection, PackedCollection

__all__ = [
    "collection_at",
    "entries_of",
    "is_ambiguous",
    "is_capture",
    "only_one",
    "readable",
    "refuse_empty",
    "stored_capture",
    "stored_captures",
]

_MOST_LISTED = 16


def is_capture(file: str) -> bool:
    """Whether a subject is a capture, or several: a .irscope file, an id, `last`, or a collection."""
    path = Path(file)
    if path.suffix == SUFFIX or collection_at(path) is not None:
        return True
    return not path.exists() and not path.suffix and "/" not in file and file[:1] != "-"


def refuse_empty(subject: str | None) -> None:
    """Raise UsageError for an argument that is there, and empty: it is no wish for the capture recorded last."""
    if subject == "":
        raise UsageError("'' names no file and no capture: is a variable unset? Left out, it is the last recording.")


def stored_captures(subject: str | None) -> StoredCaptures:
    """The captures that a subject names without compiling anything, at least one.

    Of a collection, and of `last`, the last complete recording, `::KERNEL` names those of a kernel, of several by a
    pattern, or one by its id. Raises CaptureNotFound, and RecordingError where the kernel is not among them.
    """
    refuse_empty(subject)
    file, _, kernel = (subject or "last").partition("::")
    if (collection := collection_at(file)) is not None:
        return collection.captures(entries_of(collection, file, kernel))
    store = CaptureStore()
    if file == "last" and not Path(file).is_file():
        shelf = Shelf()
        return StoredCaptures(
            CaptureFile.listed(shelf, row.facts, store.folder / row.file)
            for row in _chosen(store.last_recording(), "the last recording", kernel)
        )
    capture = store.load(file)
    if kernel and capture.name != kernel:
        raise RecordingError(f"{file} holds no kernel {kernel!r}.{did_you_mean(kernel, [capture.name])}")
    return StoredCaptures.of([capture])


def readable(file: CaptureFile) -> Capture | None:
    """The capture of one file of many; None for one that cannot be read: it is named, and the exit code is 1."""
    try:
        return file.load()
    except (CaptureFormatError, CaptureNotFound) as error:
        name = f"{file.facts.name} ({file.facts.id[:8]})"
        note_incomplete(name)
        say(f"{name} is left out: {error}")
        return None


def stored_capture(subject: str | None) -> Capture:
    """The one capture that a subject names; raises UsageError where it names several."""
    return only_one(stored_captures(subject), subject)


def only_one(captures: StoredCaptures, subject: str | None) -> Capture:
    """The only one of several captures; raises UsageError that lists them, and what tells them apart."""
    if len(captures) == 1:
        return captures[0]
    file = (subject or "last").partition("::")[0]
    facts = [one.facts for one in captures.files]
    rows = [
        f"  {file}::{one.id}  {one.name} ({one.target}) {how}".rstrip()
        for one, how in zip(facts, differences(facts), strict=True)
    ]
    more = [f"  and {len(rows) - _MOST_LISTED} more"] if len(rows) > _MOST_LISTED else []
    listed = "\n".join([*rows[:_MOST_LISTED], *more])
    raise UsageError(f"{subject} names {len(rows)} captures, and one is needed:\n{listed}")


def is_ambiguous(captures: Sequence[Capture], subject: str | None) -> bool:
    """Whether one capture is to be chosen from several of a collection, in which no one is the first."""
    return len(captures) > 1 and collection_at((subject or "last").partition("::")[0]) is not None


def collection_at(path: str | Path) -> Collection | PackedCollection | None:
    """The collection that a path names, a folder or a file; None if it is none."""
    # Most subjects are neither, and need nothing of collections.
    if os.path.isdir(path):
        from irscope.store.collection import Collection, is_collection

        return Collection(path) if is_collection(path) else None
    if Path(path).suffix == SUFFIX:
        if not is_packed(path):
            return None
        from irscope.store.collection import PackedCollection

        return PackedCollection(path)
    return None


def entries_of(collection: Collection | PackedCollection, name: str, wanted: str) -> Sequence[StoredRow]:
    """Those of its captures that are wanted, all for an empty text; raises where there is none.

    `name`: of the collection, as it was given.
    """
    entries = collection.entries()
    for problem in collection.unreadable:
        say(f"left out: {problem}")
        note_incomplete(problem)
    if not entries:
        raise CaptureNotFound(f"{name!r} holds no capture. Record some: irscope collect SCRIPT -o {name}")
    return _chosen(entries, name, wanted)


def _chosen(rows: Sequence[StoredRow], name: str, wanted: str) -> Sequence[StoredRow]:
    """The rows that are wanted, all for an empty text; raises RecordingError where there is none."""
    if found := chosen(rows, wanted) if wanted else rows:
        return found
    near = did_you_mean(wanted, {one.facts.name for one in rows})
    raise RecordingError(f"{name} holds no kernel {wanted!r}, and no capture whose id begins so.{near}")
