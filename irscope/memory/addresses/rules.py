"""Rules of evaluation: what an operation makes of integers, also where a kernel's own combination reduces or scans."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.tokens import closing, split_commas
from irscope.memory.addresses.kinds import Kind
from irscope.memory.addresses.numbers import (
    FAR,
    Integers,
    Number,
    add,
    compared,
    constant,
    divide,
    elementwise,
    fits,
    multiply,
    remainder,
    select,
    unknown,
    wrapped,
)

__all__ = ["RULES", "Combine", "Rule", "reduced", "scanned"]


Combine = Callable[[Sequence[Number]], list[Number]]
"""From the earlier and then the later numbers to their combinations; associative."""


def reduced(parts: Sequence[Number], axis: int, combine: Combine) -> list[Number]:
    """The combination of all elements along an axis, in their order; raises ValueError for a size that is odd."""
    parts = [part.full() for part in parts]
    while (size := parts[0].shape[axis]) > 1:
        if size % 2:
            raise ValueError("an odd size")
        early, late = ([_cut(part, axis, slice(first, None, 2)) for part in parts] for first in (0, 1))
        parts = [part.full() for part in combine([*early, *late])]
    shape = tuple(size for number, size in enumerate(parts[0].shape) if number != axis)
    return [part.shaped(partial(np.squeeze, axis=axis), shape) for part in parts]


def scanned(parts: Sequence[Number], axis: int, backwards: bool, combine: Combine) -> list[Number]:
    """For each element the combination of all up to it; backwards from the last one on."""
    parts = [part.full() for part in parts]
    apart, size = 1, parts[0].shape[axis]
    while apart < size:
        # What is combined earlier stands before, or backwards behind, what is combined with it.
        early, late = slice(None, size - apart), slice(apart, None)
        if backwards:
            early, late = late, early
        found = combine([_cut(part, axis, where) for where in (early, late) for part in parts])
        parts = [_put(part, new.full(), axis, late) for part, new in zip(parts, found, strict=True)]
        apart *= 2
    return list(parts)


def _cut(part: Number, axis: int, where: slice) -> Number:
    place = (*[slice(None)] * axis, where)
    shape = (*part.shape[:axis], len(range(part.shape[axis])[where]), *part.shape[axis + 1 :])
    return part.shaped(lambda array: array[place], shape)


def _put(part: Number, new: Number, axis: int, where: slice) -> Number:
    """A number with a part of it replaced."""
    place = (*[slice(None)] * axis, where)

    def spread(array: NDArray[np.generic]) -> NDArray[np.generic]:
        whole = np.zeros(part.shape, array.dtype)
        whole[place] = array
        return whole

    inside = Number(np.where(spread(np.ones(new.shape, np.int64)) != 0, -1, 0), part.shape, 1)
    return replace(select(inside, new.shaped(spread, part.shape), part), shape=part.shape)


Rule = Callable[[Operation, Sequence[Number], Kind], Number]
"""From an operation, its operands and the kind of its result; raises ValueError if it cannot say."""


def attribute(operation: Operation, name: str) -> int:
    """An integer attribute of an operation; raises ValueError if it has none such."""
    found = operation.attribute(name)
    if not isinstance(found, int):
        raise ValueError(f"{operation.name} has no {name}")
    return found


# Constants


def _constant(operation: Operation, _: Sequence[Number], kind: Kind) -> Number:
    return _constant_of(operation.text, kind)


@lru_cache(maxsize=4096)
def _constant_of(text: str, kind: Kind) -> Number:
    """The number that `arith.constant` makes; raises ValueError for one that is not made of integers."""
    written = text.partition("arith.constant ")[2]
    if written.startswith("{"):
        written = written[closing(written, 0) + 1 :].lstrip()
    if written.startswith("dense<"):
        written = written[len("dense<") : closing(written, len("dense"))]
        if written.startswith("["):
            values = [_integer(part) for part in split_commas(written.replace("[", "").replace("]", ""))]
            if len(values) != prod(kind.shape):
                raise ValueError("a list of another size")
            return Number(wrapped(np.array(values, np.int64).reshape(kind.shape), kind.bits), kind.shape, kind.bits)
    return constant(_integer(written.partition(" : ")[0]), kind.bits, kind.shape)


def _integer(text: str) -> int:
    if text in ("true", "false"):
        return -int(text == "true")
    if len(text) > 20:
        raise ValueError("too many digits")
    return int(text)


# Shapes


def _make_range(operation: Operation, _: Sequence[Number], kind: Kind) -> Number:
    start, end = attribute(operation, "start"), attribute(operation, "end")
    if (end - start,) != kind.shape:
        raise ValueError("a range of another size")
    return Number(np.arange(start, end, dtype=np.int64), kind.shape, kind.bits)


def _splat(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    return operands[0].shaped(lambda array: array.reshape((1,) * len(kind.shape)), kind.shape)


def _unsplat(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    return operands[0].shaped(lambda array: array.flat[:1].reshape(()), ())


def _expand_dims(operation: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    axis = attribute(operation, "axis")
    return operands[0].shaped(lambda array: np.expand_dims(array, axis), kind.shape)


def _broadcast(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    if len(kind.shape) != len(operands[0].shape):
        raise ValueError("another rank")
    np.broadcast_shapes(operands[0].shape, kind.shape)
    return replace(operands[0], shape=kind.shape)


def _reshape(operation: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    if "allow_reorder" in operation.text and operands[0].shape != kind.shape:
        raise ValueError("the order of the elements is the compiler's choice")
    if operands[0].shape == kind.shape:
        return operands[0]
    return operands[0].full().shaped(lambda array: array.reshape(kind.shape), kind.shape)


def _trans(operation: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    stated = operation.attribute("order")
    order = cast("tuple[int, ...]", stated) if isinstance(stated, tuple) else tuple(reversed(range(len(kind.shape))))
    return operands[0].shaped(lambda array: np.transpose(array, order), kind.shape)


def _join(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    return _together(operands, kind, lambda arrays: np.stack(arrays, -1))


def _cat(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    return _together(operands, kind, lambda arrays: np.concatenate(arrays, 0))


def _together(parts: Sequence[Number], kind: Kind, put: Callable[[list[Integers]], Integers]) -> Number:
    """Two tensors as one, by a choice between the first and the second."""
    full = [np.broadcast_to(part.known, part.shape) for part in parts]
    side = put([np.zeros(parts[0].shape, np.int64), np.ones(parts[0].shape, np.int64)])
    zeros = np.zeros(parts[0].shape, np.int64)
    spread: list[Number] = []
    for number, part in enumerate(parts):
        arrays = [zeros, zeros]
        arrays[number] = full[number]
        tokens = None
        if part.tokens is not None:
            held = [zeros, zeros]
            held[number] = np.broadcast_to(part.tokens, part.shape).view(np.int64)
            tokens = put(held).view(np.uint64)
        spread.append(replace(part, known=put(arrays), shape=kind.shape, tokens=tokens))
    return select(Number(side - 1, kind.shape, 1), spread[0], spread[1])


# Arithmetic


def _binary(function: Callable[[Number, Number], Number]) -> Rule:
    return lambda operation, operands, kind: function(operands[0], operands[1])


def _same(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    return operands[0]


def _extend(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    one = operands[0]
    if not fits(one, one.bits) or (one.bits == 1 and one.tokens is not None):
        return unknown("extsi", (one,), kind.bits, -1 if one.bits == 1 else -FAR, 0 if one.bits == 1 else FAR)
    return replace(one, bits=kind.bits)


def _extend_unsigned(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    one = operands[0]
    mask = np.int64((1 << one.bits) - 1 if one.bits < 64 else -1)
    if one.tokens is None:
        return replace(one, known=one.known & mask, bits=kind.bits)
    if one.bits == 1:
        return unknown("extui", (one,), kind.bits, 0, 1)
    if one.bounds[0] >= 0 and fits(one, one.bits):
        return replace(one, bits=kind.bits)
    bounded = one.low > -FAR
    return unknown("extui", (one,), kind.bits, 0, 1 << one.bits) if bounded else replace(one, bits=kind.bits)


def _truncate(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    one = operands[0]
    if kind.bits == 1 and one.tokens is not None:
        return unknown("trunci", (one,), 1)
    if kind.bits < one.bits and one.tokens is not None and not fits(one, kind.bits):
        return unknown(f"trunci {kind.bits}", (one,), kind.bits)
    return replace(one, known=wrapped(one.known, kind.bits), bits=kind.bits)


def _cast(operation: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    return _extend(operation, operands, kind) if kind.bits >= operands[0].bits else _truncate(operation, operands, kind)


def _bitcast(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    if kind.bits != operands[0].bits:
        raise ValueError("no integer of the same size")
    return operands[0]


def _addptr(operation: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    return moved(operands[0], operands[1], kind.pointee_bits)


def moved(pointer: Number, offset: Number, element_bits: int) -> Number:
    """A pointer so many elements further."""
    if not fits(offset, offset.bits):
        offset = unknown("offset", (offset,), offset.bits)
    size = constant(element_bits // 8, 64, (1,) * len(offset.shape))
    return add(pointer, multiply(replace(offset, bits=64), size))


def _add(one: Number, other: Number, sign: int = 1) -> Number:
    if one.bits == 1 and (one.tokens is not None or other.tokens is not None):
        return unknown("addi", (one, other), 1, -1, 0)
    return add(one, other, sign)


def _multiply(one: Number, other: Number) -> Number:
    if one.bits == 1:
        return _and(one, other)
    return multiply(one, other)


def _and(one: Number, other: Number) -> Number:
    if one.tokens is None and other.tokens is None:
        return Number(one.known & other.known, np.broadcast_shapes(one.shape, other.shape), one.bits)
    if one.bits == 1:
        return _together_or_not(one, other, stops=0)
    mask = other.value
    if mask is not None and mask >= 0 and mask & (mask + 1) == 0 and one.step % (mask + 1) == 0:
        # The lowest bits of a number whose unknown part has none of them.
        return Number(one.known & mask, one.shape, one.bits)
    if mask is not None and mask >= 0:
        return unknown("andi", (one, other), one.bits, 0, mask)
    return unknown("andi", (one, other), one.bits)


def _or(one: Number, other: Number) -> Number:
    if one.tokens is None and other.tokens is None:
        return Number(one.known | other.known, np.broadcast_shapes(one.shape, other.shape), one.bits)
    return _together_or_not(one, other, stops=-1) if one.bits == 1 else unknown("ori", (one, other), one.bits)


def _together_or_not(one: Number, other: Number, stops: int) -> Number:
    """The `and` (stops: 0) or the `or` (stops: -1) of truth values of which some are unknown."""
    stop = constant(stops, 1, (1,) * len(one.shape))
    if one.tokens is None:
        return select(one, other, stop) if stops == 0 else select(one, stop, other)
    if other.tokens is None:
        return select(other, one, stop) if stops == 0 else select(other, stop, one)
    both = unknown(f"i1 {stops}", (one, other), 1, -1, 0)
    stopped = [Number(np.where((part.known == stops) & (part.tokens == 0), -1, 0), part.shape, 1)
               for part in (one, other)]  # fmt: skip
    going = [Number(np.where((part.known != stops) & (part.tokens == 0), -1, 0), part.shape, 1)
             for part in (one, other)]  # fmt: skip
    found = select(going[0], other, select(going[1], one, both))
    return select(stopped[0], stop, select(stopped[1], stop, found))


def _xor(one: Number, other: Number) -> Number:
    return elementwise("xori", np.bitwise_xor, one, other)


def _shift_left(one: Number, other: Number) -> Number:
    by = other.value
    if by is not None and 0 <= by < min(one.bits, 63):
        return multiply(one, constant(1 << by, one.bits, (1,) * len(one.shape)))
    return elementwise("shli", lambda a, b: np.where((b >= 0) & (b < one.bits), a << (b & 63), 0), one, other)


def _shift_right(one: Number, other: Number) -> Number:
    by = other.value
    if one.tokens is not None and by is not None and 0 <= by < one.bits - 1 and one.bounds[0] >= 0:
        return divide(one, constant(1 << by, one.bits, (1,) * len(one.shape)))
    return elementwise("shrsi", lambda a, b: np.where((b >= 0) & (b < one.bits), a >> (b & 63), 0), one, other)


def _shift_right_unsigned(one: Number, other: Number) -> Number:
    by = other.value
    if one.tokens is not None and by is not None and 0 <= by < one.bits - 1 and one.bounds[0] >= 0:
        return divide(one, constant(1 << by, one.bits, (1,) * len(one.shape)))

    def shifted(a: Integers, b: Integers) -> Integers:
        bits = a.view(np.uint64) & np.uint64((1 << one.bits) - 1)
        return np.where((b >= 0) & (b < one.bits), (bits >> (b & 63).view(np.uint64)).view(np.int64), 0)

    return elementwise("shrui", shifted, one, other)


# Comparisons


def _compare(operation: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    return compared(str(operation.attribute("predicate")), operands[0], operands[1])


def _least_or_most(predicate: str) -> Callable[[Number, Number], Number]:
    def choose(one: Number, other: Number) -> Number:
        found = select(compared(predicate, one, other), one, other)
        if found.tokens is None:
            return found
        pick = min if predicate[-2:] == "lt" else max
        bounds = [pick(a, b) for a, b in zip(one.bounds, other.bounds, strict=True)]
        # The bounds of the choice are closer than those of both; they hold where its known part is 0.
        if not found.known.any() and predicate[0] == "s":
            return replace(found, low=max(found.low, bounds[0]), high=min(found.high, bounds[1]))
        return found

    return choose


def _select(_: Operation, operands: Sequence[Number], kind: Kind) -> Number:
    condition, one, other = operands
    if len(condition.shape) < len(one.shape):
        condition = condition.shaped(lambda array: array.reshape((1,) * len(one.shape)), one.shape)
    return select(condition, one, other)


RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    "tt.make_range": _make_range,
    "tt.splat": _splat,
    "tt.unsplat": _unsplat,
    "tt.expand_dims": _expand_dims,
    "tt.broadcast": _broadcast,
    "tt.reshape": _reshape,
    "tt.trans": _trans,
    "tt.join": _join,
    "tt.cat": _cat,
    "tt.addptr": _addptr,
    **dict.fromkeys(
        ("ttg.convert_layout", "tt.ptr_to_int", "tt.int_to_ptr", "gluon.set_auto_layout"), _same
    ),
    **dict.fromkeys(("tt.bitcast", "arith.bitcast"), _bitcast),
    "arith.extsi": _extend,
    "arith.extui": _extend_unsigned,
    "arith.trunci": _truncate,
    "arith.index_cast": _cast,
    "arith.index_castui": _cast,
    "arith.addi": _binary(_add),
    "arith.subi": _binary(lambda one, other: _add(one, other, -1)),
    "arith.muli": _binary(_multiply),
    "arith.divsi": _binary(divide),
    "arith.divui": _binary(lambda one, other: divide(one, other, signed=False)),
    "arith.ceildivsi": _binary(lambda one, other: divide(one, other, up=True)),
    "arith.ceildivui": _binary(lambda one, other: divide(one, other, signed=False, up=True)),
    "arith.remsi": _binary(remainder),
    "arith.remui": _binary(lambda one, other: remainder(one, other, signed=False)),
    "arith.andi": _binary(_and),
    "arith.ori": _binary(_or),
    "arith.xori": _binary(_xor),
    "arith.shli": _binary(_shift_left),
    "arith.shrsi": _binary(_shift_right),
    "arith.shrui": _binary(_shift_right_unsigned),
    "arith.minsi": _binary(_least_or_most("slt")),
    "arith.maxsi": _binary(_least_or_most("sgt")),
    "arith.minui": _binary(_least_or_most("ult")),
    "arith.maxui": _binary(_least_or_most("ugt")),
    "arith.cmpi": _compare,
    "arith.select": _select,
}  # fmt: skip
"""Operation → its rule, for operations with one result."""
