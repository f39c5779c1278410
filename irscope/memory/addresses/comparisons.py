"""Comparisons: where one number is less than another, as far as their bounds decide it."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from irscope.memory.addresses.numbers import Integers, Number, add, constant, fits, select, unknown

__all__ = ["PREDICATES", "compared"]

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""In the order of MLIR's numbers for them."""
_UNBOUNDED = 1 << 62

_Truths = NDArray[np.bool_]


def compared(predicate: str, one: Number, other: Number) -> Number:
    """Where a comparison holds, as an i1; unknown where the bounds do not decide it."""
    if predicate not in PREDICATES:
        raise ValueError(f"no comparison {predicate}")
    shape = np.broadcast_shapes(one.shape, other.shape)
    if one.tokens is None and other.tokens is None:
        a, b = one.known, other.known
        if predicate[0] == "u":
            a, b = (_in_order(part) for part in (one, other))
        return Number(-_HOLDS[predicate[-2:]](a, b).astype(np.int64), shape, 1)
    key = f"cmpi {predicate}"
    if not fits(one, one.bits) or not fits(other, other.bits):
        return unknown(key, (one, other), 1, -1, 0)
    if predicate[0] == "u" and min(one.bounds[0], other.bounds[0]) < 0:
        return unknown(key, (one, other), 1, -1, 0)
    wide = [replace(part, bits=64) for part in (one, other)]
    apart = add(wide[0], wide[1], -1)
    if apart.tokens is None:
        return compared(predicate.replace("u", "s"), apart, constant(0, 64, (1,) * len(shape)))
    # Beyond these bounds nothing is said: sums stay within 64 bits.
    low = apart.known + apart.low if apart.low > -_UNBOUNDED else np.full_like(apart.known, -_UNBOUNDED)
    high = apart.known + apart.high if apart.high < _UNBOUNDED else np.full_like(apart.known, _UNBOUNDED)
    exact = apart.tokens == 0
    low, high = np.where(exact, apart.known, low), np.where(exact, apart.known, high)
    always, never = _DECIDED[predicate[-2:]]
    result = Number(-always(low, high).astype(np.int64), shape, 1)
    open_ = ~always(low, high) & ~never(low, high)
    if not open_.any():
        return result
    doubt = unknown(key, (_rounded(apart, predicate[-2:]),), 1, -1, 0)
    return select(Number(-open_.astype(np.int64), shape, 1), doubt, result)


def _rounded(apart: Number, predicate: str) -> Number:
    """A number whose unknown part is a multiple of `step`, with all known parts equal that compare alike with 0.

    k · step + known < 0 is k < -known / step, which is the same for all known parts from one multiple up to the next.
    """
    if apart.step < 2 or predicate in ("eq", "ne"):
        return apart
    step = np.int64(apart.step)
    down = apart.known // step * step
    return replace(apart, known=down if predicate in ("lt", "ge") else -(-apart.known // step * step))


def _in_order(number: Number) -> Integers:
    """The values as unsigned integers, in an order that signed comparison keeps."""
    mask = np.int64((1 << number.bits) - 1) if number.bits < 64 else np.int64(-1)
    return (number.known & mask) ^ np.int64(-(1 << 63) if number.bits == 64 else 0)


_HOLDS: dict[str, Callable[[Integers, Integers], _Truths]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_Bounds = Callable[[Integers, Integers], _Truths]
_DECIDED: dict[str, tuple[_Bounds, _Bounds]] = {
    "eq": (lambda low, high: (low == 0) & (high == 0), lambda low, high: (low > 0) | (high < 0)),
    "ne": (lambda low, high: (low > 0) | (high < 0), lambda low, high: (low == 0) & (high == 0)),
    "lt": (lambda low, high: high < 0, lambda low, high: low >= 0),
    "le": (lambda low, high: high <= 0, lambda low, high: low > 0),
    "gt": (lambda low, high: low > 0, lambda low, high: high <= 0),
    "ge": (lambda low, high: low >= 0, lambda low, high: high < 0),
}
"""Comparison with 0 → whether all numbers between two bounds satisfy it, whether none does."""
