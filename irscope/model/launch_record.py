"""What a kernel's first launch was given: each argument as far as it can be written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from irscope.model.plain import ANY_VALUE

_MOST_PACKED = 8 << 20
"""Characters of all data of a launch before it, and as many after it: the description of a capture may have 24 MiB."""

ArgumentKind = Literal["tensor", "scalar", "descriptor"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a launch, or one element of an argument that is a tuple."""

    path: str
    """The parameter, or the path of an element: `x_ptr`, `sizes[0]`."""
    kind: ArgumentKind
    dtype: str = ""
    """The element type as torch names it (`float16`); of a scalar Python's type: int, float or bool."""
    value: bool | int | float | str | None = field(default=None, metadata=ANY_VALUE)
    """A scalar's value; inf and nan as text."""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = field(default=(), metadata=ANY_VALUE)
    """In elements; those of what is no tensor of torch, but is passed for one, may be negative: a flipped view."""
    storage_offset: int | None = field(default=None, metadata=ANY_VALUE)
    """Elements between the beginning of the storage and the tensor's first; None where that is not known."""
    storage_bytes: int | None = None
    """The size of the whole storage; None where that is not known."""
    alignment_bytes: int | None = None
    """The greatest power of two, up to 512, that divides the address of the first element; None for a scalar."""
    least: int | None = field(default=None, metadata=ANY_VALUE)
    greatest: int | None = field(default=None, metadata=ANY_VALUE)
    """Of an integer tensor's elements, where they were known."""
    data: str = ""
    """The elements in row-major order, where they were stored: packed by zlib, as base 85."""
    result: str = ""
    """The same after the launch, on a GPU, where the launch changed them; empty else."""
    block_shape: tuple[int, ...] = ()
    """A descriptor's block."""
    specializes: bool = True
    """Whether Triton may specialise on it (`do_not_specialize` forbids it)."""
    specializes_on_alignment: bool = True
    """Whether it may specialise on its divisibility by 16 (`do_not_specialize_on_alignment` forbids it)."""


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """The arguments of the launch that a kernel was compiled for; its grid is the Launch's own."""

    arguments: tuple[Argument, ...] = ()
    """Tensors, scalars and descriptors in the kernel's order; constants and None are among the Launch's constants."""

    def with_contents(self, contents: Iterable[tuple[str, str, str]]) -> LaunchRecord:
        """The record with (path, data before the launch, data after it if that differs) of its tensors."""
        known = {path: {"data": data, "result": result} for path, data, result in contents}
        return LaunchRecord(tuple(replace(one, **known.get(one.path, {})) for one in self.arguments))

    def argument(self, path: str) -> Argument | None:
        """The argument of that path, or None."""
        return next((argument for argument in self.arguments if argument.path == path), None)


def without_largest(packed: Mapping[str, str]) -> dict[str, str]:
    """Packed data by path; the largest are empty where all together are longer than a capture's description may be."""
    left = _MOST_PACKED
    kept = dict.fromkeys(packed, "")
    for path, data in sorted(packed.items(), key=lambda row: len(row[1])):
        if len(data) <= left:
            kept[path] = data
            left -= len(data)
    return kept
