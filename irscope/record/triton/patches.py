"""What is replaced for a while: attributes, dictionary entries, environment variables, modules after their import."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_MISSING: Any = object()


def nothing(*_: Any, **__: Any) -> None:
    """Stands in for what waits, frees, prints or shows; and drops an answer that the original does not give."""


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute until the end of the block, which restores it, also after an exception."""
    # The own dictionary, not getattr: a static method, or a name inherited by a class, must come back as it was.
    before = vars(owner).get(name, _MISSING)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@contextmanager
def replaced_item(mapping: MutableMapping[Any, Any], key: Any, value: Any) -> Iterator[None]:
    """Set an entry of a mapping until the end of the block, which restores it, also after an exception."""
    before = mapping.get(key, _MISSING)
    mapping[key] = value
    try:
        yield
    finally:
        if before is _MISSING:
            # A program may have removed it.
            mapping.pop(key, None)
        else:
            mapping[key] = before


def environment_variable(name: str, value: str) -> AbstractContextManager[None]:
    """Set an environment variable until the end of the block: Triton's C++ reads most of its switches from there."""
    return replaced_item(os.environ, name, value)


class Patches(ExitStack):
    """Replacements in other people's modules, undone together by `close`, the last one first."""

    def set(self, owner: Any, name: str, value: Any) -> None:
        self.enter_context(replaced(owner, name, value))

    def set_known(self, owner: Any, values: dict[str, Any]) -> None:
        """Replace those of the attributes that `owner` has: a version that lacks one is not given it."""
        for name, value in values.items():
            if hasattr(owner, name):
                self.set(owner, name, value)

    def set_module(self, module: ModuleType) -> None:
        """Let imports find `module` under its name, until the real one is loaded."""
        name = module.__name__
        sys.modules[name] = module
        self.callback(lambda: sys.modules.pop(name) if sys.modules.get(name) is module else None)


class AfterImport(MetaPathFinder, AbstractContextManager[None]):
    """Within the block, calls `action(module)` once: now if the module is imported already, else after its import."""

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
