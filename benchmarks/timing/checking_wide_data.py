"""Families of `wide_rows` and `wide_data` against torch: a function for each, as `checking` describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.timing.checking import Pairs, sized
from benchmarks.timing.family import Config


def _near_float8(stored: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return what is expected where the value stored is within the rounding of float8, else the value stored."""
    return torch.where((stored - expected).abs() <= expected.abs() / 14 + scale / 256, expected, stored)


@sized(rows=10, width=5120)
def wide_norm_to_float8(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The sum, the scales, and what float8 and the scales give back."""
    x, residual, gain = (tensor.float().cpu() for tensor in before[:3])
    added = x + residual
    normal = added * torch.rsqrt((added**2).mean(1, keepdim=True) + 1e-6) * (1 + gain)
    scales = normal.abs().amax(1) / 448
    back = after[4].float().cpu() * after[5].cpu().unsqueeze(1)
    return [(after[3], added), (after[5], scales), (_near_float8(back, normal, scales.unsqueeze(1)), normal)]


@sized(heads=1, width=150)
def wide_softmax_gradient(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The gradient by the scores before they are scaled."""
    power, slope = before[0].double().cpu(), before[1].double().cpu()
    return [(after[2], power * (slope - (power * slope).sum(1, keepdim=True)) * 0.125)]


@sized(tokens=6, words=20000)
def wide_vocabulary_splits(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The peaks, sums and totals of the splits, and the logits of the labels."""
    logits, chunk = before[0].double().cpu(), before[7]
    pieces = logits.split(chunk, 1)
    peaks = torch.stack([piece.amax(1) for piece in pieces], 1)
    sums = torch.stack([torch.exp(piece - piece.amax(1, keepdim=True)).sum(1) for piece in pieces], 1)
    chosen = logits.gather(1, before[1].long().cpu().unsqueeze(1)).squeeze(1)
    totals = torch.stack([piece.sum(1) for piece in pieces], 1)
    return [(after[2], peaks), (after[3], sums), (after[4], totals), (after[5], chosen)]


@sized(tokens=21)
def wide_gated_group_norm(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The norm of each group of the gated values."""
    x, z, gain = (tensor.double().cpu() for tensor in before[:3])
    gated = (x * torch.nn.functional.silu(z[:, :8192])).reshape(21, 8, 1024)
    normal = gated * torch.rsqrt((gated**2).mean(2, keepdim=True) + 1e-5)
    return [(after[3], normal.reshape(21, 8192) * gain)]


@sized(images=2, tokens=12, width=3072)
def wide_adaptive_norm(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's layer norm of the sum, with the scale and the shift of the image."""
    x, update = (tensor.double().cpu().reshape(2, 12, 3072) for tensor in before[:2])
    vectors = [torch.as_strided(tensor, (2, 3072), (6 * 3072, 1)).double().cpu() for tensor in after[2:5]]
    gate, shift, scale = (vector.unsqueeze(1) for vector in vectors)
    added = x + gate * update
    expected = torch.nn.functional.layer_norm(added, (3072,), eps=1e-6) * (1 + scale) + shift
    return [(after[5], added.reshape(24, 3072)), (after[6], expected.reshape(24, 3072))]


@sized(patches=21)
def wide_rotate_patches(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Queries and keys turned by both positions, and values as they were."""
    joined, places = before[0].double().cpu(), before[1].long().cpu()
    cosine, sine = (table.double().cpu()[places].flatten(1)[:, None, None] for table in before[2:4])
    low, high = joined[:, :2, :, :40], joined[:, :2, :, 40:]
    turned = torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1)
    return [(after[0], torch.cat([turned, joined[:, 2:]], 1))]


@sized(rows=100, width=600)
def wide_factored_moments(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """Sums of the squares along both axes."""
    squares = before[0].double().cpu() ** 2 / 64
    return [(after[1], squares.sum(1)), (after[2], squares.sum(0))]


@sized(entries=5000, columns=300)
def wide_sparse_by_entry(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The products, each added to its row."""
    rows, columns = (tensor.long().cpu() for tensor in before[:2])
    products = before[2].double().cpu() * before[3].double().cpu()[columns]
    return [(after[4], torch.zeros(before[4].numel(), dtype=torch.float64).index_add(0, rows, products))]


@sized(side=37)
def wide_poisson_sweep(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The sweep by shifted parts of a grid with zeros around it."""
    u, f = (tensor.cpu() for tensor in before[:2])
    padded = torch.nn.functional.pad(u, (1, 1) * 3)
    around = torch.zeros_like(u)
    for axis in range(3):
        for shift in (0, 2):
            places = [shift if each == axis else 1 for each in range(3)]
            around += padded[tuple(slice(place, place + 37) for place in places)]
    return [(after[2], 0.2 * u + 0.8 * (around - f) / 6)]


@sized(batches=2, tokens=200, width=168)
def wide_permute_descriptors(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The tensor with its last two dimensions exchanged."""
    return [(after[1], before[0].transpose(1, 2))]


@sized(images=2, height=75, width=300)
def wide_running_columns(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """torch's running sums."""
    return [(after[1], before[0].cpu().int().cumsum(1))]


@sized(images=3, height=230, width=240)
def wide_crop_normalise(before: Sequence[Any], after: Sequence[Any], config: Config) -> Pairs:
    """The crop of each image, mirrored or not, times the gains plus the biases."""
    expected = []
    for image, (top, left, mirrored) in zip(before[0].float().cpu(), before[1].tolist(), strict=True):
        crop = image[top : top + 224, left : left + 224].permute(2, 0, 1)
        expected.append(crop.flip(2) if mirrored else crop)
    gain, bias = (tensor.cpu()[:, None, None] for tensor in before[2:4])
    return [(after[4], torch.stack(expected) * gain + bias)]
