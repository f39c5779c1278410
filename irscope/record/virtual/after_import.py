"""Runs a function on a module right after its first import, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class AfterImport(MetaPathFinder, AbstractContextManager[None]):
    """Within the block, calls `action(module)` once: now if the module is imported already, else after its import.

    Example: `with AfterImport("torch", patch): …`
    """

    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self.name = name
        self._action = action

    def __enter__(self) -> None:
        module = sys.modules.get(self.name)
        if module is not None:
            self._action(module)
        else:
            sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the watched module, its loader wrapped; None for every other module."""
        return spec_then(fullname, self, self._done) if fullname == self.name else None

    def _done(self, module: ModuleType) -> None:
        self._remove()
        self._action(module)


def spec_then(name: str, finder: MetaPathFinder, then: Callable[[ModuleType], None]) -> ModuleSpec | None:
    """The spec of a module as all finders but one find it, with a loader that calls `then` when the module has run."""
    place = sys.meta_path.index(finder)
    sys.meta_path.remove(finder)
    try:
        spec = find_spec(name)
    finally:
        sys.meta_path.insert(place, finder)
    if spec is None or spec.loader is None:
        return None
    spec.loader = _ThenCall(spec.loader, then)
    return spec


class _ThenCall(Loader):
    """A loader that forwards everything to another one, and calls `then` when the module has run."""

    def __init__(self, loader: Loader, then: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module must not see the wrapper: its own loader also reads resources and sources.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
