"""Captures that are kept for the next time, each under a key of its own, in a folder for what they are of."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from irscope import __version__
from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Capture, Failure
from irscope.store.disk import cannot_write, default_folder
from irscope.store.file import SUFFIX, load, save

__all__ = ["LIMIT_BYTES", "KeptCaptures", "digest", "lasts"]

LIMIT_BYTES = 256 << 20
"""What all of them may take before the folders that were used longest ago are dropped."""

_LASTING_FAILURES = ("parse", "pass", "compile", "assembler", "fit", "abort")


def digest(text: str) -> str:
    """The name of a file or folder for a key."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def lasts(failure: Failure | None) -> bool:
    """Whether the next try would end the same: not where time ran out, or the machine's memory."""
    return failure is None or (failure.kind in _LASTING_FAILURES and "SIGKILL" not in failure.message)


class KeptCaptures:
    """The captures of one identity (of a capture, of the compiler) and of this irscope.

    Where nothing can be written there, they are kept in another folder, for as long as it lives.
    """

    def __init__(self, identity: Sequence[str], otherwise: Path, *, fresh: bool = False) -> None:
        """`fresh`: forget what is kept."""
        self._otherwise = otherwise
        self.not_kept: OSError | None = None
        """Why they are not kept for the next time."""
        try:
            everything = default_folder() / "variants"
            self.folder = everything / digest(json.dumps([*identity, __version__]))
            if fresh:
                shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            os.utime(self.folder)
        except OSError as error:
            self._keep_for_now(error)
        else:
            _prune(everything, keep=self.folder)

    def _keep_for_now(self, error: OSError) -> None:
        self.not_kept = error if error.errno is None else cannot_write(error, self.folder.parent)
        self.folder = self._otherwise

    def path_of(self, key: str) -> Path:
        """Where the capture of a key is kept, or would be."""
        return self.folder / f"{digest(key)}{SUFFIX}"

    def load(self, key: str) -> Capture | None:
        """The capture of a key as the last time left it, or None."""
        try:
            return load(self.path_of(key))
        except (CaptureNotFound, CaptureFormatError):
            return None

    def save(self, key: str, capture: Capture) -> None:
        """Keep a capture, if the next time would give the same."""
        if not lasts(capture.failure):
            return
        try:
            save(capture, self.path_of(key))
        except OSError as error:
            if self.not_kept is not None:
                raise
            self._keep_for_now(error)
            save(capture, self.path_of(key))


def _prune(everything: Path, keep: Path) -> None:
    total = 0
    # Another process may drop a folder at the same time.
    with contextlib.suppress(OSError):
        for folder in sorted(everything.iterdir(), key=lambda one: one.stat().st_mtime_ns, reverse=True):
            total += sum(file.stat().st_size for file in folder.glob(f"*{SUFFIX}"))
            if total > LIMIT_BYTES and folder != keep:
                shutil.rmtree(folder, ignore_errors=True)
