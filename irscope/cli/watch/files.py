"""The files that a program is made of, and when they change: looked at several times a second, with no dependency.

An editor may write a file in place, or write another one and rename it: a path is looked up anew each time, and one
that is gone for a moment is waited for.
"""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

__all__ = ["Watched", "program_files"]

_INTERVAL_S = 0.2
_MOST_FILES = 2000
_Stamp = tuple[int, int, int]


def program_files(path: Path) -> tuple[Path, ...]:
    """A Python file and the modules beside it that it imports, and these import; other files alone."""
    found: dict[Path, None] = {}
    waiting = [path.absolute()]
    while waiting and len(found) < _MOST_FILES:
        file = waiting.pop()
        if file in found:
            continue
        found[file] = None
        if file.suffix == ".py":
            waiting += _imported_beside(file, path.absolute().parent)
    return tuple(found)


def _imported_beside(file: Path, root: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_text("utf-8", "replace"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        # Half written, or not Python: what it imported is known from before.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_files(root, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = root if not node.level else file.parents[min(node.level, len(file.parents)) - 1]
            names = [node.module or "", *(".".join(filter(None, (node.module, one.name))) for one in node.names)]
            for name in names:
                yield from _module_files(base, name)


def _module_files(root: Path, name: str) -> Iterator[Path]:
    """The files of a module and of the packages around it, those that are there."""
    folder = root
    for part in filter(None, name.split(".")):
        for file in (folder / f"{part}.py", folder / part / "__init__.py"):
            if file.is_file():
                yield file
        folder /= part


class Watched:
    """Files, and how they were when they were looked at last."""

    def __init__(self, *, interval_s: float = _INTERVAL_S, sleep: Callable[[float], None] = time.sleep) -> None:
        self._interval_s = interval_s
        self._sleep = sleep
        self._stamps: dict[Path, _Stamp | None] = {}

    def look(self, files: Iterable[Path]) -> None:
        """Watch these files from now on, as they are now; those that were watched before stay as they were seen."""
        self._stamps = {file: self._stamps[file] if file in self._stamps else _stamp(file) for file in files}

    def wait(self) -> tuple[Path, ...]:
        """Wait until something was saved, and is whole; returns what has changed."""
        while True:
            changed = self._changed()
            # Saved in several writes, or by another editor's rename: until nothing more happens.
            while changed:
                self._sleep(self._interval_s)
                again = {file: _stamp(file) for file in self._stamps}
                if again == changed and all(again[file] is not None for file in self._differing(again)):
                    names = self._differing(again)
                    self._stamps = again
                    if names:
                        return names
                    break
                changed = again
            self._sleep(self._interval_s)

    def _changed(self) -> dict[Path, _Stamp | None] | None:
        now = {file: _stamp(file) for file in self._stamps}
        return now if now != self._stamps else None

    def _differing(self, now: dict[Path, _Stamp | None]) -> tuple[Path, ...]:
        return tuple(file for file in now if now[file] != self._stamps[file])


def _stamp(file: Path) -> _Stamp | None:
    """What changes when a file is saved; None for one that is not there."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
