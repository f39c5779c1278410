"""Unseen: products with a vector, with sparse blocks, with nearest rows, over ragged rows, and along time.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import random

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, normal, uniform
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN = torch.float16, torch.bfloat16


@triton.jit
def _byte_weights(x, weights, scales, out, rows, depth, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = row < rows
    sums = tl.zeros([BLOCK_M, BLOCK_K], tl.float32)
    for start in range(0, depth, BLOCK_K):
        place = start + tl.arange(0, BLOCK_K)
        left = tl.load(x + place).to(tl.float32)
        weight = tl.load(weights + row[:, None].to(tl.int64) * depth + place[None, :], inside[:, None], other=0)
        sums += weight.to(tl.float32) * left[None, :]
    value = tl.sum(sums, 1) * tl.load(scales + row, inside, other=0.0)
    tl.store(out + row, value.to(out.dtype.element_ty), inside)


@family(combine(8, BLOCK_M=(1, 2, 4, 16), BLOCK_K=(256, 512, 1024, 2048), num_warps=(1, 2, 4, 8), num_stages=(1, 3)))
def unseen_byte_weights(config: Config) -> Launch:
    """28,672 × 8,192 int8 weights with a scale for each row, times one vector of bfloat16."""
    rows, depth = config.get("rows", 28672), config.get("depth", 8192)
    tensors = normal(depth, dtype=_BRAIN), normal(rows, depth, dtype=torch.int8), uniform(rows)
    grid = (triton.cdiv(rows, config["BLOCK_M"]),)
    return launch(_byte_weights, grid, *tensors, empty(rows, dtype=_BRAIN), rows, depth, config=config)


@triton.jit
def _sparse_blocks(
    blocks, starts, columns, dense, out, width,
    SIZE: tl.constexpr, BLOCK_N: tl.constexpr, ROWS_FIRST: tl.constexpr,
):  # fmt: skip
    if ROWS_FIRST:
        line, tile = tl.program_id(0), tl.program_id(1)
    else:
        line, tile = tl.program_id(1), tl.program_id(0)
    inner = tl.arange(0, SIZE)
    column = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    first, after = tl.load(starts + line), tl.load(starts + line + 1)
    sums = tl.zeros([SIZE, BLOCK_N], tl.float32)
    for number in range(first, after):
        left = tl.load(blocks + (number * SIZE + inner[:, None]) * SIZE + inner[None, :])
        row = tl.load(columns + number) * SIZE + inner
        right = tl.load(dense + row[:, None] * width + column[None, :])
        sums = tl.dot(left, right, sums)
    into = (line * SIZE + inner[:, None]) * width + column[None, :]
    tl.store(out + into, sums.to(out.dtype.element_ty))


@family(combine(8, BLOCK_N=(32, 64, 128, 256), ROWS_FIRST=(0, 1), num_warps=(2, 4, 8), num_stages=(1, 2, 3, 4)))
def unseen_sparse_blocks(config: Config) -> Launch:
    """8,192 × 8,192 with a fifth of its blocks of 64 × 64, unevenly in rows, times 8,192 × 4,096, float16."""
    side, width, size = config.get("side", 8192), config.get("width", 4096), 64
    drawn = random.Random(35)
    count, starts, columns = side // size, [0], []
    for _ in range(count):
        columns += sorted(drawn.sample(range(count), drawn.randrange(1, max(count * 2 // 5, 2))))
        starts.append(len(columns))
    tables = [torch.tensor(each, device="cuda", dtype=torch.int32) for each in (starts, columns)]
    blocks, dense = normal(len(columns), size, size, dtype=_HALF), normal(side, width, dtype=_HALF)
    grid = count, width // config["BLOCK_N"]
    arguments = blocks, *tables, dense, empty(side, width, dtype=_HALF), width
    grid = grid if config["ROWS_FIRST"] else grid[::-1]
    return launch(_sparse_blocks, grid, *arguments, config=config, SIZE=size)


@triton.jit
def _nearest(
    x, codes, norms, out, count,
    WIDTH: tl.constexpr, EACH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, WIDTH)
    left = tl.load(x + row[:, None] * WIDTH + column[None, :])
    if EACH:
        best = tl.full([BLOCK_M], float("inf"), tl.float32)
        nearest = tl.zeros([BLOCK_M], tl.int32)
    else:
        best = tl.full([BLOCK_M, BLOCK_N], float("inf"), tl.float32)
        nearest = tl.zeros([BLOCK_M, BLOCK_N], tl.int32)
    for start in range(0, count, BLOCK_N):
        code = start + tl.arange(0, BLOCK_N)
        right = tl.load(codes + code[None, :] * WIDTH + column[:, None])
        apart = tl.load(norms + code)[None, :] - 2.0 * tl.dot(left, right)
        if EACH:
            least, place = tl.min(apart, 1, return_indices=True)
            nearest = tl.where(least < best, start + place, nearest)
            best = tl.minimum(best, least)
        else:
            nearest = tl.where(apart < best, code[None, :], nearest)
            best = tl.minimum(best, apart)
    if not EACH:
        _, place = tl.min(best, 1, return_indices=True)
        chosen = tl.arange(0, BLOCK_N)[None, :] == place[:, None]
        nearest = tl.sum(tl.where(chosen, nearest, 0), 1)
    tl.store(out + row, nearest)


@family(combine(8, EACH=(0, 1), BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128), num_warps=(4, 8), num_stages=(1, 2, 3)))
def unseen_nearest_code(config: Config) -> Launch:
    """The nearest of 4,096 codes of 64 float16 for each of 131,072 rows: a product and a minimum, nothing stored."""
    rows, count, width = config.get("rows", 1 << 17), config.get("count", 4096), 64
    tensors = normal(rows, width, dtype=_HALF), normal(count, width, dtype=_HALF)
    arguments = *tensors, uniform(count) * 64, empty(rows, dtype=torch.int32), count
    return launch(_nearest, (rows // config["BLOCK_M"],), *arguments, config=config, WIDTH=width)


@triton.jit
def _expert_gradients(
    x, slopes, starts, out, depth, width,
    EXPERT_FIRST: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    if EXPERT_FIRST:
        expert, tile = tl.program_id(0), tl.program_id(1)
    else:
        expert, tile = tl.program_id(1), tl.program_id(0)
    across = width // BLOCK_N
    row = (tile // across) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = (tile % across) * BLOCK_N + tl.arange(0, BLOCK_N)
    first, after = tl.load(starts + expert), tl.load(starts + expert + 1)
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(first, after, BLOCK_K):
        token = start + tl.arange(0, BLOCK_K)
        left = tl.load(x + token[None, :] * depth + row[:, None], (token < after)[None, :], other=0.0)
        right = tl.load(slopes + token[:, None] * width + column[None, :], (token < after)[:, None], other=0.0)
        sums = tl.dot(left, right, sums)
    into = (expert.to(tl.int64) * depth + row[:, None]) * width + column[None, :]
    tl.store(out + into, sums.to(out.dtype.element_ty))


@family(
    combine(
        8, EXPERT_FIRST=(0, 1), BLOCK_M=(64, 128), BLOCK_N=(64, 128), BLOCK_K=(32, 64), num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)  # fmt: skip
def unseen_expert_gradients(config: Config) -> Launch:
    """Gradients of 16 experts' 2,048 × 1,408 weights from 200 to 2,000 tokens each, bfloat16."""
    depth, width, experts = config.get("depth", 2048), config.get("width", 1408), config.get("experts", 16)
    least, most = config.get("least", 200), config.get("most", 2000)
    drawn = random.Random(35)
    starts = [0]
    for _ in range(experts):
        starts.append(starts[-1] + drawn.randrange(least, most + 1))
    table = torch.tensor(starts, device="cuda", dtype=torch.int32)
    tensors = normal(starts[-1], depth, dtype=_BRAIN), normal(starts[-1], width, dtype=_BRAIN)
    tiles = (depth // config["BLOCK_M"]) * (width // config["BLOCK_N"])
    grid = (experts, tiles) if config["EXPERT_FIRST"] else (tiles, experts)
    out = empty(experts, depth, width, dtype=_BRAIN)
    return launch(_expert_gradients, grid, *tensors, table, out, depth, width, config=config)


@triton.jit
def _dilated(
    x, weights, out, channels, filters, length, dilation,
    TAPS: tl.constexpr, TAPS_OUTSIDE: tl.constexpr,
    BLOCK_F: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    filter = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
    time = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    x += tl.program_id(2) * channels * length
    sums = tl.zeros([BLOCK_F, BLOCK_T], tl.float32)
    for step in range(TAPS * (channels // BLOCK_C)):
        if TAPS_OUTSIDE:
            tap, part = step // (channels // BLOCK_C), step % (channels // BLOCK_C)
        else:
            tap, part = step % TAPS, step // TAPS
        channel = part * BLOCK_C + tl.arange(0, BLOCK_C)
        when = time + (tap - TAPS // 2) * dilation
        inside = (when >= 0) & (when < length)
        weight = tl.load(weights + (tap * filters + filter[:, None]) * channels + channel[None, :])
        value = tl.load(x + channel[:, None] * length + when[None, :], inside[None, :], other=0.0)
        sums = tl.dot(weight, value, sums)
    into = (tl.program_id(2) * filters + filter[:, None]) * length + time[None, :]
    tl.store(out + into, sums.to(out.dtype.element_ty))


@family(
    combine(
        8, TAPS_OUTSIDE=(0, 1), BLOCK_F=(64, 128), BLOCK_T=(64, 128), BLOCK_C=(32, 64), num_warps=(4, 8),
        num_stages=(1, 2, 3),
    )
)  # fmt: skip
def unseen_dilated_convolution(config: Config) -> Launch:
    """Convolution of 7 taps, each 3 steps apart, 8 × 8,192 steps of 256 channels into 256, channels first, float16."""
    batch, length, channels = config.get("batch", 8), config.get("length", 8192), config.get("channels", 256)
    tensors = normal(batch, channels, length, dtype=_HALF), normal(7, channels, channels, dtype=_HALF)
    arguments = *tensors, empty(batch, channels, length, dtype=_HALF), channels, channels, length, 3
    grid = length // config["BLOCK_T"], channels // config["BLOCK_F"], batch
    return launch(_dilated, grid, *arguments, config=config, TAPS=7)
