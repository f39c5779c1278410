"""Families of the part `review` against torch: a function for each, as `checking` describes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.timing.checking import Pairs, sized
from benchmarks.timing.checking_held_out import philox
from benchmarks.timing.family import Config


@sized(m=256, n=256, k=192)
def review_gemm(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product."""
    return [(after[2], before[0].float() @ before[1].float())]


@sized(m=200, n=256, k=128)
def review_linear_erf(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's layer and its GELU."""
    layer = torch.nn.functional.linear(*(tensor.float().cpu() for tensor in before[:3]))
    return [(after[3], layer), (after[4], torch.nn.functional.gelu(layer))]


@sized(batch=2, m=256, k=128)
def review_batched_values(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The products."""
    return [(after[2], before[0].float() @ before[1].float())]


@sized(tokens=40, n=128, k=128)
def review_moe_down(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The rows of each tile by the weights of its expert; every pair stands in one tile."""
    order, owners = before[3].long().cpu(), before[4].tolist()
    x, weights = before[0].float().cpu(), before[1].float().cpu()
    expected = torch.full((160, 128), math.nan)
    for slots, expert in zip(order.reshape(len(owners), -1), owners, strict=True):
        real = slots[slots < 160]
        expected[real] = x[real] @ weights[expert].T * before[2].cpu()[real].unsqueeze(1)
    return [(after[5], expected)]


@sized(m=100, n=256, k=512)
def review_float8_blocks(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product of what the scales make of the operands."""
    left = before[0].float() * before[2].repeat_interleave(128, 1)
    right = before[1].float() * before[3].repeat_interleave(128, 0).repeat_interleave(128, 1)
    return [(after[4], left @ right.T)]


@sized(m=50, n=256, k=256)
def review_w8a16(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product, then the scales."""
    weights = before[1].float().T if config["BY_COLUMNS"] else before[1].float()
    return [(after[3], before[0].float() @ weights * before[2])]


@sized(m=128, n=256, k=2048)
def review_split_k(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The sum of the splits: of those kept, or of those added; each of those kept is a product of its own."""
    left, right, splits = before[0].float(), before[1].float(), config["SPLITS"]
    if not config["WORKSPACE"]:
        return [(after[2][0], left.T @ right)]
    step = 2048 // splits if config["CHUNKED"] else config["BLOCK_K"]
    owner = torch.arange(2048, device=left.device) // step % splits
    parts = [left[owner == split].T @ right[owner == split] for split in range(splits)]
    return [(after[2], torch.stack(parts))]


@sized(m=200, n=384, k=256)
def review_persistent_descriptors(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product."""
    return [(after[2], before[0].float() @ before[1].float().T)]


@sized(n=128, k=4096)
def review_batch_gemv(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product."""
    return [(after[2], before[0].float() @ before[1].float().T)]


def _attention(q: Any, k: Any, v: Any, scale: float, visible: Any = None) -> tuple[Any, Any]:
    """Compute attention to base 2 of tensors of (heads, tokens, width), and the logarithms of its sums."""
    q, k, v = (tensor.float().cpu() for tensor in (q, k, v))
    group = q.shape[0] // k.shape[0]
    score = q @ k.repeat_interleave(group, 0).transpose(1, 2) * (scale * math.log(2))
    if visible is not None:
        score = score.masked_fill(~visible, -math.inf)
    return torch.softmax(score, -1) @ v.repeat_interleave(group, 0), torch.logsumexp(score, -1) / math.log(2)


def _flash(before: Sequence[Any], after: Sequence[Any], visible: Any) -> Pairs:
    out, sums = _attention(*(tensor.transpose(0, 1) for tensor in before[:3]), before[8], visible)
    return [(after[3].transpose(0, 1), out), (after[4], sums)]


@sized(length=300, heads=4, kv_heads=2)
def review_flash_causal(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention to the tokens up to one's own."""
    return _flash(before, after, torch.ones(300, 300, dtype=torch.bool).tril())


@sized(length=330, heads=2)
def review_flash_full(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention to all tokens."""
    return _flash(before, after, None)


@sized(batch=1, length=8192)
def review_decode_split(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention in each split."""
    splits = config["SPLITS"]
    parts = [tensor[0].reshape(splits, -1, 8, 128).permute(2, 0, 1, 3).flatten(0, 1) for tensor in before[1:3]]
    # A query head for each pair of a key head and a split.
    query = before[0].reshape(8, 1, 5, 128).expand(-1, splits, -1, -1).flatten(0, 1)
    out, sums = _attention(query, *parts, before[6])
    out, sums = out.reshape(8, splits, 5, 128), sums.reshape(8, splits, 5)
    return [(after[3], out.transpose(1, 2).flatten(0, 1)), (after[4], sums.transpose(1, 2).flatten(0, 1))]


@sized(sequences=2, longest=200)
def review_paged_bytes(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention of each request to the tokens of its pages."""
    expected = []
    for number, length in enumerate(before[4].tolist()):
        pages = before[3][number].long().cpu()
        k, v = (cache.float().cpu()[pages].transpose(0, 1).flatten(1, 2)[:, :length] for cache in before[1:3])
        out, _ = _attention(before[0][number].unsqueeze(1), k, v * before[8], before[7])
        expected.append(out.squeeze(1))
    return [(after[5], torch.stack(expected))]


@sized(length=512, heads=2, window=200)
def review_window_softcap(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention to the last 200 tokens, its scores capped."""
    q, k, v = (tensor.float().cpu() for tensor in before[:3])
    score = 5.0 * torch.tanh(q @ k.transpose(1, 2) * 128**-0.5 / 5.0)
    near = torch.ones(512, 512, dtype=torch.bool).tril().triu(-199)
    return [(after[3], torch.softmax(score.masked_fill(~near, -math.inf), -1) @ v)]


@sized(pairs=2, length=256)
def review_retention(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The scores of all pairs of tokens with their decay."""
    q, k, v = (tensor.float().cpu() for tensor in before[:3])
    gap = torch.arange(256).unsqueeze(1) - torch.arange(256)
    decay = torch.exp2(before[3].cpu()[:2, None, None] * gap).masked_fill(gap < 0, 0.0)
    return [(after[4], (q @ k.transpose(1, 2) * decay) @ v)]


@sized(batch=1, length=128, channels=64)
def review_mamba_scan(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The recurrence step by step."""
    x, step, rate, into, outof = (tensor.float().cpu() for tensor in before[:5])
    state, expected = torch.zeros(64, 16), []
    for time in range(128):
        pace = step[0, time].unsqueeze(1)
        state = state * torch.exp(pace * rate) + pace * x[0, time].unsqueeze(1) * into[0, time]
        expected.append(state @ outof[0, time])
    return [(after[5][0], torch.stack(expected))]


@sized(tokens=200)
def review_fill_cache(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """What stands at the slots, read back."""
    page, row = before[4].long().cpu() // 16, before[4].long().cpu() % 16
    keys = after[2].cpu()[page, :, :, row].reshape(200, 8, 128)
    return [(keys, before[0]), (after[3].cpu()[page, :, :, row], before[1])]


@sized(rows=40, columns=6000)
def review_softmax_rows(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Softmax of the first columns."""
    return [(after[1], torch.softmax(before[0][:, :6000].float(), 1))]


@sized(rows=50, width=3584)
def review_norm_gradient(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The gradients of the norm with the statistics given, and the sums over programs."""
    x, slope, gain, mean, scale = (tensor.double().cpu() for tensor in before[:5])
    unit = (x - mean.unsqueeze(1)) * scale.unsqueeze(1)
    scaled = slope * gain
    back = scaled - unit * (unit * scaled).mean(1, keepdim=True) - scaled.mean(1, keepdim=True)
    sums = [(after[6].sum(0), (slope * unit).sum(0)), (after[7].sum(0), slope.sum(0))]
    return [(after[5], back * scale.unsqueeze(1)), *sums]


@sized(rows=20)
def review_largest_of_rows(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's largest, and the values at the places."""
    values, places = before[0].cpu().topk(6, 1)
    return [(after[1], values), (after[2], places)]


@sized(tokens=20, width=1024)
def review_swiglu_float8(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The scales, and what float8 and the scales give back, whose rounding errs by up to 1/16 of a value."""
    gate, up = before[0].float().cpu().chunk(2, 1)
    grouped = (torch.nn.functional.silu(gate) * up).reshape(20, -1, 128)
    scales = grouped.abs().amax(2) / 448
    back = after[1].float().cpu().reshape(grouped.shape) * after[2].cpu().unsqueeze(2)
    near = torch.where((back - grouped).abs() <= grouped.abs() / 16 + scales.unsqueeze(2) / 512, grouped, back)
    return [(after[2], scales), (near, grouped)]


@sized(batch=2, length=100, channels=1024)
def review_causal_convolution(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's convolution of the tokens padded at their begin, and SiLU."""
    x, taps, bias = (tensor.float().cpu() for tensor in before[:3])
    padded = torch.nn.functional.pad(x.transpose(1, 2), (3, 0))
    expected = torch.nn.functional.conv1d(padded, taps.unsqueeze(1), bias, groups=1024)
    return [(after[3], torch.nn.functional.silu(expected).transpose(1, 2))]


@sized(n=30000)
def review_adamw(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """A step, and the copy of the weights."""
    weight, _, slope, first, second = (tensor.double().cpu() for tensor in before[:5])
    first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
    weight = weight * (1 - 1e-3 * 0.01) - 1e-3 * first * 1.2 / ((second * 1.1).sqrt() + 1e-8)
    stored = [(after[0], weight), (after[1], weight), (after[3], first), (after[4], second)]
    # The step is small: compare it alone, too.
    return [*stored, (after[0].double().cpu() - before[0].double().cpu(), weight - before[0].double().cpu())]


@sized(rows=7, width=5000)
def review_bias_dropout_add(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The same random words: one for each value, or four for a value in each quarter of a block."""
    total, block = 35000, config["BLOCK"]
    if config["FOUR"]:
        counters = torch.arange(-(-total // block) * block // 4)
        words = torch.stack(philox(1234, counters)).reshape(4, -1, block // 4)
        bits = words.transpose(0, 1).reshape(-1)[:total]
    else:
        bits = philox(1234, torch.arange(total))[0]
    signed = torch.where(bits < 1 << 31, bits, bits - (1 << 32))
    drawn = torch.where(signed < 0, -signed - 1, signed).double() * 4.6566127342e-10
    x, bias, residual = (tensor.double().cpu() for tensor in before[:3])
    kept = torch.where(drawn.reshape(7, 5000) > 0.1, (x + bias) / 0.9, 0.0)
    return [(after[3], kept + residual)]
