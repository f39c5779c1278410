"""Descriptor: what a tensor descriptor describes, and the addresses and bounds of one of its blocks."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from irscope.ir.mlir.model import Operation, Value
from irscope.ir.mlir.types import element_bits
from irscope.memory.addresses.comparisons import compared
from irscope.memory.addresses.kinds import Kind
from irscope.memory.addresses.numbers import Number, add, constant, multiply
from irscope.memory.addresses.rules import RULES

__all__ = ["Descriptor", "block_addresses", "block_type", "made_descriptor", "tensormap"]

# !tt.tensordesc<128x64xf16, #shared>      !tt.tensordesc<tensor<128x64xf16>>
_TYPE = re.compile(r"tensordesc<(?:tensor<)?((?:\d{1,9}x){1,8})(\w{1,20})")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor in global memory."""

    base: Number
    sizes: tuple[Number, ...]
    """Of each dimension, the slowest first."""
    strides: tuple[Number, ...]
    """In bytes."""


def made_descriptor(
    operation: Operation, number: Callable[[Value], Number], held: Mapping[Value, object]
) -> Descriptor | None:
    """The descriptor that an operation makes; None if it cannot be followed."""
    operands = operation.operands
    if operation.name == "ttng.reinterpret_tensor_descriptor":
        made = held.get(operands[0])
        return made if isinstance(made, Descriptor) else None
    if operation.name == "tt.make_tensor_descriptor":
        rank = (len(operands) - 1) // 2
        elements = block_type(operation.text)[1]
        size = constant(elements // 8, 64)
        strides = tuple(multiply(_wide(number(value)), size) for value in operands[1 + rank : 1 + 2 * rank])
        return Descriptor(number(operands[0]), tuple(map(number, operands[1 : 1 + rank])), strides)
    return None


def tensormap(operation: Operation, number: Callable[[Value], Number]) -> Descriptor:
    """What `ttng.tensormap_create` writes; its lists begin with the fastest dimension, and leave out its stride."""
    operands = operation.operands
    # The map, the address, then box, sizes, strides in bytes (one fewer) and steps.
    rank = (len(operands) - 1) // 4
    sizes = [number(value) for value in reversed(operands[2 + rank : 2 + 2 * rank])]
    strides = [_wide(number(value)) for value in reversed(operands[2 + 2 * rank : 1 + 3 * rank])]
    kind = _POINTEE.search(operation.types)
    fastest = constant((element_bits(kind[1]) if kind else 8) // 8, 64)
    return Descriptor(number(operands[1]), tuple(sizes), (*strides, fastest))


# (!tt.ptr<i8>, !tt.ptr<f16>, i32, …
_POINTEE = re.compile(r"!tt\.ptr<[^<>\n]{1,40}>, !tt\.ptr<(\w{1,20})")


def block_addresses(
    operation: Operation, number: Callable[[Value], Number], descriptor: Descriptor
) -> tuple[Number, Number, int]:
    """(addresses in bytes, which of them are within bounds, bits of an element) of the block that is accessed."""
    block, bits = block_type(operation.text)
    indices = list(map(number, operation.operands[1 : 1 + len(descriptor.sizes)]))
    address, inside = descriptor.base, constant(-1, 1)
    if indices[0].shape:
        # A gather: a list of rows.
        block = (*indices[0].shape, *block[1:])
    rank = len(block)
    address, inside = (_ranked(one, rank, block) for one in (address, inside))
    for axis, (first, size, stride) in enumerate(
        zip(indices, descriptor.sizes[-rank:], descriptor.strides[-rank:], strict=True)
    ):
        shape = tuple(block[axis] if axis == one else 1 for one in range(rank))
        along = Number(np.arange(block[axis], dtype=np.int64), (block[axis],), 64)
        index = _wide(first) if first.shape else add(_ranked(_wide(first), 1, (block[axis],)), along)
        index = index.shaped(lambda array: array.reshape(shape if array.size > 1 else (1,) * rank), shape)  # noqa: B023
        address = add(address, multiply(index, _ranked(stride, rank, shape)))
        for predicate, bound in (("sge", constant(0, 64)), ("slt", _wide(size))):
            within = compared(predicate, index, _ranked(bound, rank, shape))
            inside = RULES["arith.andi"](operation, (inside, within), _ANY)
    return replace(address, shape=block), replace(inside, shape=block), bits


@lru_cache(maxsize=1024)
def block_type(text: str) -> tuple[tuple[int, ...], int]:
    """(shape, bits of an element) of the block that a descriptor's type gives; raises ValueError if there is none."""
    match = _TYPE.search(text)
    if match is None:
        raise ValueError("no type of a descriptor")
    return tuple(int(size) for size in match[1].split("x") if size), element_bits(match[2])


def _wide(number: Number) -> Number:
    return replace(number, bits=64)


def _ranked(number: Number, rank: int, shape: tuple[int, ...]) -> Number:
    return number.shaped(lambda array: array.reshape((1,) * rank), shape)


_ANY = Kind((), "i1")
