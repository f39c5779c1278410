"""The values of a launch's tensors, as far as they are known, for its record."""

from __future__ import annotations

import base64
import ctypes
import zlib
from typing import Any

import torch

from irscope.record.virtual.torch import memory

__all__ = ["recorded_values"]

_INDEX_BYTES = 64 << 10
"""Of an integer tensor that a script made on the virtual GPU: by its elements the addresses of a gather are known."""


def recorded_values(tensor: torch.Tensor, most_bytes: int) -> dict[str, Any]:
    """The range of an integer tensor, and its data if it has at most so many bytes, as fields of an Argument.

    Of an integer tensor of the virtual GPU the data are stored up to a fixed size, too.

    None of them if it is not known: a tensor of the virtual GPU as far as the script gave its values; one of a GPU is
    read only where any data are wanted, which waits for the GPU.
    """
    # To the functions of the virtual GPU's mode it is a tensor of a GPU.
    with torch._C.DisableTorchFunction(), torch.no_grad():
        if not tensor.is_meta and not most_bytes:
            return {}
        found = memory.values_of(tensor)
        if found is None or not tensor.numel() or tensor.is_complex():
            return {}
        values = found.values.detach().cpu().contiguous()
        row: dict[str, Any] = {}
        if not values.dtype.is_floating_point:
            row = {"least": int(values.min()), "greatest": int(values.max())}
            most_bytes = max(most_bytes, _INDEX_BYTES if tensor.is_meta else 0)
        size = values.numel() * values.element_size()
        if not found.is_placeholder and size <= most_bytes:
            data = zlib.compress(ctypes.string_at(values.data_ptr(), size), 6)
            row["data"] = base64.b85encode(data).decode()
    return row
