"""Replaces torch's symbolic sizes and for sympy, which they use, until a program needs the real modules.

torch infers the shapes of tensors without data in Python, and compares plain numbers by
`torch.fx.experimental.symbolic_shapes`, whose import, with sympy, takes a third of a second. The replacements handle
plain numbers; anything else loads the real modules.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import sys
from collections.abc import Callable
from functools import reduce
from types import ModuleType
from typing import Any

from irscope.record.triton.patches import Patches

_SYMBOLIC_SHAPES = "torch.fx.experimental.symbolic_shapes"


class _Later(ModuleType):
    """A module that is loaded when an attribute is read that is not in `known`."""

    def __init__(self, name: str, known: dict[str, Any], *, is_package: bool) -> None:
        super().__init__(name)
        self._known = known
        self._is_package = is_package

    def __getattr__(self, name: str) -> Any:
        if name in self._known and not self.is_loaded:
            return self._known[name]
        if name == "__path__" and not self._is_package:
            # Read by each import from it.
            raise AttributeError(name)
        return getattr(self.load(), name)

    @property
    def is_loaded(self) -> bool:
        """Whether the real module has taken its place."""
        return sys.modules.get(self.__name__) is not self

    def load(self) -> ModuleType:
        """The real module."""
        if not self.is_loaded:
            del sys.modules[self.__name__]
        return importlib.import_module(self.__name__)


class _NoExpression:
    """Stands in for `sympy.Basic` until sympy is loaded: nothing is an instance of it."""


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return type(value) in (bool, int, float)


def _plain_or(module: _Later, name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return answer(*args) if _is_plain(args) else getattr(module.load(), name)(*args)

    return function


_SAME = (
    "expect_true guard_or_false guard_or_true guard_int guard_size_oblivious guarding_hint_or_throw "
    "statically_known_true"
)
_FOR_NUMBERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_SAME.split(), lambda value: value),
    "has_guarding_hint": lambda value: True,
    "is_nested_int": lambda value: False,
    "sym_and": lambda *values: reduce(operator.and_, values),
    "sym_or": lambda *values: reduce(operator.or_, values),
    "sym_eq": operator.eq,
}
"""Functions of `symbolic_shapes`, as they are for plain numbers and sequences of them."""


def spare_symbols(patches: Patches) -> None:
    """Put the replacements in place, unless the real modules are loaded, until `patches` are closed."""
    if _SYMBOLIC_SHAPES in sys.modules or "sympy" in sys.modules:
        return
    # The real module would have imported this.
    with contextlib.suppress(ImportError):
        importlib.import_module("torch.fx.experimental._config")
    shapes = _Later(_SYMBOLIC_SHAPES, {}, is_package=False)
    shapes._known.update({name: _plain_or(shapes, name, answer) for name, answer in _FOR_NUMBERS.items()})
    patches.set_module(shapes)
    patches.set_module(_Later("sympy", {"Basic": _NoExpression}, is_package=True))
