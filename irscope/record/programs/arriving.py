"""What a Python process that a recorded program starts does at once: little, as most of them import no Triton."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from irscope.record.process.meeting import DRY_VARIABLE, announce
from irscope.record.virtual.after_import import spec_then

__all__ = ["take_part"]

_WATCHED = ("triton", "torch")


def take_part(folder: str) -> None:
    """Say that this process is there, and record it from its first import of Triton or torch on."""
    place = Path(folder)
    announce(place)
    if real := os.environ.get(DRY_VARIABLE):
        from irscope.record.programs.running import refuse_writes

        refuse_writes(Path(real))

    def join() -> None:
        from irscope.record.programs.joining import join

        join(place)

    sys.meta_path.insert(0, _FirstImport(_WATCHED, join))


class _FirstImport(MetaPathFinder):
    """Calls `action()` once, after the first of some modules is imported, and all of them that are under way are."""

    def __init__(self, names: Sequence[str], action: Callable[[], None]) -> None:
        self._names = names
        self._action: Callable[[], None] | None = action
        self._under_way = 0

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a watched module, its loader wrapped; None for every other module."""
        if fullname not in self._names:
            return None
        self._under_way += 1
        return spec_then(fullname, self, self._done)

    def _done(self, _: ModuleType) -> None:
        self._under_way -= 1
        if self._under_way == 0 and (action := self._action) is not None:
            self._action = None
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            action()
