"""What to do where torch cannot run a function on tensors without data."""

from __future__ import annotations

from typing import Any

import torch

from irscope.record import virtual_memory

SMALL = 1 << 20
"""Up to this many elements in all, a function is tried on the CPU, for the shapes of its results."""


def rescue(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """A result for a call that failed on data-less tensors.

    In this order: the operands of the CPU joined to those of the device; the tensor itself, for a function that
    writes to it; and what the function makes of the values, of zeros
    where they are not known. Raises `error` where none of these will do.
    """
    tensors = _tensors((args, kwargs))
    if not any(tensor.is_meta for tensor in tensors):
        raise error
    if any(not tensor.is_meta for tensor in tensors):
        name = getattr(func, "__name__", "")
        first = args[0] if args else None
        if isinstance(first, torch.Tensor) and not first.is_meta and (name.endswith("_") or name == "__setitem__"):
            return func(*_on_cpu(args), **_on_cpu(kwargs))
        try:
            return func(*_on_meta(args), **_on_meta(kwargs))
        except (NotImplementedError, RuntimeError) as second:
            error = second
    if not isinstance(error, NotImplementedError) and "meta" not in str(error).lower():
        # The script's own mistake, such as shapes that do not match: the GPU would say the same.
        raise error
    if getattr(func, "__name__", "").endswith("_") and args:
        return args[0] if isinstance(args[0], torch.Tensor) else None
    if sum(tensor.numel() for tensor in tensors) > SMALL:
        raise error
    try:
        result = func(*_on_cpu(args), **_on_cpu(kwargs))
    except Exception:
        raise error from None
    return _on_meta(result)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _mapped(value: Any, change: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_mapped(item, change) for item in value]
        if type(value) in (list, tuple):
            return type(value)(items)
        # A named tuple of Python takes its fields one by one, one of torch takes them as a sequence.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, torch.device) and value.type == "meta":
        return change(value)
    return value


def _on_cpu(value: Any) -> Any:
    def change(item: Any) -> Any:
        if isinstance(item, torch.device):
            return torch.device("cpu")
        found = virtual_memory.known(item)
        if found is not None:
            return found.values
        # One element, seen as often as needed: zeros of any size in no memory.
        return torch.zeros((), dtype=item.dtype, device="cpu").expand(item.shape)

    return _mapped(value, change)


def _on_meta(value: Any) -> Any:
    def change(item: Any) -> Any:
        return item if isinstance(item, torch.device) or item.is_meta else item.to("meta")

    return _mapped(value, change)
