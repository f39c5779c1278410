"""The float32 instructions of SASS on NumPy, for what becomes an index: square roots of tiles, coordinates of an image.

A register holds the bits of a float. Only what reaches a conversion to an integer is computed; the rest is data.
Source: NVIDIA, "CUDA Binary Utilities" (the names of the instructions).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from irscope.ir.asm.instructions import Instruction
from irscope.timing.arithmetic import is_predicate, put, unknown, without_first
from irscope.timing.scalars import TRUE, Array, Read, State, Step, Value, operand, predicate

__all__ = ["FLOATS", "compared_with_limits", "float_bits", "float_value", "rounding"]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip
_ROUNDED: dict[str, Callable[[Array], Array]] = {"FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}


def float_value(bits: Array) -> Array:
    """The numbers that bits stand for, as float64."""
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def float_bits(number: Array) -> Array:
    """The bits of numbers, rounded to float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(number, np.float32).view(np.uint32).astype(np.int64)


def _number(text: str) -> Read:
    """How an operand is read as a number: a register, its negative or magnitude, a constant."""
    try:
        value = np.full((1, 1), float(text.replace("QNAN", "NAN")))
    except ValueError:
        read, is_negative, is_magnitude = operand(text.lstrip("-").replace("|", "")), text.startswith("-"), "|" in text
    else:
        return lambda state: value

    def number(state: State) -> Value:
        bits = read(state)
        if bits is None:
            return None
        found = float_value(bits)
        found = np.abs(found) if is_magnitude else found
        return -found if is_negative else found

    return number


def rounding(how: list[str]) -> Callable[[Array], Array]:
    """How the modifiers of an instruction round to an integer: to the nearest even one where they name none."""
    return next((_ROUNDED[one] for one in how if one in _ROUNDED), np.rint)


def _computed(compute: Callable[..., Any]) -> Callable[[Instruction], Step]:
    def made(item: Instruction) -> Step:
        target, *rest = item.operands
        reads = [_number(one) for one in rest if not is_predicate(one)]
        chosen = [predicate(one) for one in rest if is_predicate(one)]

        def run(state: State) -> None:
            values = [read(state) for read in (*reads, *chosen)]
            with np.errstate(all="ignore"):
                put(state, target, None if any(one is None for one in values) else float_bits(compute(*values)))

        return run

    return made


def _special(item: Instruction) -> Step:
    """MUFU: 1/x, 1/√x, √x, 2**x, log2 x."""
    function = _SPECIAL.get(item.opcode.split(".")[1])
    return unknown(item) if function is None else _computed(function)(item)


_SPECIAL: dict[str, Callable[[Array], Any]] = {
    "RCP": lambda x: 1 / x, "RSQ": lambda x: 1 / np.sqrt(x), "SQRT": np.sqrt, "EX2": np.exp2, "LG2": np.log2,
}  # fmt: skip


def _rounded(item: Instruction) -> Step:
    return _computed(rounding(item.opcode.split(".")))(item)


def _compared(item: Instruction) -> Step:
    parts, (first, second, left, right, *rest) = item.opcode.split("."), item.operands
    # GEU is GE, or that the numbers are not ordered: NaN does not become an index.
    name = next((one.removesuffix("U") for one in parts[1:] if one.removesuffix("U") in _COMPARE), None)
    if name is None or not rest:
        return unknown(item)
    a, b, other = _number(left), _number(right), predicate(rest[0])
    how = "OR" if "OR" in parts else "AND"
    combine = np.logical_or if how == "OR" else np.logical_and

    def run(state: State) -> None:
        one, two, both = a(state), b(state), other(state)
        if one is None or two is None or both is None:
            put(state, first, without_first(how, both))
            put(state, second, None)
            return
        result = _COMPARE[name](one, two)
        put(state, first, combine(result, both))
        put(state, second, combine(~result, both))

    return run


def compared_with_limits(item: Instruction) -> Step:
    """FSETP with the largest or the least normal number, by which divisions and roots find operands that are neither.

    Others are taken to be ordinary: `FSETP.GEU.AND P0, PT, |R2|, 1.175494350822287508e-38, PT` holds.
    """
    first, second, left, right, *rest = item.operands
    try:
        limit = abs(float(right))
    except ValueError:
        limit = 1.0
    if rest != ["PT"] or "|" not in left or _LEAST_NORMAL < limit < _MOST_NORMAL:
        return unknown(item)
    name = next((one.removesuffix("U") for one in item.opcode.split(".") if one.removesuffix("U") in _COMPARE), "EQ")
    result = np.full((1, 1), _COMPARE[name](1.0, float(right)))

    def run(state: State) -> None:
        put(state, first, result)
        put(state, second, ~result)

    return run


_LEAST_NORMAL, _MOST_NORMAL = 1.2e-38, 8e37


def _checked(item: Instruction) -> Step:
    """FCHK: whether a division needs its slow path, which ordinary numbers do not."""
    return lambda state: put(state, item.operands[0], ~TRUE)


FLOATS: dict[str, Callable[[Instruction], Step]] = {
    "FADD": _computed(operator.add),
    "FMUL": _computed(operator.mul),
    "FFMA": _computed(lambda a, b, c: a * b + c),
    "FMNMX": _computed(lambda a, b, is_least: np.where(is_least, np.minimum(a, b), np.maximum(a, b))),
    "FSEL": _computed(lambda a, b, is_first: np.where(is_first, a, b)),
    "FRND": _rounded,
    "MUFU": _special,
    "FSETP": _compared,
    "FCHK": _checked,
}
"""Opcode → how what it does is made of an instruction."""
