"""Which arguments of a kernel keep an address from being known as a multiple of 16: why an access came out narrow.

A small part of the compiler's own axis analysis. Source: Triton's lib/Analysis/AxisInfo.cpp, the divisibility of sums,
products and constants.
"""

from __future__ import annotations

import re

from irscope.ir.mlir import Value
from irscope.layout.uses import ModuleUses

ENOUGH = 16
"""What an address must be a multiple of, in elements or bytes, for the widest access."""
_DEEPEST = 64

# %c128_i32 = arith.constant 128 : i32      %cst = arith.constant dense<32> : …
_CONSTANT = re.compile(r"arith\.constant (?:dense<)?(-?\d+)\b")
_SUMS = ("arith.addi", "arith.subi", "tt.addptr")
_KEEPING = (
    "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "ttg.convert_layout", "arith.extsi", "arith.extui",
    "arith.trunci", "tt.bitcast", "arith.index_cast", "arith.remsi",
)  # fmt: skip


_Divisor = tuple[int, frozenset[Value]]


def unaligned_arguments(uses: ModuleUses, value: Value) -> tuple[str, ...]:
    """The arguments that leave a value not known to be a multiple of 16, in the order of the kernel; empty for none."""
    divisor, culprits = _divisor(uses, value, {}, 0)
    return tuple(one.name for one in uses.divisibility if one in culprits) if divisor < ENOUGH else ()


def _divisor(uses: ModuleUses, value: Value, known: dict[Value, _Divisor], depth: int) -> _Divisor:
    """What a value is known to be a multiple of, no more than 16, and the arguments to blame where that is less."""
    if value in known:
        return known[value]
    if value in uses.divisibility:
        own = min(uses.divisibility[value] & -uses.divisibility[value] or ENOUGH, ENOUGH)
        return own, frozenset({value} if own < ENOUGH else ())
    none: frozenset[Value] = frozenset()
    # A value that is being looked at, in a loop, decides nothing of itself.
    known[value] = (ENOUGH, none)
    if depth > _DEEPEST:
        return known[value]
    operation = uses.maker_of(value)
    name = operation.name if operation is not None else ""
    operands = operation.operands[:2] if operation is not None else ()
    if operation is None:
        # An argument of a loop is looked at where it comes from.
        first = uses.first_values.get(value)
        found = _divisor(uses, first, known, depth + 1) if first is not None else (ENOUGH, none)
    elif name == "arith.constant":
        number = _CONSTANT.search(operation.text)
        found = (min(int(number[1]) & -int(number[1]) or ENOUGH, ENOUGH) if number else 1, none)
    elif name == "tt.make_range":
        # A range begins at a multiple of a lane's vector.
        found = (ENOUGH, none)
    elif name == "arith.muli":
        # Each row is a stride apart: what a range counts off helps nothing, the stride alone must be a multiple.
        parts = [
            (1, none) if _counts(uses, operand) else _divisor(uses, operand, known, depth + 1) for operand in operands
        ]
        product = 1
        for part, _ in parts:
            product *= part
        blamed = frozenset(culprit for _, culprits in parts for culprit in culprits)
        found = (min(product, ENOUGH), blamed if product < ENOUGH else none)
    elif name in _SUMS or name in _KEEPING:
        count = 2 if name in _SUMS else 1
        parts = [_divisor(uses, operand, known, depth + 1) for operand in operands[:count]]
        blamed = frozenset(culprit for part, culprits in parts if part < ENOUGH for culprit in culprits)
        found = (min((part for part, _ in parts), default=1), blamed)
    else:
        found = (1, none)
    known[value] = found
    return found


def _counts(uses: ModuleUses, value: Value) -> bool:
    """Whether a value counts off a range, perhaps from a multiple of something."""
    waiting, seen = [value], {value}
    while waiting:
        operation = uses.maker_of(waiting.pop())
        if operation is not None and operation.name == "tt.make_range":
            return True
        if operation is not None and operation.name in (*_SUMS, *_KEEPING):
            waiting.extend(one for one in operation.operands[:2] if one not in seen)
            seen.update(operation.operands[:2])
    return False
