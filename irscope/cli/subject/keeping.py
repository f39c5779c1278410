"""Stores the captures of a recording as they are completed."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import finalize

from irscope.cli.output.talk import say
from irscope.cli.subject.endings import note_incomplete
from irscope.errors import CaptureFormatError, UsageError
from irscope.model.capture import Capture
from irscope.record.variants.completing import tell_not_kept
from irscope.store.file import is_worse, load
from irscope.store.recent import CaptureStore
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures

if TYPE_CHECKING:
    from irscope.store.collection import Collection


class Keeping:
    """Stores each capture it is given; while it exists, nothing that was stored since is dropped from the store.

    If the store cannot be written, a message says so once, and the recording goes on. `collection`: where each is kept
    too; one that cannot be written ends the recording.
    """

    def __init__(self, store: CaptureStore, collection: Collection | None = None) -> None:
        self._store: CaptureStore | None = store
        self._collection = collection
        self._written: dict[str, Path] = {}
        """The files of this recording's captures, by id."""
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
            # The earlier one of the same compile stays.
            self._written[capture.id] = path
            return None
        try:
            if capture.id not in self._written or not self._store.update(capture):
                self._store.add(capture, self._recording)
        except OSError as error:
            self._refused(error)
            return None
        except CaptureFormatError as error:
            say(f"{capture.name} ({capture.target}) is not kept: {error}")
            return None
        self._written[capture.id] = path
        return path

    def _refused(self, error: OSError) -> None:
        tell_not_kept(error, say)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            # What was asked for is not there: a folder that never could be written to is another matter.
            note_incomplete("the store is full")
        self._store = None

    def adopted(self, ids: Iterable[str]) -> StoredCaptures:
        """Stored captures, by id, as part of this recording."""
        files: list[CaptureFile] = []
        shelf, store = Shelf(lease=self), CaptureStore()
        for path in [store.find(id_) for id_ in ids]:
            capture = load(path)
            from irscope.store.recent import note_stored

            note_stored(path, capture, self._recording)
            self._written[capture.id] = path
            files.append(CaptureFile(shelf, capture, path))
        return StoredCaptures(files)

    def put_in_order(self, captures: StoredCaptures) -> None:
        """Give captures that were stored as they were completed the order of their launches."""
        self._written = {file.id: self._written[file.id] for file in captures.files if file.id in self._written}

    def complete(self) -> None:
        """Make this recording the one that `last` names."""
        if self._store is not None and self._written:
            try:
                self._store.complete([*self._written.values()])
            except OSError as error:
                self._refused(error)


@contextmanager
def kept_captures(*, becomes_last: bool = True, collection: Collection | None = None) -> Generator[Keeping]:
    """An object that stores captures; none is dropped from the store while it, or a capture's file, is referenced.

    `becomes_last`: whether `last` names them after the block, unless an exception, such as an interruption, ends it.
    `collection`: where each is kept too.
    """
    keep = Keeping(CaptureStore(), collection)
    yield keep
    if becomes_last:
        keep.complete()


def refuse_untrusted(capture: Capture, runs: str, how_to_read: str) -> None:
    """Raise UsageError for a capture whose Python text may not be run.

    `runs`: what would run it. `how_to_read`: what shows the text before --trust is given.
    """
    if not capture.environment.is_trusted:
        raise UsageError(
            f"{capture.name} ({capture.id[:8]}) was not recorded here, nor made of what was, and {runs} its Python "
            f"text: read {how_to_read}, then give --trust too (docs/security.md)."
        )
