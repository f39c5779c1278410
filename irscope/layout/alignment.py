"""Which arguments of a kernel keep an address from being known as a multiple of 16: why an access came out narrow.

A small part of the compiler's own axis analysis. Source: Triton's lib/Analysis/AxisInfo.cpp, the divisibility of sums,
products and constants.
"""

from __future__ import annotations

import re

from irscope.layout.uses import ModuleUses

ENOUGH = 16
"""What an address must be a multiple of, in elements or bytes, for the widest access."""
_DEEPEST = 64

# %c128_i32 = arith.constant 128 : i32      %cst = arith.constant dense<32> : …
_CONSTANT = re.compile(r"arith\.constant (?:dense<)?(-?\d+)\b")
# %a = arith.muli %b, %c : i32
_NAME = re.compile(r'= "?([a-z_]\w*\.\w+)')
_SUMS = ("arith.addi", "arith.subi", "tt.addptr")
_KEEPING = (
    "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "ttg.convert_layout", "arith.extsi", "arith.extui",
    "arith.trunci", "tt.bitcast", "arith.index_cast", "arith.remsi",
)  # fmt: skip


def unaligned_arguments(uses: ModuleUses, value: str) -> tuple[str, ...]:
    """The arguments that leave a value not known to be a multiple of 16, in the order of the kernel; empty for none."""
    known: dict[str, tuple[int, frozenset[str]]] = {}
    divisor, culprits = _divisor(uses, value, known, 0)
    return tuple(name for name in uses.divisibility if name in culprits) if divisor < ENOUGH else ()


def _divisor(
    uses: ModuleUses, value: str, known: dict[str, tuple[int, frozenset[str]]], depth: int
) -> tuple[int, frozenset[str]]:
    """What a value is known to be a multiple of, no more than 16, and the arguments to blame where that is less."""
    if value in known:
        return known[value]
    if value in uses.divisibility:
        own = min(uses.divisibility[value] & -uses.divisibility[value] or ENOUGH, ENOUGH)
        return own, frozenset({value} if own < ENOUGH else ())
    text = uses.makers.get(value, "")
    operands = uses.inputs.get(value, ())
    # A value that is being looked at, in a loop, decides nothing of itself.
    known[value] = (ENOUGH, frozenset())
    if depth > _DEEPEST:
        return known[value]
    match = _NAME.search(text)
    name = match[1] if match else ""
    if name == "arith.constant":
        number = _CONSTANT.search(text)
        found = (min(int(number[1]) & -int(number[1]) or ENOUGH, ENOUGH) if number else 1, frozenset[str]())
    elif name == "tt.make_range" or not name:
        # A range begins at a multiple of a lane's vector; an argument of a loop was looked at where it came from.
        inner = [_divisor(uses, operand, known, depth + 1) for operand in operands[:1]] if not name else []
        found = inner[0] if inner else (ENOUGH, frozenset[str]())
    elif name == "arith.muli":
        # Each row is a stride apart: what a range counts off helps nothing, the stride alone must be a multiple.
        factors = operands[:2] if len(operands) > 1 else operands[:1] * 2
        parts = [
            (1, frozenset[str]()) if _counts(uses, operand, 0) else _divisor(uses, operand, known, depth + 1)
            for operand in factors
        ]
        product = 1
        for part, _ in parts:
            product *= part
        blamed = frozenset(culprit for _, culprits in parts for culprit in culprits)
        found = (min(product, ENOUGH), blamed if product < ENOUGH else frozenset[str]())
    elif name in _SUMS or name in _KEEPING:
        count = 2 if name in _SUMS else 1
        parts = [_divisor(uses, operand, known, depth + 1) for operand in operands[:count]]
        blamed = frozenset(culprit for part, culprits in parts if part < ENOUGH for culprit in culprits)
        found = (min((part for part, _ in parts), default=1), blamed)
    else:
        found = (1, frozenset[str]())
    known[value] = found
    return found


def _counts(uses: ModuleUses, value: str, depth: int) -> bool:
    """Whether a value counts off a range, perhaps from a multiple of something."""
    match = _NAME.search(uses.makers.get(value, ""))
    name = match[1] if match else ""
    if name == "tt.make_range":
        return True
    if depth > _DEEPEST or name not in (*_SUMS, *_KEEPING):
        return False
    return any(_counts(uses, operand, depth + 1) for operand in uses.inputs.get(value, ())[:2])
