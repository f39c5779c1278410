"""The stride of a tensor's values along each dimension, from the operations that made it.

A small part of the compiler's own axis analysis: enough to find the dimension along which the addresses of a load are
contiguous. Source: Triton's lib/Analysis/AxisInfo.cpp, for which operations keep a stride.
"""

from __future__ import annotations

import re

from irscope.ir.mlir.reader import Operation, Value
from irscope.ir.mlir.uses import ModuleUses

_Strides = tuple["int | None", ...]
"""A stride along each dimension; None if it is not known."""

_DEEPEST = 64
_SAME = (
    "tt.broadcast", "ttg.convert_layout", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast",
    "arith.remsi", "arith.remui", "tt.addptr", "arith.addi", "arith.subi",
)  # fmt: skip

# axis = 1 : i32
_AXIS = re.compile(r"axis = (\d{1,9})\b")
# order = array<i32: 1, 0>
_ORDER = re.compile(r"order = array<i32: (\d{1,9}(?:, ?\d{1,9})*)>")
# dense<128>
_DENSE = re.compile(r"dense<(-?\d{1,19})>")


def strides_of(uses: ModuleUses, value: Value) -> _Strides:
    """The stride of a value along each of its dimensions, in elements for pointers; empty if it has no layout."""
    return _Steps(uses).of(value, 0)


class _Steps:
    def __init__(self, uses: ModuleUses) -> None:
        self._uses = uses
        self._known: dict[Value, _Strides] = {}

    def of(self, value: Value, depth: int) -> _Strides:
        """The stride of a value, `depth` operations before the first one."""
        kind = self._uses.values.get(value)
        rank = len(kind.shape) if kind is not None else 0
        if depth > _DEEPEST or not rank:
            return (None,) * rank
        if value not in self._known:
            found = self._read(value, rank, depth)
            self._known[value] = found if len(found) == rank else (None,) * rank
        return self._known[value]

    def _read(self, value: Value, rank: int, depth: int) -> _Strides:
        unknown: _Strides = (None,) * rank
        operation = self._uses.maker_of(value)
        if operation is None:
            # An argument of a loop has the strides of its first value.
            first = self._uses.first_values.get(value)
            return self.of(first, depth + 1) if first is not None else unknown
        name = operation.name
        if name == "tt.make_range":
            return (1,)
        if name in ("tt.splat", "arith.constant"):
            return (0,) * rank
        inner = [self.of(operand, depth + 1) for operand in operation.operands[:2]]
        if not inner:
            return unknown
        if name == "tt.expand_dims" and (axis := _AXIS.search(operation.text)) is not None:
            return (*inner[0][: int(axis[1])], 0, *inner[0][int(axis[1]) :])
        if name == "tt.trans" and (order := _ORDER.search(operation.text)) is not None:
            dims = [int(part) for part in order[1].split(",")]
            return tuple(inner[0][dim] for dim in dims) if sorted(dims) == list(range(len(inner[0]))) else unknown
        if any(len(part) != rank for part in inner[: len(operation.operands)]):
            return unknown
        if name == "arith.muli" and len(inner) == 2:
            return self._product(operation, inner)
        if name in _SAME:
            return _sum(inner, minus=name == "arith.subi") if _adds(name) and len(inner) == 2 else inner[0]
        return unknown

    def _product(self, operation: Operation, inner: list[_Strides]) -> _Strides:
        """A stride times a known factor; a stride of 0 stays 0 for any factor."""
        left, right = inner
        factors = [self._constant(operand) for operand in operation.operands[:2]]
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

    def _constant(self, value: Value) -> int | None:
        operation = self._uses.maker_of(value)
        while operation is not None and operation.name == "tt.broadcast" and operation.operands:
            operation = self._uses.maker_of(operation.operands[0])
        match = _DENSE.search(operation.text) if operation is not None and operation.name == "arith.constant" else None
        return int(match[1]) if match else None


def _adds(name: str) -> bool:
    return name in ("tt.addptr", "arith.addi", "arith.subi")


def _sum(parts: list[_Strides], minus: bool) -> _Strides:
    sign = -1 if minus else 1
    return tuple(None if a is None or b is None else a + sign * b for a, b in zip(*parts, strict=True))
