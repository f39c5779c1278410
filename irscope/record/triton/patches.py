"""Attributes, dictionary entries, environment variables and modules that are replaced for a while."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import ModuleType
from typing import Any

_MISSING: Any = object()


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
