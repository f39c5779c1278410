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


@sized(batch=2, length=256, heads=4, key_heads=2)
def wide_descriptor_attention(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention to base 2 of each token to those up to it, and the logarithms of the sums."""
    q, k, v = (tensor.float().cpu().transpose(1, 2) for tensor in before[:3])
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    score = q @ k.transpose(2, 3) * (before[7] * math.log(2))
    score = score.masked_fill(~torch.ones(256, 256, dtype=torch.bool).tril(), -math.inf)
    out = torch.softmax(score, -1) @ v
    return [(after[3].transpose(1, 2), out), (after[4], torch.logsumexp(score, -1) / math.log(2))]


@sized(requests=3, most=300)
def wide_sink_decode(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention of each request with the sinks, once its splits are joined."""
    part, sums = after[5].double().cpu(), after[6].double().cpu()
    joined = (part * torch.softmax(sums * math.log(2), -1).unsqueeze(-1)).sum(2)
    expected = []
    for number, length in enumerate(before[4].tolist()):
        k, v = (cache[number, :, :length].double().cpu().repeat_interleave(8, 0) for cache in before[1:3])
        score = (k @ before[0][number].double().cpu().unsqueeze(2)).squeeze(2) * before[8] * math.log(2)
        power = torch.softmax(torch.cat([score, before[3].double().cpu().unsqueeze(1)], 1), 1)
        expected.append((power[:, :-1].unsqueeze(1) @ v).squeeze(1))
    return [(joined, torch.stack(expected))]


@sized(texts=3, padded=256, heads=2)
def wide_padded_slope(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The gradients with the sums given, zero for the padding."""
    q, k, v, out, slope, sums = (tensor.float().cpu() for tensor in before[:6])
    live = torch.arange(256) < before[6].cpu().unsqueeze(1)
    delta = (out * slope).sum(-1)
    power = torch.exp2(q @ k.transpose(2, 3) * (before[10] / math.log(2)) - sums.unsqueeze(-1))
    score = power * live[:, None, None, :] * (slope @ v.transpose(2, 3) - delta.unsqueeze(-1))
    stored = torch.where(live.unsqueeze(1), after[8].cpu(), 0.0)
    expected = score @ k * before[10] * live[:, None, :, None]
    return [(after[7], expected), (stored, delta * live.unsqueeze(1))]


@sized(images=2, side=14)
def wide_shifted_windows(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention in windows of the rolled image, its parts from opposite sides apart by 100."""

    def windows(image: torch.Tensor) -> torch.Tensor:
        """Cut into (images, windows, 49, rest)."""
        cut = torch.roll(image, (-3, -3), (1, 2)).reshape(len(image), 2, 7, 2, 7, -1)
        return cut.transpose(2, 3).reshape(len(image), 4, 49, -1)

    part = windows(before[0].float().cpu()).reshape(2, 4, 49, 3, 3, 32)
    q, k, v = part.permute(3, 0, 1, 4, 2, 5)
    place = torch.arange(49)
    apart = [place.unsqueeze(1) // 7 - place // 7 + 6, place.unsqueeze(1) % 7 - place % 7 + 6]
    bias = before[1].cpu()[apart[0] * 13 + apart[1]].permute(2, 0, 1)
    # In the image before it is rolled, the first three rows and columns come from the other side.
    side = (torch.arange(14) < 3).int()
    region = windows((side.unsqueeze(1) * 2 + side).reshape(1, 14, 14, 1)).reshape(4, 49)
    window = torch.arange(4)
    # Only windows at the far edges hold pixels of both sides.
    edge = (window // 2 == 1).int() * 2 + (window % 2 == 1).int()
    region = region & edge.unsqueeze(1)
    mask = torch.where(region.unsqueeze(1) == region.unsqueeze(2), 0.0, -100.0)
    score = q @ k.transpose(-1, -2) * before[4] + bias + mask[:, None]
    out = (torch.softmax(score, -1) @ v).transpose(2, 3).reshape(2, 4, 49, 96)
    return [(windows(after[2].float().cpu()), out)]


@sized(batch=1, length=192, heads=2, keys=128, values=128)
def wide_gated_states(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The states chunk by chunk."""
    k, v, decays = (tensor.float().cpu().reshape(3, 64, 2, 128) for tensor in before[:3])
    state, expected = torch.zeros(2, 128, 128), []
    for chunk in range(3):
        expected.append(state)
        end = decays[chunk, -1]
        faded = k[chunk] * torch.exp2(end - decays[chunk])
        state = state * torch.exp2(end).unsqueeze(2) + torch.einsum("thk,thv->hkv", faded, v[chunk])
    return [(after[3][0].transpose(0, 1), torch.stack(expected)), (after[4][0], state)]
