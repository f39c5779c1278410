"""Number: integers of which some are not known, as arrays that the machine's executors compute with.

An unknown integer (a program id that stands for all, data of a load, an argument without a value) is an atom with a
random 64-bit token. The unknown part of a number is a linear combination of atoms, kept as the same combination of
their tokens modulo 2**64. So two elements whose unknown parts are equal have equal tokens, `a + b - b` is `a` again,
and elements of one token are at known distances. Unknown parts without bounds are taken not to wrap around.

Integers that are known are NumPy's arrays; `RULES` are what arithmetic makes of operands of which one is a Number.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b
from math import gcd
from typing import Any, Literal, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from irscope.ir.mlir.types import Type
from irscope.machine.control import Step
from irscope.machine.values import COMPARISONS, Array, bits_of

Integers = NDArray[np.int64]
Tokens = NDArray[np.uint64]
_SourceKind = Literal["argument", "program", "iteration", "data", "operation"]

FAR = 1 << 100
"""A bound that says nothing."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where an unknown part comes from."""

    kind: _SourceKind
    text: str


EXACT_BITS = 65
"""Marks an integer of 32 bits whose value is exact. More than 64, at which nothing wraps around."""
_DTYPES = {1: np.bool_, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64, EXACT_BITS: np.int64}


@dataclass(frozen=True, slots=True, eq=False)
class Number(NDArrayOperatorsMixin):
    """Integers: `known` plus, where there are tokens, something unknown; an array as the machine's are.

    The first axis is the programs; an axis along which all elements are equal may have the size 1.
    """

    known: Integers
    """An i1 is 0 or -1."""
    bits: int
    tokens: Tokens | None = None
    """Of as many axes as `known`, and broadcasts against it; 0 for an element that is known. None if all are."""
    step: int = 0
    """Divides every unknown part; 0 if there is none."""
    low: int = 0
    high: int = 0
    """The bounds of the unknown parts."""
    sources: frozenset[Source] = frozenset()
    argument: str = ""
    """The pointer argument that it points into, if it is a pointer into one."""
    terms: tuple[tuple[int, int], ...] = ()
    """(token of an atom, coefficient) of the one unknown part of all elements; empty where that is not linear."""

    @property
    def value(self) -> int | None:
        """The integer that all elements are; None if they differ or are not known."""
        return int(self.known.flat[0]) if self.tokens is None and self.known.size == 1 else None

    @property
    def is_rigid(self) -> bool:
        """Whether all elements have one unknown part: their distances are known."""
        return self.tokens is None or bool((self.tokens == self.tokens.flat[0]).all())

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value of an element."""
        return int(self.known.min()) + self.low, int(self.known.max()) + self.high

    # ── as an array ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def shape(self) -> tuple[int, ...]:
        return self.known.shape if self.tokens is None else np.broadcast_shapes(self.known.shape, self.tokens.shape)

    @property
    def ndim(self) -> int:
        return self.known.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(_DTYPES[self.bits])

    def astype(self, dtype: Any) -> Number:
        """Taken not to wrap around."""
        return replace(self, bits=8 * np.dtype(dtype).itemsize)

    def view(self, dtype: Any) -> Number:
        return self

    def shaped(self, change: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> Number:
        """The number after a change of shape, which is done to the known parts and to the tokens."""
        tokens = None if self.tokens is None else change(self.tokens)
        return replace(self, known=change(self.known), tokens=tokens)

    def full(self) -> Number:
        """The same with every element written out."""
        shape = self.shape
        return self.shaped(lambda array: np.broadcast_to(array, shape))

    def reshape(self, *shape: int) -> Number:
        tokens = self.tokens
        if tokens is not None and tokens.size == 1:
            whole = np.broadcast_to(self.known, self.shape).reshape(shape)
            return replace(self, known=whole, tokens=tokens.reshape((1,) * whole.ndim))
        return self.full().shaped(lambda array: array.reshape(shape))

    def transpose(self, *order: int) -> Number:
        return self.shaped(lambda array: array.transpose(order))

    def __getitem__(self, place: Any) -> Number:
        return self.full().shaped(lambda array: array[place])

    def __array_ufunc__(self, function: np.ufunc, method: str, *operands: Any, **_: Any) -> Any:
        rule = _UFUNCS.get(function) if method == "__call__" else None
        if rule is None:
            return NotImplemented
        return rule(*[one if isinstance(one, Number) else as_number(one, self.bits) for one in operands])

    def __array_function__(self, function: Any, _: Any, given: Any, options: Any) -> Any:
        if function is np.broadcast_arrays:
            shape = np.broadcast_shapes(*[one.shape for one in given])
            return [np.broadcast_to(one, shape) for one in given]
        if function is np.broadcast_to:
            return replace(self, known=np.broadcast_to(self.known, given[1]))
        if function in (np.stack, np.concatenate):
            return _joined([as_number(one).full() for one in given[0]], partial(function, **options))
        if function in (np.expand_dims, np.take, np.flip):
            whole = self if function is np.expand_dims else self.full()
            return whole.shaped(lambda array: function(array, *given[1:], **options))
        return NotImplemented


def _joined(parts: Sequence[Number], join: Callable[[list[Any]], Any]) -> Number:
    first = parts[0]
    known = join([part.known for part in parts])
    if all(part.tokens is None for part in parts):
        return Number(known, first.bits)
    tokens = join([np.zeros(part.shape, np.uint64) if part.tokens is None else part.tokens for part in parts])
    arguments = {part.argument for part in parts}
    is_one = all(part.terms == first.terms for part in parts)
    return Number(
        known, first.bits, tokens, gcd(*(part.step for part in parts)), min(part.low for part in parts),
        max(part.high for part in parts), merged(parts), arguments.pop() if len(arguments) == 1 else "",
        first.terms if is_one else (),
    )  # fmt: skip


def as_number(values: Any, bits: int = 64) -> Number:
    """Integers that are known as a number; `bits`: of what says nothing of them itself."""
    if isinstance(values, Number):
        return values
    if not isinstance(values, np.ndarray):
        return constant(int(values), bits)
    if values.dtype.kind not in "bi":
        raise ValueError(f"{values.dtype} is not an integer")
    known = values.astype(np.int64)
    return Number(-known, 1) if values.dtype == np.bool_ else Number(known, 8 * values.dtype.itemsize)


def as_array(number: Number) -> Array | Number:
    """A number that is known as NumPy's array of its type."""
    if number.tokens is not None:
        return number
    return number.known.astype(_DTYPES[number.bits]) if number.bits in _DTYPES else number


def constant(value: int, bits: int) -> Number:
    value = ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
    return Number(wrapped(np.full(1, value, np.int64), bits), bits)


def atom(source: Source, bits: int, step: int = 1, low: int = -FAR, high: int = FAR) -> Number:
    """An unknown scalar: a multiple of `step` within bounds."""
    token = token_of(source)
    tokens = np.array([token], np.uint64)
    return Number(np.zeros(1, np.int64), bits, tokens, step, low, high, frozenset({source}), terms=((token, 1),))


@lru_cache(maxsize=4096)
def token_of(key: object) -> int:
    """The token of an atom: odd, and the same for the same key."""
    return int.from_bytes(blake2b(repr(key).encode("utf-8", "backslashreplace"), digest_size=8).digest(), "big") | 1


def wrapped(values: Integers, bits: int) -> Integers:
    """Values modulo 2**bits, as signed integers."""
    if bits >= 64:
        return values
    half = np.int64(1 << (bits - 1))
    return ((values + half) & np.int64((1 << bits) - 1)) - half


def mixed(key: object, parts: Iterable[Number]) -> Tokens:
    """A token for each element that stands for any function of the elements of some numbers."""
    result: Tokens = np.array(token_of(key), np.uint64)
    for part in parts:
        for array in (part.known.view(np.uint64), part.tokens):
            if array is not None:
                result = scrambled((result ^ array) * np.uint64(0x9E3779B97F4A7C15))
    # 0 would say that it is known.
    return result | np.uint64(1)


def scrambled(tokens: Tokens) -> Tokens:
    """A random function of 64 bits (splitmix64's finaliser)."""
    tokens = (tokens ^ (tokens >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    tokens = (tokens ^ (tokens >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return tokens ^ (tokens >> np.uint64(31))


def merged(parts: Iterable[Number]) -> frozenset[Source]:
    """The sources of all parts."""
    return frozenset[Source]().union(*(part.sources for part in parts))


def unknown(key: object, parts: tuple[Number, ...], bits: int, low: int = -FAR, high: int = FAR) -> Number:
    """A function of some numbers that is not linear."""
    tokens = mixed(key, parts)
    zeros = np.zeros(tokens.shape, np.int64)
    return Number(zeros, bits, tokens, 1, low, high, merged(parts))


def settled(number: Number) -> Number:
    """Without tokens where all of them are 0."""
    if number.tokens is None or number.tokens.any():
        return number
    return replace(number, tokens=None, step=0, low=0, high=0, sources=frozenset(), terms=())


def fits(number: Number, bits: int) -> bool:
    """Whether no element can leave the signed integers of some bits; taken so where nothing bounds it."""
    if number.tokens is None:
        return True
    least, most = number.bounds
    half = 1 << (bits - 1)
    # A bound that the type cannot hold means that the number wrapped, wherever the other bound is.
    below = number.low <= -FAR or -half <= least < half
    return below and (number.high >= FAR or -half <= most < half)


def add(one: Number, other: Number, sign: int = 1) -> Number:
    """The sum, or with sign -1 the difference, modulo 2**bits."""
    known = wrapped(one.known + other.known if sign > 0 else one.known - other.known, one.bits)
    argument = one.argument or (other.argument if sign > 0 else "")
    if one.tokens is None and other.tokens is None:
        return Number(known, one.bits, argument=argument)
    first, second = (part.tokens if part.tokens is not None else np.array(0, np.uint64) for part in (one, other))
    low, high = (other.low, other.high) if sign > 0 else (-other.high, -other.low)
    return settled(
        Number(
            known, one.bits, _ranked(first + second if sign > 0 else first - second, known.ndim),
            gcd(one.step, other.step), max(one.low + low, -FAR), min(one.high + high, FAR), merged((one, other)),
            argument, _terms_of_sum(one, other, sign),
        )
    )  # fmt: skip


def _terms_of_sum(one: Number, other: Number, sign: int) -> tuple[tuple[int, int], ...]:
    if any(part.tokens is not None and not part.terms for part in (one, other)):
        return ()
    terms = dict(one.terms)
    for token, factor in other.terms:
        terms[token] = terms.get(token, 0) + sign * factor
    return tuple((token, factor) for token, factor in terms.items() if factor)


def _ranked(tokens: Tokens, rank: int) -> Tokens:
    return tokens.reshape((1,) * (rank - tokens.ndim) + tokens.shape)


def multiply(one: Number, other: Number) -> Number:
    """The product modulo 2**bits."""
    known = wrapped(one.known * other.known, one.bits)
    if one.tokens is None and other.tokens is None:
        return Number(known, one.bits)
    tokens = np.array(0, np.uint64)
    step = low = high = 0
    for part, factor in ((one, other), (other, one)):
        if part.tokens is None:
            continue
        tokens = tokens + part.tokens * factor.known.view(np.uint64)
        step = gcd(step, part.step * int(np.gcd.reduce(factor.known, axis=None)))
        ends = [end * int(by) for end in (part.low, part.high) for by in (factor.known.min(), factor.known.max())]
        low, high = low + min(ends), high + max(ends)
    if one.tokens is not None and other.tokens is not None:
        # The product of the unknown parts, whichever comes first.
        both = scrambled(one.tokens * other.tokens) | np.uint64(1)
        tokens = tokens + np.where((one.tokens == 0) | (other.tokens == 0), np.uint64(0), both)
        step = gcd(step, one.step * other.step)
        ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
        low, high = low + min(ends), high + max(ends)
    terms: tuple[tuple[int, int], ...] = ()
    for part, factor in ((one, other), (other, one)):
        if part.terms and factor.tokens is None and (factor.known == (by := factor.known.flat[0])).all():
            terms = tuple((token, times * int(by)) for token, times in part.terms)
    return settled(
        Number(known, one.bits, _ranked(tokens, known.ndim), step, max(low, -FAR), min(high, FAR),
               merged((one, other)), terms=terms)
    )  # fmt: skip


def divide(one: Number, other: Number, *, signed: bool = True, up: bool = False) -> Number:
    """The quotient, rounded to 0 (or up), where something of both is not known."""
    by, least = other.value, one.bounds[0]
    name = f"divide {signed} {up}"
    if by is None or by <= 0 or least < 0 or not fits(one, one.bits):
        return unknown(name, (one, other), one.bits)
    most = min(one.bounds[1] // by + up, FAR)
    if one.step % by or one.tokens is None:
        return unknown(name, (one, other), one.bits, least // by, most)
    # The unknown part is a multiple of the divisor: the quotient of the known part is known.
    tokens = np.where(one.tokens == 0, np.uint64(0), mixed(name, [replace(one, known=np.zeros_like(one.known)), other]))
    known = -(-one.known // by) if up else one.known // by
    low, high = one.low // by, -(-one.high // by)
    return replace(one, known=known, tokens=tokens, step=one.step // by, low=low, high=high, terms=())


def remainder(one: Number, other: Number, *, signed: bool = True) -> Number:
    """The remainder with the sign of the dividend."""
    by, (least, most) = other.value, one.bounds
    name = f"remainder {signed}"
    if least >= 0 and most < other.bounds[0] and fits(one, one.bits) and fits(other, other.bits):
        return one
    step = gcd(one.step, other.step)
    if other.tokens is not None and step > 1 and least >= 0 and fits(one, one.bits) and not (other.known % step).any():
        # The divisor is a multiple of the step: what is below a multiple of the step stays as it is.
        below = one.known % step
        above = replace(one, known=one.known - below)
        most = min(one.bounds[1], FAR)
        return Number(below, one.bits, mixed(name, (above, other)), step, 0, most, merged((one, other)))
    if by is None or by <= 0 or least < 0 or not fits(one, one.bits):
        return unknown(name, (one, other), one.bits)
    if one.step % by == 0:
        return Number(one.known % by, one.bits)
    return unknown(name, (one, other), one.bits, 0, by - 1)


def select(condition: Number, one: Number, other: Number) -> Number:
    """Element by element the one where the condition holds, else the other."""
    parts = (condition, one, other)
    arguments = {part.argument for part in (one, other)}
    argument = arguments.pop() if len(arguments) == 1 else ""
    holds = condition.known != 0
    known = np.where(holds, one.known, other.known)
    if all(part.tokens is None for part in parts):
        return Number(known, one.bits, argument=argument)
    zero = np.array(0, np.uint64)
    first, second = (part.tokens if part.tokens is not None else zero for part in (one, other))
    tokens = np.where(holds, first, second)
    step = gcd(one.step, other.step)
    low, high = min(one.low, other.low), max(one.high, other.high)
    if condition.tokens is not None:
        same = (one.known == other.known) & (first == second)
        open_ = (condition.tokens != 0) & ~same
        tokens = np.where(open_, mixed("select", parts), tokens)
        known = np.where(open_, 0, known)
        if open_.any():
            step = gcd(step, int(np.gcd.reduce(one.known, axis=None)), int(np.gcd.reduce(other.known, axis=None)))
            low = min(low, one.bounds[0], other.bounds[0])
            high = max(high, one.bounds[1], other.bounds[1])
    terms = one.terms if one.terms == other.terms else ()
    return settled(
        Number(known, one.bits, _ranked(tokens, known.ndim), step, max(low, -FAR), min(high, FAR), merged(parts),
               argument, terms)
    )  # fmt: skip


_UNBOUNDED = 1 << 62

_Truths = NDArray[np.bool_]


def compared(predicate: str, one: Number, other: Number) -> Number:
    """Where a comparison holds, as an i1; unknown where the bounds do not decide it."""
    if one.tokens is None and other.tokens is None:
        holds = COMPARISONS[predicate[-2:]](one.known, other.known)
        return Number(-holds.astype(np.int64), 1)
    key = f"cmpi {predicate}"
    if not fits(one, one.bits) or not fits(other, other.bits):
        return unknown(key, (one, other), 1, -1, 0)
    if predicate[0] == "u" and min(one.bounds[0], other.bounds[0]) < 0:
        return unknown(key, (one, other), 1, -1, 0)
    wide = [replace(part, bits=64) for part in (one, other)]
    apart = add(wide[0], wide[1], -1)
    if apart.tokens is None:
        return compared(predicate.replace("u", "s"), apart, constant(0, 64))
    # Beyond these bounds nothing is said: sums stay within 64 bits.
    low = apart.known + apart.low if apart.low > -_UNBOUNDED else np.full_like(apart.known, -_UNBOUNDED)
    high = apart.known + apart.high if apart.high < _UNBOUNDED else np.full_like(apart.known, _UNBOUNDED)
    exact = apart.tokens == 0
    low, high = np.where(exact, apart.known, low), np.where(exact, apart.known, high)
    always, never = _DECIDED[predicate[-2:]]
    result = Number(-always(low, high).astype(np.int64), 1)
    open_ = ~always(low, high) & ~never(low, high)
    if not open_.any():
        return result
    doubt = unknown(key, (_rounded(apart, predicate[-2:]),), 1, -1, 0)
    return select(Number(-open_.astype(np.int64), 1), doubt, result)


def _rounded(apart: Number, predicate: str) -> Number:
    """A number whose unknown part is a multiple of `step`, with all known parts equal that compare alike with 0.

    k · step + known < 0 is k < -known / step, which is the same for all known parts from one multiple up to the next.
    """
    if apart.step < 2 or predicate in ("eq", "ne"):
        return apart
    step = np.int64(apart.step)
    down = apart.known // step * step
    return replace(apart, known=down if predicate in ("lt", "ge") else -(-apart.known // step * step))


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


# ── operations ────────────────────────────────────────────────────────────────────────────────────────────────────


def _extend(one: Number, bits: int) -> Number:
    if not fits(one, one.bits) or one.bits == 1:
        return unknown("extsi", (one,), bits, -1 if one.bits == 1 else -FAR, 0 if one.bits == 1 else FAR)
    return replace(one, bits=bits)


def _extend_unsigned(one: Number, bits: int) -> Number:
    if one.bits == 1:
        return unknown("extui", (one,), bits, 0, 1)
    if (one.bounds[0] >= 0 and fits(one, one.bits)) or one.low <= -FAR:
        return replace(one, bits=bits)
    return unknown("extui", (one,), bits, 0, 1 << one.bits)


def truncated(one: Number, bits: int) -> Number:
    """The number in fewer bits."""
    if bits == 1:
        return unknown("trunci", (one,), 1)
    if bits < one.bits and not fits(one, bits):
        return unknown(f"trunci {bits}", (one,), bits)
    return replace(one, known=wrapped(one.known, bits), bits=bits)


def _resized(one: Number, bits: int) -> Number:
    return _extend(one, bits) if bits >= one.bits else truncated(one, bits)


def _sum(one: Number, other: Number, sign: int = 1) -> Number:
    return unknown("addi", (one, other), 1, -1, 0) if one.bits == 1 else add(one, other, sign)


def _product(one: Number, other: Number) -> Number:
    return _and(one, other) if one.bits == 1 else multiply(one, other)


def _and(one: Number, other: Number) -> Number:
    if one.bits == 1:
        return _together_or_not(one, other, stops=0)
    mask = other.value
    if mask is not None and mask >= 0 and mask & (mask + 1) == 0 and one.step % (mask + 1) == 0:
        # The lowest bits of a number whose unknown part has none of them.
        return Number(one.known & mask, one.bits)
    if mask is not None and mask >= 0:
        return unknown("andi", (one, other), one.bits, 0, mask)
    return unknown("andi", (one, other), one.bits)


def _or(one: Number, other: Number) -> Number:
    return _together_or_not(one, other, stops=-1) if one.bits == 1 else unknown("ori", (one, other), one.bits)


def _together_or_not(one: Number, other: Number, stops: int) -> Number:
    """The `and` (stops: 0) or the `or` (stops: -1) of truth values of which some are unknown."""
    stop = constant(stops, 1)
    if one.tokens is None or other.tokens is None:
        known, doubtful = (one, other) if one.tokens is None else (other, one)
        return select(known, doubtful, stop) if stops == 0 else select(known, stop, doubtful)
    both = unknown(f"i1 {stops}", (one, other), 1, -1, 0)

    def where(part: Number, stopped: bool) -> Number:
        return Number(-(((part.known == stops) == stopped) & (part.tokens == 0)).astype(np.int64), 1)

    going = select(where(one, False), other, select(where(other, False), one, both))
    return select(where(one, True), stop, select(where(other, True), stop, going))


def _shift_left(one: Number, other: Number) -> Number:
    by = other.value
    if by is not None and 0 <= by < min(one.bits, 63):
        return multiply(one, constant(1 << by, one.bits))
    return unknown("shli", (one, other), one.bits)


def _shift_right(name: str, one: Number, other: Number) -> Number:
    by = other.value
    if by is not None and 0 <= by < one.bits - 1 and one.bounds[0] >= 0:
        return divide(one, constant(1 << by, one.bits))
    return unknown(name, (one, other), one.bits)


def _least_or_most(predicate: str, one: Number, other: Number) -> Number:
    found = select(compared(predicate, one, other), one, other)
    if found.tokens is None:
        return found
    pick = min if predicate[-2:] == "lt" else max
    bounds = [pick(a, b) for a, b in zip(one.bounds, other.bounds, strict=True)]
    # The bounds of the choice are closer than those of both; they hold where its known part is 0.
    if not found.known.any() and predicate[0] == "s":
        return replace(found, low=max(found.low, bounds[0]), high=min(found.high, bounds[1]))
    return found


_Rule = Callable[[Step, Sequence[Number]], Number]
"""From an operation and its operands, of which one at least is not known."""


def _of(function: Callable[..., Number], **options: Any) -> _Rule:
    return lambda step, operands: function(*operands, **options)


def _to_bits(function: Callable[[Number, int], Number]) -> _Rule:
    return lambda step, operands: function(operands[0], bits_of(step.type))


def _add_pointer(step: Step, operands: Sequence[Number]) -> Number:
    base, offset = operands
    pointer = step.type if step.type.form == "pointer" else cast(Type, step.type.element)
    if not fits(offset, offset.bits):
        offset = unknown("offset", (offset,), offset.bits)
    size = constant(cast(Type, pointer.element).element_bits // 8, 64)
    return add(base, multiply(replace(offset, bits=64), size))


def _same_bits(step: Step, operands: Sequence[Number]) -> Number:
    if bits_of(step.type) != operands[0].bits:
        raise ValueError("no integer of the same size")
    return operands[0]


RULES: dict[str, _Rule] = {
    "addptr": _add_pointer, "bitcast": _same_bits, "arith.bitcast": _same_bits,
    "arith.extsi": _to_bits(_extend), "arith.extui": _to_bits(_extend_unsigned), "arith.trunci": _to_bits(truncated),
    "arith.index_cast": _to_bits(_resized), "arith.index_castui": _to_bits(_resized),
    "arith.addi": _of(_sum), "arith.subi": _of(_sum, sign=-1), "arith.muli": _of(_product),
    "arith.divsi": _of(divide), "arith.divui": _of(divide, signed=False),
    "arith.ceildivsi": _of(divide, up=True), "arith.ceildivui": _of(divide, signed=False, up=True),
    "arith.remsi": _of(remainder), "arith.remui": _of(remainder, signed=False),
    "arith.andi": _of(_and), "arith.ori": _of(_or), "arith.select": _of(select),
    "arith.xori": _of(lambda one, other: unknown("xori", (one, other), one.bits)),
    "arith.shli": _of(_shift_left), "arith.shrsi": _of(partial(_shift_right, "shrsi")),
    "arith.shrui": _of(partial(_shift_right, "shrui")),
    "arith.minsi": _of(partial(_least_or_most, "slt")), "arith.maxsi": _of(partial(_least_or_most, "sgt")),
    "arith.minui": _of(partial(_least_or_most, "ult")), "arith.maxui": _of(partial(_least_or_most, "ugt")),
    "arith.cmpi": lambda step, operands: compared(str(step.attribute("predicate")), *operands),
}  # fmt: skip
"""Opcode → what the operation makes of integers of which some are not known."""
_UFUNCS: dict[np.ufunc, Callable[..., Number]] = {
    np.add: add, np.subtract: partial(add, sign=-1), np.multiply: multiply, np.floor_divide: divide,
    np.bitwise_and: _and, np.less: partial(compared, "slt"), np.greater_equal: partial(compared, "sge"),
}  # fmt: skip
