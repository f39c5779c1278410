"""A pile of replacements in other people's modules, all undone together."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_MISSING = object()


class Patches:
    """Attributes and dictionary entries that stand in for others until `restore`."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, Any, Any]] = []
        self._modules: list[ModuleType] = []

    def set(self, owner: Any, name: str, value: Any) -> Any:
        """Put `value` in the place of an attribute, and return what stood there (None where there was nothing)."""
        # The own dictionary, not getattr: a static method, or a name inherited by a class, must come back as it was.
        old = vars(owner).get(name, _MISSING)
        self._undo.append((owner, name, old))
        setattr(owner, name, value)
        return None if old is _MISSING else old

    def set_item(self, owner: dict[Any, Any], key: Any, value: Any) -> None:
        """Put `value` in the place of an entry of a dictionary."""
        self._undo.append((owner, key, owner.get(key, _MISSING)))
        owner[key] = value

    def set_known(self, owner: Any, values: dict[str, Any]) -> None:
        """Replace those of the attributes that `owner` has: what a version lacks, it is not given."""
        for name, value in values.items():
            if hasattr(owner, name):
                self.set(owner, name, value)

    def set_module(self, module: ModuleType) -> None:
        """Let imports find `module` under its name, until the real one is loaded."""
        sys.modules[module.__name__] = module
        self._modules.append(module)

    def restore(self) -> None:
        """Undo everything, last first."""
        for module in self._modules:
            if sys.modules.get(module.__name__) is module:
                del sys.modules[module.__name__]
        self._modules.clear()
        while self._undo:
            owner, name, old = self._undo.pop()
            if isinstance(owner, dict):
                owner[name] = old
                if old is _MISSING:
                    del owner[name]
            elif old is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
