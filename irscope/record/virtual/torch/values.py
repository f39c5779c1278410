"""The values of a launch's tensors, as far as they are known, for its record."""

from __future__ import annotations

import base64
import ctypes
import zlib
from typing import Any

import torch

from irscope.record.virtual.torch import memory

__all__ = ["recorded_values"]

_MOST_BYTES = 1 << 21
"""Of one tensor: the description of a capture, in which it stands, may have 24 MiB."""


def recorded_values(tensor: torch.Tensor, with_data: bool) -> dict[str, Any]:
    """The range of an integer tensor, and with `with_data` its data, as fields of an Argument; none if not known.

    A tensor of the virtual GPU is known as far as the script gave its values; one of a GPU is read only with
    `with_data`, which waits for the GPU.
    """
    # To the functions of the virtual GPU's mode it is a tensor of a GPU.
    with torch._C.DisableTorchFunction(), torch.no_grad():
        if not tensor.is_meta and not with_data:
            return {}
        found = memory.known(tensor)
        if found is None or not tensor.numel() or tensor.is_complex():
            return {}
        values = found.values.detach().cpu().contiguous()
        row: dict[str, Any] = {}
        if not values.dtype.is_floating_point:
            row = {"least": int(values.min()), "greatest": int(values.max())}
        size = values.numel() * values.element_size()
        if with_data and not found.drawn and size <= _MOST_BYTES:
            data = zlib.compress(ctypes.string_at(values.data_ptr(), size), 9)
            row["data"] = base64.b85encode(data).decode()
    return row
