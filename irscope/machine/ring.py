"""A second arithmetic: floats are elements of a field of whole numbers, in which sums and products are exact.

An element is a number modulo P, a prime below 2^31. Each finite float is a fraction m · 2^e, and stands for the element
m · 2^e: 0, 1, -1 and powers of two are what they are, and so is what is computed of constants, but for quotients.
Other orders of a sum, other tiles along k, fused multiply-adds, a division in place of a product with the reciprocal
and the split of a product into parts give the same element. Conversions between float formats change nothing: what
rounding does is no part of the meaning. `exp`, `sqrt` and the like are random functions of their operand that keep
what compilers use (exp2(0) = 1); an order of the elements, in which -inf is the least, decides comparisons, maxima and
minima. NaN is an element like any other.

Elements of tensors and scalar arguments are drawn at random, by their place. Programs that compute different
polynomials of degree d give one and the same element with a probability of at most d / P, by each element.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.errors import NotRun
from irscope.ir.mlir.attributes import Dense
from irscope.ir.mlir.model import Operation, Value
from irscope.machine.arithmetic import Arithmetic, is_float, rounded_to_tf32
from irscope.machine.control import Bindings, Executor, Machine, Step, pure
from irscope.machine.elementwise import (
    ELEMENTWISE,
    FLOAT_FUNCTIONS,
    FloatFunction,
    array_of,
    called_function,
    fused,
    reciprocal,
    reciprocal_root,
    rounding_of,
)  # fmt: skip
from irscope.machine.memory import GlobalMemory, OnAccess
from irscope.machine.numbers import scrambled
from irscope.machine.values import COMPARISONS, Array, Held, dtype_of

PRIME = 2147483629
_P = np.uint64(PRIME)
_HALF = (PRIME - 1) // 2
INFINITY, MINUS_INFINITY, NAN, POISON = (np.uint64(one) for one in (_HALF, _HALF + 1, 1618033988, 1414213562))
_LOG2_E = 1.4426950408889634

# ── elements ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _reduced(values: Array) -> Array:
    """Modulo P. A quotient by a constant is several times faster than NumPy's remainder."""
    return values - values // _P * _P


def _add(left: Array, right: Array) -> Array:
    return _reduced(left + right)


def _negative(values: Array) -> Array:
    return np.where(values == 0, values, _P - values)


def _subtract(left: Array, right: Array) -> Array:
    return _reduced(left + (_P - right))


def _multiply(left: Array, right: Array) -> Array:
    return _reduced(left * right)


def _inverse(values: Array) -> Array:
    """The reciprocal, by Fermat; of zero some element."""
    result, square, exponent = np.ones((1,) * values.ndim, np.uint64), values, PRIME - 2
    while exponent:
        if exponent & 1:
            result = _multiply(result, square)
        square, exponent = _multiply(square, square), exponent >> 1
    return np.where(values == 0, INFINITY, result)


def _signed(values: Array) -> NDArray[np.int64]:
    """The numbers nearest to zero: their order is that of the elements, and negation turns it round."""
    numbers = values.astype(np.int64)
    return np.where(numbers > _HALF, numbers - PRIME, numbers)


def _element(numbers: Array) -> Array:
    return np.mod(numbers, PRIME).astype(np.uint64)


def _hashed(values: Array, key: int) -> Array:
    """A random function of elements, another one for each key."""
    return _reduced(scrambled(values.astype(np.uint64) + np.uint64(key * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)))


_POWERS = np.array([pow(2, exponent % (PRIME - 1), PRIME) for exponent in range(-1200, 1100)], np.uint64)
"""2 to the power of each exponent that a float64 has."""


def embedded(values: Array) -> Array:
    """Floats as the elements that they stand for."""
    wide = values.astype(np.float64)
    significand, exponent = np.frexp(np.where(np.isfinite(wide), wide, 0.0))
    whole = _element(np.ldexp(significand, 53).astype(np.int64))
    elements = _multiply(whole, _POWERS[exponent.astype(np.int64) - 53 + 1200])
    special = np.where(np.isnan(wide), NAN, np.where(wide > 0, INFINITY, MINUS_INFINITY))
    return np.where(np.isfinite(wide), elements, special)


# ── functions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _greatest(left: Array, right: Array) -> Array:
    return np.where(_signed(left) >= _signed(right), left, right)


def _least(left: Array, right: Array) -> Array:
    return np.where(_signed(left) <= _signed(right), left, right)


def _absolute(values: Array) -> Array:
    return np.where(_signed(values) < 0, _negative(values), values)


def hashed_term(key: int, *operands: Array) -> Array:
    """A random function of one element or several."""
    result = np.zeros((1,) * operands[0].ndim, np.uint64)
    for operand in operands:
        result = _hashed(result * np.uint64(PRIME) + operand, key)
    return result


def _random(name: str, fixed: Mapping[int, int] | None = None) -> FloatFunction:
    """A random function of one element or several, with its values at some elements."""
    key = zlib.crc32(name.encode())

    def apply(*operands: Array) -> Array:
        result = hashed_term(key, *operands)
        for argument, value in (fixed or {}).items():
            result = np.where(operands[0] == np.uint64(argument), np.uint64(value), result)
        return result

    return apply


_exp2 = _random("exp2", {0: 1, int(MINUS_INFINITY): 0})
_log2 = _random("log2", {1: 0, 2: 1})
_root = _random("sqrt", {0: 0, 1: 1})
_any_power = _random("power")


def _exp(values: Array) -> Array:
    scaled = _multiply(values, embedded(np.array(_LOG2_E)))
    return np.where(values == MINUS_INFINITY, np.uint64(0), _exp2(scaled))


def _log(values: Array) -> Array:
    return _multiply(_log2(values), embedded(np.array(1 / _LOG2_E)))


def _power(base: Array, exponent: Array) -> Array:
    result = np.where(exponent == 2, _multiply(base, base), _any_power(base, exponent))
    return np.where(exponent == 1, base, np.where(exponent == 0, np.uint64(1), result))


def _with_sign(values: Array, sign: Array) -> Array:
    size = _absolute(values)
    return np.where(_signed(sign) < 0, _negative(size), size)


_ONE = np.ones((), np.uint64)
_FUNCTIONS: dict[FloatFunction, FloatFunction] = {
    np.add: _add, np.subtract: _subtract, np.multiply: _multiply, np.negative: _negative, np.fmax: _greatest,
    np.maximum: _greatest, np.fmin: _least, np.minimum: _least, np.abs: _absolute, np.sqrt: _root, np.exp: _exp,
    np.exp2: _exp2, np.log: _log, np.log2: _log2, np.power: _power, np.copysign: _with_sign,
    np.divide: lambda a, b: _multiply(a, _inverse(b)), fused: lambda a, b, c: _reduced(a * b + c),
    reciprocal: _inverse, reciprocal_root: lambda x: _inverse(_root(x)), rounded_to_tf32: lambda x: x,
    np.expm1: lambda x: _subtract(_exp(x), _ONE), np.log1p: lambda x: _log(_add(x, _ONE)),
    np.isnan: lambda x: x == NAN, np.isinf: lambda x: (x == INFINITY) | (x == MINUS_INFINITY),
    np.isfinite: lambda x: (x != INFINITY) & (x != MINUS_INFINITY) & (x != NAN), np.signbit: lambda x: _signed(x) < 0,
}  # fmt: skip


def _function_of(function: FloatFunction) -> FloatFunction:
    """What stands for a function of floats."""
    return _FUNCTIONS.get(function) or _random(getattr(function, "__name__", ""))


# ── operations ────────────────────────────────────────────────────────────────────────────────────────────────────


def _call_function(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    if not any(is_float(dtype_of(kind)) for kind in (*step.operand_types, *step.types)):
        return ELEMENTWISE[step.opcode](machine, step, frame)
    result = _function_of(called_function(step))(*[frame.array(value) for value in step.operands])
    return (result if is_float(step.dtype) else result.astype(step.dtype),)


def _executor_of(opcode: str, function: FloatFunction) -> Executor:
    """The executor of a function of floats; one of constants is the float that compilers fold it to.

    Not so a quotient: compilers make a product with the reciprocal of it.
    """
    plain = pure(_function_of(function))
    if opcode == "math.fma" or "div" in opcode:
        return plain

    def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        constant = _constant_of(machine, step.results[0])
        if constant is None:
            return plain(machine, step, frame)
        return (machine.arithmetic.embed(constant).reshape((1,) * (len(step.shape) + 1)),)

    return execute


def _constant_of(machine: Machine, value: Value) -> Array | None:
    """The float of a scalar, or of all elements of a tensor, that is computed from constants alone."""
    owner = machine.module.owners.get(value.number)
    if not isinstance(owner, Operation) or len(owner.results) != 1 or owner.regions:
        return None
    dtype = dtype_of(owner.result_types[0])
    if not is_float(dtype):
        return None
    if owner.name == "arith.constant":
        stated = owner.attribute("value")
        if isinstance(stated, Dense):
            stated = stated.values[0] if stated.is_splat and stated.values else None
        return array_of((stated,), dtype) if isinstance(stated, int | float) else None
    if owner.opcode not in FLOAT_FUNCTIONS and owner.opcode != "splat":
        return None
    operands = [_constant_of(machine, one) for one in owner.operands]
    known = [one for one in operands if one is not None]
    if not known or len(known) < len(operands):
        return None
    with np.errstate(all="ignore"):
        return known[0] if owner.opcode == "splat" else FLOAT_FUNCTIONS[owner.opcode](*known).astype(dtype)


def _compare(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    left, right = (frame.array(value) for value in step.operands)
    predicate = str(step.attribute("predicate")).strip("_")
    if predicate in ("true", "false"):
        return (np.full(1, predicate == "true"),)
    if predicate in ("ord", "uno"):
        unordered = (left == NAN) | (right == NAN)
        return (unordered if predicate == "uno" else ~unordered,)
    return (COMPARISONS[predicate[1:]](_signed(left), _signed(right)),)


def _convert(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    rounding_of(step)
    return (frame.array(step.operands[0]),)


def _from_integer(signed: bool) -> Executor:
    def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        values = frame.array(step.operands[0])
        if values.dtype == np.bool_:
            values = -values.astype(np.int8) if signed else values.astype(np.int8)
        elif not signed:
            return (_reduced(values.view(f"u{values.dtype.itemsize}").astype(np.uint64)),)
        return (_element(values.astype(np.int64)),)

    return execute


def _to_integer(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """The number nearest to zero: that of an integer that became a float."""
    numbers = _signed(frame.array(step.operands[0]))
    return (numbers != 0 if step.dtype == np.bool_ else numbers.astype(step.dtype),)


def _bitcast(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    source = dtype_of(step.operand_types[0])
    if is_float(source) and source != step.dtype:
        raise step.not_run("this arithmetic does not model the bits of floats")
    if source == step.dtype:
        return (frame.array(step.operands[0]),)
    held = ELEMENTWISE[step.opcode](machine, step, frame)
    return [machine.arithmetic.embed(values) for values in held if isinstance(values, np.ndarray)]


def _clamp(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values, low, high = (frame.array(value) for value in step.operands)
    return (_least(_greatest(values, low), high),)


_ATOMICS: dict[np.ufunc, FloatFunction] = {np.maximum: _greatest, np.minimum: _least}
_EXECUTORS: Mapping[str, Executor] = {
    **{opcode: _executor_of(opcode, function) for opcode, function in FLOAT_FUNCTIONS.items()},
    "math.fpowi": lambda machine, step, frame: (
        _power(frame.array(step.operands[0]), _element(frame.array(step.operands[1]).astype(np.int64))),
    ),
    "arith.cmpf": _compare, "arith.extf": _convert, "arith.truncf": _convert, "fp_to_fp": _convert,
    "arith.sitofp": _from_integer(True), "arith.uitofp": _from_integer(False), "arith.fptosi": _to_integer,
    "arith.fptoui": _to_integer, "arith.bitcast": _bitcast, "bitcast": _bitcast, "clampf": _clamp,
    "extern_elementwise": _call_function, "elementwise_inline_asm": _call_function,
}  # fmt: skip

# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────

_SCRATCH_BYTES = 1 << 26
"""Of memory that programs allocate."""
_INTEGER = 1
"""The cell of a place where an integer was written; 0 of one where nobody wrote, and an element e is e + 2."""


class RingMemory(GlobalMemory):
    """Global memory with a cell for the float that begins at a byte; integers are bytes as ever.

    Pages of cells that nobody wrote take no memory.
    """

    def __init__(self, storages: Sequence[NDArray[np.uint8]], on_access: OnAccess | None, seed: int) -> None:
        super().__init__(storages, on_access)
        self._cells = np.zeros(self._bytes.size + _SCRATCH_BYTES, np.uint32)
        self._seed = seed
        self._arguments = len(storages)
        self._written: dict[np.dtype[Any], list[Array]] = {}
        self.initial_reads: set[tuple[int, bool]] = set()
        """(storage, whether as floats) of what was read that nobody had written."""

    def initial(self, places: Array, dtype: np.dtype[Any]) -> Array:
        """The elements of tensors before the launch."""
        return _hashed(places.astype(np.uint64), self._seed + zlib.crc32(dtype.name.encode()))

    def element(self, places: Array, dtype: np.dtype[Any]) -> Array:
        cells = self._cells.take(places, mode="clip").astype(np.uint64)
        if (cells == _INTEGER).any():
            bits = self._units(dtype).take(places // dtype.itemsize, mode="clip").view(dtype)
            written = np.where(cells == _INTEGER, embedded(bits), cells - np.uint64(2))
        else:
            written = cells - np.uint64(2)
        is_initial = cells == 0
        return np.where(is_initial, self.initial(places, dtype), written) if is_initial.any() else written

    def _read(self, places: Array, dtype: np.dtype[Any], mask: Array | None = None) -> Array:
        here = places * dtype.itemsize
        cells = self._cells.take(here, mode="clip")
        chosen = np.True_ if mask is None else mask
        if not is_float(dtype) and ((cells > _INTEGER) & chosen).any():
            raise NotRun("not run: floats in memory are read as integers, and bits of floats are not modelled")
        shape = np.broadcast_shapes(cells.shape, chosen.shape)
        initial = np.broadcast_to((cells == 0) & chosen, shape)
        if initial.any():
            first = int(np.broadcast_to(here, shape)[initial][0])
            self.initial_reads.add((int(np.searchsorted(self._starts, first, "right")) - 1, is_float(dtype)))
        return self.element(here, dtype) if is_float(dtype) else super()._read(places, dtype)

    def _write(self, places: Array, values: Array, dtype: np.dtype[Any]) -> None:
        here = places * dtype.itemsize
        self._written.setdefault(dtype, []).append(np.unique(here))
        if is_float(dtype):
            self._cells[here] = (_reduced(values) + np.uint64(2)).astype(np.uint32)
            self.changes += 1
        else:
            self._cells[here] = _INTEGER
            super()._write(places, values, dtype)

    def written(self) -> Mapping[np.dtype[Any], Array]:
        """The places of the launch's tensors that were written, by the type of what was."""
        end = self._starts[self._arguments - 1] + self._sizes[self._arguments - 1] if self._arguments else 0
        unique = {dtype: np.unique(np.concatenate(parts)) for dtype, parts in self._written.items()}
        return {dtype: places[places < end] for dtype, places in unique.items()}

    def stored(self, places: Array, dtype: np.dtype[Any]) -> Array:
        return self.element(places, dtype) if is_float(dtype) else super()._read(places // dtype.itemsize, dtype)

    def at(self, place: int) -> tuple[int, int]:
        """(storage, byte of it) of a place."""
        storage = int(np.searchsorted(self._starts, place, "right")) - 1
        return storage, place - self._starts[storage]


class RingArithmetic(Arithmetic):
    """Floats as elements of the field; `seed` draws those of tensors and arguments."""

    executors = _EXECUTORS
    most_iterations = 1 << 13
    writes_back = False
    cell_bytes = 8

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self.result: RingMemory | None = None
        """The memory of the last run."""

    def memory(self, storages: Sequence[NDArray[np.uint8]], on_access: OnAccess | None) -> GlobalMemory:
        self.result = RingMemory(storages, on_access, self._seed)
        return self.result

    def held_as(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return np.dtype(np.uint64) if is_float(dtype) else dtype

    def embed(self, values: Array) -> Array:
        return embedded(values) if is_float(values.dtype) else values

    def argument(self, values: Array) -> Array:
        return _hashed(embedded(values), self._seed) if is_float(values.dtype) else values

    def poison(self, dtype: np.dtype[Any], rank: int) -> Array:
        return np.full((1,) * (rank + 1), POISON) if is_float(dtype) else super().poison(dtype, rank)

    def convert(self, values: Array, dtype: np.dtype[Any], rounding: str = "rtne") -> Array:
        return values

    def multiply(self, left: Array, right: Array) -> Array:
        return _multiply(left, right)

    def fold(self, opcode: str, values: Array, axis: int) -> Array | None:
        if values.dtype != np.uint64:
            return super().fold(opcode, values, axis)
        if opcode == "arith.addf":
            return _reduced(np.add.reduce(values, axis=axis))
        if opcode in ("arith.maxnumf", "arith.maximumf"):
            return _element(np.max(_signed(values), axis=axis))
        if opcode in ("arith.minnumf", "arith.minimumf"):
            return _element(np.min(_signed(values), axis=axis))
        return None

    def atomic(self, function: np.ufunc, dtype: np.dtype[Any]) -> Any:
        return _ATOMICS.get(function, function) if is_float(dtype) else function

    def product(
        self, left: Array, right: Array, accumulator: Array | None, dtype: np.dtype[Any], precision: str
    ) -> Array:
        if left.dtype != np.uint64:
            return super().product(left, right, accumulator, dtype, precision)
        # Halves of elements: sums of their products are exact in float64 up to k = 2^18 (Karatsuba's three products).
        half, low = np.uint64(16), np.uint64(0xFFFF)
        a, b = ((one >> half).astype(np.float64) for one in (left, right))
        c, d = ((one & low).astype(np.float64) for one in (left, right))
        high, small = np.matmul(a, b), np.matmul(c, d)
        middle = (np.matmul(a + c, b + d) - high - small).astype(np.uint64)
        high, small = (_reduced(one.astype(np.uint64)) for one in (high, small))
        middle = _reduced(middle) << half
        total = _reduced((high << half) % _P * np.uint64(1 << 16) + middle + small)
        return total if accumulator is None else _add(total, accumulator)


@dataclass(frozen=True, slots=True)
class RingDifference:
    """Where two runs leave something else in memory."""

    storage: int
    offset_bytes: int
    dtype: np.dtype[Any]
    values: tuple[int, int]
    elements: int
    """How many differ."""


def first_difference(left: RingMemory, right: RingMemory) -> RingDifference | None:
    """The first place at which two runs of one launch leave different elements; None if they leave the same.

    Raises NotRun where one of both read or wrote the bits of floats.
    """
    shared = {storage for storage, _ in left.initial_reads ^ right.initial_reads}
    both = left.initial_reads | right.initial_reads
    if any((storage, True) in both and (storage, False) in both for storage in shared):
        raise NotRun("one of the two runs reads floats of a tensor as integers")
    differing: list[RingDifference] = []
    ours, theirs = left.written(), right.written()
    for dtype in {*ours, *theirs}:
        none = np.zeros(0, np.int64)
        places = np.union1d(ours.get(dtype, none), theirs.get(dtype, none))
        values = left.stored(places, dtype), right.stored(places, dtype)
        differs = np.flatnonzero(values[0] != values[1])
        if len(differs):
            at = int(differs[0])
            storage, offset = left.at(int(places[at]))
            pair = (int(values[0][at]), int(values[1][at]))
            differing.append(RingDifference(storage, offset, dtype, pair, len(differs)))
    return min(differing, key=lambda one: (one.storage, one.offset_bytes), default=None)
