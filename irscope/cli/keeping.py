"""Stores the captures of a recording while it goes on."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from irscope.capture import Capture
from irscope.errors import CaptureFormatError
from irscope.recent import CaptureStore
from irscope.store import read_manifest


class Keeping:
    """Stores each capture it is given; one that is as its file is already is not written again.

    Where the store cannot be written to, that is said once: what was recorded is there all the same.
    """

    def __init__(self, store: CaptureStore | None) -> None:
        self._store = store
        self._held: dict[Path, Capture] = {}
        """What was stored last in each file."""

    def __call__(self, capture: Capture) -> None:
        """Store a capture; one that was stored before keeps its place among the recent ones."""
        if self._store is None:
            return
        path = self._store.path_of(capture)
        if self._held.get(path) == capture or self._is_worse(path, capture):
            return
        try:
            if path not in self._held or not self._store.update(capture):
                self._store.add(capture)
        except OSError as error:
            _warn(error)
            self._store = None
        self._held[path] = capture

    def _is_worse(self, path: Path, capture: Capture) -> bool:
        """Whether it was interrupted, and an earlier recording of the same compile was not."""
        if capture.failure is None or capture.failure.kind != "interrupt" or not path.is_file():
            return False
        try:
            return read_manifest(path).get("status") == "ok"
        except CaptureFormatError:
            return False


@contextmanager
def kept_captures(*, becomes_last: bool = True) -> Generator[Keeping]:
    """What stores captures until the end of the block; none of them is dropped from the store meanwhile.

    `becomes_last`: whether `last` names one of them from then on.
    """
    with ExitStack() as stack:
        store = None
        try:
            store = CaptureStore()
        except OSError as error:
            _warn(error)
        if store is not None:
            stack.enter_context(store.recording())
            for path in [] if becomes_last else store.paths()[:1]:
                stack.callback(store.mark_last, path)
        yield Keeping(store)


def _warn(error: OSError) -> None:
    told = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    print(f"What is recorded is not kept: {told}", file=sys.stderr)
