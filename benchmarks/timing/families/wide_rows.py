"""Wide: rows of language, speech and diffusion models: norms, a softmax's gradient, a vocabulary, a rotation.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import random

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN, _BYTE_FLOAT = torch.float16, torch.bfloat16, torch.float8_e4m3fn


def _mixed(rows: list[dict[str, int]]) -> list[dict[str, int]]:
    """Put configurations in an order that is random but always the same."""
    return random.Random(35).sample(rows, len(rows))


@triton.jit
def _norm_to_float8(
    x_ptr, residual_ptr, gain_ptr, sum_ptr, y_ptr, scale_ptr, rows, width, epsilon,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = (row < rows)[:, None]
    base = row[:, None] * width
    if WHOLE:
        column = tl.arange(0, BLOCK)
        mask = live & (column < width)[None, :]
        place = base + column[None, :]
        x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
        x += tl.load(residual_ptr + place, mask=mask, other=0.0).to(tl.float32)
        tl.store(sum_ptr + place, x.to(sum_ptr.dtype.element_ty), mask=mask)
        gain = tl.load(gain_ptr + column, mask=column < width, other=0.0).to(tl.float32) + 1.0
        rstd = tl.rsqrt(tl.sum(x * x, 1) / width + epsilon)
        y = x * rstd[:, None] * gain[None, :]
        scale = tl.maximum(tl.max(tl.abs(y), 1), 1e-6) / 448.0
        tl.store(y_ptr + place, (y / scale[:, None]).to(y_ptr.dtype.element_ty), mask=mask)
    else:
        squares = tl.zeros((ROWS, BLOCK), tl.float32)
        peak = tl.zeros((ROWS, BLOCK), tl.float32)
        for start in tl.range(0, width, BLOCK, num_stages=STAGES):
            column = start + tl.arange(0, BLOCK)
            mask = live & (column < width)[None, :]
            place = base + column[None, :]
            x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
            x += tl.load(residual_ptr + place, mask=mask, other=0.0).to(tl.float32)
            gain = tl.load(gain_ptr + column, mask=column < width, other=0.0).to(tl.float32) + 1.0
            tl.store(sum_ptr + place, x.to(sum_ptr.dtype.element_ty), mask=mask)
            squares += x * x
            peak = tl.maximum(peak, tl.abs(x * gain[None, :]))
        rstd = tl.rsqrt(tl.sum(squares, 1) / width + epsilon)
        scale = tl.maximum(tl.max(peak, 1) * rstd, 1e-6) / 448.0
        factor = rstd / scale
        tl.debug_barrier()
        for start in tl.range(0, width, BLOCK, num_stages=STAGES):
            column = start + tl.arange(0, BLOCK)
            mask = live & (column < width)[None, :]
            place = base + column[None, :]
            x = tl.load(sum_ptr + place, mask=mask, other=0.0).to(tl.float32)
            gain = tl.load(gain_ptr + column, mask=column < width, other=0.0).to(tl.float32) + 1.0
            y = x * factor[:, None] * gain[None, :]
            tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(scale_ptr + row, scale, mask=row < rows)


@family(
    _mixed(
        combine(10, WHOLE=(1,), BLOCK=(8192,), ROWS=(1, 2), STAGES=(1,), num_warps=(2, 4, 8, 16, 32))
        + combine(16, WHOLE=(0,), BLOCK=(256, 512, 1024, 2048), ROWS=(1, 2, 4), STAGES=(1, 3), num_warps=(1, 2, 4, 8))
    )
)
def wide_norm_to_float8(config: Config) -> Launch:
    """Residual and RMS norm of 10,000 rows of 5,120 bfloat16 to float8 with a scale for each row, whole or in loops."""
    rows, width = config.get("rows", 10000), config.get("width", 5120)
    inputs = normal(rows, width, dtype=_BRAIN), normal(rows, width, dtype=_BRAIN), normal(width, dtype=_BRAIN) / 4
    outputs = empty(rows, width, dtype=_BRAIN), empty(rows, width, dtype=_BYTE_FLOAT), empty(rows)
    grid = (triton.cdiv(rows, config["ROWS"]),)
    return launch(_norm_to_float8, grid, *inputs, *outputs, rows, width, 1e-6, config=config)


@triton.jit
def _softmax_gradient(
    p_ptr, dp_ptr, ds_ptr, rows, width, scale,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, BLOCK)
    outer: tl.constexpr = STAGES if WHOLE else 1
    for first in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=outer):
        row = first + tl.arange(0, ROWS)
        live = (row < rows)[:, None]
        base = row[:, None].to(tl.int64) * width
        if WHOLE:
            mask = live & (column < width)[None, :]
            p = tl.load(p_ptr + base + column[None, :], mask=mask, other=0.0).to(tl.float32)
            dp = tl.load(dp_ptr + base + column[None, :], mask=mask, other=0.0).to(tl.float32)
            along = tl.sum(p * dp, 1)
            ds = p * (dp - along[:, None]) * scale
            tl.store(ds_ptr + base + column[None, :], ds.to(ds_ptr.dtype.element_ty), mask=mask)
        else:
            along = tl.zeros((ROWS,), tl.float32)
            for start in tl.range(0, width, BLOCK, num_stages=STAGES):
                mask = live & (start + column < width)[None, :]
                place = base + start + column[None, :]
                p = tl.load(p_ptr + place, mask=mask, other=0.0).to(tl.float32)
                dp = tl.load(dp_ptr + place, mask=mask, other=0.0).to(tl.float32)
                along += tl.sum(p * dp, 1)
            for start in tl.range(0, width, BLOCK, num_stages=STAGES):
                mask = live & (start + column < width)[None, :]
                place = base + start + column[None, :]
                p = tl.load(p_ptr + place, mask=mask, other=0.0).to(tl.float32)
                dp = tl.load(dp_ptr + place, mask=mask, other=0.0).to(tl.float32)
                ds = p * (dp - along[:, None]) * scale
                tl.store(ds_ptr + place, ds.to(ds_ptr.dtype.element_ty), mask=mask)


@family(
    _mixed(
        combine(
            14, WHOLE=(1,), BLOCK=(2048,), ROWS=(1, 2, 4), STAGES=(1, 2, 3), programs=(528, 2112),
            num_warps=(2, 4, 8, 16),
        )
        + combine(
            12, WHOLE=(0,), BLOCK=(128, 256, 512), ROWS=(1, 4, 8), STAGES=(1, 3), programs=(0, 1056),
            num_warps=(1, 2, 4, 8),
        )
    )
)  # fmt: skip
def wide_softmax_gradient(config: Config) -> Launch:
    """Gradient of a speech encoder's softmax, 2 × 20 heads of 1,500 × 1,500 float16: whole rows or in two loops."""
    heads, width = config.get("heads", 40), config.get("width", 1500)
    rows = heads * width
    power = torch.exp(normal(rows, width, dtype=_HALF))
    power = power / power.sum(1, keepdim=True)
    arguments = power, normal(rows, width, dtype=_HALF), empty(rows, width, dtype=_HALF), rows, width, 0.125
    tiles = triton.cdiv(rows, config["ROWS"])
    return launch(_softmax_gradient, (min(config["programs"] or tiles, tiles),), *arguments, config=config)


@triton.jit
def _vocabulary_splits(
    logits_ptr, label_ptr, peak_ptr, sum_ptr, total_ptr, chosen_ptr, words, chunk,
    BLOCK: tl.constexpr, LATE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    token, split = tl.program_id(0), tl.program_id(1)
    logits_ptr += token.to(tl.int64) * words
    first = split * chunk
    last = tl.minimum(first + chunk, words)
    out = token * tl.num_programs(1) + split
    if LATE:
        peaks = tl.full((BLOCK,), -1e30, tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        totals = tl.zeros((BLOCK,), tl.float32)
        for start in tl.range(first, last, BLOCK, num_stages=STAGES):
            word = start + tl.arange(0, BLOCK)
            x = tl.load(logits_ptr + word, mask=word < last, other=float("-inf")).to(tl.float32)
            above = tl.maximum(peaks, x)
            sums = sums * tl.exp(peaks - above) + tl.exp(x - above)
            totals += tl.where(word < last, x, 0.0)
            peaks = above
        peak = tl.max(peaks, 0)
        weight = tl.sum(sums * tl.exp(peaks - peak), 0)
        total = tl.sum(totals, 0)
    else:
        peak = -1e30
        weight = 0.0
        total = 0.0
        for start in tl.range(first, last, BLOCK, num_stages=STAGES):
            word = start + tl.arange(0, BLOCK)
            x = tl.load(logits_ptr + word, mask=word < last, other=float("-inf")).to(tl.float32)
            above = tl.maximum(peak, tl.max(x, 0))
            weight = weight * tl.exp(peak - above) + tl.sum(tl.exp(x - above), 0)
            total += tl.sum(tl.where(word < last, x, 0.0), 0)
            peak = above
    tl.store(peak_ptr + out, peak)
    tl.store(sum_ptr + out, weight)
    tl.store(total_ptr + out, total)
    label = tl.load(label_ptr + token)
    if (label >= first) & (label < last):
        tl.store(chosen_ptr + token, tl.load(logits_ptr + label).to(tl.float32))


@family(
    combine(
        BLOCK=(512, 1024, 2048, 4096, 8192), LATE=(0, 1), STAGES=(1, 2, 4), splits=(1, 2, 4, 8, 16),
        num_warps=(2, 4, 8, 16),
    )
)  # fmt: skip
def wide_vocabulary_splits(config: Config) -> Launch:
    """Smoothed losses by splits of a vocabulary, 2,000 tokens, 151,936 words, bfloat16, reduced late or not."""
    tokens, words, splits = config.get("tokens", 2000), config.get("words", 151936), config["splits"]
    chunk = triton.cdiv(triton.cdiv(words, splits), 16) * 16
    parts = [empty(tokens, splits) for _ in range(3)]
    arguments = normal(tokens, words, dtype=_BRAIN) * 2, indices(words, tokens), *parts, empty(tokens), words, chunk
    return launch(_vocabulary_splits, (tokens, splits), *arguments, config=config)


@triton.jit
def _gated_group_norm(
    x_ptr, z_ptr, gain_ptr, y_ptr, tokens, stride_z, epsilon,
    GROUPS: tl.constexpr, WIDTH: tl.constexpr, TOKENS: tl.constexpr, TOGETHER: tl.constexpr, SPAN: tl.constexpr,
    STAGES: tl.constexpr, TOKENS_FAST: tl.constexpr,
):  # fmt: skip
    if TOKENS_FAST:
        tile, part = tl.program_id(0), tl.program_id(1)
    else:
        part, tile = tl.program_id(0), tl.program_id(1)
    group = part * TOGETHER + tl.arange(0, TOGETHER)
    column = group[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    gain = tl.load(gain_ptr + column).to(tl.float32)
    for step in tl.range(SPAN, num_stages=STAGES):
        token = (tile * SPAN + step) * TOKENS + tl.arange(0, TOKENS)
        mask = (token < tokens)[:, None, None]
        place = token[:, None, None] * (GROUPS * WIDTH) + column[None, :, :]
        x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
        z = tl.load(z_ptr + token[:, None, None] * stride_z + column[None, :, :], mask=mask, other=0.0).to(tl.float32)
        x = x * z * tl.sigmoid(z)
        rstd = tl.rsqrt(tl.sum(x * x, 2) / WIDTH + epsilon)
        y = x * rstd[:, :, None] * gain[None, :, :]
        tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=mask)


@family(
    combine(
        TOKENS=(1, 2, 4), TOGETHER=(1, 2, 4), SPAN=(1, 4, 16), STAGES=(1, 2, 3), TOKENS_FAST=(0, 1),
        num_warps=(2, 4, 8),
    )
)  # fmt: skip
def wide_gated_group_norm(config: Config) -> Launch:
    """Gate by SiLU and RMS norm of 8 groups of 1,024, 12,000 tokens of a state space model, gates apart by 18,560."""
    tokens, groups, width, stride = config.get("tokens", 12000), 8, 1024, 18560
    x, z = normal(tokens, groups * width, dtype=_BRAIN), normal(tokens, stride, dtype=_BRAIN)
    arguments = x, z, normal(groups * width, dtype=_BRAIN), empty(tokens, groups * width, dtype=_BRAIN), tokens, stride
    grid = triton.cdiv(tokens, config["TOKENS"] * config["SPAN"]), groups // config["TOGETHER"]
    grid = grid if config["TOKENS_FAST"] else grid[::-1]
    return launch(_gated_group_norm, grid, *arguments, 1e-5, config=config, GROUPS=groups, WIDTH=width)


@triton.jit
def _adaptive_norm(
    x_ptr, update_ptr, gate_ptr, shift_ptr, scale_ptr, sum_ptr, y_ptr, rows, tokens, width, stride, epsilon,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, CENTRED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, BLOCK)
    inside = column < width
    for first in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)
        place = row[:, None] * width + column[None, :]
        mask = (row < rows)[:, None] & inside[None, :]
        # The rows of a tile are of one image.
        modulation = first // tokens * stride + column
        gate = tl.load(gate_ptr + modulation, mask=inside, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
        x += gate[None, :] * tl.load(update_ptr + place, mask=mask, other=0.0).to(tl.float32)
        tl.store(sum_ptr + place, x.to(sum_ptr.dtype.element_ty), mask=mask)
        mean = tl.sum(x, 1) / width
        if CENTRED:
            apart = tl.where(mask, x - mean[:, None], 0.0)
            variance = tl.sum(apart * apart, 1) / width
        else:
            variance = tl.sum(x * x, 1) / width - mean * mean
        unit = (x - mean[:, None]) * tl.rsqrt(variance + epsilon)[:, None]
        scale = tl.load(scale_ptr + modulation, mask=inside, other=0.0).to(tl.float32)
        shift = tl.load(shift_ptr + modulation, mask=inside, other=0.0).to(tl.float32)
        y = unit * (1.0 + scale)[None, :] + shift[None, :]
        tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=mask)


@family(
    combine(
        ROWS=(1, 2, 4), CENTRED=(0, 1), STAGES=(1, 2), programs=(0, 132, 264, 1056), num_warps=(2, 4, 8, 16),
        BLOCK=(4096,),
    )
)  # fmt: skip
def wide_adaptive_norm(config: Config) -> Launch:
    """Gated residual and layer norm modulated by the image, 4 images of 4,608 tokens of 3,072 bfloat16 (diffusion)."""
    images, tokens, width = config.get("images", 4), config.get("tokens", 4608), config.get("width", 3072)
    rows = images * tokens
    x, update = normal(rows, width, dtype=_BRAIN), normal(rows, width, dtype=_BRAIN)
    modulation = normal(images, 6, width, dtype=_BRAIN)
    outputs = empty(rows, width, dtype=_BRAIN), empty(rows, width, dtype=_BRAIN)
    vectors = modulation[0, 2], modulation[0, 3], modulation[0, 4]
    arguments = x, update, *vectors, *outputs, rows, tokens, width, 6 * width, 1e-6
    tiles = triton.cdiv(rows, config["ROWS"])
    return launch(_adaptive_norm, (min(config["programs"] or tiles, tiles),), *arguments, config=config)


@triton.jit
def _rotate_patches(
    joined_ptr, place_ptr, cosine_ptr, sine_ptr, patches,
    HEADS: tl.constexpr, DIM: tl.constexpr, LANES: tl.constexpr, TOKENS: tl.constexpr, TOGETHER: tl.constexpr,
    BOTH: tl.constexpr,
):  # fmt: skip
    patch = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    head = tl.program_id(1) * TOGETHER + tl.arange(0, TOGETHER)
    lane = tl.arange(0, LANES)
    live = patch < patches
    inside = live[:, None] & (lane < DIM // 2)[None, :]
    # The first quarter of a head turns by the row of the patch, the second by its column.
    down = lane < DIM // 4
    position = tl.load(place_ptr + patch[:, None] * 2 + tl.where(down, 0, 1)[None, :], mask=inside, other=0)
    angle = position * (DIM // 4) + tl.where(down, lane, lane - DIM // 4)[None, :]
    cosine = tl.load(cosine_ptr + angle, mask=inside, other=0.0)[:, None, :]
    sine = tl.load(sine_ptr + angle, mask=inside, other=0.0)[:, None, :]
    mask = inside[:, None, :]
    start = 0 if BOTH else tl.program_id(2)
    for which in range(start, start + (2 if BOTH else 1)):
        row = (patch[:, None] * 3 + which) * HEADS + head[None, :]
        low = joined_ptr + row[:, :, None] * DIM + lane[None, None, :]
        a = tl.load(low, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(low + DIM // 2, mask=mask, other=0.0).to(tl.float32)
        tl.store(low, (a * cosine - b * sine).to(joined_ptr.dtype.element_ty), mask=mask)
        tl.store(low + DIM // 2, (b * cosine + a * sine).to(joined_ptr.dtype.element_ty), mask=mask)


@family(combine(TOKENS=(1, 2, 4, 8), TOGETHER=(1, 4, 8, 16), BOTH=(0, 1), num_warps=(1, 2, 4, 8)))
def wide_rotate_patches(config: Config) -> Launch:
    """Rotate queries and keys by row and column in place, 32,768 patches of 16 heads of 80 bfloat16, packed."""
    patches, heads, dim, side = config.get("patches", 32768), 16, 80, 96
    joined, places = normal(patches, 3, heads, dim, dtype=_BRAIN), indices(side, patches, 2)
    tables = uniform(side, dim // 4), uniform(side, dim // 4)
    grid = triton.cdiv(patches, config["TOKENS"]), heads // config["TOGETHER"], 1 if config["BOTH"] else 2
    sizes = {"HEADS": heads, "DIM": dim, "LANES": 64}
    return launch(_rotate_patches, grid, joined, places, *tables, patches, config=config, **sizes)
