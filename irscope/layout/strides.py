"""How a tensor's values grow along each dimension, read off the operations that made it: 0, 1, more, or unknown.

A small part of the compiler's own axis analysis: enough to say along which dimension the addresses of a load lie side
by side. Source: Triton's lib/Analysis/AxisInfo.cpp, for which operations keep a stride.
"""

from __future__ import annotations

import re

from irscope.layout.uses import ModuleUses, OperationUse

Strides = tuple["int | None", ...]
"""A step along each dimension; None where it is not known."""

_DEEPEST = 64
_SAME = (
    "tt.broadcast", "ttg.convert_layout", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast",
    "arith.remsi", "arith.remui", "tt.addptr", "arith.addi", "arith.subi",
)  # fmt: skip

# axis = 1 : i32
_AXIS = re.compile(r"axis = (\d+)")
# order = array<i32: 1, 0>
_ORDER = re.compile(r"order = array<i32: ([\d, ]+)>")
# dense<128>
_DENSE = re.compile(r"dense<(-?\d+)>")


def strides_of(uses: ModuleUses, value: str) -> Strides:
    """The step of a value along each of its dimensions, in elements for pointers; empty where it has no layout."""
    makers = {name: use for use in uses.operations for name in use.results}
    return _strides(uses, makers, value, 0)


def _strides(uses: ModuleUses, makers: dict[str, OperationUse], value: str, depth: int) -> Strides:
    kind = uses.type_of(value)
    rank = len(kind.shape) if kind is not None else 0
    unknown: Strides = (None,) * rank
    if depth > _DEEPEST or not rank:
        return unknown
    use = makers.get(value)
    if use is None:
        # An argument of a loop grows as its first value does, along the dimensions of the tensor.
        first = uses.inputs.get(value, ())
        return _strides(uses, makers, first[0], depth + 1) if len(first) == 1 else unknown
    inner = [_strides(uses, makers, operand, depth + 1) for operand in use.operands[:2]]
    if use.name == "tt.make_range":
        return (1,)
    if use.name in ("tt.splat", "arith.constant"):
        return (0,) * rank
    if use.name == "tt.expand_dims" and (axis := _AXIS.search(use.text)) is not None and len(inner[0]) == rank - 1:
        return (*inner[0][: int(axis[1])], 0, *inner[0][int(axis[1]) :])
    if use.name == "tt.trans" and (order := _ORDER.search(use.text)) is not None:
        dims = [int(part) for part in order[1].split(",")]
        return tuple(inner[0][dim] for dim in dims) if sorted(dims) == list(range(len(inner[0]))) else unknown
    if use.name == "arith.muli" and len(inner) == 2:
        return _product(uses, makers, use, inner)
    if use.name in _SAME and inner and all(len(part) == rank for part in inner[: len(use.operands)]):
        return _sum(inner, minus=use.name == "arith.subi") if _adds(use.name) and len(inner) == 2 else inner[0]
    return unknown


def _adds(name: str) -> bool:
    return name in ("tt.addptr", "arith.addi", "arith.subi")


def _sum(parts: list[Strides], minus: bool) -> Strides:
    sign = -1 if minus else 1
    return tuple(None if a is None or b is None else a + sign * b for a, b in zip(*parts, strict=True))


def _product(uses: ModuleUses, makers: dict[str, OperationUse], use: OperationUse, inner: list[Strides]) -> Strides:
    """A step times a number that is known; a step of nothing stays nothing, whatever the factor."""
    left, right = inner
    factors = [_constant(makers, operand) for operand in use.operands[:2]]
    result: list[int | None] = []
    for a, b in zip(left, right, strict=True):
        if a == 0 and b == 0:
            result.append(0)
        elif b == 0 and a is not None and factors[1] is not None:
            result.append(a * factors[1])
        elif a == 0 and b is not None and factors[0] is not None:
            result.append(b * factors[0])
        else:
            result.append(None)
    return tuple(result)


def _constant(makers: dict[str, OperationUse], value: str) -> int | None:
    use = makers.get(value)
    while use is not None and use.name == "tt.broadcast" and use.operands:
        use = makers.get(use.operands[0])
    match = _DENSE.search(use.text) if use is not None and use.name == "arith.constant" else None
    return int(match[1]) if match else None
