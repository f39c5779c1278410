"""The arithmetic of floats that the machine computes in: here as IEEE 754 rounds; others replace its methods.

Integers, addresses and masks are the same in every arithmetic.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.machine.memory import GlobalMemory, OnAccess
from irscope.machine.values import Array, narrow_float, poison, unsigned

_TF32_MASK = np.uint32(0xFFFFE000)
"""TF32 drops the last 13 bits of float32."""
_MOST_ITERATIONS = 1 << 22
"""Of a loop without a bound: what is still running then waits for what never comes."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a type is one of floats, those of `ml_dtypes` included."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def float_bits(dtype: np.dtype[Any]) -> int:
    """Bits of a float's significand, the implicit one included."""
    if dtype.kind == "f":
        return int(np.finfo(dtype).nmant) + 1
    import ml_dtypes

    return int(ml_dtypes.finfo(dtype).nmant) + 1


def convert_float(values: Array, dtype: np.dtype[Any], rounding: str = "rtne") -> Array:
    """Floats in another format: to the nearest (ties to even), or towards zero; float8 saturates, and keeps NaN."""
    if values.dtype == dtype:
        return values
    if dtype.itemsize == 1:
        import ml_dtypes

        limit = float(ml_dtypes.finfo(dtype).max)
        wide = values.astype(np.float32)
        values = np.clip(wide, -limit, limit)
    if values.dtype == np.float64 and dtype.kind != "f":
        # By way of float32, rounded to odd: a second rounding then gives what a single one would.
        near = values.astype(np.float32)
        inexact = (near.astype(np.float64) != values) & np.isfinite(values) & np.isfinite(near)
        down = np.where(np.abs(near) > np.abs(values), np.nextafter(near, np.float32(0)), near)
        values = np.where(inexact, (down.view(np.uint32) | 1).view(np.float32), near)
    converted = values.astype(dtype)
    if rounding != "rtz":
        return converted
    too_far = np.abs(converted.astype(np.float64)) > np.abs(values.astype(np.float64))
    bits = converted.view(f"u{dtype.itemsize}")
    # One less in sign and magnitude is the next one towards zero, from infinity too.
    return np.where(too_far, bits - 1, bits).astype(bits.dtype).view(dtype)


def saturated(values: Array, dtype: np.dtype[Any]) -> Array:
    """Whole floats as integers of a type. What does not fit becomes the nearest that does, as by the GPU's conversions.

    NaN becomes zero: LLVM leaves open what it becomes.
    """
    limits, wide = np.iinfo(dtype), values.astype(np.float64)
    # The greatest 64-bit numbers are no float64: the next one below is converted, and what is above is the limit.
    top = np.nextafter(float(limits.max) + 1, 0.0) if dtype.itemsize == 8 else float(limits.max)
    whole = np.nan_to_num(np.clip(wide, float(limits.min), top)).astype(dtype)
    return np.where(wide > top, np.array([limits.max], dtype), whole)


_FOLDS: dict[str, np.ufunc] = {
    "arith.addf": np.add, "arith.addi": np.add, "arith.mulf": np.multiply, "arith.muli": np.multiply,
    "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum, "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}  # fmt: skip
_UNSIGNED_FOLDS = {"arith.maxui": np.maximum, "arith.minui": np.minimum}
_UFUNCS_OF_EACH_TYPE = (np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor)


def rounded_to_tf32(values: Array) -> Array:
    """To TF32's ten bits, the nearest; ties away from zero. Infinities and NaN stay."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x1000)) & _TF32_MASK
    return np.where(np.isfinite(values), rounded, bits).astype(np.uint32).view(np.float32)


def _rounded_to_bf16(values: Array) -> Array:
    return values.astype(narrow_float("bfloat16")).astype(np.float32)


_PARTS = {"tf32x3": (2, rounded_to_tf32), "bf16x3": (2, _rounded_to_bf16), "bf16x6": (3, _rounded_to_bf16)}
"""Precision of a dot of float32 → into how many parts its operands are split, and how each is rounded.

Source: Triton's lib/Dialect/TritonGPU/Transforms/F32DotTC.cpp.
"""


def _parts(values: Array, count: int, rounded: Callable[[Array], Array]) -> list[Array]:
    parts = [rounded(values)]
    while len(parts) < count:
        values = values - parts[-1]
        parts.append(rounded(values))
    return parts


class Arithmetic:
    """Ordinary arithmetic: a float is an element of its own NumPy type."""

    executors: Mapping[str, Callable[..., Any]] = {}
    """Opcode → what executes it in place of the machine's own executor."""
    most_iterations = _MOST_ITERATIONS
    writes_back = True
    """Whether a run ends with what it stored in the storages of its arguments."""
    cell_bytes = 1
    """Bytes of shared memory that hold a byte of the kernel's."""

    def memory(self, storages: Sequence[NDArray[np.uint8]], on_access: OnAccess | None) -> GlobalMemory:
        return GlobalMemory(storages, on_access)

    def held_as(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The type of the arrays that hold elements of a type."""
        return dtype

    def embed(self, values: Array) -> Array:
        """Numbers of a NumPy type, as elements."""
        return values

    def argument(self, values: Array) -> Array:
        """A scalar argument of the launch."""
        return values

    def poison(self, dtype: np.dtype[Any], rank: int) -> Array:
        """What nobody may read, for each element of a tensor."""
        return poison(dtype, rank)

    def convert(self, values: Array, dtype: np.dtype[Any], rounding: str = "rtne") -> Array:
        return convert_float(values, dtype, rounding)

    def approximated(self, function: Callable[..., Array], values: Array) -> Array:
        """What hardware may give in place of the exact values of a function."""
        return values

    def multiply(self, left: Array, right: Array) -> Array:
        return left * right

    def fold(self, opcode: str, values: Array, axis: int) -> Array | None:
        """The reduction of an axis by an operation; None where its combine region has to be executed."""
        if opcode in _UNSIGNED_FOLDS:
            return _UNSIGNED_FOLDS[opcode].reduce(unsigned(values), axis=axis).view(values.dtype)
        ufunc = _FOLDS.get(opcode)
        if (
            ufunc is None
            or values.dtype.kind == "V"
            or (values.dtype == np.bool_ and ufunc not in _UFUNCS_OF_EACH_TYPE)
        ):
            return None
        if values.dtype == np.float16 and ufunc in (np.add, np.multiply):
            # NumPy would sum them in float32 and round once; the kernel's own type rounds each sum.
            while (size := values.shape[axis]) > 1:
                half = size // 2
                values = ufunc(np.take(values, range(half), axis), np.take(values, range(half, size), axis))
            return np.take(values, 0, axis)
        return ufunc.reduce(values, axis=axis, dtype=values.dtype)

    def atomic(self, function: np.ufunc, dtype: np.dtype[Any]) -> np.ufunc:
        """What an atomic operation on elements of a type does."""
        numeric: dict[np.ufunc, np.ufunc] = {np.maximum: np.fmax, np.minimum: np.fmin}
        return numeric.get(function, function) if dtype.kind == "f" else function

    def product(
        self, left: Array, right: Array, accumulator: Array | None, dtype: np.dtype[Any], precision: str
    ) -> Array:
        """`left @ right + accumulator`, the sum over k in an order that is open.

        Products of narrow floats are exact in float32, in which they are summed; the error of a sum of k products is at
        most (k - 1) · 2^-24 · Σ|a·b|, of float64's at most (k - 1) · 2^-53 · Σ|a·b|. Integers are exact.
        """
        if left.dtype.kind in "ib":
            total = np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64).astype(dtype)
            return total if accumulator is None else total + accumulator
        if np.float64 in (left.dtype, right.dtype):
            total = np.matmul(left, right)
            return total if accumulator is None else total + accumulator
        if precision in _PARTS and left.dtype == right.dtype == np.float32:
            count, rounded = _PARTS[precision]
            lefts, rights = (_parts(matrix, count, rounded) for matrix in (left, right))
            total = np.zeros(1, np.float32) if accumulator is None else accumulator
            # The least first.
            for both in reversed(range(count)):
                for place in range(both + 1):
                    total = total + np.matmul(lefts[place], rights[both - place])
            return convert_float(total, dtype)
        operands: list[Array] = []
        for matrix in (left, right):
            wide = np.ascontiguousarray(matrix.astype(np.float32, copy=False))
            if precision == "tf32" and matrix.dtype == np.float32:
                wide = (wide.view(np.uint32) & _TF32_MASK).view(np.float32)
            operands.append(wide)
        total = np.matmul(*operands)
        if accumulator is not None:
            total = total + accumulator.astype(np.float32, copy=False)
        return convert_float(total, dtype)
