"""The parameters of a kernel as its first launch gave them; what is not known of them is said."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import cast

import numpy as np

from irscope.errors import NotRun
from irscope.ir.mlir.edits import known_divisor
from irscope.ir.mlir.model import Operation, Value
from irscope.ir.mlir.tokens import split_commas
from irscope.ir.mlir.types import Type, element_bits, parse_type
from irscope.ir.mlir.uses import read_pointer_uses
from irscope.machine.noted import Contents, Held, Opaque
from irscope.machine.numbers import Number, Source, add, atom, bits_of, constant
from irscope.machine.values import Array, Descriptor, dtype_of
from irscope.model.capture import Launch
from irscope.model.launch_record import Argument

_INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
_MOST_CONTENTS = 1 << 22
"""Elements of a tensor whose contents are used."""
_STORAGE_BYTES = 512
"""What the beginning of a storage is a multiple of, as torch's allocators give it."""


@dataclass(frozen=True, slots=True)
class LaunchArguments:
    """The parameters of a kernel, and what was assumed of them."""

    held: dict[Value, Held]
    assumed: dict[str, str]
    """Name → what was assumed: said with the accesses that depend on it."""
    is_recorded: bool = True
    """Whether it is known what the launch was given."""
    stand_ins: tuple[str, ...] = ()
    """What a virtual GPU took some of it to be."""
    contents: dict[str, Contents] = field(default_factory=dict[str, Contents])
    """Name → what it held, of those that the kernel does not write to."""


def pointer_steps(arguments: LaunchArguments) -> dict[str, int]:
    """Pointer → what divides where it begins, of which its known part is told apart."""
    pointers = [one.base if isinstance(one, Descriptor) else one for one in arguments.held.values()]
    return {one.argument: one.step for one in pointers if isinstance(one, Number) and one.argument}


@dataclass(frozen=True, slots=True)
class _Parameter:
    value: Value
    type: Type
    divisor: int


def read_arguments(
    kernel: Operation, launch: Launch, text: str = "", *, loaded_are_apart: bool = False, with_drawn: bool = False
) -> LaunchArguments:
    """The parameters of a kernel, from the record of its launch as far as there is one.

    `text`: its module, which tells the arguments that it does not write: their contents are used. `loaded_are_apart`:
    whether pointers that the kernel loads are taken to point into none of its arguments. `with_drawn`: whether random
    numbers that stand in for the script's own are contents too.
    """
    parameters = [
        _Parameter(value, parse_type(kind), known_divisor(attributes)) for value, kind, attributes in kernel.parameters
    ]
    found = LaunchArguments({}, {}, launch.record is not None, tuple(dict.fromkeys(_stand_ins(launch))))
    has_data = launch.record is not None and any(
        one.data or (with_drawn and one.drawn) for one in launch.record.arguments
    )
    unwritten = _unwritten(text, loaded_are_apart) if text and has_data else frozenset[str]()
    for name, row, own in _paired(parameters, launch):
        is_block = len(own) > 1 or own[0].type.form == "descriptor"
        if own[0].type.form == "pointer" and not is_block:
            begin = found.held[own[0].value] = _pointer(name, row, own[0].divisor, found.assumed)
            if name in unwritten and row is not None and (contents := _contents(row, begin, with_drawn)) is not None:
                found.contents[name] = contents
        elif is_block:
            _describe(name, row, own, found)
        else:
            found.held[own[0].value] = _scalar(name, row, own[0], found.assumed)
    return found


def _paired(
    parameters: Sequence[_Parameter], launch: Launch
) -> Iterator[tuple[str, Argument | None, Sequence[_Parameter]]]:
    """(name, record, its parameters in the IR) of each argument, in order: a descriptor has several parameters.

    Without a record of each where the parameters do not fit the signature.
    """
    rows = [row for name, kind in launch.signature for row in _elements(name, kind)]
    descriptors = sum(_is_descriptor(kind) for _, kind in rows)
    each = (len(parameters) - len(rows)) // descriptors + 1 if descriptors else 1
    sizes = [each if _is_descriptor(kind) else 1 for _, kind in rows]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    fits = sum(sizes) == len(parameters) and all(
        _is_descriptor(kind) or kind.startswith("*") == (parameters[at].type.form == "pointer")
        for (_, kind), at in zip(rows, starts, strict=True)
    )
    if not fits:
        yield from ((parameter.value.name.lstrip("%"), None, [parameter]) for parameter in parameters)
        return
    for (name, _), at, size in zip(rows, starts, sizes, strict=True):
        yield name, launch.record.argument(name) if launch.record is not None else None, parameters[at : at + size]


def _elements(name: str, kind: str) -> list[tuple[str, str]]:
    """(path, type) of an argument, or of each element of a tuple, but for constants."""
    if kind.startswith("(") and kind.endswith(")"):
        # ('i32', 'constexpr', '*fp32')
        parts = [part.strip("'\" ") for part in split_commas(kind[1:-1]) if part]
        return [row for number, part in enumerate(parts) for row in _elements(f"{name}[{number}]", part)]
    return [] if kind == "constexpr" else [(name, kind)]


def _is_descriptor(kind: str) -> bool:
    return kind.startswith("tensordesc")


def _stand_ins(launch: Launch) -> Iterator[str]:
    for assumption in launch.assumptions:
        for decision in assumption.decided:
            if decision.kind in ("argument", "grid") and not assumption.given:
                what = f"argument {decision.what}" if decision.kind == "argument" else "the grid"
                yield f"{what} comes from a placeholder value: {assumption.name} was assumed to be {assumption.value}"


def _pointer(name: str, row: Argument | None, divisor: int, assumed: dict[str, str]) -> Number:
    """An address: the tokens say which argument, the known part where it lies beside a multiple of their step."""
    source = Source("argument", name)
    aligned = row.alignment_bytes if row is not None else None
    if not aligned:
        # What is divisible by 16 is, as a rule, a whole allocation.
        step = _STORAGE_BYTES if divisor >= 16 else divisor
        assumed[name] = f"{name} is assumed to begin at a multiple of {step} bytes"
        return replace(atom(source, 64, step), argument=name)
    if aligned >= _STORAGE_BYTES:
        return replace(atom(source, 64, _STORAGE_BYTES), argument=name)
    size = element_bits(_TYPES.get(row.dtype if row else "", row.dtype if row else "")) // 8
    offset = (row.storage_offset or 0) * size if row is not None else 0
    if offset & -offset == aligned:
        assumed[name] = f"the storage of {name} begins at a multiple of {_STORAGE_BYTES} bytes"
        begin = add(atom(source, 64, _STORAGE_BYTES), constant(offset % _STORAGE_BYTES, 64))
        return replace(begin, argument=name)
    # An odd multiple of its alignment.
    assumed[name] = f"{name} begins at an odd multiple of {aligned} bytes, of otherwise unknown alignment"
    return replace(add(atom(source, 64, 2 * aligned), constant(aligned, 64)), argument=name)


_TYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64", "bool": "i8",
    "float8_e4m3fn": "f8", "float8_e5m2": "f8", "float8_e4m3fnuz": "f8", "float8_e5m2fnuz": "f8",
}  # fmt: skip
"""Element type as torch names it → as MLIR does."""


def _unwritten(text: str, loaded_are_apart: bool) -> frozenset[str]:
    uses = read_pointer_uses(text)
    return (
        frozenset()
        if uses.elsewhere and not loaded_are_apart
        else frozenset(one.name for one in uses.parameters if not one.written)
    )


def _contents(row: Argument, begin: Number, with_drawn: bool) -> Contents | None:
    """What a recorded integer tensor held; None if that is not stored, or too much."""
    kind = np.dtype(row.dtype) if row.dtype in _INTEGERS else None
    extent = sum((size - 1) * stride for size, stride in zip(row.shape, row.strides, strict=False)) + 1
    data = row.data or (row.drawn if with_drawn else "")
    if kind is None or not data or not row.shape or min(row.strides, default=0) < 0 or extent > _MOST_CONTENTS:
        return None
    size = prod(row.shape) * kind.itemsize
    try:
        # A damaged capture may hold anything; no more is unpacked than the tensor has.
        packed = zlib.decompressobj().decompress(base64.b85decode(data), size)
        elements = np.frombuffer(packed, kind).reshape(row.shape).astype(np.int64)
        places = sum(
            (np.arange(count).reshape(-1, *(1,) * (len(row.shape) - axis - 1)) * stride
             for axis, (count, stride) in enumerate(zip(row.shape, row.strides, strict=True))),
            np.zeros((1,) * len(row.shape), np.int64),
        )  # fmt: skip
    except (ValueError, zlib.error):
        return None
    values, is_known = np.zeros(extent, np.int64), np.zeros(extent, np.bool_)
    values[places], is_known[places] = elements, True
    return Contents(begin, values, is_known, kind.itemsize)


def _scalar(name: str, row: Argument | None, parameter: _Parameter, assumed: dict[str, str]) -> Held:
    bits, source = bits_of(parameter.type), Source("argument", name)
    if not bits:
        return Opaque(parameter.type, source, 0)
    if row is not None and isinstance(row.value, int):
        return constant(-int(row.value) if bits == 1 else int(row.value), bits)
    assumed[name] = f"{name} has no value" + (f"; it is a multiple of {parameter.divisor}" * (parameter.divisor > 1))
    return atom(source, bits, parameter.divisor)


def _describe(name: str, row: Argument | None, own: Sequence[_Parameter], found: LaunchArguments) -> None:
    """A descriptor that the launch was given, and the parameters of its shape and strides that follow it."""
    rank = len(row.shape) if row is not None else 0
    base = _pointer(name, row, 16, found.assumed)
    sizes = list(row.shape) if row is not None else []
    strides = list(row.strides) if row is not None else []
    numbers: list[int] = [*sizes, *strides]
    position = 0
    for parameter in own[1:]:
        bits = bits_of(parameter.type)
        if bits in (32, 64) and numbers:
            found.held[parameter.value] = constant(numbers[position % len(numbers)], bits)
            position += 1
        elif bits == 1:
            # How elements out of bounds are filled, and how float32 is rounded: no address depends on it.
            found.held[parameter.value] = atom(Source("argument", name), 1, 1, -1, 0)
    kind = own[0].type
    if kind.form != "descriptor":
        found.held[own[0].value] = base
        return
    if row is None or not rank or len(strides) != rank:
        return
    extents = [tuple(np.array([one], np.int64) for one in each) for each in (sizes, strides)]
    with suppress(NotRun):
        found.held[own[0].value] = Descriptor(cast(Array, base), extents[0], extents[1], kind.shape, dtype_of(kind))
