"""Placeholder sizes: they are returned wherever the shape of a tensor made with them is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from irscope.record.virtual.follow import current_following
from irscope.record.virtual.numbers import PlaceholderInt, Reads, carry, plain

_SIZES = "_irscope_sizes"

Sizes = dict[int, Reads]
"""By dimension, counted from the last (0): the reads of its size."""


def _sizes_of(tensor: torch.Tensor) -> Sizes:
    """The dimensions of a tensor whose sizes are placeholder values."""
    return tensor.__dict__.get(_SIZES, {})


def carry_sizes(operands: Sequence[torch.Tensor], numbers: Sequence[Any], result: Any) -> None:
    """Mark those sizes of a call's results that are placeholder values, or follow from them.

    These are the sizes that are equal to a placeholder size of an operand, or to a placeholder number in the arguments.
    """
    held = [sizes for tensor in operands if (sizes := _sizes_of(tensor))]
    integers = [number for number in numbers if isinstance(number, PlaceholderInt)]
    if not held and not integers:
        return
    for one in result if isinstance(result, list | tuple) else (result,):
        if not isinstance(one, torch.Tensor) or not one.is_meta or any(one is operand for operand in operands):
            continue
        found: Sizes = {}
        for tensor in operands:
            for place, reads in _sizes_of(tensor).items():
                size = tensor.shape[-1 - place]
                if place < one.dim() and one.shape[-1 - place] == size:
                    found[place] = found.get(place, frozenset()) | reads
                elif one.shape.count(size) == 1:
                    place = one.dim() - 1 - one.shape.index(size)
                    found[place] = found.get(place, frozenset()) | reads
        for number in integers:
            if one.shape.count(plain(number)) >= 1:
                found[one.dim() - 1 - one.shape.index(plain(number))] = number.reads
        if found:
            set_sizes(one, found, decides=not held)


def set_sizes(tensor: torch.Tensor, sizes: Sizes, *, decides: bool) -> torch.Tensor:
    """Mark sizes of a tensor as placeholder values. `decides`: whether a placeholder value becomes a shape here."""
    tensor.__dict__[_SIZES] = sizes
    if decides and (following := current_following()) is not None:
        following.decide("shape", frozenset().union(*sizes.values()))
    return tensor


def install_shapes(handlers: dict[Any, Any]) -> None:
    """Add the handlers that return sizes to a mode."""
    T = torch.Tensor
    handlers[T.shape.__get__] = lambda func, args, kwargs: _shape(args[0], func(*args))
    handlers[T.size] = lambda func, args, kwargs: _size(func, args, kwargs)
    handlers[T.numel] = handlers[T.nelement] = lambda func, args, kwargs: _count(args[0], func(*args))


def _shape(tensor: torch.Tensor, shape: torch.Size) -> torch.Size:
    sizes = _sizes_of(tensor)
    if not sizes:
        return shape
    last = len(shape) - 1
    return torch.Size([carry(size, sizes.get(last - place, frozenset())) for place, size in enumerate(shape)])


def _size(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if not isinstance(dim, int) or not _sizes_of(args[0]):
        result = func(*args, **kwargs)
        return _shape(args[0], result) if isinstance(result, torch.Size) else result
    return _shape(args[0], func(args[0]))[plain(dim)]


def _count(tensor: torch.Tensor, count: int) -> int:
    sizes = _sizes_of(tensor)
    return carry(count, frozenset().union(*sizes.values())) if sizes else count
