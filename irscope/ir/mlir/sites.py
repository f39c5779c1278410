"""Where a source uses an argument or a constant: the operations that a change of either is written into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irscope.ir.mlir.model import MlirModule, Operation, Value

__all__ = ["SAME", "Sites", "constant_of", "factor_sites", "sites_of"]

SAME = ("splat", "expand_dims", "broadcast", "reshape", "arith.extsi", "arith.extui", "arith.trunci")
"""Operations that keep every element, by their opcodes."""
_DEEPEST = 24
"""Calls within one another."""


@dataclass(frozen=True, slots=True)
class Sites:
    """Where an argument is used, in the kernel and in the functions that it calls."""

    products: tuple[Operation, ...]
    """What is multiplied by it."""
    remainders: tuple[Operation, ...]
    """What is divided by it, for the remainder."""


def sites_of(module: MlirModule, argument: Value) -> Sites:
    """The uses of a kernel's argument, itself or spread over a tensor.

    Those of a function that is called with it, too, if it is called with nothing else: a hint there is for all calls.
    """
    operations = [*module.walk()]
    functions = {one.symbol: one for one in operations if one.opcode == "func"}
    calls: dict[str, list[Operation]] = {}
    for one in operations:
        if one.opcode == "call":
            calls.setdefault(one.symbol, []).append(one)
    held = {argument}
    for _ in range(_DEEPEST):
        known = len(held)
        for one in operations:
            if one.opcode in SAME and not held.isdisjoint(one.operands):
                held.update(one.results)
        for name, function in functions.items():
            blocks = function.regions[0].blocks if function.regions else ()
            for index, parameter in enumerate(blocks[0].arguments if blocks else ()):
                given = [one.operands[index : index + 1] for one in calls.get(name, ())]
                if given and all(held.issuperset(one) and one for one in given):
                    held.add(parameter)
        if len(held) == known:
            break
    return Sites(
        tuple(one for one in operations if one.name == "arith.muli" and not held.isdisjoint(one.operands)),
        tuple(
            one
            for one in operations
            if one.name in ("arith.remsi", "arith.remui") and not held.isdisjoint(one.operands[1:])
        ),
    )


def constant_of(module: MlirModule, value: Value) -> int | None:
    """The integer that a value is everywhere, if a constant makes it, itself or spread over a tensor."""
    made = module.definition(value)
    while made is not None and made.opcode in SAME and made.operands:
        made = module.definition(made.operands[0])
    constant = made.constant if made is not None and made.name == "arith.constant" else None
    return constant if isinstance(constant, int) and not isinstance(constant, bool) else None


def factor_sites(module: MlirModule) -> Iterator[tuple[int, Operation, int]]:
    """(constant, operation, which operand it is) of each product with a constant, and each comparison with one."""
    for one in module.walk():
        if one.name in ("arith.muli", "arith.cmpi"):
            for index, operand in enumerate(one.operands):
                if (value := constant_of(module, operand)) is not None:
                    yield value, one, index
