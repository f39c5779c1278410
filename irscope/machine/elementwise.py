"""Arithmetic on elements: integers as they wrap, floats as IEEE 754 rounds them, conversions, known library functions.

Where the instruction set leaves a result open (a division by zero, a shift by the width or more) it is zero. Functions
that hardware approximates (`exp`, a division that need not be rounded correctly) are computed as exactly as NumPy does.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from irscope.ir.mlir.attributes import Dense
from irscope.machine.arithmetic import convert_float, rounded_to_tf32, saturated
from irscope.machine.control import Bindings, Executor, Machine, Step, pure
from irscope.machine.values import COMPARISONS, Array, Held, Undefined, merge, take, unsigned

FloatFunction = Callable[..., Array]
"""A function of arrays of floats, known by its identity."""

# ── integers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _bits(values: Array) -> int:
    return 1 if values.dtype == np.bool_ else values.dtype.itemsize * 8


def _unless_zero(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """A function of a divisor: what a division by zero gives is open, here zero."""

    def divide(left: Array, right: Array) -> Array:
        is_zero = right == 0
        if not is_zero.any():
            return function(left, right)
        return np.where(
            is_zero, np.zeros(1, left.dtype), function(left, np.where(is_zero, np.ones(1, right.dtype), right))
        )

    return divide


def _divide_signed(left: Array, right: Array) -> Array:
    quotient = left // right
    # Towards zero, not down.
    return quotient + ((quotient < 0) & (quotient * right != left)).astype(left.dtype)


def _signed_result(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of unsigned operands whose result is taken as signed again."""

    def apply(*operands: Array) -> Array:
        result = function(*[unsigned(one) for one in operands])
        return result.view(operands[0].dtype) if result.dtype != operands[0].dtype else result

    return apply


def _shifted(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def shift(values: Array, counts: Array) -> Array:
        fits = unsigned(counts) < _bits(values)
        if fits.all():
            return function(values, counts)
        return np.where(
            fits, function(values, np.where(fits, counts, np.zeros(1, counts.dtype))), np.zeros(1, values.dtype)
        )

    return shift


def _wrapping(on_numbers: Callable[..., Array], on_bits: Callable[..., Array]) -> Callable[..., Array]:
    """A function that NumPy does not have for Booleans as it is modulo two."""
    return lambda *operands: (on_bits if operands[0].dtype == np.bool_ else on_numbers)(*operands)


def _high_product(left: Array, right: Array) -> Array:
    left, right = unsigned(left), unsigned(right)
    if left.dtype.itemsize < 8:
        wide = left.astype(np.uint64) * right.astype(np.uint64)
        return (wide >> np.uint64(_bits(left))).astype(left.dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b, c, d = left >> half, left & low, right >> half, right & low
    middle = a * d + (b * d >> half)
    return a * c + (middle >> half) + ((b * c + (middle & low)) >> half)


def high_product_unsigned(left: Array, right: Array) -> Array:
    """The upper half of the product of numbers without a sign."""
    return _high_product(left, right).view(left.dtype)


def high_product_signed(left: Array, right: Array) -> Array:
    """The upper half of the product of numbers with a sign."""
    high = _high_product(left, right).view(left.dtype)
    zero = np.zeros(1, left.dtype)
    return high - np.where(left < 0, right, zero) - np.where(right < 0, left, zero)


def _pairs(high: Callable[[Array, Array], Array]) -> Executor:
    def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        left, right = (frame.array(value) for value in step.operands)
        return (left * right, high(left, right))

    return execute


def _add_extended(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    left, right = (frame.array(value) for value in step.operands)
    total = left + right
    return (total, unsigned(total) < unsigned(left))


def _compare_integers(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    left, right = (frame.array(value) for value in step.operands)
    predicate = str(step.attribute("predicate"))
    if predicate[0] == "u":
        left, right = unsigned(left), unsigned(right)
    elif left.dtype == np.bool_:
        # A set bit is -1.
        left, right = -left.astype(np.int8), -right.astype(np.int8)
    return (COMPARISONS[predicate[-2:]](left, right),)


def _compare_floats(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    left, right = (frame.array(value) for value in step.operands)
    predicate = str(step.attribute("predicate")).strip("_")
    unordered = np.isnan(left) | np.isnan(right)
    if predicate in ("true", "false"):
        return (np.full(1, predicate == "true"),)
    if predicate in ("ord", "uno"):
        return (unordered if predicate == "uno" else ~unordered,)
    holds = COMPARISONS[predicate[1:]](left, right)
    return (holds | unordered if predicate[0] == "u" else holds & ~unordered,)


# ── conversions ───────────────────────────────────────────────────────────────────────────────────────────────────


def _resized(signed: bool) -> Executor:

    def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        values, dtype = frame.array(step.operands[0]), step.dtype
        if dtype == np.bool_:
            return ((values & 1).astype(np.bool_) if values.dtype != np.bool_ else values,)
        if values.dtype == np.bool_:
            return ((-values.astype(np.int8)).astype(dtype) if signed else values.astype(dtype),)
        return ((values if signed else unsigned(values)).astype(dtype),)

    return execute


def _to_integer(signed: bool) -> Executor:
    """Floats towards zero; what does not fit is saturated."""

    def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        values, dtype = frame.array(step.operands[0]), step.dtype
        wide = np.trunc(values.astype(np.float64))
        if dtype == np.bool_:
            return (wide != 0,)
        return (saturated(wide, dtype if signed else np.dtype(f"u{dtype.itemsize}")).view(dtype),)

    return execute


def _from_integer(signed: bool) -> Executor:
    def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        values = frame.array(step.operands[0])
        if values.dtype == np.bool_:
            values = -values.astype(np.int8) if signed else values.astype(np.uint8)
        numbers = values if signed else unsigned(values)
        return (
            numbers.astype(step.dtype)
            if step.dtype.kind == "f"
            else convert_float(numbers.astype(np.float64), step.dtype),
        )

    return execute


def rounding_of(step: Step) -> str:
    """How a conversion rounds: `rtne` or `rtz`; raises NotRun for a rounding by chance."""
    rounding = str(step.attribute("rounding") or "rtne")
    if rounding not in ("rtne", "rtz"):
        raise step.not_run(f"the rounding {rounding!r} is stochastic")
    return rounding


def _float_to_float(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values, dtype, rounding = frame.array(step.operands[0]), step.dtype, rounding_of(step)
    if dtype.itemsize == 1 and step.opcode == "arith.truncf":
        raise step.not_run("the saturation mode of this conversion to float8 is unspecified")
    return (convert_float(values, dtype, rounding),)


def _bitcast(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values, dtype = frame.array(step.operands[0]), step.dtype
    if values.dtype.itemsize != dtype.itemsize:
        raise step.not_run("it changes the number of bits")
    if np.bool_ in (values.dtype, dtype):
        return (values.astype(dtype),)
    return (np.ascontiguousarray(values).view(dtype),)


def _constant(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    value = step.attribute("value")
    rank = len(step.shape)
    if isinstance(value, Dense):
        numbers = value.values
        if not numbers:
            raise step.not_run("cannot read the elements of the constant")
        shape = (1,) * (rank + 1) if value.is_splat else (1, *step.shape)
    else:
        numbers, shape = (cast("int | float", value),), (1,) * (rank + 1)
    return (machine.arithmetic.embed(array_of(numbers, step.dtype)).reshape(shape),)


def array_of(numbers: Sequence[int | float], dtype: np.dtype[Any]) -> Array:
    """Numbers as Python has them in a type of the machine's."""
    if dtype.kind in "iu":
        # The text has unsigned ones as they are.
        mask = (1 << dtype.itemsize * 8) - 1
        return np.array([int(one) & mask for one in numbers], np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    if dtype == np.bool_:
        return np.array([bool(one) for one in numbers])
    return convert_float(np.array(numbers, np.float64), dtype)


def _poison(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    if step.type.form in ("memdesc", "descriptor"):
        return (Undefined(),)
    return (machine.arithmetic.poison(step.dtype, len(step.shape)),)


# ── functions of floats ───────────────────────────────────────────────────────────────────────────────────────────


def _wide(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function that NumPy has for float32 and float64 alone: narrower formats by way of float32."""

    def apply(*operands: Array) -> Array:
        dtype = operands[0].dtype
        if dtype.name in ("float32", "float64"):
            return function(*operands).astype(dtype, copy=False)
        return function(*[one.astype(np.float32) for one in operands]).astype(dtype)

    return apply


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function that NumPy does not have, by the standard library's for float64."""
    by_element = np.frompyfunc(function, 1, 1)

    def apply(values: Array) -> Array:
        return np.asarray(by_element(values.astype(np.float64)), np.float64)

    apply.__name__ = function.__name__
    return apply


def two_sum(one: Array, other: Array) -> tuple[Array, Array]:
    """The sum, and what it lost by rounding (Knuth's TwoSum)."""
    total = one + other
    back = total - one
    return total, (one - (total - back)) + (other - back)


def fused(a: Array, b: Array, c: Array) -> Array:
    """Rounded once: the product of float32 is exact in float64, whose sum is then rounded to odd."""
    if a.dtype != np.float32:
        return a * b + c if a.dtype == np.float64 else (a.astype(np.float32) * b + c).astype(a.dtype)
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total, lost = two_sum(product, addend)
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    nudged = np.nextafter(total, np.where(lost > 0, np.inf, -np.inf))
    return np.where((lost != 0) & even & np.isfinite(total), nudged, total).astype(np.float32)


def _round_half_away(values: Array) -> Array:
    whole = np.trunc(values)
    return whole + np.copysign((np.abs(values - whole) >= 0.5).astype(values.dtype), values)


def _clamp(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values, low, high = (frame.array(value) for value in step.operands)
    if step.attribute("propagateNan") == "all":
        return (np.minimum(np.maximum(values, low), high),)
    return (np.fmin(np.fmax(values, low), high),)


def _select(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    condition = frame.array(step.operands[0])
    left, right = (frame.held(value) for value in step.operands[1:])
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
        holds = np.broadcast_to(condition, frame.count)
        sides = [(one, np.flatnonzero(index)) for one, index in ((left, holds), (right, ~holds))]
        return (merge([(take(one, index), index) for one, index in sides if len(index)], frame.count),)
    if condition.ndim < left.ndim:
        # One condition chooses between whole tensors.
        condition = condition.reshape(condition.shape + (1,) * (left.ndim - condition.ndim))
    return (np.where(condition, left, right),)


def reciprocal(values: Array) -> Array:
    return 1 / values


def reciprocal_root(values: Array) -> Array:
    return 1 / np.sqrt(values.astype(np.float64))


def _ends(values: Array, from_left: bool) -> Array:
    """Zero bits before the first one that is set, from one end."""
    bits, numbers = _bits(values), unsigned(values).copy()
    count = np.full(numbers.shape, bits, numbers.dtype)
    for place in range(bits):
        distance = bits - 1 - place if from_left else place
        is_set = (numbers >> numbers.dtype.type(place)) & numbers.dtype.type(1)
        better = is_set.astype(np.bool_) & (distance < count)
        count = np.where(better, numbers.dtype.type(distance), count)
    return count.view(values.dtype)


def set_bits(values: Array) -> Array:
    numbers = unsigned(values)
    columns = np.ascontiguousarray(numbers).view(np.uint8).reshape(*numbers.shape, numbers.dtype.itemsize)
    return np.unpackbits(columns, axis=-1).sum(-1).astype(values.dtype)


def _integer_power(base: Array, exponent: Array) -> Array:
    """As it wraps; a negative power is zero, or what division gives for 1 and -1."""
    result = np.ones(1, base.dtype)
    square, count = base, exponent
    for _ in range(_bits(base)):
        result = np.where(count & 1, result * square, result)
        square, count = square * square, count >> 1
    negative = np.where(
        np.abs(base) == 1, np.where(exponent & 1, base, np.ones(1, base.dtype)), np.zeros(1, base.dtype)
    )
    return np.where(exponent < 0, negative, result).astype(base.dtype)


def _float_power(base: Array, exponent: Array) -> Array:
    return np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(base.dtype)


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sqrt": np.sqrt, "rsqrt": reciprocal_root, "cbrt": np.cbrt,
    "erf": _each(math.erf), "erfc": _each(math.erfc), "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": _round_half_away, "roundeven": np.rint, "absf": np.abs, "atan2": np.arctan2, "powf": np.power,
    "copysign": np.copysign,
}  # fmt: skip
_LIBRARY: dict[str, Callable[..., Array]] = {
    **_FUNCTIONS, "fabs": np.abs, "pow": np.power, "rint": np.rint, "nearbyint": np.rint, "fmod": np.fmod,
    "fma": fused, "rcp": reciprocal, "exp10": lambda x: np.power(10.0, x), "max": np.fmax, "min": np.fmin,
    "fmax": np.fmax, "fmin": np.fmin, "hypot": np.hypot, "div_rn": np.divide, "fdiv_rn": np.divide, "sqrt_rn": np.sqrt,
    "fsqrt_rn": np.sqrt, "fast_exp": np.exp, "fast_log": np.log, "fast_sin": np.sin, "fast_cos": np.cos,
    "fast_pow": np.power, "fast_tanh": np.tanh, "fast_fdivide": np.divide, "fast_divide": np.divide,
    "fdividef": np.divide, "fast_log2": np.log2, "fast_log10": np.log10, "fast_tan": np.tan, "native_exp": np.exp,
    "native_sin": np.sin, "native_cos": np.cos, "native_log": np.log, "native_log2": np.log2, "native_sqrt": np.sqrt,
    "native_rsqrt": reciprocal_root, "native_recip": reciprocal, "lgamma": _each(math.lgamma),
    "tgamma": _each(math.gamma),
}  # fmt: skip
_TESTS: dict[str, Callable[..., Array]] = {
    "isnan": np.isnan, "isinf": np.isinf, "signbit": np.signbit, "finitef": np.isfinite, "isfinited": np.isfinite,
}  # fmt: skip


_INSTRUCTIONS = {
    "tanh.approx.f32": np.tanh, "ex2.approx.f32": np.exp2, "ex2.approx.ftz.f32": np.exp2, "lg2.approx.f32": np.log2,
    "rcp.approx.ftz.f32": reciprocal, "rcp.approx.f32": reciprocal, "sqrt.approx.f32": np.sqrt,
    "rsqrt.approx.f32": reciprocal_root, "sin.approx.f32": np.sin, "cos.approx.f32": np.cos,
    "add.f32": np.add, "mul.f32": np.multiply, "sub.f32": np.subtract, "add.s32": np.add, "add.u32": np.add,
    "mul.lo.s32": np.multiply, "max.f32": np.fmax, "min.f32": np.fmin, "fma.rn.f32": fused,
    "cvt.rna.tf32.f32": rounded_to_tf32,
}  # fmt: skip
"""PTX instructions that may stand alone in inline assembly."""


def called_function(step: Step) -> FloatFunction:
    """The function that a call of a library or a single instruction of inline assembly computes; raises NotRun."""
    if step.opcode == "elementwise_inline_asm":
        words = str(step.attribute("asm_string")).replace(",", " ").replace(";", " ").split()
        places = [f"${place}" for place in range(len(step.operands) + 1)]
        function = _INSTRUCTIONS.get(words[0]) if words[1:] == places else None
        if function is None or step.number("packed_element", 1) != 1 or len(step.results) != 1:
            raise step.not_run("the inline assembly is not a single instruction that irscope computes")
        return function
    symbol = str(step.attribute("symbol"))
    name = symbol.removeprefix("__nv_").removeprefix("__ocml_").removeprefix("__triton_hip_")
    name = name.removesuffix("_f32").removesuffix("_f64").removesuffix("_f16")
    test = _TESTS.get(name) or _TESTS.get(name.removesuffix("f")) or _TESTS.get(name.removesuffix("d"))
    function = test or _LIBRARY.get(name) or (_LIBRARY.get(name[:-1]) if name.endswith("f") else None)
    if function is None:
        raise step.not_run(f"the function {symbol!r} is not one that irscope computes")
    return function


_ORDERING = ("griddepcontrol.wait", "griddepcontrol.launch_dependents")
"""Instructions that order launches: a launch of the machine begins when those before it ended."""


def _call_function(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    if not step.operands and str(step.attribute("asm_string")).strip().startswith(_ORDERING):
        return [np.zeros((1,) * (len(one.shape) + 1), np.int32) for one in step.types]
    function = called_function(step)
    operands = [frame.array(value) for value in step.operands]
    if function in _TESTS.values():
        return (function(operands[0]).astype(step.dtype),)
    found = machine.arithmetic.approximated(function, _wide(function)(*operands))
    return (found.astype(step.dtype, copy=False),)


def _approximate(function: Callable[..., Array]) -> Executor:
    """A function that hardware approximates."""

    def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        exact = _wide(function)(*[frame.array(value) for value in step.operands])
        return (machine.arithmetic.approximated(function, exact),)

    return execute


def _float_arithmetic(function: Callable[..., Array]) -> Executor:
    return pure(lambda left, right: function(left, right).astype(left.dtype, copy=False))


def _map(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """A region for each element, or for several that follow one another."""
    pack = step.number("pack", 1)
    if pack != 1:
        raise step.not_run("irscope does not execute packed elements")
    operands = np.broadcast_arrays(*[step.full(frame, place, frame.count) for place in range(len(step.operands))])
    shape = operands[0].shape
    index = np.repeat(np.arange(frame.count), operands[0].size // frame.count)
    found = machine.region(step.operation.regions[0], frame.part(index), [one.reshape(-1) for one in operands])
    return [np.broadcast_to(cast(Array, one), index.shape).reshape(shape) for one in found]


_signed_max, _signed_min = _wrapping(np.maximum, np.logical_and), _wrapping(np.minimum, np.logical_or)
_BINARY: dict[str, Callable[..., Array]] = {
    "addi": _wrapping(np.add, np.logical_xor), "subi": _wrapping(np.subtract, np.logical_xor),
    "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor,
    "divsi": _unless_zero(_divide_signed), "remsi": _unless_zero(np.fmod), "floordivsi": _unless_zero(np.floor_divide),
    "divui": _signed_result(_unless_zero(np.floor_divide)), "remui": _signed_result(_unless_zero(np.remainder)),
    "ceildivsi": _unless_zero(lambda a, b: -((-a) // b)),
    "ceildivui": _signed_result(_unless_zero(lambda a, b: a // b + (a % b != 0))),
    "maxsi": _signed_max, "minsi": _signed_min, "maxui": _signed_result(np.maximum),
    "minui": _signed_result(np.minimum), "shli": _shifted(np.left_shift), "shrsi": _shifted(np.right_shift),
    "shrui": _shifted(_signed_result(np.right_shift)),
    "maxnumf": np.fmax, "minnumf": np.fmin, "maximumf": np.maximum, "minimumf": np.minimum,
}  # fmt: skip
_FLOAT: dict[str, Callable[..., Array]] = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "remf": np.fmod,
}  # fmt: skip

FLOAT_FUNCTIONS: Mapping[str, FloatFunction] = {
    **{f"arith.{name}": _BINARY[name] for name in ("maxnumf", "minnumf", "maximumf", "minimumf")},
    **{f"arith.{name}": function for name, function in _FLOAT.items()},
    **{f"math.{name}": function for name, function in _FUNCTIONS.items()},
    "arith.negf": np.negative, "math.fma": fused, "precise_divf": np.divide, "approx_divf": np.divide,
    "precise_sqrt": np.sqrt,
}  # fmt: skip
"""Opcode → the function of floats that it computes, as another arithmetic looks it up."""

ELEMENTWISE: Mapping[str, Executor] = {
    **{f"arith.{name}": pure(function) for name, function in _BINARY.items()},
    **{f"arith.{name}": _float_arithmetic(function) for name, function in _FLOAT.items()},
    **{f"math.{name}": _approximate(function) for name, function in _FUNCTIONS.items()},
    "arith.negf": pure(np.negative), "arith.select": _select, "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats, "arith.constant": _constant, "index.constant": _constant, "ub.poison": _poison,
    "arith.extsi": _resized(True), "arith.extui": _resized(False), "arith.trunci": _resized(True),
    "arith.index_cast": _resized(True), "arith.index_castui": _resized(False), "arith.bitcast": _bitcast,
    "arith.sitofp": _from_integer(True), "arith.uitofp": _from_integer(False), "arith.fptosi": _to_integer(True),
    "arith.fptoui": _to_integer(False), "arith.extf": _float_to_float, "arith.truncf": _float_to_float,
    "arith.mulsi_extended": _pairs(high_product_signed), "arith.mului_extended": _pairs(high_product_unsigned),
    "arith.addui_extended": _add_extended, "math.fma": pure(fused), "math.absi": pure(np.abs),
    "math.ctlz": pure(lambda x: _ends(x, True)), "math.cttz": pure(lambda x: _ends(x, False)),
    "math.ctpop": pure(set_bits), "math.ipowi": pure(_integer_power), "math.fpowi": pure(_float_power),
    "mulhiui": pure(high_product_unsigned), "precise_divf": _float_arithmetic(np.divide),
    "approx_divf": _float_arithmetic(np.divide),
    "precise_sqrt": pure(_wide(np.sqrt)), "clampf": _clamp, "fp_to_fp": _float_to_float, "bitcast": _bitcast,
    "extern_elementwise": _call_function, "elementwise_inline_asm": _call_function, "map_elementwise": _map,
}  # fmt: skip
