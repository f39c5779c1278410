"""Stores the captures of a recording as they are completed."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import finalize

from irscope.cli.output.talk import say
from irscope.errors import CaptureFormatError, IrscopeError, UsageError
from irscope.model.capture import Capture
from irscope.store.file import is_worse, load
from irscope.store.recent import CaptureStore
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures

if TYPE_CHECKING:
    from irscope.store.collection import Collection

_told: set[tuple[str, str]] = set()
_FOUND_LATER = ("snapshots", "layouts", "operations", "log")
"""Fields that a capture may lack, and get when something needs them."""


class Keeping:
    """Stores each capture it is given; while it exists, nothing that was stored since is dropped from the store.

    If the store cannot be written, a message says so once, and the recording goes on. `collection`: where each is kept
    too; one that cannot be written ends the recording.
    """

    def __init__(self, store: CaptureStore, collection: Collection | None = None) -> None:
        self._store: CaptureStore | None = store
        self._collection = collection
        self._written: set[Path] = set()
        self._recording = f"{time.time_ns():x}-{os.getpid()}"
        lease = ExitStack()
        lease.enter_context(store.recording())
        finalize(self, lease.close)

    def __call__(self, capture: Capture) -> Path | None:
        """Store a capture, and return its file; one that was stored before keeps its place among the recent ones.

        What is in the collection is stored already: a recording that is killed between the two goes on with `--resume`.
        """
        path = self._stored(capture)
        if self._collection is not None:
            self._collection.add(capture)
        return path

    def _stored(self, capture: Capture) -> Path | None:
        if self._store is None:
            return None
        path = self._store.path_of(capture)
        if is_worse(path, capture):
            return None
        try:
            if path not in self._written or not self._store.update(capture):
                self._store.add(capture, self._recording)
        except OSError as error:
            tell_not_kept(error)
            self._store = None
            return None
        except CaptureFormatError as error:
            say(f"{capture.name} ({capture.target}) is not kept: {error}")
            return None
        self._written.add(path)
        return path

    def adopted(self, ids: Iterable[str]) -> StoredCaptures:
        """Stored captures, by id, as part of this recording."""
        files: list[CaptureFile] = []
        shelf, store = Shelf(lease=self), CaptureStore()
        for path in [store.find(id_) for id_ in ids]:
            capture = load(path)
            from irscope.store.index import note_stored

            note_stored(path, capture, self._recording)
            self._written.add(path)
            files.append(CaptureFile(shelf, capture, path))
        return StoredCaptures(files)

    def put_in_order(self, captures: StoredCaptures) -> None:
        """Give captures that were stored as they were completed the order of their launches."""
        if self._store is not None:
            self._store.put_in_order(
                file.path for file in captures.files if file.path is not None and file.path in self._written
            )


@contextmanager
def kept_captures(*, becomes_last: bool = True, collection: Collection | None = None) -> Generator[Keeping]:
    """An object that stores captures; none is dropped from the store while it, or a capture's file, is referenced.

    `becomes_last`: whether `last` names one of them after the block. `collection`: where each is kept too.
    """
    store = CaptureStore()
    with ExitStack() as stack:
        for path in [] if becomes_last else store.paths()[:1]:
            stack.callback(store.mark_last, path)
        yield Keeping(store, collection)


def refuse_untrusted(capture: Capture, runs: str, how_to_read: str) -> None:
    """Raise UsageError for a capture whose Python text may not be run.

    `runs`: what would run it. `how_to_read`: what shows the text before --trust is given.
    """
    if not capture.environment.is_trusted:
        raise UsageError(
            f"{capture.name} ({capture.id[:8]}) was not recorded here, nor made of what was, and {runs} its Python "
            f"text: read {how_to_read}, then give --trust too (docs/security.md)."
        )


def update_stored(before: Capture, full: Capture) -> None:
    """Write a capture of the store again, of which more is known; if that fails, a message says so.

    A file from elsewhere may bear the id of a stored capture, and differ from it: it is not stored in its place.

    Args:
        before: the capture as it was read.
        full: the same, with what was found out of it here.
    """
    try:
        if _is_stored(before):
            CaptureStore().update(full)
    except OSError as error:
        tell_not_kept(error)
    except CaptureFormatError as error:
        say(f"What was found out of {before.name} is not kept: {error}")


def _is_stored(capture: Capture) -> bool:
    """Whether the store holds all of a capture: its id tells neither its artifacts, nor its Python text."""
    store = CaptureStore()
    try:
        stored = store.load(str(store.path_of(capture)))
    except IrscopeError:
        return False
    held = {item.stage: item.data for item in stored.artifacts}
    return (
        (stored.launch, stored.sources) == (capture.launch, capture.sources)
        and stored.environment.is_trusted == capture.environment.is_trusted
        and all(held.get(item.stage) == item.data for item in capture.artifacts)
        and all(getattr(capture, name) in ((), None, getattr(stored, name)) for name in _FOUND_LATER)
    )


def tell_not_kept(error: OSError) -> None:
    """Print why something could not be stored, once per process for each cause in a store."""
    cause, folder = str(error.strerror or error), error.filename or ""
    if (key := (os.path.dirname(folder), cause)) not in _told:
        _told.add(key)
        say(f"The recording is not kept: {': '.join(filter(None, [folder, cause]))}")
