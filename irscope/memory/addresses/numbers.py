"""Number: integers of a kernel, scalar or tensor, each a known part and an unknown one.

An unknown integer (a program id that stands for all, data of a load, an argument without a value) is an atom with a
random 64-bit token. The unknown part of a number is a linear combination of atoms, kept as the same combination of
their tokens modulo 2**64. So two elements whose unknown parts are equal have equal tokens, `a + b - b` is `a` again,
and elements of one token are at known distances. Unknown parts without bounds are taken not to wrap around.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from math import gcd
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FAR",
    "PREDICATES",
    "Integers",
    "Number",
    "Source",
    "Tokens",
    "add",
    "atom",
    "compared",
    "constant",
    "divide",
    "elementwise",
    "fits",
    "merged",
    "mixed",
    "multiply",
    "remainder",
    "select",
    "settled",
    "token_of",
    "unknown",
    "wrapped",
]


Integers = NDArray[np.int64]
Tokens = NDArray[np.uint64]
_SourceKind = Literal["argument", "program", "turn", "data", "operation"]

FAR = 1 << 100
"""A bound that says nothing."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where an unknown part comes from."""

    kind: _SourceKind
    text: str


@dataclass(frozen=True, slots=True)
class Number:
    """Integers: `known` plus, where there are tokens, something unknown."""

    known: Integers
    """Of the rank of `shape`; a dimension along which all elements are equal may have size 1. An i1 is 0 or -1."""
    shape: tuple[int, ...]
    bits: int
    tokens: Tokens | None = None
    """Broadcasts against `known`; 0 for an element that is known. None if all are."""
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

    def shaped(self, change: Callable[[NDArray[np.generic]], NDArray[np.generic]], shape: tuple[int, ...]) -> Number:
        """The number after a change of shape, which is done to the known parts and to the tokens."""
        tokens = None if self.tokens is None else change(self.tokens)
        return replace(self, known=change(self.known), shape=shape, tokens=tokens)

    def full(self) -> Number:
        """The same with every element written out."""
        return self.shaped(lambda array: np.broadcast_to(array, self.shape), self.shape)


def constant(value: int, bits: int, shape: tuple[int, ...] = ()) -> Number:
    """A number whose elements are one integer."""
    return Number(wrapped(np.full((1,) * len(shape), _in_64_bits(value), np.int64), bits), shape, bits)


def atom(source: Source, bits: int, step: int = 1, low: int = -FAR, high: int = FAR) -> Number:
    """An unknown scalar: a multiple of `step` within bounds."""
    token = token_of(source)
    return Number(np.array(0, np.int64), (), bits, np.array(token, np.uint64), step, low, high, frozenset({source}),
                  terms=((token, 1),))  # fmt: skip


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


def _in_64_bits(value: int) -> int:
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def mixed(key: object, parts: Iterable[Number]) -> Tokens:
    """A token for each element that stands for any function of the elements of some numbers."""
    result: Tokens = np.array(token_of(key), np.uint64)
    for part in parts:
        for array in (part.known.view(np.uint64), part.tokens):
            if array is not None:
                result = _scrambled((result ^ array) * np.uint64(0x9E3779B97F4A7C15))
    # 0 would say that it is known.
    return result | np.uint64(1)


def _scrambled(tokens: Tokens) -> Tokens:
    tokens = (tokens ^ (tokens >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    tokens = (tokens ^ (tokens >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return tokens ^ (tokens >> np.uint64(31))


def merged(parts: Iterable[Number]) -> frozenset[Source]:
    """The sources of all parts."""
    return frozenset[Source]().union(*(part.sources for part in parts))


def _shape_of(parts: tuple[Number, ...]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(part.shape for part in parts))


def unknown(key: object, parts: tuple[Number, ...], bits: int, low: int = -FAR, high: int = FAR) -> Number:
    """A function of some numbers that is not linear."""
    tokens = mixed(key, parts)
    zeros = np.zeros(tokens.shape, np.int64)
    return Number(zeros, _shape_of(parts), bits, tokens, 1, low, high, merged(parts))


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
    shape = _shape_of((one, other))
    argument = one.argument or (other.argument if sign > 0 else "")
    if one.tokens is None and other.tokens is None:
        return Number(known, shape, one.bits, argument=argument)
    first, second = (part.tokens if part.tokens is not None else np.array(0, np.uint64) for part in (one, other))
    low, high = (other.low, other.high) if sign > 0 else (-other.high, -other.low)
    return settled(
        Number(
            known, shape, one.bits, _ranked(first + second if sign > 0 else first - second, len(shape)),
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
    shape = _shape_of((one, other))
    if one.tokens is None and other.tokens is None:
        return Number(known, shape, one.bits)
    tokens = np.array(0, np.uint64)
    step = low = high = 0
    for part, factor in ((one, other), (other, one)):
        if part.tokens is None:
            continue
        tokens = tokens + part.tokens * factor.known.view(np.uint64)
        step = gcd(step, part.step * _divisor(factor.known))
        ends = [end * int(by) for end in (part.low, part.high) for by in (factor.known.min(), factor.known.max())]
        low, high = low + min(ends), high + max(ends)
    if one.tokens is not None and other.tokens is not None:
        # The product of the unknown parts, whichever comes first.
        both = _scrambled(one.tokens * other.tokens) | np.uint64(1)
        tokens = tokens + np.where((one.tokens == 0) | (other.tokens == 0), np.uint64(0), both)
        step = gcd(step, one.step * other.step)
        ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
        low, high = low + min(ends), high + max(ends)
    terms: tuple[tuple[int, int], ...] = ()
    for part, factor in ((one, other), (other, one)):
        if part.terms and factor.tokens is None and (factor.known == (by := factor.known.flat[0])).all():
            terms = tuple((token, times * int(by)) for token, times in part.terms)
    return settled(
        Number(known, shape, one.bits, _ranked(tokens, len(shape)), step, max(low, -FAR), min(high, FAR),
               merged((one, other)), terms=terms)
    )  # fmt: skip


def _divisor(values: Integers) -> int:
    return int(np.gcd.reduce(values, axis=None))


def divide(one: Number, other: Number, *, signed: bool = True, up: bool = False) -> Number:
    """The quotient, rounded to 0 (or up); a division by zero gives something unknown."""
    if one.tokens is None and other.tokens is None:
        zero = other.known == 0
        if not zero.any():
            found = _quotient(one.known, other.known, up) if signed else _unsigned_quotient(one, other, up)
            return Number(wrapped(found, one.bits), _shape_of((one, other)), one.bits)
        return unknown("division by zero", (one, other), one.bits)
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


def _quotient(top: Integers, bottom: Integers, up: bool) -> Integers:
    quotient = top // bottom
    inexact = top != quotient * bottom
    # numpy rounds down; towards 0 is up where the signs differ.
    return quotient + np.where(inexact & (((top < 0) != (bottom < 0)) | up), 1, 0)


def _unsigned_quotient(one: Number, other: Number, up: bool) -> Integers:
    top, bottom = _unsigned(one), _unsigned(other)
    return (top // bottom + np.where((top % bottom != 0) & up, np.uint64(1), np.uint64(0))).view(np.int64)


def _unsigned(number: Number) -> Tokens:
    known = number.known.view(np.uint64)
    return known if number.bits >= 64 else known & np.uint64((1 << number.bits) - 1)


def remainder(one: Number, other: Number, *, signed: bool = True) -> Number:
    """The remainder with the sign of the dividend."""
    if one.tokens is None and other.tokens is None:
        return add(one, multiply(divide(one, other, signed=signed), other), -1)
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
        return Number(below, _shape_of((one, other)), one.bits, mixed(name, (above, other)), step, 0, most,
                      merged((one, other)))  # fmt: skip
    if by is None or by <= 0 or least < 0 or not fits(one, one.bits):
        return unknown(name, (one, other), one.bits)
    if one.step % by == 0:
        known = one.known % by
        return Number(known, one.shape, one.bits)
    return unknown(name, (one, other), one.bits, 0, by - 1)


def select(condition: Number, one: Number, other: Number) -> Number:
    """Element by element the one where the condition holds, else the other."""
    shape = _shape_of((condition, one, other))
    parts = (condition, one, other)
    arguments = {part.argument for part in (one, other)}
    argument = arguments.pop() if len(arguments) == 1 else ""
    holds = condition.known != 0
    known = np.where(holds, one.known, other.known)
    if all(part.tokens is None for part in parts):
        return Number(known, shape, one.bits, argument=argument)
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
            step = gcd(step, _divisor(one.known), _divisor(other.known))
            low = min(low, one.bounds[0], other.bounds[0])
            high = max(high, one.bounds[1], other.bounds[1])
    terms = one.terms if one.terms == other.terms else ()
    return settled(
        Number(known, shape, one.bits, _ranked(tokens, len(shape)), step, max(low, -FAR), min(high, FAR),
               merged(parts), argument, terms)
    )  # fmt: skip


def elementwise(name: str, function: Callable[[Integers, Integers], Integers], one: Number, other: Number) -> Number:
    """A function of known elements; something unknown elsewhere."""
    if one.tokens is None and other.tokens is None:
        return Number(wrapped(function(one.known, other.known), one.bits), _shape_of((one, other)), one.bits)
    return unknown(name, (one, other), one.bits)


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
