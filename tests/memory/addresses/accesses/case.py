"""What a kernel is registered with: its launch, and the model of what it accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Touched = Sequence[tuple[np.ndarray, Any]]
Model = Callable[..., dict[str, Touched]]
"""From the program ids to argument → (elements, mask) of each execution; `load x`, `store out`, …"""


@dataclass
class Case:
    """A kernel, its launch, and the model of what it accesses."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: Callable[[], tuple[Any, ...]]
    options: dict[str, Any]
    model: Model
    is_pipelined: bool = False
    """Whether copies that are masked off stand among its instructions."""


CASES: dict[str, Case] = {}
MODELS: dict[str, Model] = {}


def case(grid: tuple[int, ...], arguments: Callable[[], tuple[Any, ...]], pipelined: bool = False, **options: Any):
    """Register a kernel; its model is the function `NAME_model` registered before it."""

    def register(kernel: Any) -> Any:
        name = kernel.fn.__name__
        CASES[name] = Case(kernel, grid, arguments, options, MODELS[name], pipelined)
        return kernel

    return register


def model(function: Model) -> Model:
    """Register the model of the kernel that follows."""
    MODELS[function.__name__.removesuffix("_model")] = function
    return function


def t(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="cuda")


def up_to(count: int) -> np.ndarray:
    return np.arange(count)


def both(elements: np.ndarray, mask: Any = True) -> dict[str, Touched]:
    """The same of the load from x and the store to out."""
    return {"load x": [(elements, mask)], "store out": [(elements, mask)]}
