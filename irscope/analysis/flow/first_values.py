"""The integers that values of MLIR hold when they are computed first: constants, what enters a loop, and sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from irscope.ir.mlir.model import MlirModule, Operation, Value

__all__ = ["FirstValues"]

_CASTS = ("arith.extui", "arith.index_cast", "arith.index_castui")
_DIVIDES = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui")
_COMPUTED: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": int.__add__,
    "arith.subi": int.__sub__,
    "arith.muli": int.__mul__,
    "arith.xori": int.__xor__,
    "arith.andi": int.__and__,
    "arith.ori": int.__or__,
    **dict.fromkeys(_DIVIDES[:2], int.__floordiv__),
    **dict.fromkeys(_DIVIDES[2:], int.__mod__),
}
_MOST_STEPS = 200
"""Operations that one value is computed of."""


class FirstValues:
    """The first value of each value that constants alone decide."""

    def __init__(self, module: MlirModule, same: Mapping[int, Value]) -> None:
        """Read a module; `same`: number of a block's argument -> what it holds when the block is entered first."""
        self._module, self._same = module, same
        self._known: dict[tuple[int, int], int | None] = {}
        self._steps = 0

    def of(self, value: Value) -> int | None:
        """The integer (0 or 1 of a boolean), or None if it is not known."""
        self._steps = 0
        return self._of(value)

    def _of(self, value: Value) -> int | None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return None
        key = value.number, value.index
        if key not in self._known:
            # Of a value that is made of itself nothing is known.
            self._known[key] = None
            outer = self._same.get(value.number)
            self._known[key] = self._of(outer) if outer is not None else self._made(self._module.definition(value))
        return self._known[key]

    def _made(self, operation: Operation | None) -> int | None:
        if operation is None:
            return None
        if (constant := operation.constant) is not None:
            return int(constant)
        operands = operation.operands
        if operation.name == "arith.select" and len(operands) == 3:
            chosen = self._of(operands[0])
            return None if chosen is None else self._of(operands[1 if chosen else 2])
        if operation.name in _CASTS and len(operands) == 1:
            return self._of(operands[0])
        if len(operands) != 2:
            return None
        left, right = self._of(operands[0]), self._of(operands[1])
        if left is None or right is None:
            return None
        if operation.name == "arith.cmpi" and (sign := operation.attribute("predicate")) in ("eq", "ne"):
            return int((left == right) == (sign == "eq"))
        compute = _COMPUTED.get(operation.name)
        # What divides rounds towards zero: of negative numbers nothing is said.
        return (
            compute(left, right)
            if compute is not None and left >= 0 and right >= (operation.name in _DIVIDES)
            else None
        )
