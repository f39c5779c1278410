"""Families against torch, at small sizes: on this machine's GPU, else on irscope's virtual GPU that computes.

Each function below and in the other modules `checking_*` is named like its family. It takes the arguments of a launch
as they were before it and as they are after it, and the configuration; it returns pairs of what the kernel stored and
what torch computes.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from benchmarks.timing.family import FAMILIES, Config, label
from benchmarks.timing.recording import TARGET
from irscope.machine.launch import NO_LIMITS
from irscope.record.virtual.gpu import virtual_gpu

Pairs = Sequence[tuple[Any, Any]]
Reference = Callable[[Sequence[Any], Sequence[Any], Config], Pairs]

REFERENCES: dict[str, tuple[dict[str, int], Reference]] = {}
_TOLERANCE = 2e-2
"""Of the largest magnitude of the expected values: the products are of half precision, and sums have another order."""


def sized(**sizes: int) -> Callable[[Reference], Reference]:
    """Register the decorated function as the reference of the family of its name, at these sizes."""

    def register(reference: Reference) -> Reference:
        REFERENCES[reference.__name__] = sizes, reference
        return reference

    return register


def check(each: int, only: str = "") -> int:
    """Check the first `each` configurations of each family; print a line for each, and return how many fail.

    `only`: names of families, separated by commas; empty for all that have a reference.
    """
    failures = 0
    for name in only.split(",") if only else list(REFERENCES):
        sizes, reference = REFERENCES[name]
        for config in FAMILIES[name].configs[:each]:
            virtual = contextlib.nullcontext() if torch.cuda.is_available() else _virtual()
            with virtual:
                worst = _error(name, {**config, **sizes}, reference)
            failures += not worst <= _TOLERANCE
            verdict = "ok  " if worst <= _TOLERANCE else "BAD "
            print(f"{verdict} {name:<26} {worst:.1e}  {label(config)}", flush=True)
    return failures


def _virtual() -> Any:
    return virtual_gpu(TARGET, limits=NO_LIMITS, on_note=lambda note: print(f"     {note}", file=sys.stderr))


def _error(name: str, config: Config, reference: Reference) -> float:
    torch.manual_seed(35)
    launch = FAMILIES[name].prepare(config)
    before = [value.clone() if isinstance(value, torch.Tensor) else value for value in launch.arguments]
    launch()
    worst = 0.0
    for actual, expected in reference(before, launch.arguments, config):
        actual, expected = actual.double().cpu(), expected.double().cpu()
        error = (actual - expected).abs().max() / expected.abs().max()
        worst = max(worst, float(error)) if math.isfinite(float(error)) else math.inf
    return worst


@sized(batch=1, heads=64, length=256)
def fresh_latent_decode(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention in each split, and the logarithm to base 2 of its sum."""
    query, cache, splits = before[0].float(), before[1].float(), config["SPLITS"]
    score = (query @ cache.transpose(1, 2) * before[6]).reshape(1, 64, splits, -1)
    values = cache[:, :, :512].reshape(1, 1, splits, -1, 512)
    power = torch.softmax(score * math.log(2), -1)
    sums = torch.logsumexp(score * math.log(2), -1) / math.log(2)
    return [(after[2], (power.unsqueeze(-1) * values).sum(-2).reshape(-1, 512)), (after[3], sums.reshape(-1))]


@sized(rows=16)
def fresh_combine_splits(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Mean by the softmax to base 2 of the sums."""
    weight = torch.softmax(before[1] * math.log(2), 1)
    return [(after[2], (before[0] * weight.unsqueeze(-1)).sum(1))]


@sized(sequences=2, most=200, heads=4, key_heads=2)
def fresh_packed_attention(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Causal attention of each sequence."""
    query, key, value = (tensor.float().transpose(0, 1) for tensor in before[:3])
    key, value = key.repeat_interleave(2, 0), value.repeat_interleave(2, 0)
    starts, pairs = before[4].tolist(), []
    for first, last in itertools.pairwise(starts):
        score = query[:, first:last] @ key[:, first:last].transpose(1, 2) * before[7] * math.log(2)
        score = score + torch.triu(torch.full((last - first, last - first), -math.inf, device=score.device), 1)
        expected = torch.softmax(score, -1) @ value[:, first:last]
        pairs.append((after[3][first:last], expected.transpose(0, 1)))
    return pairs


@sized(heads=1, length=256, seen=128)
def fresh_chosen_blocks(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Attention of each block of rows to the listed blocks, as often as they are listed."""
    query, key, value, chosen = (tensor[0].float() for tensor in before[:4])
    rows, pairs = config["BLOCK_M"], []
    for number, blocks in enumerate(chosen.tolist()):
        places = [int(block) * config["BLOCK_N"] + inner for block in blocks for inner in range(config["BLOCK_N"])]
        part = slice(number * rows, (number + 1) * rows)
        score = query[part] @ key[places].T * before[7] * math.log(2)
        pairs.append((after[4][0, part], torch.softmax(score, -1) @ value[places]))
    return pairs


@sized(tokens=64, heads=2, key_heads=1)
def fresh_norm_rope_store(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Queries, and keys and values at their slots."""
    joined, weight, slots = before[0].float(), before[1], before[5]
    normal = joined * torch.rsqrt((joined**2).mean(-1, keepdim=True) + 1e-6) * weight
    cosine, sine = (table[before[4].long()].unsqueeze(1) for table in before[2:4])
    low, high = normal[..., :64], normal[..., 64:]
    turned = torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1)
    stored = after[7][slots], after[8][slots]
    return [(after[6], turned[:, :2]), (stored[0], turned[:, 2:3]), (stored[1], joined[:, 3:])]


@sized(batch=2, heads=3)
def fresh_state_update(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The state in place, and what is read from it."""
    state, x, step, decay, into, outof, skip = (tensor.float() for tensor in before[:7])
    time = torch.nn.functional.softplus(step)
    state = state * torch.exp(-time * torch.exp(decay))[..., None, None]
    state = state + (x * time.unsqueeze(-1)).unsqueeze(-1) * into[:, None, None, :]
    seen = (state * outof[:, None, None, :]).sum(-1) + x * skip[None, :, None]
    return [(after[0], state), (after[7], seen)]


@sized(length=256, heads=2, chunk=128)
def fresh_chunk_states(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Sums of outer products over each chunk."""
    x, into = before[0].float().reshape(2, 128, 2, 64), before[1].float().reshape(2, 128, 128)
    weight = torch.exp(before[2][:, -1:] - before[2]) * before[3].reshape(2, 128, 2)
    return [(after[4], torch.einsum("cthp,ctn,cth->chpn", x, into, weight))]


@sized(heads=1, length=12)
def fresh_delta_rule(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The recurrence step by step."""
    query, key, value, rates, gates = (tensor[0].float() for tensor in before[:5])
    state, outputs = torch.zeros(128, 128, device=query.device), []
    for time in range(12):
        state = state * torch.exp(gates[time])
        missing = (value[time] - key[time] @ state) * rates[time]
        state = state + key[time].unsqueeze(1) * missing.unsqueeze(0)
        outputs.append(query[time] @ state)
    return [(after[5][0], torch.stack(outputs))]


@sized(count=4)
def fresh_triangular_inverse(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Inverses, in float64."""
    unit = torch.eye(config["SIZE"], dtype=torch.float64, device=before[0].device)
    return [(after[1], torch.linalg.inv(torch.tril(before[0].double(), -1) + unit))]


@sized(most=60, columns=256, depth=64, programs=7)
def fresh_grouped(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The products one by one."""
    starts = before[3].tolist()
    parts = [slice(first, last) for first, last in itertools.pairwise(starts)]
    return [(after[2][part], before[0][part].float() @ before[1][group].float()) for group, part in enumerate(parts)]


@sized(rows=256, columns=128, depth=192, programs=3)
def fresh_stream_k(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """One product."""
    return [(after[2], before[0].float() @ before[1].float())]


@sized(tokens=6, width=128, depth=128)
def fresh_gated_experts(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Each pair of a token and an expert on its own; the order and the experts of the blocks are taken as given."""
    x, weights, expected = before[0].float(), before[1].float(), torch.zeros(48, 128)
    for block, expert in enumerate(before[3].tolist()):
        for pair in before[2][block * config["BLOCK_M"] : (block + 1) * config["BLOCK_M"]].tolist():
            if pair < 48:
                gate, up = weights[expert] @ x[pair // 8]
                expected[pair] = (torch.nn.functional.silu(gate) * up).cpu()
    return [(after[4], expected)]


@sized(rows=128, columns=128, depth=256)
def fresh_block_scaled(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product of what the scales make of the operands."""
    left = before[0].float() * before[2].repeat_interleave(128, 1)
    right = before[1].float() * before[3].repeat_interleave(128, 0).repeat_interleave(128, 1)
    return [(after[4], left @ right.T)]


@sized(rows=128, columns=128, depth=128)
def fresh_gated_product(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Two products and SiLU."""
    x, gates, ups = (tensor.float() for tensor in before[:3])
    return [(after[3], torch.nn.functional.silu(x @ gates) * (x @ ups))]


@sized(n=384, depth=128)
def fresh_gram(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The whole product."""
    return [(after[1], before[0].float() @ before[0].float().T)]


@sized(tokens=128, words=8192, depth=64)
def fresh_product_entropy(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The logarithm of the sum in each split, and the label's logit."""
    logits = before[0].float() @ before[1].float().T
    chosen = logits.gather(1, before[2].long().unsqueeze(1)).squeeze(1)
    split = logits.reshape(logits.shape[0], config["SPLITS"], -1)
    return [(after[3], torch.logsumexp(split, 2)), (after[4], chosen)]


@sized(batch=16)
def fresh_pair_features(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The lower triangle without the diagonal, row by row."""
    pairs = before[0].float() @ before[0].float().transpose(1, 2)
    row, column = torch.tril_indices(27, 27, -1)
    return [(after[1], pairs[:, row, column])]


@sized(n=128)
def fresh_complex(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The real and the imaginary part."""
    a, b, c, d = (tensor.float() for tensor in before[:4])
    return [(after[4], a @ c - b @ d), (after[5], a @ d + b @ c)]


@sized(tokens=24, depth=4096)
def fresh_adapters(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Each token by its own adapter; none where it is below 0."""
    x, weights, chosen = before[0].float(), before[1].float(), before[2].long()
    expected = torch.einsum("td,trd->tr", x, weights[chosen.clamp(min=0)])
    return [(after[3], expected * (chosen >= 0).unsqueeze(1))]


@sized(rows=4)
def fresh_hadamard(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The product with the matrix by Sylvester's construction."""
    signs = torch.ones(1, 1)
    for _ in range(int(math.log2(config["SIDE"]))):
        signs = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]]), signs)
    x = before[0].float().cpu().reshape(-1, config["SIDE"], config["SIDE"])
    return [(after[1].cpu().reshape(x.shape), signs @ x @ signs / config["SIDE"])]


@sized(rows=96, width=500)
def fresh_norm_parameters(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The gradients, once the groups are added up."""
    x, slope = before[0].float(), before[1].float()
    scaled = slope * (x - before[2].unsqueeze(1)) * before[3].unsqueeze(1)
    return [(after[5].sum(0), scaled.sum(0)), (after[6].sum(0), slope.sum(0))]


@sized(rows=4, width=7168)
def fresh_add_norm_quantise(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The sum, the scales, and what float8 and the scales give back, whose rounding errs by up to 1/16 of a value."""
    added = before[0].float() + before[1].float()
    value = added * torch.rsqrt((added**2).mean(1, keepdim=True) + 1e-6) * before[2].float()
    grouped = value.reshape(4, -1, config["GROUP"])
    scales = grouped.abs().amax(2) / 448
    back = after[4].float().reshape(grouped.shape) * after[5].unsqueeze(2)
    near = torch.where((back - grouped).abs() <= grouped.abs() / 16 + scales.unsqueeze(2) / 512, grouped, back)
    return [(after[3], added), (after[5], scales), (near, grouped)]


@sized(batch=1, heads=2, length=1000)
def fresh_masked_softmax(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Softmax of what is not hidden."""
    score = torch.where(before[1].unsqueeze(1) != 0, -1e4, before[0].float() * 0.125)
    return [(after[2], torch.softmax(score, -1))]


@sized(rows=2, words=5000)
def fresh_nucleus(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The logit where the sorted probabilities reach 0.9; 12 bisections of 20 leave 0.005."""
    ordered, _ = before[0].sort(1, descending=True)
    reached = (torch.softmax(ordered, 1).cumsum(1) >= 0.9).int().argmax(1)
    return [(after[1], ordered.gather(1, reached.unsqueeze(1)).squeeze(1))]


@sized(sequences=5, most=70, width=250)
def fresh_pad(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The rows of each sequence, then the fill."""
    starts, expected = before[1].tolist(), torch.full((5, 70, 250), -1.0)
    for number, (first, last) in enumerate(itertools.pairwise(starts)):
        expected[number, : last - first] = before[0][first:last].cpu()
    return [(after[2], expected)]


@sized(batch=2, height=10, width=15, tall=23, wide=34)
def fresh_resize(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's own bilinear interpolation."""
    image = before[0].float().cpu().permute(0, 3, 1, 2)
    expected = torch.nn.functional.interpolate(image, size=(23, 34), mode="bilinear", align_corners=False)
    return [(after[1], expected.permute(0, 2, 3, 1))]


@sized(nx=40, ny=24, nz=12)
def fresh_wave(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The Laplacian of eighth order by shifted tensors, away from the border."""
    now, earlier, speed = before[:3]
    bend = now * (3 * -205 / 72)
    for step, weight in enumerate((8 / 5, -1 / 5, 8 / 315, -1 / 560), 1):
        for axis in range(3):
            bend = bend + weight * (torch.roll(now, step, axis) + torch.roll(now, -step, axis))
    inside = torch.zeros_like(now)
    inside[4:-4, 4:-4, 4:-4] = 1
    return [(after[3], (2 * now - earlier + speed * bend) * inside)]


@sized(n=256)
def fresh_bodies(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """All pairs at once, in float64."""
    places = torch.stack(list(before[:3]), 1).double()
    apart = places.unsqueeze(0) - places.unsqueeze(1)
    pull = before[3].double() / ((apart**2).sum(2) + 0.01) ** 1.5
    expected = (apart * pull.unsqueeze(2)).sum(1)
    return [(after[4 + axis], expected[:, axis]) for axis in range(3)]


@sized(nodes=96)
def fresh_neighbours(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The mean of the rows that the edges name."""
    starts = before[1].tolist()
    edges = [before[2][first:last].long() for first, last in itertools.pairwise(starts)]
    return [(after[3], torch.stack([before[0][others].float().mean(0) for others in edges]))]


@sized(n=20000)
def fresh_compact(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The same values, in whatever order the blocks came, and how many."""
    kept = before[0][before[0] > 0.5]
    return [(after[1][: kept.numel()].sort().values, kept.sort().values), (after[2], torch.tensor([kept.numel()]))]


@sized(n=8192)
def fresh_four_bit_float(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The high half of each byte first."""
    byte = before[0].long()
    both = torch.stack([before[1][byte >> 4], before[1][byte & 15]], 1).reshape(-1)
    return [(after[3], both * before[2].repeat_interleave(64))]


@sized(batch=32, channels=3, pixels=700)
def fresh_channel_moments(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Sums over images and pixels."""
    x = before[0].double()
    return [(after[1], x.sum((0, 2))), (after[2], (x**2).sum((0, 2)))]
