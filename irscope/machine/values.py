"""What the machine computes with: arrays whose first axis is the programs, and views of memory.

An array has one axis more than its type: the programs that run together. An axis along which all elements are equal
may have the size 1: a splat or a broadcast takes no memory, and what does not depend on the program is computed once.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Union, cast

import numpy as np
from numpy.typing import NDArray

from irscope.errors import MissingTool, NotRun, installing
from irscope.ir.mlir.types import Type

Array = NDArray[Any]
COMPARISONS: Mapping[str, Callable[..., Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip

_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "tf32": np.float32}
_NARROW_FLOATS = {
    "bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz", "f8E4M3B11FNUZ": "float8_e4m3b11fnuz", "f8E8M0FNU": "float8_e8m0fnu",
}  # fmt: skip
_INTEGERS = {1: np.bool_, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


@cache
def dtype_of(kind: Type) -> np.dtype[Any]:
    """The NumPy type of a type's elements: of a pointer its address; raises NotRun if there is none."""
    element = kind.element if kind.element is not None and kind.form != "pointer" else kind
    # A token has no value: something stands for it.
    if element.form in ("pointer", "index", "token"):
        return np.dtype(np.int64)
    if element.form == "integer" and element.bits in _INTEGERS:
        return np.dtype(_INTEGERS[element.bits])
    if element.text in _FLOATS:
        return np.dtype(_FLOATS[element.text])
    if element.text in _NARROW_FLOATS:
        return narrow_float(_NARROW_FLOATS[element.text])
    raise NotRun(f"values of the type {element.text!r} are not computed")


@cache
def bits_of(kind: Type) -> int:
    """Bits of a type's elements if they are integers or pointers of at most 64 bits; 0 for all else."""
    element = kind.element if kind.form == "tensor" and kind.element is not None else kind
    if element.form in ("pointer", "index"):
        return 64
    return element.bits if element.form == "integer" and element.bits <= 64 else 0


@cache
def narrow_float(name: str) -> np.dtype[Any]:
    """A type of `ml_dtypes`, by its name there."""
    try:
        import ml_dtypes
    except ImportError as error:
        raise MissingTool(f"bfloat16 and float8 need ml_dtypes: {installing('machine')}.") from error
    return np.dtype(getattr(ml_dtypes, name))


def unsigned(values: Array) -> Array:
    """The same bits as unsigned integers."""
    return values if values.dtype == np.bool_ else values.view(f"u{values.dtype.itemsize}")


def poison(dtype: np.dtype[Any], rank: int) -> Array:
    """What nobody may read, for each element of a tensor; all bits set are NaN in each float."""
    shape = (1,) * (rank + 1)
    if dtype == np.bool_:
        return np.ones(shape, np.bool_)
    return np.full(dtype.itemsize, 255, np.uint8).view(dtype).reshape(shape)


def full(values: Array, shape: Sequence[int], programs: int = 1) -> Array:
    """The array with every axis of a type's shape at its size, and at least so many programs."""
    wanted = (max(values.shape[0], programs), *shape)
    return values if values.shape == wanted else np.broadcast_to(values, wanted)


@dataclass(frozen=True, slots=True, eq=False)
class Descriptor:
    """A tensor in global memory that tiles are read and written of: a tensor descriptor, or a block pointer."""

    base: Array
    """The address of its first element, by program."""
    sizes: tuple[Array, ...]
    strides: tuple[Array, ...]
    """In elements."""
    block: tuple[int, ...]
    dtype: np.dtype[Any]
    offsets: tuple[Array, ...] = ()
    """Of a block pointer: where its tile begins."""
    fills_nan: bool = False
    """Whether what lies outside is read as NaN, not as zero."""


@dataclass(slots=True, eq=False)
class MemoryAllocation:
    """A piece of shared or tensor memory, of each program."""

    data: NDArray[np.uint8]
    """Bytes by program of the launch's part that runs together."""
    written_as: str = ""
    """The element type and the encoding it was written through last; empty if nobody wrote."""
    barriers: Any = None
    """The state of the mbarriers in it."""
    name: str = ""
    """As the IR names it, with `%`."""


@dataclass(frozen=True, slots=True, eq=False)
class MemoryView:
    """A part of an allocation, as a memory descriptor names it."""

    memories: tuple[MemoryAllocation, ...]
    """More than one where programs hold parts of different allocations."""
    offset: Array
    """In bytes, by program."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    dtype: np.dtype[Any]
    form: str = ""
    """Element type and encoding: what is written through one form is read through the same one."""
    owner: Array = field(default_factory=lambda: np.zeros(1, np.int64))
    """By program, the place of its allocation in `memories`."""
    lies_as: tuple[int, ...] = ()
    """The shape that `strides` are of, where a reshape gave its elements another one that no strides describe."""

    @property
    def memory(self) -> MemoryAllocation:
        """The allocation of all programs; raises NotRun if they have different ones."""
        if not (self.owner == self.owner[0]).all():
            raise NotRun("programs hold views of different allocations")
        return self.memories[int(self.owner[0])]


@dataclass(frozen=True, slots=True, eq=False)
class Undefined:
    """A view or a descriptor that nothing defines and no operation may use: what a branch yields in its place."""


Held = Union[Array, Descriptor, MemoryView, Undefined]  # noqa: UP007 (the classes are no types at run time under 3.10's isinstance)
"""What a value is during a run."""


def take(value: Held, index: Array) -> Held:
    """The value of some of the programs."""
    if isinstance(value, Undefined):
        return value
    if isinstance(value, (Descriptor, MemoryView)):
        return cast(Held, replace(value, **{name: _taken(part, index) for name, part in _parts(value)}))
    return value if value.shape[0] == 1 else value[index]


def merge(parts: Sequence[tuple[Held, Array]], count: int) -> Held:
    """One value of several, each with the places of its programs; `count`: all programs.

    Raises NotRun if the parts are views whose elements lie differently.
    """
    if len(parts) == 1 and len(parts[0][1]) == count:
        return parts[0][0]
    defined = [(value, index) for value, index in parts if not isinstance(value, Undefined)]
    if not defined:
        return Undefined()
    first = defined[0][0]
    if isinstance(first, np.ndarray):
        return _merged([(cast(Array, value), index) for value, index in defined], count)
    if any(type(value) is not type(first) for value, _ in defined):
        raise NotRun("programs hold values of different kinds")
    outside: dict[str, int] = {}
    if isinstance(first, MemoryView):
        defined = _of_same_memories(cast("list[tuple[MemoryView, Array]]", defined))
        first, outside = defined[0][0], {"offset": _OUTSIDE}
    changes: dict[str, Any] = {}
    for name, part in _parts(cast("Descriptor | MemoryView", first)):
        rows = [(getattr(value, name), index) for value, index in defined]
        if isinstance(part, tuple):
            columns = [[(row[place], index) for row, index in rows] for place in range(len(part))]
            changes[name] = tuple(_merged(column, count) for column in columns)
        else:
            changes[name] = _merged(rows, count, outside.get(name, 0))
    return cast(Held, replace(cast("Descriptor | MemoryView", first), **changes))


_OUTSIDE = -(1 << 40)
"""Where the view of a program begins that has none: an access there is refused."""


def _of_same_memories(parts: Sequence[tuple[MemoryView, Array]]) -> list[tuple[Held, Array]]:
    """The same views, each with the allocations of all."""
    first = parts[0][0]
    if any((view.strides, view.form, view.lies_as) != (first.strides, first.form, first.lies_as) for view, _ in parts):
        raise NotRun("programs hold views with different layouts")
    memories = list({id(one): one for view, _ in parts for one in view.memories}.values())
    places = {id(one): place for place, one in enumerate(memories)}
    found: list[tuple[Held, Array]] = []
    for view, index in parts:
        own = np.array([places[id(one)] for one in view.memories], np.int64)
        found.append((replace(view, memories=tuple(memories), owner=own[view.owner]), index))
    return found


def _parts(value: Descriptor | MemoryView) -> list[tuple[str, Any]]:
    """The fields that hold an array by program, or several."""
    parts = [(one.name, getattr(value, one.name)) for one in fields(value)]
    return [
        (name, part)
        for name, part in parts
        if isinstance(part, np.ndarray) or (isinstance(part, tuple) and part and isinstance(part[0], np.ndarray))
    ]


def _taken(part: Any, index: Array) -> Any:
    if isinstance(part, tuple):
        return tuple(take(one, index) for one in cast("tuple[Array, ...]", part))
    return take(part, index)


def _merged(parts: Sequence[tuple[Array, Array]], count: int, default: int = 0) -> Array:
    shape = np.broadcast_shapes(*[values.shape[1:] for values, _ in parts])
    found = np.full((count, *shape), default).astype(parts[0][0].dtype)
    for values, index in parts:
        found[index] = values
    return found
