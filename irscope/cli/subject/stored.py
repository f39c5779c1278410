"""The captures of a subject that are there already: a file, one of the store, or those of a collection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from irscope.cli.output.talk import say
from irscope.errors import CaptureNotFound, RecordingError, UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.store.facts import differences
from irscope.store.file import SUFFIX
from irscope.store.recent import CaptureStore
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures

__all__ = ["is_ambiguous", "is_capture", "only_one", "stored_capture", "stored_captures"]

_MOST_LISTED = 16


def is_capture(file: str) -> bool:
    """Whether a subject is a capture, or several: a .irscope file, an id, `last`, or a collection."""
    path = Path(file)
    if path.suffix == SUFFIX or _is_collection(path):
        return True
    return not path.exists() and not path.suffix and "/" not in file and file[:1] != "-"


def stored_captures(subject: str | None, *, last_is_whole: bool = False) -> StoredCaptures:
    """The captures that a subject names without compiling anything, at least one.

    `last_is_whole`: `last` is every capture of the last recording, in its order, not its last one alone.
    Of a collection `FOLDER::KERNEL` names those of a kernel, of several by a pattern, or one by its id. Raises
    CaptureNotFound, and RecordingError where the kernel is not among them.
    """
    file, _, kernel = (subject or "last").partition("::")
    if _is_collection(file):
        return _of_collection(file, kernel)
    store = CaptureStore()
    if last_is_whole and file == "last" and not kernel and not Path(file).is_file():
        shelf = Shelf()
        return StoredCaptures(
            CaptureFile.listed(shelf, row.facts, store.folder / row.name) for row in store.last_recording()
        )
    capture = store.load(file)
    if kernel and capture.name != kernel:
        raise RecordingError(f"{file} launched no kernel {kernel!r}.{did_you_mean(kernel, [capture.name])}")
    return StoredCaptures.of([capture])


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
    return len(captures) > 1 and _is_collection((subject or "last").partition("::")[0])


def _is_collection(path: str | Path) -> bool:
    if not os.path.isdir(path):
        return False
    # Most subjects are no folders, and need nothing of collections.
    from irscope.store.collection import is_collection

    return is_collection(path)


def _of_collection(folder: str, wanted: str) -> StoredCaptures:
    from irscope.store.collection import Collection, chosen_entries

    collection = Collection(folder)
    entries = collection.entries()
    for problem in collection.unreadable:
        say(problem)
    if not entries:
        raise CaptureNotFound(f"{folder!r} holds no capture. Record some: irscope collect SCRIPT -o {folder}")
    chosen = chosen_entries(entries, wanted) if wanted else entries
    if not chosen:
        near = did_you_mean(wanted, {one.facts.name for one in entries})
        raise RecordingError(f"{folder} holds no kernel {wanted!r}, and no capture whose id begins so.{near}")
    return collection.captures(chosen)
