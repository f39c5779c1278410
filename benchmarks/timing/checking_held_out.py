"""Held-out families against torch: a function for each, as `checking` describes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.timing.checking import Pairs, sized
from benchmarks.timing.family import Config


@sized(rows=128, width=256, depth=512)
def held_linear_gelu(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's GELU, and counters that are as they were."""
    expected = torch.nn.functional.gelu(before[0].float() @ before[1].float().T + before[2].float())
    return [(after[5], expected), (after[4] + 1, before[4] + 1)]


@sized(rows=128, width=256, depth=256)
def held_norm_product(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product of the normalised rows."""
    x, gains, weights = (tensor.float() for tensor in before[:3])
    scaled = x * torch.rsqrt((x**2).mean(1, keepdim=True) + 1e-5) * gains
    return [(after[3], scaled @ weights)]


@sized(rows=128, width=128, depth=192)
def held_four_bit_groups(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product with the decoded weights, the low half of each byte first."""
    sizes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = torch.cat([sizes, -sizes])
    byte = before[1].long().cpu()
    weights = torch.stack([values[byte & 15], values[byte >> 4]], 2).reshape(128, 192)
    weights = weights * torch.exp2(before[2].float().cpu() - 127).repeat_interleave(32, 1)
    return [(after[3], before[0].float().cpu() @ weights.T)]


@sized(side=20)
def held_sparse_convolution(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The sum over the neighbours that there are."""
    x, weights = before[0].float(), before[2].float()
    expected = torch.zeros(x.shape[0], 128, device=x.device)
    for tap, others in enumerate(before[1].long()):
        expected += (x[others.clamp(min=0)] * (others >= 0).unsqueeze(1)) @ weights[tap]
    return [(after[3], expected)]


@sized(batch=2, height=9, width=37)
def held_depthwise_image(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's convolution with a group for each channel."""
    image, weights = before[0].float().cpu().permute(0, 3, 1, 2), before[1].float().cpu().T.reshape(128, 1, 7, 7)
    expected = torch.nn.functional.conv2d(image, weights, before[2].float().cpu(), padding=3, groups=128)
    return [(after[3], expected.permute(0, 2, 3, 1))]


@sized(points=512, programs=2)
def held_tiny_network(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The layers one by one."""
    value, first, hidden, last = (tensor.float() for tensor in before[:4])
    for weight in (first, *hidden):
        value = torch.relu(value @ weight)
    return [(after[4], value @ last)]


@sized(requests=3, heads=2, shortest=20, longest=300)
def held_grouped_decode(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention to all tokens, once the splits are combined by their sums."""
    pages, lengths = before[3].long(), before[4].tolist()
    share = torch.softmax(after[6] * math.log(2), 2).unsqueeze(3)
    combined, pairs = (after[5] * share).sum(2), []
    for number, length in enumerate(lengths):
        key, value = (cache[pages[number]].reshape(-1, 2, 128)[:length].float() for cache in before[1:3])
        query = before[0][number].float().reshape(2, 8, 128)
        weight = torch.softmax(torch.einsum("hgd,khd->hgk", query, key) * before[8] * math.log(2), -1)
        pairs.append((combined[number], torch.einsum("hgk,khd->hgd", weight, value).reshape(16, 128)))
    return pairs


@sized(heads=2, length=256)
def held_byte_attention(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention with the scaled queries and keys."""
    query = before[0].float() * before[3].repeat_interleave(config["BLOCK_M"], 1).unsqueeze(2)
    key = before[1].float() * before[4].repeat_interleave(config["BLOCK_N"], 1).unsqueeze(2)
    weight = torch.softmax(query @ key.transpose(1, 2) * math.log(2), -1)
    return [(after[5], weight @ before[2].float())]


@sized(length=512, heads=2)
def held_chunk_outputs(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Each chunk as one product with a lower triangle, and one with the states."""
    products, x, gates, steps, decays, reads, states, skips = (tensor.float() for tensor in before[:8])
    shape = 2, 256, 2, 64
    inside = torch.tril(torch.exp((decays.unsqueeze(3) - decays.unsqueeze(2)).clamp(max=0)))
    weight = inside * products * steps.unsqueeze(2)
    seen = torch.einsum("hctk,ckhp->cthp", weight, x.reshape(shape))
    seen += torch.einsum("ctn,chpn,hct->cthp", reads.reshape(2, 256, 128), states, torch.exp(decays))
    expected = (seen.reshape(512, 2, 64) + x * skips.unsqueeze(1)) * torch.nn.functional.silu(gates)
    return [(after[8], expected)]


@sized(batch=64, length=10, heads=2)
def held_recurrent_heads(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The unit step by step."""
    given, weights = before[0].float(), before[1].float()
    state, expected = torch.zeros(64, 2, 64, device=given.device), []
    for time in range(10):
        moved = torch.einsum("bhi,hgij->gbhj", state, weights)
        reset, update = (torch.sigmoid(given[:, time, gate] + moved[gate]) for gate in range(2))
        state = update * state + (1 - update) * torch.tanh(given[:, time, 2] + reset * moved[2])
        expected.append(state)
    return [(after[2], torch.stack(expected, 1))]


def philox(seed: int, counter: torch.Tensor) -> list[torch.Tensor]:
    """Compute the four words of Philox 4×32 with ten rounds, whose other counters are zero."""
    mask = 0xFFFFFFFF
    words = [counter, torch.zeros_like(counter), torch.zeros_like(counter), torch.zeros_like(counter)]
    keys = [seed & mask, seed >> 32]
    for _ in range(10):
        # Products of 64 bits by halves: int64 has a sign.
        low, high = [], []
        for factor, word in ((0xD2511F53, words[0]), (0xCD9E8D57, words[2])):
            small, large = factor * (word & 0xFFFF), factor * (word >> 16)
            upper = large + (small >> 16)
            low.append((upper << 16 | small & 0xFFFF) & mask)
            high.append(upper >> 16 & mask)
        words = [high[1] ^ words[1] ^ keys[0], low[1], high[0] ^ words[3] ^ keys[1], low[0]]
        keys = [(keys[0] + 0x9E3779B9) & mask, (keys[1] + 0xBB67AE85) & mask]
    return words


@sized(rows=3, width=5000)
def held_sample_words(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The words with the most of logit and noise, which come from the same random bits."""
    values = []
    for row in range(3):
        bits = philox(before[5] + row, torch.arange(5000))[0]
        signed = torch.where(bits < 1 << 31, bits, bits - (1 << 32))
        drawn = torch.where(signed < 0, -signed - 1, signed).double() * 4.6566127342e-10
        noise = -torch.log(-torch.log(drawn.clamp(min=1e-20)))
        values.append(before[0][row].double().cpu() / before[1][row].cpu() + noise)
    value, words = torch.stack(values), after[3].long().cpu()
    splits = after[2].cpu()
    found = splits.max(1, keepdim=True)
    real = splits.isfinite()
    pairs = [(found.values, value.max(1, keepdim=True).values)]
    pairs.append((words.gather(1, found.indices), value.argmax(1, keepdim=True)))
    return [*pairs, (value.gather(1, words)[real], splits[real])]


@sized(rows=3, width=5000)
def held_largest_words(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The largest once the splits are joined, and that each place holds its value."""
    best, words = after[1].reshape(3, -1), after[2].long().reshape(3, -1)
    kept = best.topk(32, 1)
    held = before[0].gather(1, words.gather(1, kept.indices))
    expected = before[0].topk(32, 1).values
    return [(kept.values, expected), (held, expected)]


@sized(rows=40, programs=6)
def held_norm_backward(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's gradients."""
    x, gains = (before[number].float().cpu().requires_grad_() for number in (0, 2))
    normal = x * torch.rsqrt((x**2).mean(1, keepdim=True) + 1e-5) * gains
    normal.backward(before[1].float().cpu())
    assert x.grad is not None
    assert gains.grad is not None
    return [(after[4], x.grad), (after[5].sum(0), gains.grad)]


@sized(points=16384)
def held_sums_by_label(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Added row by row."""
    labels = before[1].long()
    expected = torch.zeros(128, 64, device=labels.device).index_add_(0, labels, before[0].float())
    return [(after[2], expected), (after[3], torch.bincount(labels, minlength=128))]


@sized(nodes=60)
def held_graph_attention(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Softmax of each node's edges."""
    starts, expected = before[3].tolist(), []
    for node, (first, last) in enumerate(itertools.pairwise(starts)):
        others = before[4][first:last].long()
        score = torch.nn.functional.leaky_relu(before[1][others] + before[2][node], 0.2)
        expected.append((before[0][others].float() * torch.softmax(score, 0).unsqueeze(2)).sum(0))
    return [(after[5], torch.stack(expected))]


@sized(batch=2, tall=9, wide=12)
def held_sampled_points(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's bilinear samples of each level."""
    values, places, weights = (before[number].float().cpu() for number in (0, 2, 3))
    pixels = values.shape[1]
    expected = torch.zeros(2 * 8, 32, pixels)
    for level, (height, width, first) in enumerate(before[1].tolist()):
        image = values[:, first : first + height * width].permute(0, 2, 3, 1).reshape(16, 32, height, width)
        part = slice(level * 4, level * 4 + 4)
        points = places[:, :, :, part].permute(0, 2, 1, 3, 4).reshape(16, pixels, 4, 2) * 2 - 1
        sampled = torch.nn.functional.grid_sample(image, points, align_corners=False)
        share = weights[:, :, :, part].permute(0, 2, 1, 3).reshape(16, 1, pixels, 4)
        expected += (sampled * share).sum(3)
    return [(after[4], expected.reshape(2, 8, 32, pixels).permute(0, 3, 1, 2))]


@sized(points=1024)
def held_hash_encoding(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Corner by corner, in integers of 64 bits."""
    size, levels = 1 << 19, []
    table = before[2].float().cpu().reshape(16, size, 2)
    for level, side in enumerate(before[1].tolist()):
        place = before[0].cpu() * side
        base = place.floor()
        part, base = place - base, base.long()
        total = torch.zeros(1024, 2)
        for corner in itertools.product((0, 1), repeat=3):
            offset = torch.tensor(corner)
            i, j, k = (base + offset).unbind(1)
            count = int(side) + 1
            direct = i + count * (j + count * k)
            hashed = (i ^ j * 2654435761 ^ k * 805459861) % size
            entry = direct if count**3 <= size else hashed
            weight = torch.where(offset == 1, part, 1 - part).prod(1, keepdim=True)
            total += weight * table[level, entry]
        levels.append(total)
    return [(after[4], torch.stack(levels, 1))]


@sized(height=8, width=1024)
def held_lattice_fluid(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Shifted planes, and what they relax towards."""
    shape = (9, 8, 1024) if config["PLANES"] else (8, 1024, 9)
    now, later = (tensor.reshape(shape).double().cpu() for tensor in (before[0], after[1]))
    if not config["PLANES"]:
        now, later = now.permute(2, 0, 1), later.permute(2, 0, 1)
    directions = list(itertools.product((-1, 0, 1), (-1, 0, 1)))
    moved = torch.stack([torch.roll(plane, way, (0, 1)) for plane, way in zip(now, directions, strict=True)])
    down, across = torch.tensor(directions, dtype=torch.float64).T.reshape(2, 9, 1, 1)
    mass = moved.sum(0)
    x, y = (moved * across).sum(0) / mass, (moved * down).sum(0) / mass
    along = across * x + down * y
    one = torch.tensor([2 / 3, 1 / 6], dtype=torch.float64)
    share = one[down.abs().long()] * one[across.abs().long()]
    calm = share * mass * (1 + 3 * along + 4.5 * along**2 - 1.5 * (x**2 + y**2))
    return [(later, moved + 1.2 * (calm - moved))]
