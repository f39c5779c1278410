"""Automatic mixed precision for tensors without data: torch's own works on a real device's tensors only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from irscope.record.virtual.torch.mode import VirtualCuda
from irscope.record.virtual.torch.shadow import mapped


def _functions(names: str) -> Iterator[Any]:
    for name in names.split():
        for owner in (torch, torch.Tensor, F, torch.linalg):
            func = getattr(owner, name, None)
            if func is not None:
                yield func


_LOWER = frozenset(
    _functions(
        "matmul __matmul__ __rmatmul__ mm bmm mv addmm addmv addbmm baddbmm chain_matmul multi_dot linear einsum "
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention prelu"
    )
)
"""Run in the lower precision. Source: torch's documentation, Automatic Mixed Precision, CUDA Op-Specific Behavior."""
_FULL = frozenset(
    _functions(
        "softmax log_softmax layer_norm group_norm norm cumsum cumprod exp expm1 log log10 log1p log2 pow __pow__ "
        "__rpow__ prod reciprocal rsqrt sinh tan sum cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss kl_div "
        "cosine_similarity binary_cross_entropy_with_logits softplus softmin acos asin cosh erfinv dist renorm"
    )
)
"""Run in float32. Source: as above."""


def install_autocast(mode: VirtualCuda) -> None:
    """Wrap the handlers that a mode has so far in the casts of autocast."""
    for functions, cast in ((_LOWER, _lowered), (_FULL, _in_full)):
        for func in functions:
            mode.handlers[func] = _before(cast, mode.handlers.get(func, mode.call))


def _lowered(value: torch.Tensor) -> torch.Tensor:
    if value.is_meta and value.is_floating_point() and value.dtype is not torch.float64:
        return value.to(torch.get_autocast_dtype("cuda"))
    return value


def _in_full(value: torch.Tensor) -> torch.Tensor:
    return value.to(torch.float32) if value.is_meta and value.dtype in (torch.float16, torch.bfloat16) else value


def _before(cast: Any, inner: Any) -> Any:
    def handler(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not torch.is_autocast_enabled("cuda"):
            return inner(func, args, kwargs)
        return inner(func, mapped(args, cast), mapped(kwargs, cast))

    return handler
