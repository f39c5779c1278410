"""What PTX instructions on floats, and some more on integers, compute for all threads of a CTA at once.

Registers are 64-bit integers that hold the bits. Functions that hardware approximates are computed exactly. Source:
"PTX ISA", chapter 9.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.machine.arithmetic import convert_float, is_float, rounded_to_tf32, saturated
from irscope.machine.elementwise import two_sum
from irscope.machine.ptx_arithmetic import cut
from irscope.machine.values import COMPARISONS, Array, narrow_float

_Integers = NDArray[np.int64]
_WARP = 32
_NARROW = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_PLAIN = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_MODIFIERS = frozenset(("rn", "ftz", "approx", "full", "sat"))
_FORMS = frozenset(("NaN", "rz", "xorsign", "abs"))
"""What may stand before the types of an instruction that is computed; results that are not normal are kept."""


def dtype_of(kind: str) -> np.dtype[Any] | None:
    """The type of each element of `f16x2`, `bf16`, `f32`; None for what is no float, or not computed."""
    kind = kind.removesuffix("x2")
    if kind in _NARROW:
        return narrow_float(_NARROW[kind])
    return np.dtype(_PLAIN[kind]) if kind in _PLAIN else None


def elements(values: _Integers, dtype: np.dtype[Any], count: int) -> list[Array]:
    """The floats in registers, the lowest bits first."""
    bits = 8 * dtype.itemsize
    mask = (1 << bits) - 1 if bits < 64 else -1
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return [((values >> place * bits) & mask).astype(unsigned).view(dtype) for place in range(count)]


def packed(floats: Sequence[Array], dtype: np.dtype[Any]) -> _Integers:
    """Registers of numbers, the first in the lowest bits; floats are rounded, and saturated where they are float8."""
    bits = 8 * dtype.itemsize
    whole = np.zeros(len(floats[0]), np.int64)
    for place, one in enumerate(floats):
        made = convert_float(one, dtype) if is_float(dtype) else one.astype(dtype)
        raw = np.ascontiguousarray(made).view(f"u{dtype.itemsize}").astype(np.int64)
        whole = whole | (raw << place * bits)
    return whole


def float_computed(name: str, suffixes: Sequence[str], operands: Sequence[_Integers]) -> _Integers | None:
    """What an instruction makes of its operands' bits; None if it is not computed. Arguments as of `computed`."""
    with np.errstate(all="ignore"):
        if name == "cvt":
            return _converted(suffixes, operands)
        if name == "redux":
            return _of_warp(suffixes, operands[0])
        kinds = [one for one in suffixes if dtype_of(one) is not None]
        if not kinds or len(kinds) > 2 or suffixes[-1] != kinds[-1]:
            return None
        # add.rn.f32.bf16 d, a, c: the last operand is as wide as the result.
        of_operands = [*[kinds[-1]] * (len(operands) - 1), kinds[0]]
        dtype = dtype_of(kinds[0])
        assert dtype is not None
        count = 2 if kinds[0].endswith("x2") else 1
        rows = [elements(one, dtype_of(kind) or dtype, count) for one, kind in zip(operands, of_operands, strict=True)]
        if name == "setp":
            return _compared(suffixes, [row[0] for row in rows])
        # A form that is another function: min.NaN, add.rz, min.xorsign.abs.
        form = ".".join([name, *(one for one in suffixes if one in _FORMS)])
        function = _FUNCTIONS.get(form)
        if function is None or not {*suffixes} - {*kinds} - _FORMS <= _MODIFIERS:
            return None
        wide = np.float64 if name in ("fma", "mad") or dtype == np.float64 else np.float32
        made = [function(*[row[place].astype(wide) for row in rows]) for place in range(count)]
        if "sat" in suffixes:
            # NaN becomes 0.
            made = [np.clip(np.nan_to_num(one, nan=0.0), 0, 1) for one in made]
        return packed(made, dtype)


def _added_to_zero(one: Array, two: Array) -> Array:
    """The sum of singles, rounded toward zero."""
    total, lost = two_sum(one.astype(np.float64), two.astype(np.float64))
    nearest = total.astype(np.float32)
    beyond = np.abs(nearest.astype(np.float64)) - np.abs(total)
    # Where what was lost is less than the sum, the sum is too large.
    is_larger = (beyond > 0) | ((beyond == 0) & (lost * np.sign(total) < 0))
    return np.where(is_larger, np.nextafter(nearest, np.float32(0)), nearest)


def _signed_by_both(choose: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def function(one: Array, two: Array) -> Array:
        """One of two magnitudes, with the product of the signs."""
        made = choose(np.abs(one), np.abs(two))
        return np.where(np.signbit(one) != np.signbit(two), -made, made)

    return function


_EXTREMES: Mapping[str, np.ufunc] = {
    "min": np.fmin, "max": np.fmax, "min.NaN": np.minimum, "max.NaN": np.maximum,
}  # fmt: skip


def _extreme(function: np.ufunc) -> Callable[..., Array]:
    """Of two operands, or three."""
    return lambda *parts: reduce(function, parts)


_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    **{name: _extreme(function) for name, function in _EXTREMES.items()},
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
    "fma": lambda a, b, c: a * b + c, "mad": lambda a, b, c: a * b + c, "ex2": np.exp2, "lg2": np.log2,
    "rcp": np.reciprocal, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh, "copysign": lambda a, b: np.copysign(b, a), "add.rz": _added_to_zero,
    "min.xorsign.abs": _signed_by_both(np.fmin), "max.xorsign.abs": _signed_by_both(np.fmax),
}  # fmt: skip


def _compared(suffixes: Sequence[str], parts: Sequence[Array]) -> _Integers | None:
    if len([one for one in suffixes if one != "ftz"]) > 2 or len(parts) != 2:
        return None
    name, (one, two) = suffixes[0], parts
    no_order = np.isnan(one) | np.isnan(two)
    if name in ("num", "nan"):
        return (no_order == (name == "nan")).astype(np.int64)
    function = COMPARISONS.get(name.removesuffix("u"))
    if function is None:
        return None
    holds = function(one.astype(np.float64), two.astype(np.float64))
    return np.where(no_order, name.endswith("u"), holds).astype(np.int64)


_ROUNDED: Mapping[str, Callable[[Array], Array]] = {
    "rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil
}  # fmt: skip


def _converted(suffixes: Sequence[str], operands: Sequence[_Integers]) -> _Integers | None:
    *modifiers, target, source = suffixes
    given, made = dtype_of(source), dtype_of(target)
    if (target, source, modifiers) == ("tf32", "f32", ["rna"]):
        single = np.dtype(np.float32)
        return packed([rounded_to_tf32(elements(operands[0], single, 1)[0])], single)
    if not {*modifiers} <= {"rn", "rz", "ftz", "satfinite", *_ROUNDED} or ("rz" in modifiers and made is None):
        return None
    whole = next((_ROUNDED[one] for one in modifiers if one in _ROUNDED), None)
    if given is None and made is not None and source[0] in "su":
        numbers = cut(operands[0], source, wide=False)
        # An unsigned 64-bit register is held as a signed number.
        values = numbers.view(np.uint64) if source == "u64" else numbers
        return packed([values if made.kind == "f" else values.astype(np.float64)], made)
    if given is not None and made is None and target[0] in "su" and whole is not None:
        integer = np.dtype(f"{'i' if target[0] == 's' else 'u'}{int(target[1:]) // 8}")
        return saturated(whole(elements(operands[0], given, 1)[0].astype(np.float64)), integer).astype(np.int64)
    if given is None or made is None:
        return None
    lanes = 2 if source.endswith("x2") else 1
    # cvt.rn.f16x2.f32 d, a, b: a gives the upper half.
    floats = [one for operand in reversed(operands) for one in elements(operand, given, lanes)]
    floats = [one if whole is None else whole(one.astype(np.float64)) for one in floats]
    return packed([convert_float(one, made, "rtz") for one in floats] if "rz" in modifiers else floats, made)


def _of_warp(suffixes: Sequence[str], values: _Integers) -> _Integers | None:
    """redux.sync: of the threads of each warp, all of them."""
    name = next((one for one in suffixes if one in ("add", "min", "max", "and", "or", "xor")), "")
    dtype = dtype_of(suffixes[-1])
    if len(values) % _WARP or not name:
        return None
    if dtype is not None:
        function = _EXTREMES.get(f"{name}.NaN" if "NaN" in suffixes else name)
        if function is None:
            return None
        floats = elements(values, dtype, 1)[0].reshape(-1, _WARP)
        floats = np.abs(floats) if "abs" in suffixes else floats
        return packed([np.repeat(function.reduce(floats, axis=1), _WARP)], dtype)
    functions = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }  # fmt: skip
    rows = cut(values, suffixes[-1], wide=False).reshape(-1, _WARP)
    return cut(np.repeat(functions[name].reduce(rows, axis=1), _WARP), suffixes[-1], wide=False)
