"""Which arguments of a kernel prevent an address from being known as a multiple of 16, so that an access is narrow.

A small part of the compiler's own axis analysis. Source: Triton's lib/Analysis/AxisInfo.cpp, the divisibility of sums,
products and constants.
"""

from __future__ import annotations

import re

from irscope.ir.mlir.reader import Value
from irscope.ir.mlir.uses import ModuleUses

_ENOUGH = 16
"""The alignment of an address, in elements or bytes, for the widest access."""
_DEEPEST = 64

# %c128_i32 = arith.constant 128 : i32      %cst = arith.constant dense<32> : …
_CONSTANT = re.compile(r"arith\.constant (?:dense<)?(-?\d{1,19})\b")
_SUMS = ("arith.addi", "arith.subi", "tt.addptr")
_KEEPING = (
    "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "ttg.convert_layout", "arith.extsi", "arith.extui",
    "arith.trunci", "tt.bitcast", "arith.index_cast", "arith.remsi",
)  # fmt: skip


_Divisor = tuple[int, frozenset[Value]]


def unaligned_arguments(uses: ModuleUses, value: Value) -> tuple[str, ...]:
    """The arguments because of which a value is not known to be a multiple of 16, in the order of the kernel."""
    divisor, culprits = _divisor(uses, value, {}, 0)
    return tuple(one.name for one in uses.divisibility if one in culprits) if divisor < _ENOUGH else ()


def _divisor(uses: ModuleUses, value: Value, known: dict[Value, _Divisor], depth: int) -> _Divisor:
    """The largest known power of two, up to 16, that divides a value, and the arguments that limit it."""
    if value in known:
        return known[value]
    if value in uses.divisibility:
        own = min(uses.divisibility[value] & -uses.divisibility[value] or _ENOUGH, _ENOUGH)
        return own, frozenset({value} if own < _ENOUGH else ())
    none: frozenset[Value] = frozenset()
    # A value that depends on itself, through a loop, does not limit itself.
    known[value] = (_ENOUGH, none)
    if depth > _DEEPEST:
        return known[value]
    operation = uses.maker_of(value)
    name = operation.name if operation is not None else ""
    operands = operation.operands[:2] if operation is not None else ()
    if operation is None:
        # An argument of a loop has the divisor of its first value.
        first = uses.first_values.get(value)
        found = _divisor(uses, first, known, depth + 1) if first is not None else (_ENOUGH, none)
    elif name == "arith.constant":
        number = _CONSTANT.search(operation.text)
        found = (min(int(number[1]) & -int(number[1]) or _ENOUGH, _ENOUGH) if number else 1, none)
    elif name == "tt.make_range":
        # A range begins at a multiple of a lane's vector.
        found = (_ENOUGH, none)
    elif name == "arith.muli":
        # Rows are a stride apart: the stride must be a multiple, whatever the factor from a range is.
        parts = [
            (1, none) if _counts(uses, operand) else _divisor(uses, operand, known, depth + 1) for operand in operands
        ]
        product = 1
        for part, _ in parts:
            product *= part
        blamed = frozenset(culprit for _, culprits in parts for culprit in culprits)
        found = (min(product, _ENOUGH), blamed if product < _ENOUGH else none)
    elif name in _SUMS or name in _KEEPING:
        count = 2 if name in _SUMS else 1
        parts = [_divisor(uses, operand, known, depth + 1) for operand in operands[:count]]
        blamed = frozenset(culprit for part, culprits in parts if part < _ENOUGH for culprit in culprits)
        found = (min((part for part, _ in parts), default=1), blamed)
    else:
        found = (1, none)
    known[value] = found
    return found


def _counts(uses: ModuleUses, value: Value) -> bool:
    """Whether a value is a range, perhaps with an offset."""
    waiting, seen = [value], {value}
    while waiting:
        operation = uses.maker_of(waiting.pop())
        if operation is not None and operation.name == "tt.make_range":
            return True
        if operation is not None and operation.name in (*_SUMS, *_KEEPING):
            waiting.extend(one for one in operation.operands[:2] if one not in seen)
            seen.update(operation.operands[:2])
    return False
