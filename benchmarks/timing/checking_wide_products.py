"""Families of products and of attention of the part `wide` against torch, as `checking` describes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.timing.checking import Pairs, sized
from benchmarks.timing.family import Config


@sized(per_image=90, n=256, k=192)
def wide_gated_residual(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's layer times the gate of the image, and the residual."""
    x, w, bias, gate, residual = (tensor.float().cpu() for tensor in before[:5])
    layer = torch.nn.functional.linear(x, w, bias)
    return [(after[5], residual + gate.repeat_interleave(90, 0) * layer)]


@sized(m=128, n=128, k=512)
def wide_weight_slope(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product."""
    return [(after[2], before[0].T @ before[1])]


@sized(m=200, n=256, k=256)
def wide_int8_offsets(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product with the zero points taken off, and the scales."""
    x, w, x_scale, zero, w_scale, sums = (tensor.double().cpu() for tensor in before[:6])
    return [(after[6], (x @ w.T - zero.unsqueeze(1) * sums) * x_scale.unsqueeze(1) * w_scale)]


@sized(m=40, n=256, k=2048)
def wide_last_arrival(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product with the residual, and the counters, which are zero again."""
    expected = before[0].float() @ before[1].float().T + before[2].float()
    return [(after[5], expected), (after[4] + 1, before[4] + 1)]


@sized(tokens=40, n=256, k=256, experts=12)
def wide_float8_experts(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The tokens of each tile by the weights of its expert; every pair stands in one tile."""
    x, w, x_scale, w_scale, order, owners = (tensor.cpu() for tensor in before[:6])
    expected = torch.full((320, 256), math.nan)
    for pairs, expert in zip(order.long().reshape(len(owners), -1), owners.tolist(), strict=True):
        real = pairs[pairs < 320]
        product = x[real // 8].float() @ w[expert].float().T
        expected[real] = product * x_scale[real // 8].unsqueeze(1) * w_scale[expert]
    return [(after[6], expected)]


@sized(m=200, n=384, k=256)
def wide_host_descriptors(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product."""
    return [(after[2].base, before[0].base.float() @ before[1].base.float())]


@sized(count=37)
def wide_covariances(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The products in float64."""
    f, p, noise = (tensor.double().cpu() for tensor in before[:3])
    return [(after[3], f @ p @ f.transpose(1, 2) + noise)]


@sized(images=3, side=7, channels=128)
def wide_separable(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's convolution by channel, ReLU6, and the product."""
    x, taps, bias, w = (tensor.float().cpu() for tensor in before[:4])
    taps = taps.T.reshape(128, 1, 3, 3)
    deep = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), taps, bias, padding=1, groups=128)
    return [(after[4], torch.nn.functional.relu6(deep).permute(0, 2, 3, 1).reshape(-1, 128) @ w)]
