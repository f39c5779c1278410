"""The operations that access global memory: their addresses and masks, and the descriptors that these may come from."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
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
from irscope.memory.addresses.kinds import Kind, kind_of
from irscope.memory.addresses.numbers import Number, Source, add, compared, constant, multiply, select
from irscope.memory.addresses.rules import RULES, moved
from irscope.memory.machine import ACCESSES

__all__ = [
    "ACCESSES",
    "Description",
    "Descriptor",
    "Evaluation",
    "Execution",
    "block_addresses",
    "block_type",
    "described",
    "made_descriptor",
    "tensormap",
]


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
    pointee = operation.operand_types[1].element
    fastest = constant((pointee.bits if pointee is not None else 8) // 8, 64)
    return Descriptor(number(operands[1]), tuple(sizes), (*strides, fastest))


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


_PREDICATED = ("ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather")
"""Their last operand says whether they are done at all."""


@dataclass(frozen=True, slots=True)
class Description:
    """The addresses of one access."""

    addresses: Number
    """In bytes."""
    mask: Number | None
    element_bits: int
    is_box: bool = False
    """Whether it is a block of a descriptor, which one thread asks for."""
    loaded: Kind | None = None
    """What it gives, if that is data of these addresses."""
    other: Number | None = None
    """What it gives for masked-off elements."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of an access, or many that touch memory alike."""

    operation: Operation
    addresses: Number
    mask: Number | None
    element_bits: int
    times: tuple[int, int]
    """The fewest and the most executions that it stands for."""
    share: float
    """The share of the executions that was evaluated, if only some turns of a loop were."""
    sources: frozenset[Source]
    """On what it depends how often it is executed."""
    warps: int
    is_box: bool


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one evaluation found."""

    executions: tuple[Execution, ...]
    notes: tuple[str, ...] = ()
    """Why it is incomplete; empty if it is not."""
    is_ended: bool = False
    """Whether it was ended before the kernel's end."""
    work: int = 0
    """How many operations it evaluated, an access as four."""
    unread: tuple[tuple[int, str], ...] = ()
    """(line, why) of accesses that were reached, but whose addresses could not be read."""


def described(operation: Operation, number: Callable[[Value], Number], held: Mapping[Value, object]) -> Description:
    """The addresses and the mask of an access; raises ValueError if they cannot be read."""
    operands = operation.operands
    if "descriptor" in operation.name or "tma" in operation.name:
        made = held.get(operands[0])
        if not isinstance(made, Descriptor):
            raise ValueError("an unknown descriptor")
        addresses, mask, bits = block_addresses(operation, number, made)
        if operation.name in _PREDICATED:
            holds = _shaped(number(operands[-1]), addresses)
            mask = select(holds, mask, constant(0, 1, (1,) * len(mask.shape))) if holds is not None else mask
        return Description(addresses, mask, bits, True)
    if "buffer_" in operation.name:
        return _of_buffer(operation, number)
    pointers = number(operands[0])
    loads = ACCESSES[operation.name] == "load"
    mask: Number | None = None
    if operation.name == "ttg.async_copy_global_to_local":
        mask = _named(operation, "mask", number)
    elif operation.name != "tt.atomic_cas":
        at = 1 if loads else 2
        mask = number(operands[at]) if len(operands) > at else None
    kind = _pointer_kind(operation)
    other = None
    loaded = kind.pointee if loads and operation.results else None
    if loaded is not None and loaded.bits and len(operands) > 2:
        other = number(operands[2])
    return Description(pointers, _shaped(mask, pointers), kind.pointee_bits, False, loaded, other)


def _of_buffer(operation: Operation, number: Callable[[Value], Number]) -> Description:
    """An access of an AMD buffer: a scalar pointer and a tensor of offsets."""
    kind = _pointer_kind(operation)
    offsets, pointer = _named(operation, "offsets", number), _named(operation, "ptr", number)
    if offsets is None or pointer is None:
        raise ValueError("no pointer with offsets")
    rank = len(offsets.shape)
    spread = pointer.shaped(lambda array: array.reshape((1,) * rank), offsets.shape)
    mask = _named(operation, "mask", number)
    loads = ACCESSES[operation.name] == "load"
    other = _named(operation, "other", number) if loads and kind.pointee.bits else None
    loaded = Kind(offsets.shape, kind.pointee.element) if loads else None
    addresses = moved(spread, offsets, kind.pointee_bits)
    return Description(addresses, _shaped(mask, addresses), kind.pointee_bits, False, loaded, other)


def _named(operation: Operation, name: str, number: Callable[[Value], Number]) -> Number | None:
    """The operand of a name of the operation table; None if there is none."""
    value = operation.operand(name)
    return number(value) if value is not None else None


def _shaped(mask: Number | None, addresses: Number) -> Number | None:
    """A mask of the shape of the addresses; one of a scalar is for all of them. Raises ValueError for another shape."""
    if mask is None:
        return None
    if len(mask.shape) == len(addresses.shape):
        if np.broadcast_shapes(mask.known.shape, mask.shape, addresses.shape) != addresses.shape:
            raise ValueError("a mask of another shape")
        return mask
    rank = len(addresses.shape)
    return mask.shaped(lambda array: array.reshape((1,) * rank), addresses.shape)


def _pointer_kind(operation: Operation) -> Kind:
    """The type of its pointers; raises ValueError if it has none."""
    pointer = operation.operand("ptr") or operation.operand("src")
    if pointer is None:
        raise ValueError("no type of a pointer")
    return kind_of(operation.operand_types[operation.operands.index(pointer)].text)
