"""Modules that can be called: `irscope.record` and `irscope.capture` are both a module and a function of the interface.

Importing a submodule sets its name on the package, whatever stood there. So the module answers as the function does.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        import irscope.api

        return getattr(irscope.api, self.__name__.rpartition(".")[2])(*args, **keywords)


def make_callable(module: str) -> None:
    """Let a module stand in for the function of its name in `irscope.api`."""
    sys.modules[module].__class__ = _CallableModule
