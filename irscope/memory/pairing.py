"""Pairs the operations of two texts of one module, between which passes renamed the values."""

from __future__ import annotations

from collections.abc import Collection

from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.reader import Operation, parse_mlir
from irscope.ir.mlir.types import read_types

__all__ = ["paired_lines"]


def paired_lines(text: str, other: str, names: Collection[str]) -> dict[int, int]:
    """First line of an operation in one text → that of the same operation in the other.

    Operations are alike that have one name, the same types and the same place in Python. Those that are alike are
    paired in order, if both texts have equally many of them.

    Args:
        other: the module as it was before or after some passes.
    """
    ours, theirs = _alike(text, names), _alike(other, names)
    return {
        one: same
        for key, lines in ours.items()
        if len(lines) == len(theirs.get(key, ()))
        for one, same in zip(lines, theirs[key], strict=True)
    }


def _alike(text: str, names: Collection[str]) -> dict[object, list[int]]:
    """The first lines of operations by what passes leave: name, types with aliases resolved, and place in Python."""
    module, locations = parse_mlir(text), read_locations(text, "mlir")
    found: dict[object, list[int]] = {}
    for operation in module.walk():
        if operation.name in names:
            types = tuple((str(kind), module.resolve(kind.encoding)) for kind in read_types(_typed(operation)))
            key = operation.name, types, locations.chain_at(operation.first_line)
            found.setdefault(key, []).append(operation.first_line)
    return found


def _typed(operation: Operation) -> str:
    own = f"{operation.text} {operation.closing}"
    return own.partition(" = ")[2] if operation.results else own
