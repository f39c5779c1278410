"""Held out: products with a prologue, an epilogue, small formats, gathered rows, and chains of small ones.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import functools
import random

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN = torch.float16, torch.bfloat16


@triton.jit
def _linear_gelu(
    x, weights, bias, parts, counters, out, width, depth,
    SPLITS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    each = tl.cdiv(depth, SPLITS * BLOCK_K) * BLOCK_K
    first = tl.program_id(2) * each
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(first, tl.minimum(first + each, depth), BLOCK_K):
        place = start + tl.arange(0, BLOCK_K)
        left = tl.load(x + row[:, None] * depth + place[None, :])
        right = tl.load(weights + column[None, :] * depth + place[:, None])
        sums = tl.dot(left, right, sums)
    tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    arrived = SPLITS - 1
    inner = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    tile_parts = parts + tile * SPLITS * (BLOCK_M * BLOCK_N) + inner
    if SPLITS > 1:
        tl.store(tile_parts + tl.program_id(2) * (BLOCK_M * BLOCK_N), sums)
        tl.debug_barrier()
        arrived = tl.atomic_add(counters + tile, 1)
    if arrived == SPLITS - 1:
        if SPLITS > 1:
            # The last program of a tile finishes it, and leaves the counter as it was.
            sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
            for part in range(SPLITS):
                sums += tl.load(tile_parts + part * (BLOCK_M * BLOCK_N), cache_modifier=".cg")
            tl.store(counters + tile, 0)
        value = sums + tl.load(bias + column).to(tl.float32)[None, :]
        value = 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))
        tl.store(out + row[:, None] * width + column[None, :], value.to(out.dtype.element_ty))


@family(
    combine(
        8, SPLITS=(1, 2, 4, 8), BLOCK_M=(64, 128), BLOCK_N=(64, 128), BLOCK_K=(32, 64), num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)  # fmt: skip
def held_linear_gelu(config: Config) -> Launch:
    """GELU of 128 × 16,384 × 4,096 with bias, bfloat16: the last of the splits of a tile adds them up (split-K)."""
    rows, width, depth = config.get("rows", 128), config.get("width", 16384), config.get("depth", 4096)
    grid = rows // config["BLOCK_M"], width // config["BLOCK_N"], config["SPLITS"]
    tensors = normal(rows, depth, dtype=_BRAIN), normal(width, depth, dtype=_BRAIN), normal(width, dtype=_BRAIN)
    parts, counters = empty(config["SPLITS"], rows, width), zeros(grid[0] * grid[1], dtype=torch.int32)
    arguments = *tensors, parts, counters, empty(rows, width, dtype=_BRAIN), width, depth
    return launch(_linear_gelu, grid, *arguments, config=config)


@triton.jit
def _norm_product(
    x, gains, weights, out, width, depth, epsilon,
    AHEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    squares = tl.zeros([BLOCK_M], tl.float32)
    scale = tl.full([BLOCK_M], 1.0, tl.float32)
    if AHEAD:
        for start in range(0, depth, BLOCK_K):
            value = tl.load(x + row[:, None] * depth + (start + tl.arange(0, BLOCK_K))[None, :]).to(tl.float32)
            squares += tl.sum(value * value, 1)
        scale = tl.rsqrt(squares / depth + epsilon)
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, depth, BLOCK_K):
        place = start + tl.arange(0, BLOCK_K)
        value = tl.load(x + row[:, None] * depth + place[None, :]).to(tl.float32)
        if not AHEAD:
            squares += tl.sum(value * value, 1)
        value = value * scale[:, None] * tl.load(gains + place).to(tl.float32)[None, :]
        right = tl.load(weights + place[:, None] * width + column[None, :])
        sums = tl.dot(value.to(right.dtype), right, sums)
    if not AHEAD:
        sums = sums * tl.rsqrt(squares / depth + epsilon)[:, None]
    tl.store(out + row[:, None] * width + column[None, :], sums.to(out.dtype.element_ty))


@family(
    combine(
        8, AHEAD=(0, 1), BLOCK_M=(64, 128), BLOCK_N=(64, 128), BLOCK_K=(32, 64), num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)  # fmt: skip
def held_norm_product(config: Config) -> Launch:
    """RMS norm of 2,048 rows of 4,096 bfloat16 and the product with 4,096 × 6,144: the norm before or in the loop."""
    rows, width, depth = config.get("rows", 2048), config.get("width", 6144), config.get("depth", 4096)
    tensors = normal(rows, depth, dtype=_BRAIN), normal(depth, dtype=_BRAIN), normal(depth, width, dtype=_BRAIN)
    grid = rows // config["BLOCK_M"], width // config["BLOCK_N"]
    return launch(_norm_product, grid, *tensors, empty(rows, width, dtype=_BRAIN), width, depth, 1e-5, config=config)


@triton.jit
def _four_bit_groups(
    x, weights, scales, out, width, depth,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, depth, BLOCK_K):
        place = start + tl.arange(0, BLOCK_K)
        byte = start // 2 + tl.arange(0, BLOCK_K // 2)
        group = start // 32 + tl.arange(0, BLOCK_K // 32)
        left = tl.load(x + row[:, None] * depth + place[None, :], (place < depth)[None, :], other=0.0)
        right = tl.load(weights + column[None, :] * (depth // 2) + byte[:, None], (byte < depth // 2)[:, None], other=0)
        scale = tl.load(
            scales + column[:, None] * (depth // 32) + group[None, :], (group < depth // 32)[None, :], other=0
        )
        sums = tl.dot_scaled(left, None, "bf16", right, scale, "e2m1", sums)
    tl.store(out + row[:, None] * width + column[None, :], sums.to(out.dtype.element_ty))


@family(
    combine(
        8, BLOCK_M=(32, 64, 128), BLOCK_N=(64, 128), BLOCK_K=(64, 128), num_warps=(4, 8), num_stages=(1, 2, 3)
    )
)  # fmt: skip
def held_four_bit_groups(config: Config) -> Launch:
    """bfloat16 times MXFP4, 1,024 × 5,760 × 2,880: pairs of e2m1 in bytes, a power of two for 32, by dot_scaled."""
    rows, width, depth = config.get("rows", 1024), config.get("width", 5760), config.get("depth", 2880)
    weights = indices(256, width, depth // 2, dtype=torch.uint8)
    scales = indices(8, width, depth // 32, dtype=torch.uint8) + 118
    arguments = normal(rows, depth, dtype=_BRAIN), weights, scales, empty(rows, width, dtype=_BRAIN), width, depth
    return launch(_four_bit_groups, (rows // config["BLOCK_M"], width // config["BLOCK_N"]), *arguments, config=config)


@functools.lru_cache(maxsize=2)
def _voxel_neighbours(side: int) -> list[list[int]]:
    """Return the numbers of the 27 neighbours of each voxel of a hilly surface with holes, or -1: a list for each."""
    drawn = random.Random(35)
    hill = [drawn.randrange(20, 200) for _ in range(8)]
    numbers: dict[tuple[int, int, int], int] = {}
    for across in range(side):
        for along in range(side):
            height = (across * across // hill[0] + along * along // hill[1] + across * along // hill[2]) // 40
            if drawn.random() < 0.85:
                numbers[across, along, height] = len(numbers)
    taps = [(a, b, c) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)]
    return [[numbers.get((x + a, y + b, z + c), -1) for x, y, z in numbers] for a, b, c in taps]


@triton.jit
def _add_tap(sums, x, weights, other, tap, column, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    channel = tl.arange(0, DEPTH)
    left = tl.load(x + other[:, None] * DEPTH + channel[None, :], (other >= 0)[:, None], other=0.0)
    right = tl.load(weights + (tap * DEPTH + channel[:, None]) * WIDTH + column[None, :])
    return tl.dot(left, right, sums)


@triton.jit
def _sparse_convolution(
    x, neighbours, weights, out, count,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, SKIP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    voxel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for tap in range(27):
        other = tl.load(neighbours + tap * count + voxel, voxel < count, other=-1)
        if SKIP:
            if tl.max(other, 0) >= 0:
                sums = _add_tap(sums, x, weights, other, tap, column, DEPTH, WIDTH)
        else:
            sums = _add_tap(sums, x, weights, other, tap, column, DEPTH, WIDTH)
    into = voxel[:, None] * WIDTH + column[None, :]
    tl.store(out + into, sums.to(out.dtype.element_ty), (voxel < count)[:, None])


@family(combine(8, SKIP=(0, 1), BLOCK_M=(32, 64, 128), BLOCK_N=(64, 128), num_warps=(4, 8), num_stages=(1, 2, 3)))
def held_sparse_convolution(config: Config) -> Launch:
    """3 × 3 × 3 convolution of 87,000 voxels of a surface, 64 into 128 channels, float16, by listed neighbours."""
    table = _voxel_neighbours(config.get("side", 320))
    count = len(table[0])
    neighbours = torch.tensor(table, device="cuda", dtype=torch.int32)
    tensors = normal(count, 64, dtype=_HALF), neighbours, normal(27, 64, 128, dtype=_HALF)
    arguments = *tensors, empty(count, 128, dtype=_HALF), count
    grid = triton.cdiv(count, config["BLOCK_M"]), 128 // config["BLOCK_N"]
    return launch(_sparse_convolution, grid, *arguments, config=config, DEPTH=64, WIDTH=128)


@triton.jit
def _depthwise_image(
    x, weights, bias, out, height, width, channels,
    SIDE: tl.constexpr, CHANNELS_FIRST: tl.constexpr, UNROLLED: tl.constexpr,
    BLOCK_W: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    if CHANNELS_FIRST:
        part, tile = tl.program_id(0), tl.program_id(1)
    else:
        tile, part = tl.program_id(0), tl.program_id(1)
    image, row = tl.program_id(2) // height, tl.program_id(2) % height
    column = tile * BLOCK_W + tl.arange(0, BLOCK_W)
    channel = part * BLOCK_C + tl.arange(0, BLOCK_C)
    sums = tl.zeros([BLOCK_W, BLOCK_C], tl.float32)
    for down in tl.range(SIDE, loop_unroll_factor=UNROLLED):
        line = row + down - SIDE // 2
        for across in tl.static_range(SIDE):
            place = column + across - SIDE // 2
            inside = (place >= 0) & (place < width) & (line >= 0) & (line < height)
            of_pixel = ((image * height + line) * width + place[:, None]) * channels + channel[None, :]
            value = tl.load(x + of_pixel, inside[:, None], other=0.0).to(tl.float32)
            weight = tl.load(weights + (down * SIDE + across) * channels + channel).to(tl.float32)
            sums += value * weight[None, :]
    sums += tl.load(bias + channel).to(tl.float32)[None, :]
    into = (tl.program_id(2) * width + column[:, None]) * channels + channel[None, :]
    tl.store(out + into, sums.to(out.dtype.element_ty), (column < width)[:, None])


@family(
    combine(
        8, CHANNELS_FIRST=(0, 1), UNROLLED=(1, 7), BLOCK_W=(4, 8, 16, 32), BLOCK_C=(32, 64, 128), num_warps=(1, 2, 4, 8)
    )
)
def held_depthwise_image(config: Config) -> Launch:
    """7 × 7 convolution of each of 128 channels with bias, 16 images of 56 × 56, channels last, float16."""
    batch, height, width = config.get("batch", 16), config.get("height", 56), config.get("width", 56)
    shape = batch, height, width, 128
    tensors = normal(*shape, dtype=_HALF), normal(49, 128, dtype=_HALF), normal(128, dtype=_HALF)
    tiles, parts = triton.cdiv(width, config["BLOCK_W"]), 128 // config["BLOCK_C"]
    grid = (parts, tiles, batch * height) if config["CHANNELS_FIRST"] else (tiles, parts, batch * height)
    arguments = *tensors, empty(*shape, dtype=_HALF), height, width, 128
    return launch(_depthwise_image, grid, *arguments, config=config, SIDE=7)


@triton.jit
def _tiny_network(
    x, first, hidden, last, out, tiles,
    INPUTS: tl.constexpr, WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, LAYERS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    given, inner, made = tl.arange(0, INPUTS), tl.arange(0, WIDTH), tl.arange(0, OUTPUTS)
    into_hidden = tl.load(first + given[:, None] * WIDTH + inner[None, :])
    outof_hidden = tl.load(last + inner[:, None] * OUTPUTS + made[None, :])
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        point = tile * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + point[:, None] * INPUTS + given[None, :])
        value = tl.maximum(tl.dot(value, into_hidden), 0.0).to(x.dtype.element_ty)
        for layer in tl.static_range(LAYERS):
            weight = tl.load(hidden + (layer * WIDTH + inner[:, None]) * WIDTH + inner[None, :])
            value = tl.maximum(tl.dot(value, weight), 0.0).to(x.dtype.element_ty)
        result = tl.dot(value, outof_hidden)
        tl.store(out + point[:, None] * OUTPUTS + made[None, :], result.to(out.dtype.element_ty))


@family(combine(8, programs=(0, 264, 528), BLOCK=(32, 64, 128, 256), num_warps=(2, 4, 8), num_stages=(1, 2, 3)))
def held_tiny_network(config: Config) -> Launch:
    """2^20 points of 32 features through three hidden layers of 64 with ReLU to 16 outputs, float16, in one kernel."""
    points = config.get("points", 1 << 20)
    weights = (normal(*shape, dtype=_HALF) * 0.2 for shape in ((32, 64), (2, 64, 64), (64, 16)))
    tiles = points // config["BLOCK"]
    arguments = normal(points, 32, dtype=_HALF), *weights, empty(points, 16, dtype=_HALF), tiles
    grid = (config["programs"] or tiles,)
    return launch(_tiny_network, grid, *arguments, config=config, INPUTS=32, WIDTH=64, OUTPUTS=16, LAYERS=2)
