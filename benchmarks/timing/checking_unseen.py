"""Unseen families against torch: a function for each, as `checking` describes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.timing.checking import Pairs, sized
from benchmarks.timing.family import Config


@sized(n=5000)
def unseen_swiglu_backward(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Gradients by torch."""
    slope, gate, up = (tensor.double() for tensor in before[:3])
    part = torch.sigmoid(gate)
    return [(after[1], slope * up * part * (1 + gate * (1 - part))), (after[2], slope * gate * part)]


@sized(batch=1, pixels=70)
def unseen_group_norm_last(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's group norm."""
    x, weight, bias = (tensor.float() for tensor in before[:3])
    expected = torch.nn.functional.group_norm(x.transpose(1, 2), 32, weight, bias).transpose(1, 2)
    return [(after[3], torch.nn.functional.silu(expected))]


@sized(bags=20, rows=50, count=1300)
def unseen_embedding_bag(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The weighted rows of each bag."""
    weighted = before[0][before[1].long()].float() * before[2].unsqueeze(1)
    return [(after[4], torch.stack([weighted[a:b].sum(0) for a, b in itertools.pairwise(before[3].tolist())]))]


@sized(sequences=6, width=60)
def unseen_jagged_softmax(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Softmax of each sequence."""
    parts = [torch.softmax(before[0][a:b], 0) for a, b in itertools.pairwise(before[1].tolist())]
    return [(after[2], torch.cat(parts))]


@sized(tensors=2)
def unseen_lion_tensors(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The step of each tensor, undone: momenta as they were give the sign that the weights have lost."""
    torch.manual_seed(35)
    pairs: list[tuple[Any, Any]] = []
    for weight, momentum, slope in after[0].tensors:
        was, moved = (torch.randn(weight.shape, device=weight.device) for _ in range(2))
        torch.randn(slope.shape, device=slope.device, dtype=slope.dtype)
        gradient = slope.float()
        sign = torch.sign(moved * 0.9 + gradient * 0.1)
        # The weights' change is a thousandth of them.
        change = (weight - was * (1 - 1e-4)) * 1e3
        pairs += [(change, -sign), (momentum, moved * 0.99 + gradient * 0.01)]
    return pairs


@sized(n=10000)
def unseen_stochastic_rounding(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The two neighbours in bfloat16, and which of both as often as it is near."""
    bits = before[0].view(torch.int32)
    low = ((bits >> 16) << 16).view(torch.float32)
    high = (((bits >> 16) + 1) << 16).view(torch.float32)
    stored = after[1].float()
    is_high = stored == high
    part = (bits & 0xFFFF).float() / 65536
    likely = torch.stack([is_high[part > 0.75].float().mean(), is_high[part < 0.25].float().mean()])
    either = torch.where(is_high, high, low)
    return [(stored, either), ((likely - torch.tensor([0.875, 0.125])).round(decimals=1) + 1, torch.ones(2))]


@sized(n=1024)
def unseen_expert_positions(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """How many equal ones come before each, in its chunk."""
    chosen = before[0].reshape(-1, 1024).long()
    hot = torch.nn.functional.one_hot(chosen, 64)
    earlier = (hot.cumsum(1) - hot).gather(2, chosen.unsqueeze(2))
    return [(after[2], earlier.reshape(-1))]


@sized(rows=128, width=256)
def unseen_quantise_tiles(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The scales, and what float8 and the scales give back, whose rounding errs by up to 1/16 of a value."""
    x = before[0].float()
    scales = x.abs().reshape(-1, 128, x.shape[1] // 128, 128).amax((1, 3)) / 448
    each = scales.repeat_interleave(128, 0).repeat_interleave(128, 1)
    pairs = [(after[3], scales)]
    for stored in (after[1], after[2].T):
        back = stored.float() * each
        near = torch.where((back - x).abs() <= x.abs() / 16 + each / 512, x, back)
        pairs.append((near, x))
    return pairs


@sized(side=256)
def unseen_equalise(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The part of each tile's pixels that are not brighter."""
    size = config["HEIGHT"] * config["WIDTH"]
    tiles = before[0].reshape(256 // config["HEIGHT"], config["HEIGHT"], 256 // config["WIDTH"], config["WIDTH"])
    flat = tiles.transpose(1, 2).reshape(-1, size).long()
    expected = torch.stack([torch.bincount(tile, minlength=256).cumsum(0)[tile] * 255 // size for tile in flat])
    return [(after[1].reshape(tiles.shape).transpose(1, 2).reshape(-1, size), expected)]


@sized(height=30, width=70)
def unseen_bilateral(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Shifted images, those from outside without weight."""
    image = before[0]
    wide = torch.nn.functional.pad(image, (2, 2, 2, 2), value=math.nan)
    total, weights = torch.zeros_like(image), torch.zeros_like(image)
    for down, across in itertools.product(range(5), range(5)):
        value = wide[down : down + 30, across : across + 70]
        weight = torch.exp(-0.1 * ((down - 2) ** 2 + (across - 2) ** 2) - 8 * (value - image) ** 2).nan_to_num()
        total, weights = total + weight * value.nan_to_num(), weights + weight
    return [(after[1], total / weights)]


@sized(batch=2, height=16, width=16)
def unseen_warp_backward(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's gradient of its own warp."""
    image = torch.zeros(2, 32, 16, 16, requires_grad=True)
    places = torch.stack([before[1], before[2]], 2).reshape(2, 16, 16, 2).cpu() * 2 - 1
    warped = torch.nn.functional.grid_sample(image, places, align_corners=True)
    warped.backward(before[0].cpu().reshape(2, 16, 16, 32).permute(0, 3, 1, 2))
    assert image.grad is not None
    return [(after[3].reshape(2, 16, 16, 32), image.grad.permute(0, 2, 3, 1))]


@sized(height=40, width=90)
def unseen_median(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The fifth of nine sorted pixels."""
    wide = torch.nn.functional.pad(before[0].float().cpu()[None, None], (1, 1, 1, 1), mode="replicate")
    return [(after[1], torch.nn.functional.unfold(wide, 3)[0].sort(0).values[4].reshape(40, 90))]


@sized(rows=50, depth=2048)
def unseen_byte_weights(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product with the scaled weights."""
    return [(after[3], before[1].float() @ before[0].float() * before[2])]


@sized(side=512, width=256)
def unseen_sparse_blocks(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product with zeros where no block is."""
    full, starts = torch.zeros(512, 512), before[1].tolist()
    for line, (first, last) in enumerate(itertools.pairwise(starts)):
        for number in range(first, last):
            column = int(before[2][number]) * 64
            full[line * 64 : line * 64 + 64, column : column + 64] = before[0][number].float().cpu()
    return [(after[4], full @ before[3].float().cpu())]


@sized(rows=128, count=256)
def unseen_nearest_code(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The least distances, by the norms that are given."""
    apart = before[2] - 2 * before[0].float() @ before[1].float().T
    return [(apart.gather(1, after[3].long().unsqueeze(1)), apart.min(1, keepdim=True).values)]


@sized(depth=128, width=128, experts=3, least=20, most=150)
def unseen_expert_gradients(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The products one by one."""
    parts = [slice(first, last) for first, last in itertools.pairwise(before[2].tolist())]
    expected = [before[0][part].float().T @ before[1][part].float() for part in parts]
    return [(after[3], torch.stack(expected))]


@sized(batch=1, length=256, channels=128)
def unseen_dilated_convolution(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's convolution."""
    x, weights = before[0].float().cpu(), before[1].float().cpu().permute(1, 2, 0)
    return [(after[2], torch.nn.functional.conv1d(x, weights, padding=9, dilation=3))]


@sized(batch=16, channels=1024)
def unseen_convolution_update(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The sum over the taps, and the states a step later."""
    shape = (16, 3, 1024) if config["last"] else (16, 1024, 3)
    old, new = (states[1].reshape(shape) for states in (before, after))
    if config["last"]:
        old, new = old.transpose(1, 2), new.transpose(1, 2)
    slots = before[2].long()
    seen = torch.cat([old[slots], before[0].unsqueeze(2)], 2)
    total = (seen.float() * before[3].float()).sum(2) + before[4].float()
    return [(after[5], torch.nn.functional.silu(total)), (new[slots], seen[:, :, 1:])]


@sized(batch=1, length=512, heads=5)
def unseen_chunk_decays(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Softplus, and running sums of each chunk."""
    step = torch.nn.functional.softplus(before[0].float() + before[2]).transpose(1, 2)
    chunks = (step * before[1].unsqueeze(1)).reshape(1, 5, -1, config["CHUNK"])
    return [(after[3], step), (after[4], chunks.cumsum(3).reshape(1, 5, 512))]


@sized(batch=1, length=20, channels=256)
def unseen_wkv(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The weighted mean of all steps until now, in float64."""
    key, value = (tensor[0].double() for tensor in before[:2])
    decay, bonus = before[2].double(), before[3].double()
    expected = []
    for time in range(20):
        ages = torch.arange(time - 1, -1, -1, device=key.device).unsqueeze(1)
        weight = torch.exp(torch.cat([key[:time] - ages * decay, (bonus + key[time]).unsqueeze(0)]))
        expected.append((weight * value[: time + 1]).sum(0) / weight.sum(0))
    return [(after[4][0], torch.stack(expected))]


@sized(sequences=2, length=12)
def unseen_viterbi(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The recurrence step by step, and the scores that the origins lead to."""
    emissions, moves = before[0], before[1]
    score, pairs = emissions[:, 0], []
    for time in range(1, 12):
        reached = score.unsqueeze(2) + moves
        origin = after[2][:, time].long().unsqueeze(1)
        pairs.append((reached.gather(1, origin).squeeze(1), reached.amax(1)))
        score = reached.amax(1) + emissions[:, time]
    return [*pairs, (after[3], score)]


@sized(heads=1, length=256)
def unseen_query_gradient(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The gradient by its formula, with the sums and the deltas as they are given."""
    query, key, value, slope = (tensor[0].float() for tensor in before[:4])
    turned = torch.tanh(query @ key.T * (before[8] / before[9]))
    power = torch.tril(torch.exp(turned * before[9] - before[4][0].unsqueeze(1)))
    inner = power * (slope @ value.T - before[5][0].unsqueeze(1)) * (1 - turned**2)
    return [(after[6][0], inner @ key * before[8])]


@sized(requests=2, heads=2, key_heads=1, shortest=20, longest=120)
def unseen_prefix_attention(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention of each request to its cached and its own tokens."""
    slots, starts, prefixes = before[5].long(), before[6].tolist(), before[7].tolist()
    pairs: list[tuple[Any, Any]] = []
    for number in range(2):
        mine, seen = slice(*starts[number : number + 2]), slots[slice(*prefixes[number : number + 2])]
        key, value = (torch.cat([before[3 + k][seen], before[1 + k][mine]])[:, 0].float() for k in range(2))
        score = torch.einsum("qhd,kd->hqk", before[0][mine].float(), key) * before[11] * math.log(2)
        hidden = torch.triu(torch.ones(score.shape[1:], device=score.device), len(seen) + 1) > 0
        weight = torch.softmax(score.masked_fill(hidden, -math.inf), -1)
        pairs.append((after[8][mine], torch.einsum("hqk,kd->qhd", weight, value)))
    return pairs


@sized(lines=2, length=128)
def unseen_pair_bias(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention with the bias of the pairs, then the gate."""
    query, key, value, gate = (tensor.float().reshape(2, 128, 8, 32).transpose(1, 2) for tensor in before[:4])
    score = query @ key.transpose(2, 3) * before[8] + before[4].float() + before[5].reshape(2, 1, 1, 128)
    expected = torch.softmax(score, -1) @ value * torch.sigmoid(gate)
    return [(after[6], expected.transpose(1, 2).reshape(2, 128, 256))]
