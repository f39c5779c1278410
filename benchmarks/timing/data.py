"""Tensors for launches: random data on the current GPU, which is the virtual one where captures are recorded."""

from __future__ import annotations

from typing import Any

import torch


def normal(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    """Draw normally distributed values; zeros would run faster than real data on tensor cores."""
    if dtype.itemsize == 1:
        drawn = torch.randn(*shape, device="cuda", dtype=torch.float16)
        return (drawn * 32).to(dtype) if dtype == torch.int8 else drawn.to(dtype)
    return torch.randn(*shape, device="cuda", dtype=dtype)


def uniform(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    """Draw values from 0 to 1."""
    return torch.rand(*shape, device="cuda", dtype=dtype)


def indices(high: int, *shape: int, dtype: Any = torch.int32) -> torch.Tensor:
    """Draw uniformly distributed indices below `high`."""
    return torch.randint(0, high, shape, device="cuda", dtype=dtype)


def empty(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    """Allocate an output."""
    return torch.empty(*shape, device="cuda", dtype=dtype)


def zeros(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    """Allocate an accumulator."""
    return torch.zeros(*shape, device="cuda", dtype=dtype)


def table(values: Any, dtype: Any = torch.int32) -> torch.Tensor:
    """Put numbers, or a tensor made on the host, on the GPU."""
    return torch.as_tensor(values, dtype=dtype).to("cuda")
