"""The operations that access global memory: which operands are the addresses and the mask."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from irscope.ir.mlir.model import Operation, Value
from irscope.ir.mlir.tokens import closing
from irscope.memory.addresses.descriptors import Descriptor, block_addresses
from irscope.memory.addresses.kinds import Kind, kind_of
from irscope.memory.addresses.numbers import Number, Source, constant, select
from irscope.memory.addresses.rules import moved
from irscope.memory.machine import ACCESSES

__all__ = ["ACCESSES", "Description", "Execution", "described"]


_PREDICATED = ("ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather")
"""Their last operand says whether they are done at all."""
# %pointers, %buffer mask %mask other %other      %pointer[%offsets] mask = %mask
_MASK = re.compile(r"\bmask (?:= )?(%[\w$.#-]+)")
# %value, %pointer[%offsets], %mask, %other stride = %stride
_BUFFER = re.compile(r"(%[\w$.#-]+)\[(%[\w$.#-]+)\](?:, (%[\w$.#-]+))?(?:, (%[\w$.#-]+))?")
# tt.load %pointers : tensor<32x!tt.ptr<f32>, #blocked>
_POINTERS = re.compile(r"\btensor<(?:\d{1,9}x){1,8}!tt\.ptr<|!tt\.ptr<")
# amdg.buffer_store %values, %pointer[%offsets] : tensor<64xf16, #blocked>      … into %buffer : <f16>[tensor<64xi32>] …
_DATA = re.compile(r" : (?:<|tensor<(?:\d{1,9}x){1,8})(\w+)[,>]")


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
        mask = _named(operation, _MASK, number)
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
    match = _BUFFER.search(operation.text)
    if match is None:
        raise ValueError("no pointer with offsets")
    named = {value.name: value for value in operation.operands}
    kind = _pointer_kind(operation)
    offsets = number(named[match[2]])
    pointer = number(named[match[1]])
    rank = len(offsets.shape)
    spread = pointer.shaped(lambda array: array.reshape((1,) * rank), offsets.shape)
    mask = _named(operation, _MASK, number)
    other = None
    if mask is None and match[3] in named:
        mask = number(named[match[3]])
        other = number(named[match[4]]) if match[4] in named and kind.pointee.bits else None
    loads = ACCESSES[operation.name] == "load"
    loaded = Kind(offsets.shape, kind.pointee.element) if loads else None
    addresses = moved(spread, offsets, kind.pointee_bits)
    return Description(addresses, _shaped(mask, addresses), kind.pointee_bits, False, loaded, other)


def _named(operation: Operation, pattern: re.Pattern[str], number: Callable[[Value], Number]) -> Number | None:
    match = pattern.search(operation.text)
    named = {value.name: value for value in operation.operands}
    return number(named[match[1]]) if match and match[1] in named else None


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
    """The type of its pointers: the first type of a pointer that its text gives.

    Before Triton 3.9 buffer operations are written with the type of their data alone.
    """
    if (match := _POINTERS.search(operation.text)) is not None:
        return _first_kind(operation.text[match.start() :])
    if "buffer_" in operation.name and (match := _DATA.search(operation.text)) is not None:
        return kind_of(f"!tt.ptr<{match[1]}>")
    raise ValueError("no type of a pointer")


def _first_kind(text: str) -> Kind:
    return kind_of(text[: closing(text, text.index("<")) + 1])
