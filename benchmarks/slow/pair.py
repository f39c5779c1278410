"""A slow kernel, its twin without the cause, and the codes of findings that name the cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

PAIRS: list[Pair] = []
DEVICE = ["cuda"]
"""Where arguments are made; `meta` where a launch is only described."""


@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    codes: tuple[str, ...]
    """The kinds of findings of which the first one has to be."""
    arguments: Callable[[], tuple[Any, ...]]
    slow: Callable[..., Any]
    fast: Callable[..., Any]
    """Both launch one kernel, with the same arguments."""


def pair(
    name: str,
    codes: str,
    arguments: Callable[[], tuple[Any, ...]],
    slow: Callable[..., Any],
    fast: Callable[..., Any],
) -> None:
    """Add a pair; `codes` are separated by spaces."""
    PAIRS.append(Pair(name, tuple(codes.split()), arguments, slow, fast))


def tensor(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Uniform values, in [-1, 1) or all of eight bits, on the GPU."""
    if dtype.is_floating_point:
        return (torch.rand(shape, device=DEVICE[0]) * 2 - 1).to(dtype)
    return torch.randint(0, 100, shape, device=DEVICE[0], dtype=dtype)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Zeros on the GPU."""
    return torch.zeros(shape, device=DEVICE[0], dtype=dtype)
