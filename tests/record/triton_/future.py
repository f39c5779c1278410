"""A Triton of the future: one of its names moved, renamed or removed, for the processes of one command.

Imported as `sitecustomize` where `IRSCOPE_FUTURE_TRITON` says what to change: MODULE,NAME,DEED, the deed being
`remove`, `rename` or `move`; a module without a name is not there at all. Its version is 3.10.0.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
from typing import Any

VERSION = "3.10.0"


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, name: str, deed: str) -> None:
        self._module, self._name, self._deed = module, name, deed
        self._within = False

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if self._within or fullname not in (self._module, "triton"):
            return None
        if fullname == self._module and not self._name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        self._within = True
        try:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        finally:
            self._within = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def changed(module: Any) -> None:
            execute(module)
            if fullname == "triton":
                module.__version__ = VERSION
            if fullname == self._module:
                self._change(module)

        spec.loader.exec_module = changed  # type: ignore[method-assign]
        return spec

    def _change(self, module: Any) -> None:
        *owners, last = self._name.split(".")
        owner = module
        for name in owners:
            owner = getattr(owner, name)
        if isinstance(owner, type):
            owner = next(kind for kind in owner.__mro__ if last in vars(kind))
        # As it stands there: a descriptor answers to an instance alone.
        value = vars(owner)[last]
        if self._deed == "rename":
            setattr(owner, f"{last}_", value)
        elif self._deed == "move":
            sys.modules["triton"].moved = value  # type: ignore[attr-defined]
        delattr(owner, last)


def install(text: str) -> None:
    """Change what is imported from now on."""
    real = importlib.metadata.version
    importlib.metadata.version = lambda name: VERSION if name == "triton" else real(name)
    sys.meta_path.insert(0, _Finder(*text.split(",")))


if os.environ.get("IRSCOPE_FUTURE_TRITON"):
    install(os.environ["IRSCOPE_FUTURE_TRITON"])
