"""Kernels that move tiles: transposes, permutations, rotations, stencils and small convolutions."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, normal
from benchmarks.timing.family import Config, Launch, combine, family, launch


@triton.jit
def _transpose(x, out, rows, width, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (row < rows)[:, None] & (column < width)[None, :]
    value = tl.load(x + row[:, None] * width + column[None, :], mask)
    tl.store(out + column[None, :] * rows + row[:, None], value, mask)


@family(combine(BLOCK_M=(16, 32, 64, 128), BLOCK_N=(16, 32, 64, 128), num_warps=(1, 4, 8)))
def transpose(config: Config) -> Launch:
    """Transpose of 8,192 × 8,192 float32."""
    grid = triton.cdiv(8192, config["BLOCK_M"]), triton.cdiv(8192, config["BLOCK_N"])
    return launch(_transpose, grid, normal(8192, 8192), empty(8192, 8192), 8192, 8192, config=config)


@family(combine(BLOCK_M=(1, 16, 64, 128), BLOCK_N=(32, 64, 128, 256), num_warps=(1, 4, 8)))
def transpose_half(config: Config) -> Launch:
    """Transpose of 12,000 × 6,000 float16."""
    grid = triton.cdiv(12000, config["BLOCK_M"]), triton.cdiv(6000, config["BLOCK_N"])
    x, out = normal(12000, 6000, dtype=torch.float16), empty(6000, 12000, dtype=torch.float16)
    return launch(_transpose, grid, x, out, 12000, 6000, config=config)


@triton.jit
def _rope_halves(x, cosines, sines, heads, HALF: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    column = tl.arange(0, HALF)
    cosine, sine = tl.load(cosines + token * HALF + column), tl.load(sines + token * HALF + column)
    places = token * heads * 2 * HALF + head[:, None] * 2 * HALF + column[None, :]
    first, second = tl.load(x + places).to(tl.float32), tl.load(x + places + HALF).to(tl.float32)
    tl.store(x + places, (first * cosine[None, :] - second * sine[None, :]).to(tl.bfloat16))
    tl.store(x + places + HALF, (second * cosine[None, :] + first * sine[None, :]).to(tl.bfloat16))


@family(combine(HEADS=(1, 2, 4, 8, 16, 32), num_warps=(1, 2, 4, 8)))
def rope(config: Config) -> Launch:
    """Rotary embedding by halves of 8,192 tokens of 32 heads of 128 bfloat16."""
    tokens, heads, half = 8192, 32, 64
    tensors = normal(tokens, heads, 2 * half, dtype=torch.bfloat16), normal(tokens, half), normal(tokens, half)
    return launch(_rope_halves, (tokens, heads // config["HEADS"]), *tensors, heads, config=config, HALF=half)


@triton.jit
def _rope_pairs(x, out, cosines, sines, n, width, BLOCK: tl.constexpr):
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = pair < n
    angle = (pair // (16 * width)) * width + pair % width
    cosine, sine = tl.load(cosines + angle, mask), tl.load(sines + angle, mask)
    first, second = tl.load(x + 2 * pair, mask), tl.load(x + 2 * pair + 1, mask)
    tl.store(out + 2 * pair, first * cosine - second * sine, mask)
    tl.store(out + 2 * pair + 1, second * cosine + first * sine, mask)


@family(combine(BLOCK=(64, 128, 256, 512, 1024, 4096), num_warps=(1, 2, 4, 8)))
def rope_interleaved(config: Config) -> Launch:
    """Rotary embedding of interleaved pairs, 8,192 tokens of 16 heads of 128 float32."""
    tokens, width = 8192, 64
    n = tokens * 16 * width
    tensors = normal(2 * n), empty(2 * n), normal(tokens, width), normal(tokens, width)
    return launch(_rope_pairs, (triton.cdiv(n, config["BLOCK"]),), *tensors, n, width, config=config)


@triton.jit
def _channels_last(x, out, channels, space, BLOCK_C: tl.constexpr, BLOCK_S: tl.constexpr):
    base = tl.program_id(2).to(tl.int64) * channels * space
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    place = tl.program_id(1) * BLOCK_S + tl.arange(0, BLOCK_S)
    mask = (channel < channels)[:, None] & (place < space)[None, :]
    value = tl.load(x + base + channel[:, None] * space + place[None, :], mask)
    tl.store(out + base + place[None, :] * channels + channel[:, None], value, mask)


@family(combine(BLOCK_C=(8, 32, 64, 128), BLOCK_S=(32, 64, 128, 256), num_warps=(2, 4, 8)))
def channels_last(config: Config) -> Launch:
    """From channels first to last, 64 images of 96 × 56 × 56 float16."""
    images, channels, space = 64, 96, 3136
    x, out = (normal(images * channels * space, dtype=torch.float16) for _ in range(2))
    grid = triton.cdiv(channels, config["BLOCK_C"]), triton.cdiv(space, config["BLOCK_S"]), images
    return launch(_channels_last, grid, x, out, channels, space, config=config)


@triton.jit
def _stencil(x, out, rows, width, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (row > 0) & (row < rows - 1) & (column > 0) & (column < width - 1)
    place = x + row * width + column
    value = tl.load(place, inside, other=0.0) * -4.0
    value += tl.load(place - 1, inside, other=0.0) + tl.load(place + 1, inside, other=0.0)
    value += tl.load(place - width, inside, other=0.0) + tl.load(place + width, inside, other=0.0)
    tl.store(out + row * width + column, value, inside)


@family(combine(BLOCK_M=(1, 4, 16, 64), BLOCK_N=(32, 128, 512), num_warps=(1, 4, 8)))
def stencil(config: Config) -> Launch:
    """Five-point stencil of 8,192 × 8,192 float32."""
    grid = triton.cdiv(8192, config["BLOCK_M"]), triton.cdiv(8192, config["BLOCK_N"])
    return launch(_stencil, grid, normal(8192, 8192), empty(8192, 8192), 8192, 8192, config=config)


@triton.jit
def _depthwise(x, weight, out, steps, channels, TAPS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
    step = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    channel = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    base = tl.program_id(2).to(tl.int64) * steps * channels
    total = tl.zeros([BLOCK_T, BLOCK_C], tl.float32)
    for tap in tl.static_range(TAPS):
        at = step - (TAPS - 1 - tap)
        mask = (at >= 0)[:, None] & (at < steps)[:, None] & (channel < channels)[None, :]
        value = tl.load(x + base + at[:, None] * channels + channel[None, :], mask, other=0.0).to(tl.float32)
        total += value * tl.load(weight + tap * channels + channel, channel < channels, other=0.0)[None, :]
    mask = (step < steps)[:, None] & (channel < channels)[None, :]
    total = total * tl.sigmoid(total)
    tl.store(out + base + step[:, None] * channels + channel[None, :], total.to(tl.bfloat16), mask)


@family(combine(BLOCK_T=(1, 8, 32, 64), BLOCK_C=(32, 64, 128, 256), num_warps=(1, 4, 8)))
def depthwise_convolution(config: Config) -> Launch:
    """Causal convolution of 4 taps of each channel, 8 × 2,048 steps of 4,096 bfloat16."""
    batch, steps, channels = 8, 2048, 4096
    x = normal(batch, steps, channels, dtype=torch.bfloat16)
    grid = triton.cdiv(steps, config["BLOCK_T"]), triton.cdiv(channels, config["BLOCK_C"]), batch
    tensors = x, normal(4, channels), torch.empty_like(x)
    return launch(_depthwise, grid, *tensors, steps, channels, config=config, TAPS=4)


@triton.jit
def _max_pool(x, out, height, width, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr):
    row = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)[:, None]
    column = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)[None, :]
    base = tl.program_id(2).to(tl.int64) * height * width * 4
    mask = (row < height) & (column < width)
    place = x + base + (2 * row) * (2 * width) + 2 * column
    best = tl.load(place, mask)
    best = tl.maximum(best, tl.load(place + 1, mask))
    best = tl.maximum(best, tl.load(place + 2 * width, mask))
    best = tl.maximum(best, tl.load(place + 2 * width + 1, mask))
    tl.store(out + tl.program_id(2).to(tl.int64) * height * width + row * width + column, best, mask)


@family(combine(BLOCK_H=(1, 4, 16), BLOCK_W=(16, 64, 128, 256), num_warps=(1, 4)))
def max_pool(config: Config) -> Launch:
    """Maxima of 2 × 2 pixels, 1,024 images of 224 × 224 float16."""
    images, height, width = 1024, 112, 112
    x, out = (
        normal(images * 4 * height * width, dtype=torch.float16),
        empty(images * height * width, dtype=torch.float16),
    )
    grid = triton.cdiv(height, config["BLOCK_H"]), triton.cdiv(width, config["BLOCK_W"]), images
    return launch(_max_pool, grid, x, out, height, width, config=config)


@triton.jit
def _split_heads(x, query, key, value, tokens, HEADS: tl.constexpr, WIDTH: tl.constexpr, TOKENS: tl.constexpr):
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)[:, None]
    head = tl.program_id(1)
    column = tl.arange(0, WIDTH)[None, :]
    source = x + token.to(tl.int64) * 3 * HEADS * WIDTH + head * WIDTH + column
    place = (head.to(tl.int64) * tokens + token) * WIDTH + column
    mask = token < tokens
    tl.store(query + place, tl.load(source, mask), mask)
    tl.store(key + place, tl.load(source + HEADS * WIDTH, mask), mask)
    tl.store(value + place, tl.load(source + 2 * HEADS * WIDTH, mask), mask)


@family(combine(TOKENS=(1, 2, 4, 16, 64, 128), num_warps=(1, 2, 4, 8)))
def split_heads(config: Config) -> Launch:
    """Copy queries, keys and values of 8,192 tokens into heads of 64 float16 each."""
    tokens, heads, width = 8192, 32, 64
    x = normal(tokens, 3, heads, width, dtype=torch.float16)
    outputs = (empty(heads, tokens, width, dtype=torch.float16) for _ in range(3))
    grid = triton.cdiv(tokens, config["TOKENS"]), heads
    return launch(_split_heads, grid, x, *outputs, tokens, config=config, HEADS=heads, WIDTH=width)


@triton.jit
def _outer_sum(x, y, out, width, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    value = tl.load(x + row)[:, None] + tl.load(y + column)[None, :]
    tl.store(out + row[:, None] * width + column[None, :], tl.exp(value))


@family(combine(BLOCK_M=(1, 8, 32, 128), BLOCK_N=(16, 64, 256, 1024), num_warps=(1, 4, 8)))
def outer_sum(config: Config) -> Launch:
    """exp(x + y) for all pairs of 8,192 and 8,192 float32: stores alone."""
    grid = 8192 // config["BLOCK_M"], 8192 // config["BLOCK_N"]
    return launch(_outer_sum, grid, normal(8192), normal(8192), empty(8192, 8192), 8192, config=config)


@triton.jit
def _pairwise_distances(x, y, out, n, WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for axis in range(WIDTH):
        step = tl.load(x + axis * n + row)[:, None] - tl.load(y + axis * n + column)[None, :]
        total += tl.abs(step)
    tl.store(out + row[:, None] * n + column[None, :], total)


@family(combine(BLOCK_M=(16, 32, 64, 128), BLOCK_N=(32, 64, 128), num_warps=(2, 4, 8)))
def pairwise_distances(config: Config) -> Launch:
    """Sums of absolute differences of all pairs of 4,096 points of 64 float32."""
    n = 4096
    grid = n // config["BLOCK_M"], n // config["BLOCK_N"]
    return launch(_pairwise_distances, grid, normal(64, n), normal(64, n), empty(n, n), n, config=config, WIDTH=64)
