"""Families of the part `blind` against torch: a function for each, as `checking` describes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.grad

from benchmarks.timing.checking import Pairs, sized
from benchmarks.timing.checking_held_out import philox
from benchmarks.timing.family import Config


@sized(tokens=512, n=128, k=256)
def blind_weight_gradient(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """What was there and the product over the tokens."""
    return [(after[2], before[2] + before[0].float().T @ before[1].float())]


@sized(batches=3, m=128, n=256, k=128)
def blind_batched_descriptors(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The products one by one."""
    return [(after[2], before[0].float() @ before[1].float().transpose(1, 2))]


@sized(m=128, n=256, k=256)
def blind_float8_gradient(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The scaled product and its greatest magnitude."""
    expected = before[0].float() @ before[1].float().T * before[2]
    return [(after[3], expected), (after[4], expected.abs().max().reshape(1))]


@sized(images=2, side=9, channels=128)
def blind_convolution_weights(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's gradient of its convolution."""
    x, dy = (tensor.float().cpu().permute(0, 3, 1, 2) for tensor in before[:2])
    expected = torch.nn.grad.conv2d_weight(x, [128, 128, 3, 3], dy, padding=1)
    return [(after[2], expected.permute(0, 2, 3, 1))]


@sized(m=128, n=128, k=1024)
def blind_ternary_weights(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product with the weights taken out of their bytes, a quarter of the columns from each pair of bits."""
    packed = before[1].long()
    weights = torch.cat([(packed >> 2 * part & 3) - 1 for part in range(4)], 1)
    return [(after[4], before[0].double() @ weights.double().T * before[2].unsqueeze(1) * before[3])]


@sized(m=100, n=256, k=200)
def blind_adapted_linear(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The layer and its adapter, one after another."""
    x, weights, down, up = (tensor.float() for tensor in before[:4])
    return [(after[4], x @ weights.T + before[5] * (x @ down.T) @ up.T)]


@sized(n=256, columns=128)
def blind_triangular_product(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product with the lower triangle."""
    return [(after[2], torch.tril(before[0].float()) @ before[1].float())]


@sized(batch=2, heads=2, longest=300)
def blind_tree_decode(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention to the cache and the drafts that a draft sees, once the splits are combined by their sums."""
    share = torch.softmax(after[6] * math.log(2), 2).unsqueeze(4)
    combined, pairs = (after[5] * share[..., 0].unsqueeze(4)).sum(2), []
    draft = torch.arange(16, device=before[4].device)
    for number, length in enumerate(before[3].tolist()):
        key, value = (cache[number, :, :length].float() for cache in before[1:3])
        seen = torch.ones(16, length, device=key.device)
        seen[:, length - 16 :] = (before[4][number].unsqueeze(1) >> draft & 1).float()
        hidden = torch.where(seen.repeat_interleave(4, 0) != 0, 0.0, -math.inf)
        score = before[0][number].float() @ key.transpose(1, 2) * before[8] * math.log(2)
        pairs.append((combined[number], torch.softmax(score + hidden, 2) @ value))
    return pairs


@sized(heads=4, key_heads=2, length=256)
def blind_attention_gradients(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The gradients by whole matrices, with the given sums of exponentials and of the outputs' products."""
    query, key, value, slope = (tensor.float() for tensor in before[:4])
    key, value = key.repeat_interleave(2, 0), value.repeat_interleave(2, 0)
    scale = before[10]
    power = torch.tril(torch.exp2(query @ key.transpose(1, 2) * scale / math.log(2) - before[4].unsqueeze(2)))
    inner = power * (slope @ value.transpose(1, 2) - before[5].unsqueeze(2)) * scale
    by_key, by_value = inner.transpose(1, 2) @ query, power.transpose(1, 2) @ slope
    shared = (each.reshape(2, 2, 256, 64).sum(1) for each in (by_key, by_value))
    return [(after[6], inner @ key), *zip(after[7:9], shared, strict=True)]


@sized(length=256, heads=2)
def blind_latent_prefill(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention with the keys of both parts put together."""
    query, both, turned = (tensor.float() for tensor in before[:3])
    key = torch.cat([both[..., :128], turned.unsqueeze(1).expand(256, 2, 64)], 2)
    score = torch.einsum("qhd,khd->hqk", query, key) * before[6] * math.log(2)
    score = score + torch.triu(torch.full((256, 256), -math.inf, device=score.device), 1)
    return [(after[3], torch.einsum("hqk,khd->qhd", torch.softmax(score, 2), both[..., 128:]))]


@sized(rows=3, vocab=20000)
def blind_chosen_words(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's logarithm of the softmax."""
    logarithm = torch.log_softmax(before[0].float() * before[5], 1)
    chosen = logarithm.gather(1, before[2].unsqueeze(1)).squeeze(1)
    return [(after[3], chosen), (after[4], -(logarithm.exp() * logarithm).sum(1))]


@sized(tokens=32)
def blind_group_routing(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Groups by the sum of their best two, then the best of what is left, in order."""
    score = torch.sigmoid(before[0])
    grouped = (score + before[1]).reshape(32, 8, 32)
    kept = grouped.topk(2, 2).values.sum(2).topk(4, 1).indices
    closed = torch.full((32, 8), -math.inf, device=score.device).scatter(1, kept, 0.0)
    chosen = (grouped + closed.unsqueeze(2)).reshape(32, 256).topk(8, 1).indices
    weights = score.gather(1, chosen)
    return [(after[3], chosen), (after[2], weights / weights.sum(1, keepdim=True) * before[4])]


def _fraction(bits: torch.Tensor) -> torch.Tensor:
    """Turn 32 random bits into a number from 0 to 1 as Triton does."""
    signed = torch.where(bits < 1 << 31, bits, bits - (1 << 32))
    return torch.where(signed < 0, -signed - 1, signed).double() * 4.6566127342e-10


@sized(rows=3)
def blind_dropout_add_norm(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The same random bits, and torch's layer norm."""
    each = 4 if config["FOUR"] else 1
    words = torch.stack(philox(before[9], torch.arange(3 * 5120 // each))[:each], 1)
    kept = _fraction(words).reshape(3, 5120) < before[10]
    x, residual, gain, bias = (tensor.float().cpu() for tensor in before[:4])
    value = torch.where(kept, x / before[10], 0.0) + residual
    normal = torch.nn.functional.layer_norm(value, [5120], gain, bias, 1e-5)
    scale = torch.rsqrt(value.var(1, correction=0) + 1e-5)
    return [(after[4], value), (after[5], normal), (after[6], value.mean(1)), (after[7], scale)]


@sized(tokens=50)
def blind_cache_four_bits(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """What the cache gives back, which errs by half a step; slots without a token stay empty."""
    fresh, slots = before[0][:, :16].float(), before[1].long()
    low, high = fresh.amin(2), fresh.amax(2)
    scale = (high - low) / 15
    stored = after[2][slots].long()
    parts = stored & 15, stored >> 4
    whole = torch.stack(parts, 3).flatten(2) if config["PAIRS"] else torch.cat(parts, 2)
    back = whole * scale.unsqueeze(2) + low.unsqueeze(2)
    near = torch.where((back - fresh).abs() <= 0.51 * scale.unsqueeze(2), fresh, back)
    others = torch.ones(100, dtype=torch.bool, device=slots.device)
    others[slots] = False
    kept = (after[2][others] + 1, before[2][others] + 1)
    return [(near, fresh), (after[3][slots], scale), (after[4][slots], low), kept]


@sized(rows=8)
def blind_butterflies(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's Fourier transform."""
    return [(after[2], torch.view_as_real(torch.fft.fft(torch.view_as_complex(before[0].cpu()))))]


@sized(n=20000)
def blind_lookback_scan(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's running sum."""
    return [(after[1], before[0].cumsum(0))]


@sized(n=3000, bits=12)
def blind_hash_probe(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The place of each key that is there, by comparison with all of them."""
    same = before[2].unsqueeze(0) == before[0].unsqueeze(1)
    return [(after[4], torch.where(same.any(1), before[3][same.int().argmax(1)], -1))]


@sized(pairs=32)
def blind_edit_distance(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The whole table, entry by entry, for all pairs at once."""
    first, second = before[0].cpu(), before[1].cpu()
    row = [torch.full((32,), column) for column in range(129)]
    for step in range(128):
        new = [torch.full((32,), step + 1)]
        for column in range(128):
            swapped = row[column] + (first[:, step] != second[:, column])
            new.append(torch.minimum(torch.minimum(row[column + 1], new[-1]) + 1, swapped))
        row = new
    return [(after[2], row[-1])]


@sized(paths=1024, steps=8)
def blind_option_paths(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The same random bits, through the logarithm, the sine and the cosine of Box and Muller."""
    steps, spot, strike, drift, volatility, seed = before[1:7]
    place = torch.arange(1024).unsqueeze(1) * steps + torch.arange(0, steps, 4 if config["FOUR"] else 1)
    drawn = [_fraction(word) for word in philox(seed, place)]
    normal = []
    for first, second in ((drawn[0], drawn[1]), (drawn[2], drawn[3])):
        radius = torch.sqrt(-2 * torch.log(first.clamp(min=1e-7)))
        normal += [radius * torch.cos(2 * math.pi * second), radius * torch.sin(2 * math.pi * second)]
    moves = torch.stack(normal, 2).flatten(1) if config["FOUR"] else normal[0]
    price = spot * torch.exp((drift + volatility * moves).cumsum(1)).mean(1)
    return [(after[0], (price - strike).clamp(min=0).reshape(-1, config["BLOCK"]).mean(1))]


@sized(nodes=50, edges=700)
def blind_sampled_products(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The whole product, at the places of the entries."""
    products = before[0].float() @ before[1].float().T
    return [(after[6], products[before[3].long(), before[4].long()] * before[5])]


@sized(rows=64, words=512)
def blind_bit_life(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Cells one by one, and the neighbours around them by shifted boards."""
    bit = torch.arange(32)
    board, later = ((tensor.cpu().unsqueeze(2) >> bit & 1).reshape(64, -1) for tensor in (before[0], after[1]))
    around = -board
    for down in (-1, 0, 1):
        for across in (-1, 0, 1):
            around = around + torch.roll(board, (down, across), (0, 1))
    return [(later, ((around == 3) | (board == 1) & (around == 2)).int())]


@sized(rows=40)
def blind_column_order(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's indexing."""
    return [(after[3], before[0][:, before[1].long()])]
