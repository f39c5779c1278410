"""Chooses layouts of a module: by alias or text, by value, by operation, by Python line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from irscope.errors import UsageError, did_you_mean
from irscope.ir.locations.user import is_library
from irscope.ir.tables.operations import opcode_of
from irscope.layout.described import DescribedLayout


def choose_layouts(
    layouts: Sequence[DescribedLayout],
    *,
    names: Sequence[str] = (),
    value: str | None = None,
    operation: str | None = None,
    line: int | None = None,
) -> list[DescribedLayout]:
    """The layouts that meet every given choice; those of `names` in the order of the names.

    Args:
        layouts: the layouts of a module.
        names: aliases (with or without `#`), encodings as text, kinds (`nvidia_mma`), or `#alias@128x64` for one
            shape.
        value: a value's name, such as `%acc`.
        operation: an operation's name, such as `tt.dot`.
        line: a line of Python that uses the layout, or that calls one that does.

    Raises UsageError, with the nearest names, if a choice leaves no layout.
    """
    chosen = list(layouts)
    if value is not None:
        wanted = value if value.startswith("%") else f"%{value}"
        chosen = [item for item in chosen if any(wanted in use.values for use in item.row.operations)]
        known = {name for item in layouts for use in item.row.operations for name in use.values}
        _check(chosen, f"no value {value!r} has a layout", wanted, known)
    if operation is not None:
        known = {use.name for item in layouts for use in item.row.operations}
        chosen = [item for item in chosen if any(_same_operation(use.name, operation) for use in item.row.operations)]
        _check(chosen, f"no operation {operation!r} has to do with a layout", operation, known)
    if line is not None:
        ending = f":{line}"
        known = {place.rpartition(":")[2] for item in layouts for place in item.python_lines}
        chosen = [item for item in chosen if any(place.endswith(ending) for place in _lines(item))]
        _check(chosen, f"no layout is used on line {line}", str(line), sorted(known, key=len))
    if not names:
        return chosen
    found: list[DescribedLayout] = []
    for name in names:
        matching = [item for item in chosen if _is_named(item, name)]
        _check(matching, f"no layout is named {name!r}", name, {item.name for item in layouts})
        # An alias stands for several shapes: the largest one shows most.
        found.append(max(matching, key=lambda item: prod(item.shape)))
    return found


def _lines(item: DescribedLayout) -> set[str]:
    return {*item.python_lines, *(place for chain in item.chains for place in chain if not is_library(place))}


def _same_operation(name: str, asked: str) -> bool:
    short = name.rpartition(".")[2]
    # A dot is many operations: those of tensor cores have names of their own.
    return asked in (name, short) or (opcode_of(asked) == "dot" and "dot" in short.split("_"))


def _is_named(item: DescribedLayout, asked: str) -> bool:
    name, _, shape = asked.partition("@")
    if shape and shape.replace("×", "x") != "x".join(map(str, item.shape)):
        return False
    alias = item.row.alias
    same = {alias, alias.removeprefix("#"), item.encoding.text, item.encoding.kind, item.encoding.title}
    return " ".join(name.split()) in same


def _check(found: Sequence[DescribedLayout], what: str, asked: str, known: Iterable[str]) -> None:
    if not found:
        raise UsageError(f"{what}.{did_you_mean(asked, known)}")
