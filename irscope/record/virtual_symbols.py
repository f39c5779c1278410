"""Stands in for torch's symbolic sizes, and for sympy beneath them, until a program has one of either.

torch infers the shapes of data-less tensors in Python, and asks `torch.fx.experimental.symbolic_shapes` whether plain
numbers are equal; importing that, and sympy, takes a third of a second. The stand-ins answer for plain numbers;
whatever else is asked of them loads the real modules.
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

from irscope.record.virtual_patches import Patches

SYMBOLIC_SHAPES = "torch.fx.experimental.symbolic_shapes"


class Later(ModuleType):
    """A module that is loaded when more is asked of it than `known`."""

    def __init__(self, name: str, known: dict[str, Any], *, is_package: bool) -> None:
        super().__init__(name)
        self._known = known
        self._is_package = is_package

    def __getattr__(self, name: str) -> Any:
        if name in self._known and not self.is_loaded:
            return self._known[name]
        if name == "__path__" and not self._is_package:
            # Asked at each import from it.
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
    """Stands for `sympy.Basic` while there is no sympy: nothing can be an instance of it."""


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return type(value) in (bool, int, float)


def _plain_or(module: Later, name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return answer(*args) if _is_plain(args) else getattr(module.load(), name)(*args)

    return function


def _same(value: Any) -> Any:
    return value


_FOR_NUMBERS: dict[str, Callable[..., Any]] = {
    "expect_true": _same,
    "guard_or_false": _same,
    "guard_or_true": _same,
    "guard_int": _same,
    "guard_size_oblivious": _same,
    "guarding_hint_or_throw": _same,
    "has_guarding_hint": lambda value: True,
    "statically_known_true": _same,
    "is_nested_int": lambda value: False,
    "sym_and": lambda *values: reduce(operator.and_, values),
    "sym_or": lambda *values: reduce(operator.or_, values),
    "sym_eq": operator.eq,
}
"""Functions of `symbolic_shapes`, as they are for plain numbers and sequences of them."""


def spare_symbols(patches: Patches) -> None:
    """Put the stand-ins in place where the real modules are not loaded."""
    if SYMBOLIC_SHAPES in sys.modules or "sympy" in sys.modules:
        return
    # What the real module would have brought with it.
    with contextlib.suppress(ImportError):
        importlib.import_module("torch.fx.experimental._config")
    shapes = Later(SYMBOLIC_SHAPES, {}, is_package=False)
    shapes._known.update({name: _plain_or(shapes, name, answer) for name, answer in _FOR_NUMBERS.items()})
    patches.set_module(shapes)
    patches.set_module(Later("sympy", {"Basic": _NoExpression}, is_package=True))
