"""Families of the part `everyday` against torch: a function for each, as `checking` describes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.timing.checking import Pairs, sized
from benchmarks.timing.checking_held_out import philox
from benchmarks.timing.family import Config


@sized(m=256, n=256, k=192)
def everyday_matmul_layouts(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product."""
    return [(after[2], before[0].float() @ before[1].float())]


@sized(m=200, n=264, k=136)
def everyday_linear_gelu(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's layer and its GELU by the hyperbolic tangent."""
    x, weights, bias = (tensor.float().cpu() for tensor in before[:3])
    return [(after[3], torch.nn.functional.gelu(x @ weights.T + bias, approximate="tanh"))]


@sized(m=12, n=256, k=2048)
def everyday_skinny_split(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product."""
    return [(after[2], before[0].float() @ before[1].float().T)]


@sized(m=200, n=264, k=256)
def everyday_int8_scaled(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product of integers, then the scales."""
    product = before[0].double() @ before[1].double().T
    return [(after[4], product * before[2].unsqueeze(1) * before[3])]


@sized(m=40, n=256, k=512)
def everyday_int4_weights(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product with weights taken out of their words, the lowest four bits first."""
    packed = before[1].long().cpu()
    digits = (packed.unsqueeze(1) >> 4 * torch.arange(8).unsqueeze(1) & 15).reshape(-1, packed.shape[1])
    scale, zero = (tensor.double().cpu().repeat_interleave(128, 0) for tensor in before[2:4])
    return [(after[4], before[0].double().cpu() @ ((digits - zero) * scale))]


@sized(images=2, side=9, c_in=64)
def everyday_convolution(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's convolution and ReLU."""
    x, weights = (tensor.float().cpu().permute(0, 3, 1, 2) for tensor in before[:2])
    expected = torch.nn.functional.conv2d(x, weights, before[2].cpu(), stride=config["step"], padding=1)
    return [(after[3], expected.relu().permute(0, 2, 3, 1))]


@sized(heads=2, length=256)
def everyday_flash_forward(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention by whole matrices, and the logarithms to base 2 of the sums."""
    query, key, value = (tensor.float() for tensor in before[:3])
    score = query @ key.transpose(1, 2) * before[6] * math.log(2)
    if config["CAUSAL"]:
        score = score + torch.triu(torch.full((256, 256), -math.inf, device=score.device), 1)
    return [(after[3], torch.softmax(score, 2) @ value), (after[4], torch.logsumexp(score, 2) / math.log(2))]


@sized(sequences=2, longest=400, key_heads=2)
def everyday_paged_decode(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention to the pages' tokens, once the splits are combined by their sums."""
    share = torch.softmax(after[6] * math.log(2), 1).unsqueeze(2)
    combined, expected = (after[5] * share).sum(1), []
    for number, length in enumerate(before[4].tolist()):
        pages = before[3][number].long()
        key, value = (cache[pages].flatten(0, 1)[:length].float().transpose(0, 1) for cache in before[1:3])
        query = before[0].float().reshape(2, 2, 4, 128)[number]
        score = query @ key.transpose(1, 2) * before[8] * math.log(2)
        expected.append((torch.softmax(score, 2) @ value).flatten(0, 1))
    return [(combined, torch.cat(expected))]


@sized(heads=2, length=256)
def everyday_attention_dkdv(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The gradients by whole matrices, with the given sums of exponentials and of the outputs' products."""
    query, key, value, slope = (tensor.float() for tensor in before[:4])
    power = torch.exp2(query @ key.transpose(1, 2) * before[9] / math.log(2) - before[4].unsqueeze(2))
    if config["CAUSAL"]:
        power = torch.tril(power)
    inner = power * (slope @ value.transpose(1, 2) - before[5].unsqueeze(2))
    return [(after[6], inner.transpose(1, 2) @ query * before[9]), (after[7], power.transpose(1, 2) @ slope)]


@sized(rows=11)
def everyday_rms_residual(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The sum, and its norm."""
    added = before[0].float() + before[1].float()
    normal = added * torch.rsqrt((added**2).mean(1, keepdim=True) + 1e-6) * before[2].float()
    return [(after[3], added), (after[4], normal)]


@sized(rows=13, width=3000)
def everyday_softmax_passes(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's softmax, without what lies between rows."""
    return [(after[1][:, :3000], torch.softmax(before[0][:, :3000].float(), 1))]


@sized(tokens=20, words=5003)
def everyday_cross_entropy(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's losses, and the gradient of their sum over the number of tokens."""
    logits, labels = before[0].float().cpu(), before[1].cpu()
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none", ignore_index=-100)
    counted = (labels != -100).unsqueeze(1)
    slope = torch.softmax(logits, 1) - torch.nn.functional.one_hot(labels.clamp(min=0), 5003)
    return [(after[2], losses), (after[0], slope * counted / 20 if config["GRADIENT"] else logits)]


@sized(batch=2, length=256, width=256)
def everyday_recurrence(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The recurrence step by step."""
    x, decay = before[0].float(), torch.sigmoid(before[1].float())
    state, seen = torch.zeros_like(x[:, 0]), []
    for time in range(256):
        state = decay[:, time] * state + (1 - decay[:, time]) * x[:, time]
        seen.append(state)
    return [(after[2], torch.stack(seen, 1)), (after[3], state)]


@sized(rows=3, width=1500)
def everyday_gelu_dropout(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The same random bits, and torch's GELU."""
    both = before[0].float().cpu()
    gate, up = (both[:, 0::2], both[:, 1::2]) if config["interleaved"] else both.chunk(2, 1)
    bits = philox(before[7], torch.arange(3 * 1500))[0].reshape(3, 1500)
    signed = torch.where(bits < 1 << 31, bits, bits - (1 << 32))
    drawn = torch.where(signed < 0, -signed - 1, signed).double() * 4.6566127342e-10
    kept = drawn < before[8]
    return [(after[1], torch.where(kept, torch.nn.functional.gelu(gate) * up / before[8], 0.0))]


@sized(tokens=10, heads=6)
def everyday_rotary(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Both parts turned."""
    x = before[0].float()
    low, high = (x[..., 0::2], x[..., 1::2]) if config["PAIRS"] else x.chunk(2, 2)
    cosine, sine = (table[before[3].long()].unsqueeze(1) for table in before[1:3])
    turned = low * cosine - high * sine, high * cosine + low * sine
    return [(after[4], torch.stack(turned, 3).flatten(2) if config["PAIRS"] else torch.cat(turned, 2))]


@sized(rows=300, columns=280)
def everyday_transposed_copy(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's transpose, and nothing between the rows."""
    return [(after[1][:, :300], before[0].T), (after[1][:, 300:].sum() + 1, torch.tensor(1.0))]


@sized(rows=700, width=600)
def everyday_column_sums(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Sums, once those of the splits are added up."""
    return [(after[1].reshape(-1, 600).sum(0), before[0].double().sum(0))]


@sized(tokens=60, width=300, words=40)
def everyday_scatter_rows(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's sum of rows at an index, none at the word for padding."""
    counted = before[1] != before[5]
    slope = before[0].float() * counted.unsqueeze(1)
    return [(after[2], before[2].index_add(0, before[1], slope))]


@sized(n=20000)
def everyday_count_values(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's counts."""
    return [(after[1], torch.bincount(before[0].long(), minlength=config["BINS"]))]


@sized(rows=13, width=1280)
def everyday_quantise_blocks(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The scales, and what float8 and the scales give back, whose rounding errs by up to 1/16 of a value."""
    grouped = before[0].float().reshape(13, -1, 128)
    scales = grouped.abs().amax(2) / 448
    stored = after[2].T if config["turned"] else after[2]
    back = after[1].float().reshape(grouped.shape) * stored.unsqueeze(2)
    near = torch.where((back - grouped).abs() <= grouped.abs() / 16 + scales.unsqueeze(2) / 512, grouped, back)
    return [(stored, scales), (near, grouped)]
