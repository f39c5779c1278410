"""Placeholder values of virtual tensors: the results of `.item()`, `.cpu()`, `allclose`, printing and masks.

They let a script that checks itself go on: results agree, errors are 0, nothing is NaN, every element of a mask is set.
Known values of small tensors (lengths, offsets, indices) are returned themselves.
"""

from __future__ import annotations

from typing import Any

import torch

from irscope.record.virtual.follow import current_following
from irscope.record.virtual.numbers import reads_of
from irscope.record.virtual.torch import memory as virtual_memory
from irscope.record.virtual.torch.mode import VirtualCuda
from irscope.record.virtual.torch.shapes import install_shapes, set_sizes

T = torch.Tensor
_LARGE_BYTES = 1 << 28
"""An array of placeholder values above this size is one element, broadcast."""


class DataReads:
    """The handlers of one mode for reads of data."""

    def __init__(self, mode: VirtualCuda) -> None:
        self._mode = mode

    def install(self) -> None:
        """Add them to the mode."""
        handlers = self._mode.handlers
        install_shapes(handlers)
        for func in (T.item, T.__float__, T.__int__, T.__index__, T.__complex__, T.__bool__, T.tolist):
            handlers[func] = self.scalar
        handlers[T.is_nonzero] = handlers[torch.is_nonzero] = self.scalar
        handlers[T.__len__] = self.length
        handlers[T.__contains__] = self.contains
        for func in (T.__repr__, T.__format__):
            handlers[func] = self.text
        handlers[T.numpy] = handlers[T.__array__] = self.array
        for func in (torch.allclose, T.allclose, torch.equal, T.equal):
            handlers[func] = self.agree
        for name, holds in _COMPARISONS.items():
            for owner in (torch, T):
                func = getattr(owner, name, None)
                if func is not None:
                    handlers[func] = _comparison(self._mode, holds)
        for func in (torch.all, T.all, torch.any, T.any, torch.min, T.min, torch.max, T.max):
            handlers[func] = self.carry
        for func in (torch.logical_not, T.logical_not, torch.bitwise_not, T.bitwise_not, T.__invert__):
            handlers[func] = self.carry_inverse
        for func in (torch.sum, T.sum, torch.count_nonzero, T.count_nonzero):
            handlers[func] = self.count
        for func in (T.__getitem__, T.__setitem__):
            handlers[func] = self.index
        for func in (torch.nonzero, T.nonzero, torch.argwhere, T.argwhere):
            handlers[func] = self.nonzero
        handlers[torch.where] = handlers[T.where] = self.where
        for func in (torch.masked_select, T.masked_select):
            handlers[func] = self.masked_select
        for func in (torch.repeat_interleave, T.repeat_interleave):
            handlers[func] = self.repeat_interleave
        handlers[torch.combinations] = self.combinations

    def scalar(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value if it is known, else a placeholder value: 0, or the assumed outcome of a comparison."""
        tensor = args[0]
        if not tensor.is_meta:
            return func(*args, **kwargs)
        found = virtual_memory.values_of(tensor)
        if found is not None and not found.is_placeholder:
            return func(found.values, *args[1:], **kwargs)
        if found is None:
            holds = virtual_memory.assumed_result(tensor)
            filler = (True if holds is None else holds) if tensor.dtype is torch.bool else 0
            values = torch.full((), filler, dtype=tensor.dtype, device="cpu").expand(tensor.shape)
        else:
            values = found.values
        # Raises the same error as on the GPU for a tensor that is no scalar.
        value = func(values, *args[1:], **kwargs)
        following = current_following()
        if following is None:
            return value
        if isinstance(value, bool):
            return following.question(value)
        if func in (T.item, T.tolist):
            return following.read(value)
        # Python's own C code requires a plain number.
        following.decide("conversion", following.read_of(value))
        return value

    def length(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """`len(tensor)`, for which Python requires a plain number."""
        size = func(*args)
        following = current_following()
        if following is not None and args[0].is_meta and (reads := reads_of(args[0].shape)):
            following.decide("conversion", reads)
        return size

    def contains(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """`value in tensor`, which is assumed to be so where the values are not there."""
        tensor, value = args
        if not tensor.is_meta and not (isinstance(value, T) and value.is_meta):
            return func(*args)
        equal = self._mode.call(T.__eq__, (tensor, value), {})
        return self.scalar(T.__bool__, (self._mode.call(torch.any, (equal,), {}),), {})

    def text(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The tensor as text: as on the GPU if its values are known, else with dots for them."""
        tensor = args[0]
        if not tensor.is_meta:
            return func(*args, **kwargs)
        if func is T.__format__ and tensor.dim() == 0:
            return format(self.scalar(T.item, (tensor,), {}), args[1])
        device = self._mode.memory.device(tensor)
        place = "" if device.type == "cpu" else f", device='{device}'"
        if tensor.grad_fn is not None:
            place += f", grad_fn=<{type(tensor.grad_fn).__name__}>"
        elif tensor.requires_grad:
            place += ", requires_grad=True"
        found = virtual_memory.values_of(tensor)
        if found is not None:
            return f"{repr(found.values)[:-1]}{place})"
        return f"tensor(..., size={tuple(tensor.shape)}, dtype={tensor.dtype}{place})"

    def array(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A NumPy array of the values, else of placeholder values, which agree in any comparison."""
        tensor = args[0]
        if not tensor.is_meta:
            return func(*args, **kwargs)
        found = virtual_memory.values_of(tensor)
        if (found is None or found.is_placeholder) and (following := current_following()) is not None:
            following.decide("conversion", following.read_of([]))
        if found is not None:
            return func(found.values.clone(), *args[1:], **kwargs)
        from irscope.record.virtual.torch.array import placeholder_array

        kind = torch.zeros((), dtype=tensor.dtype, device="cpu").numpy().dtype
        return placeholder_array(tuple(tensor.shape), kind, tensor.numel() * tensor.element_size() > _LARGE_BYTES)

    def agree(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether two tensors agree: computed if the values of both are known, else assumed if their shapes do."""
        left, right = (*args, *kwargs.values())[:2]
        if not left.is_meta and not right.is_meta:
            return func(*args, **kwargs)
        if func in (torch.equal, T.equal) and left.shape != right.shape:
            return False
        operands = virtual_memory.values_of(left), virtual_memory.values_of(right)
        if operands[0] is not None and operands[1] is not None:
            answer = func(operands[0].values, operands[1].values, *args[2:], **kwargs)
            if not operands[0].is_placeholder and not operands[1].is_placeholder:
                return answer
        following = current_following()
        return True if following is None else following.question(True)

    def carry(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`all`, `any`, … of a comparison: they have its assumed outcome."""
        result = self._mode.call(func, args, kwargs)
        if not isinstance(args[0], T) or not args[0].is_meta or not isinstance(result, T):
            return result
        holds = virtual_memory.assumed_result(args[0])
        if holds is not None:
            virtual_memory.assume_result(result, holds)
        return result

    def carry_inverse(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`~` of a comparison: it has the other outcome."""
        result = self._mode.call(func, args, kwargs)
        holds = virtual_memory.assumed_result(args[0]) if args[0].is_meta else None
        return result if holds is None else virtual_memory.assume_result(result, not holds)

    def count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The number of elements for which a comparison holds: all or none."""
        result = self._mode.call(func, args, kwargs)
        if (
            args[0].is_meta
            and virtual_memory.assumed_result(args[0])
            and result.dim() == 0
            and not result.is_floating_point()
        ):
            count = torch.tensor(args[0].numel(), dtype=result.dtype, device="cpu")
            virtual_memory.store_values(result, count, is_placeholder=True)
        return result

    def index(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Indexing: a boolean mask of unknown values selects every element."""
        tensor, where = args[0], args[1]
        if not isinstance(where, tuple):
            where = (where,)
        if not any(isinstance(item, T) for item in where):
            return self._mode.call(func, args, kwargs)
        indices: list[Any] = []
        guessed = False
        for item in where:
            if isinstance(item, T) and item.dim() == 0 and item.dtype is torch.bool and item.is_meta:
                found = virtual_memory.values_of(item)
                indices.append(
                    virtual_memory.assumed_result(item) is not False if found is None else bool(found.values)
                )
                guessed = guessed or found is None or found.is_placeholder
            elif isinstance(item, T) and item.dtype in (torch.bool, torch.uint8) and (tensor.is_meta or item.is_meta):
                indices.extend(self._places(item))
            elif isinstance(item, T) and item.is_meta and not tensor.is_meta:
                found = virtual_memory.values_of(item)
                zeros = torch.zeros(item.shape, dtype=item.dtype, device="cpu")
                indices.append(zeros if found is None else found.values)
                if (found is None or found.is_placeholder) and (following := current_following()) is not None:
                    # A tensor of the host does not remember where its values are from.
                    following.decide("conversion", following.read_of([]))
            else:
                indices.append(item)
        if tensor.is_meta:
            indices = [item.to("meta") if isinstance(item, T) and not _has_values(item) else item for item in indices]
        result = self._mode.call(func, (tensor, tuple(indices), *args[2:]), kwargs)
        if guessed and func is T.__setitem__:
            virtual_memory.invalidate(tensor)
        elif guessed:
            virtual_memory.invalidate(result)
            if (following := current_following()) is not None:
                # A scalar mask makes a dimension of one element or of none.
                following.decide("shape", following.read_of(result.numel()))
        return result

    def nonzero(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The places where a tensor is not 0: all, if its values are unknown."""
        tensor = args[0]
        if not tensor.is_meta:
            return func(*args, **kwargs)
        if tensor.dim() == 0 and not kwargs.get("as_tuple"):
            # A scalar's places have no coordinates.
            return self._mode.call(
                T.__getitem__, (self.nonzero(func, (tensor.view(1),), {}), (slice(None), slice(0, 0))), {}
            )
        places = self._places(tensor.view(1) if tensor.dim() == 0 else tensor)
        if kwargs.get("as_tuple"):
            return tuple(places)
        return self._mode.call(torch.stack, (places,), {"dim": 1})

    def where(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`where(mask)` is `nonzero`; with three arguments it is any other function."""
        if len(args) == 1 and not kwargs:
            return self.nonzero(torch.nonzero, args, {"as_tuple": True})
        return self._mode.call(func, args, kwargs)

    def masked_select(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same as indexing by the mask."""
        tensor, mask = (*args, *kwargs.values())[:2]
        if not tensor.is_meta and not mask.is_meta:
            return func(*args, **kwargs)
        shape = torch.broadcast_shapes(tensor.shape, mask.shape)
        return self.index(T.__getitem__, (tensor.expand(shape), mask.expand(shape)), {})

    def repeat_interleave(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The size of the result is the sum of the counts, each of which is 1 if their values are unknown."""
        counts = kwargs.get("repeats", args[-1] if len(args) < 3 else args[1])
        if not isinstance(counts, T) or not counts.is_meta or kwargs.get("output_size") is not None:
            return self._mode.call(func, args, kwargs)
        found = virtual_memory.values_of(counts)
        size = int(found.values.sum()) if found is not None else counts.numel()
        result = self._mode.call(func, args, {**kwargs, "output_size": size})
        following = current_following()
        if following is not None and (found is None or found.is_placeholder):
            set_sizes(result, {0: following.read_of(size)}, decides=True)
        return result

    def combinations(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The size of the result depends on that of the tensor only; torch reads it from the values of a mask."""
        tensor, *rest = args
        if not tensor.is_meta:
            return func(*args, **kwargs)
        places = func(torch.arange(len(tensor), device="cpu"), *rest, **kwargs)
        return self._mode.call(T.__getitem__, (tensor, places.to("meta")), {}).view(places.shape)

    def _places(self, mask: torch.Tensor) -> list[torch.Tensor]:
        """The indices of the elements of a mask that are set, one tensor per dimension."""
        found = virtual_memory.values_of(mask)
        if found is not None:
            values = torch.nonzero(found.values, as_tuple=True)
            places = [
                virtual_memory.store_values(place.to("meta"), place, is_placeholder=found.is_placeholder)
                for place in values
            ]
            if not found.is_placeholder:
                return places
        else:
            selected = 0 if virtual_memory.assumed_result(mask) is False else mask.numel()
            places = [torch.empty(selected, dtype=torch.int64, device="meta") for _ in range(mask.dim())]
        if mask.numel() and (following := current_following()) is not None:
            # The number of selected elements is a placeholder value.
            places = [set_sizes(place, {0: following.read_of(place.shape[0])}, decides=True) for place in places]
        return places


_COMPARISONS = {
    **dict.fromkeys(
        ("eq", "__eq__", "isclose", "isfinite", "lt", "__lt__", "le", "__le__", "less", "less_equal"), True
    ),
    **dict.fromkeys(("ge", "__ge__", "greater_equal"), True),
    **dict.fromkeys(("ne", "__ne__", "not_equal", "isnan", "isinf", "gt", "__gt__", "greater"), False),
}
"""The outcome of each comparison of unknown operands, so that checks pass."""
_ABOVE_ZERO = ("gt", "__gt__", "greater", "ge", "__ge__", "greater_equal")
_BELOW_ZERO = ("lt", "__lt__", "le", "__le__", "less", "less_equal")


def _comparison(mode: VirtualCuda, holds: bool) -> Any:
    def compare(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = mode.call(func, args, kwargs)
        if not isinstance(result, T) or not result.is_meta or virtual_memory.values_of(result) is not None:
            return result
        return virtual_memory.assume_result(result, _outcome(func, args, holds))

    return compare


def _outcome(func: Any, args: tuple[Any, ...], holds: bool) -> bool:
    """The outcome of one comparison: an unknown value is more than 0, and less than any limit above 0."""
    name = getattr(func, "__name__", "")
    limit = args[1] if len(args) > 1 else None
    if not isinstance(limit, int | float) or isinstance(limit, bool):
        return holds
    if name in _ABOVE_ZERO:
        return limit <= 0
    if name in _BELOW_ZERO:
        return limit > 0
    return holds


def _has_values(tensor: torch.Tensor) -> bool:
    return tensor.is_meta and virtual_memory.values_of(tensor) is not None
