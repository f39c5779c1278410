"""Reductions and scans along an axis, with the combination that a kernel gives."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from irscope.memory.addresses.numbers import Number, select

__all__ = ["Combine", "reduced", "scanned"]

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
