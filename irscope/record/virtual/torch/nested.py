"""Tensors in nested lists, tuples and dictionaries: arguments and results of torch's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def tensors_in(value: Any) -> list[torch.Tensor]:
    """All tensors in a value, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, slice):
        value = [value.start, value.stop, value.step]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def mapped(value: Any, change: Callable[[torch.Tensor], Any], device: torch.device | None = None) -> Any:
    """A value with each tensor changed; `device` replaces the device `meta`."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: mapped(item, change, device) for name, item in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(bound, change, device) for bound in (value.start, value.stop, value.step)))
    if isinstance(value, list | tuple):
        items = [mapped(item, change, device) for item in value]
        # A named tuple of Python takes its fields one by one, one of torch takes them as a sequence.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if device is not None and isinstance(value, torch.device) and value.type == "meta":
        return device
    return value
