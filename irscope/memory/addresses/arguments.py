"""The parameters of a kernel as its first launch gave them; what is not known of them is said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from irscope.ir.mlir.model import Operation, Value
from irscope.ir.mlir.types import element_bits
from irscope.memory.addresses.descriptors import Descriptor
from irscope.memory.addresses.held import Held, Opaque
from irscope.memory.addresses.kinds import kind_of
from irscope.memory.addresses.numbers import Number, Source, add, atom, constant
from irscope.model.capture import Launch
from irscope.model.launch_record import Argument

__all__ = ["Arguments", "known_divisor", "read_arguments"]

_STORAGE_BYTES = 512
"""What the beginning of a storage is a multiple of, as torch's allocators give it."""

# tt.divisibility = 16 : i32
_DIVISIBILITY = re.compile(r"tt\.divisibility = (\d{1,9})")
# !tt.tensordesc<64x32xf32, #shared>
_BLOCK = re.compile(r"tensordesc<(?:tensor<)?((?:\d{1,9}x){1,8})(\w{1,20})")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parameters of a kernel, and what was assumed of them."""

    held: dict[Value, Held]
    assumed: dict[str, str]
    """Name → what was assumed: said with the accesses that depend on it."""
    is_recorded: bool = True
    """Whether it is known what the launch was given."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    value: Value
    kind: str
    divisor: int


def known_divisor(attributes: str) -> int:
    """What the compiler was told to divide a parameter; 1 if nothing."""
    match = _DIVISIBILITY.search(attributes)
    return int(match[1]) if match else 1


def read_arguments(kernel: Operation, launch: Launch) -> Arguments:
    """The parameters of a kernel, from the record of its launch as far as there is one."""
    parameters = [_Parameter(value, kind, known_divisor(attributes)) for value, kind, attributes in kernel.parameters]
    found = Arguments({}, {}, launch.record is not None)
    for name, row, own in _paired(parameters, launch):
        if own[0].kind.startswith("!tt.ptr<") and not _is_descriptor(launch, name):
            found.held[own[0].value] = _pointer(name, row, own[0].divisor, found.assumed)
        elif len(own) > 1 or "tensordesc" in own[0].kind:
            _describe(name, row, own, found)
        else:
            found.held[own[0].value] = _scalar(name, row, own[0], found.assumed)
    return found


def _is_descriptor(launch: Launch, name: str) -> bool:
    return dict(launch.signature).get(name, "").startswith("tensordesc")


def _paired(
    parameters: Sequence[_Parameter], launch: Launch
) -> Iterator[tuple[str, Argument | None, Sequence[_Parameter]]]:
    """(name, record, its parameters in the IR) of each argument, in order: a descriptor has several parameters."""
    record = launch.record
    rows = [name for name, kind in launch.signature if kind != "constexpr"]
    at = 0
    sizes = [_parameters_of(name, parameters, launch) for name in rows]
    spare = len(parameters) - sum(size for size in sizes if size)
    groups = sizes.count(0)
    for name, size in zip(rows, sizes, strict=True):
        own = parameters[at : at + (size or spare // max(groups, 1))]
        at += len(own)
        if own:
            yield name, record.argument(name) if record is not None else None, own
    for parameter in parameters[at:]:
        yield parameter.value.name.lstrip("%"), None, [parameter]


def _parameters_of(name: str, parameters: Sequence[_Parameter], launch: Launch) -> int:
    """The number of parameters of an argument; 0 for a descriptor, which has as many as are left."""
    return 0 if _is_descriptor(launch, name) else 1


def _pointer(name: str, row: Argument | None, divisor: int, assumed: dict[str, str]) -> Number:
    """An address: the tokens say which argument, the known part where it lies beside a multiple of their step."""
    source = Source("argument", name)
    aligned = row.alignment_bytes if row is not None else None
    if not aligned:
        # What is divisible by 16 is, as a rule, a whole allocation.
        step = _STORAGE_BYTES if divisor >= 16 else divisor
        assumed[name] = f"{name} is taken to begin at a multiple of {step} bytes"
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
    assumed[name] = f"{name} begins at an odd multiple of {aligned} bytes, of which no more is known"
    return replace(add(atom(source, 64, 2 * aligned), constant(aligned, 64)), argument=name)


_TYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64", "bool": "i8",
    "float8_e4m3fn": "f8", "float8_e5m2": "f8", "float8_e4m3fnuz": "f8", "float8_e5m2fnuz": "f8",
}  # fmt: skip
"""Element type as torch names it → as MLIR does."""


def _scalar(name: str, row: Argument | None, parameter: _Parameter, assumed: dict[str, str]) -> Held:
    kind = kind_of(parameter.kind)
    source = Source("argument", name)
    if not kind.bits:
        return Opaque(kind, source, 0)
    if row is not None and isinstance(row.value, int):
        return constant(-int(row.value) if kind.bits == 1 else int(row.value), kind.bits)
    assumed[name] = f"{name} has no value" + (f"; it is a multiple of {parameter.divisor}" * (parameter.divisor > 1))
    return atom(source, kind.bits, parameter.divisor)


def _describe(name: str, row: Argument | None, own: Sequence[_Parameter], found: Arguments) -> None:
    """A descriptor that the launch was given, and the parameters of its shape and strides that follow it."""
    rank = len(row.shape) if row is not None else 0
    base = _pointer(name, row, 16, found.assumed)
    sizes = list(row.shape) if row is not None else []
    strides = list(row.strides) if row is not None else []
    numbers: list[int] = [*sizes, *strides]
    position = 0
    for parameter in own[1:]:
        bits = kind_of(parameter.kind).bits
        if bits in (32, 64) and numbers:
            found.held[parameter.value] = constant(numbers[position % len(numbers)], bits)
            position += 1
        elif bits == 1:
            # How elements out of bounds are filled, and how float32 is rounded: no address depends on it.
            found.held[parameter.value] = atom(Source("argument", name), 1, 1, -1, 0)
    if "tensordesc" not in own[0].kind:
        found.held[own[0].value] = base
        return
    match = _BLOCK.search(own[0].kind)
    if row is None or match is None or not rank or len(strides) != rank:
        return
    element = element_bits(match[2]) // 8
    found.held[own[0].value] = Descriptor(
        base, tuple(constant(size, 64) for size in sizes), tuple(constant(stride * element, 64) for stride in strides)
    )
