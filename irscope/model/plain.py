"""Values from plain JSON data, and plain data of values: tuples for lists, a dataclass for an object."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, cast

from irscope.plan import PassPlan
from irscope.target import Target

_Value = TypeVar("_Value")

ANY_VALUE = {"any_value": True}
"""The metadata of a field whose numbers may be negative, or of any size: others hold sizes, counts, times, lines."""

_NUMBERS = ("num_warps", "num_stages", "num_ctas", "shared", "tmem_size")
_LARGEST = (1 << 31) - 1


def tupled(value: Any) -> Any:
    """A plain value with tuples where JSON has lists."""
    # JSON has no tuples, and a Capture holds no lists: what was saved equals what is loaded.
    if isinstance(value, list):
        return tuple([tupled(item) if isinstance(item, (list, dict)) else item for item in cast("list[Any]", value)])
    if isinstance(value, dict):
        return {key: tupled(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


NOT_PYTHON = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
"""What Python raises for a text that is none of its own, or nests too deeply."""


def python_tree(code: str) -> ast.Module:
    """The tree of a text of Python; one without statements where it is none."""
    try:
        return ast.parse(code)
    except NOT_PYTHON:
        return ast.Module([], [])


def literal(text: str | ast.expr) -> Any:
    """The value of a literal of Python; None for anything else."""
    try:
        return ast.literal_eval(text)
    except NOT_PYTHON:
        return None


def constant_value(text: str) -> Any:
    """The value of a constant as Python prints it; the text itself for what is no plain value."""
    try:
        value = ast.literal_eval(text)
    except NOT_PYTHON:
        return text
    return value if value is None or isinstance(value, (bool, int, float, str)) else text


def finite(value: Any) -> Any:
    """A plain value with the text of each number that JSON does not have: `inf`, `nan`."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: finite(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def built(kind: type[_Value], data: Mapping[str, Any], **others: Any) -> _Value:
    """A dataclass from plain data and `others`; fields of another version are ignored, and the types not checked."""
    names = _field_names(kind) - others.keys()
    return kind(**{name: tupled(value) for name, value in data.items() if name in names}, **others)


@cache
def _field_names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def is_storable(name: str, value: Any) -> bool:
    """Whether a capture can hold an option or a metadata value: it cannot hold a `num_warps` that is not a number."""
    if name == "name":
        return isinstance(value, str)
    return name not in _NUMBERS or value is None or (type(value) is int and 0 <= value <= _LARGEST)


def storable(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if is_storable(key, value)}


def picked(value: object, names: str, /, **others: Any) -> dict[str, Any]:
    """Attributes of a value as JSON holds them, then others.

    Args:
        names: `"id kernel=name file=launch.kernel.file"`: the keys, each with its attribute where that is another.
            Targets and plans are texts.
    """
    row: dict[str, Any] = {}
    for name in names.split():
        key, _, path = name.partition("=")
        item: object = attrgetter(path or key)(value)
        if type(item) is tuple:
            item = list(cast("tuple[Any, ...]", item))
        row[key] = str(item) if isinstance(item, (Target, PassPlan)) else item
    return row | others
