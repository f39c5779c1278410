"""Wide: matrix products and what is fused with them, one problem in each family and the configurations of a tuner.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import random

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN, _BYTE_FLOAT = torch.float16, torch.bfloat16, torch.float8_e4m3fn


@triton.jit
def _grouped(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Place a tile so that GROUP_M rows of tiles are done together."""
    width = GROUP_M * tiles_n
    top = tile // width * GROUP_M
    height = tl.minimum(tiles_m - top, GROUP_M)
    return top + tile % width % height, tile % width // height


@triton.jit
def _gated_residual(
    x_ptr, w_ptr, bias_ptr, gate_ptr, residual_ptr, y_ptr, tokens, N, K, per_image,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = _grouped(tl.program_id(0), tl.cdiv(tokens, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    token = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + token[:, None] * K + inner[None, :]
    w_ptrs = w_ptr + column[None, :] * K + inner[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=token[:, None] < tokens, other=0.0)
        total = tl.dot(x, tl.load(w_ptrs), total)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    live = token[:, None] < tokens
    place = token[:, None] * N + column[None, :]
    bias = tl.load(bias_ptr + column).to(tl.float32)
    gate = tl.load(gate_ptr + (token // per_image)[:, None] * N + column[None, :], mask=live, other=0.0)
    residual = tl.load(residual_ptr + place, mask=live, other=0.0).to(tl.float32)
    y = residual + gate.to(tl.float32) * (total + bias[None, :])
    tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=live)


@family(
    combine(
        BLOCK_M=(64, 128),
        BLOCK_N=(64, 128, 256),
        BLOCK_K=(32, 64),
        GROUP_M=(1, 8),
        num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)
def wide_gated_residual(config: Config) -> Launch:
    """A diffusion transformer's projection, 2 images of 2,250 tokens, 3,072 × 3,072, bfloat16: bias, gate, residual."""
    per_image, n, k = config.get("per_image", 2250), config.get("n", 3072), config.get("k", 3072)
    tokens = 2 * per_image
    layer = normal(tokens, k, dtype=_BRAIN), normal(n, k, dtype=_BRAIN) / 32, normal(n, dtype=_BRAIN)
    added = normal(2, n, dtype=_BRAIN), normal(tokens, n, dtype=_BRAIN), empty(tokens, n, dtype=_BRAIN)
    grid = (triton.cdiv(tokens, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"]),)
    return launch(_gated_residual, grid, *layer, *added, tokens, n, k, per_image, config=config)


@triton.jit
def _weight_slope(
    slope_ptr, x_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    share = K // SPLITS
    first = tl.program_id(2) * share
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(first, first + share, BLOCK_K):
        sample = start + tl.arange(0, BLOCK_K)
        slope = tl.load(slope_ptr + sample[None, :] * M + row[:, None])
        x = tl.load(x_ptr + sample[:, None] * N + column[None, :])
        total = tl.dot(slope, x, total, input_precision="tf32")
    out_ptrs = out_ptr + row[:, None] * N + column[None, :]
    if SPLITS == 1:
        tl.store(out_ptrs, total)
    else:
        tl.atomic_add(out_ptrs, total, sem="relaxed")


@family(
    combine(
        BLOCK_M=(64, 128),
        BLOCK_N=(64, 128),
        BLOCK_K=(16, 32),
        SPLITS=(1, 2, 8),
        num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)
def wide_weight_slope(config: Config) -> Launch:
    """Gradient of a recommender's 1,024 × 1,536 weights over 8,192 samples, TF32: the left operand transposed."""
    m, n, k = config.get("m", 1024), config.get("n", 1536), config.get("k", 8192)
    grid = n // config["BLOCK_N"], m // config["BLOCK_M"], config["SPLITS"]
    return launch(_weight_slope, grid, normal(k, m), normal(k, n), zeros(m, n), m, n, k, config=config)


@triton.jit
def _int8_offsets(
    x_ptr, w_ptr, x_scale_ptr, x_zero_ptr, w_scale_ptr, w_sum_ptr, y_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        pid_m, pid_n = _grouped(tile, tiles_m, tiles_n, 4)
        row = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        column = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        inner = tl.arange(0, BLOCK_K)
        x_ptrs = x_ptr + (row % M)[:, None] * K + inner[None, :]
        w_ptrs = w_ptr + column[None, :] * K + inner[:, None]
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.int32)
        for _ in range(0, K, BLOCK_K):
            total = tl.dot(tl.load(x_ptrs), tl.load(w_ptrs), total, out_dtype=tl.int32)
            x_ptrs += BLOCK_K
            w_ptrs += BLOCK_K
        live = row < M
        zero = tl.load(x_zero_ptr + row, mask=live, other=0)
        scale = tl.load(x_scale_ptr + row, mask=live, other=0.0)
        total -= zero[:, None] * tl.load(w_sum_ptr + column)[None, :]
        y = total.to(tl.float32) * scale[:, None] * tl.load(w_scale_ptr + column)[None, :]
        tl.store(y_ptr + row[:, None] * N + column[None, :], y.to(y_ptr.dtype.element_ty), mask=live[:, None])


@family(
    combine(
        BLOCK_M=(64, 128, 256),
        BLOCK_N=(64, 128),
        BLOCK_K=(64, 128),
        programs=(0, 132, 264),
        num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)
def wide_int8_offsets(config: Config) -> Launch:
    """int8 by int8, 5,000 × 3,584 × 3,584 to float16: a scale and a zero point for each row, persistent or not."""
    m, n, k = config.get("m", 5000), config.get("n", 3584), config.get("k", 3584)
    tensors = normal(m, k, dtype=torch.int8), normal(n, k, dtype=torch.int8)
    rows = uniform(m) / 4096, indices(64, m)
    columns = uniform(n), indices(4000, n)
    tiles = triton.cdiv(m, config["BLOCK_M"]) * (n // config["BLOCK_N"])
    grid = (min(config["programs"] or tiles, tiles),)
    return launch(_int8_offsets, grid, *tensors, *rows, *columns, empty(m, n, dtype=_HALF), m, n, k, config=config)


@triton.jit
def _last_arrival(
    x_ptr, w_ptr, residual_ptr, part_ptr, count_ptr, y_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    live = row[:, None] < M
    share = K // SPLITS
    inner = tl.program_id(2) * share + tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + row[:, None] * K + inner[None, :]
    w_ptrs = w_ptr + column[None, :] * K + inner[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, share, BLOCK_K):
        total = tl.dot(tl.load(x_ptrs, mask=live, other=0.0), tl.load(w_ptrs), total)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    place = row[:, None] * N + column[None, :]
    if SPLITS > 1:
        tl.store(part_ptr + tl.program_id(2) * M * N + place, total, mask=live)
        tl.debug_barrier()
        counter = count_ptr + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        last = tl.atomic_add(counter, 1, sem="acq_rel") == SPLITS - 1
        if not last:
            return
        # The last program of a tile adds the parts up in their order, and clears the counter.
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for split in range(SPLITS):
            total += tl.load(part_ptr + split * M * N + place, mask=live, other=0.0, cache_modifier=".cg")
        tl.store(counter, 0)
    y = total + tl.load(residual_ptr + place, mask=live, other=0.0).to(tl.float32)
    tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=live)


@family(
    combine(
        BLOCK_M=(16, 64),
        BLOCK_N=(32, 64, 128),
        BLOCK_K=(64, 128),
        SPLITS=(1, 2, 4, 8),
        num_warps=(2, 4, 8),
        num_stages=(2, 3, 4),
    )
)
def wide_last_arrival(config: Config) -> Launch:
    """A down projection of 48 tokens, 5,120 × 17,408, bfloat16, with the residual: the last of the splits adds them."""
    m, n, k = config.get("m", 48), config.get("n", 5120), config.get("k", 17408)
    tensors = normal(m, k, dtype=_BRAIN), normal(n, k, dtype=_BRAIN) / 64, normal(m, n, dtype=_BRAIN)
    tiles = n // config["BLOCK_N"], triton.cdiv(m, config["BLOCK_M"])
    kept = empty(config["SPLITS"], m, n), zeros(tiles[0] * tiles[1], dtype=torch.int32)
    grid = *tiles, config["SPLITS"]
    return launch(_last_arrival, grid, *tensors, *kept, empty(m, n, dtype=_BRAIN), m, n, k, config=config)


@triton.jit
def _float8_experts(
    x_ptr, w_ptr, x_scale_ptr, w_scale_ptr, order_ptr, owner_ptr, y_ptr, pairs, N, K,
    CHOICES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    ROWS_AXIS: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = tl.program_id(ROWS_AXIS), tl.program_id(1 - ROWS_AXIS)
    expert = tl.load(owner_ptr + pid_m)
    if expert < 0:
        return
    pair = tl.load(order_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M))
    live = pair < pairs
    token = pair // CHOICES
    column = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + token[:, None] * K + inner[None, :]
    w_ptrs = w_ptr + expert.to(tl.int64) * N * K + column[None, :] * K + inner[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(x_ptrs, mask=live[:, None], other=0.0), tl.load(w_ptrs), total)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    scale = tl.load(x_scale_ptr + token, mask=live, other=0.0)
    y = total * scale[:, None] * tl.load(w_scale_ptr + expert * N + column)[None, :]
    tl.store(y_ptr + pair[:, None] * N + column[None, :], y.to(y_ptr.dtype.element_ty), mask=live[:, None])


@family(
    combine(
        BLOCK_M=(32, 64, 128),
        BLOCK_N=(64, 128, 256),
        BLOCK_K=(64, 128),
        ROWS_AXIS=(0, 1),
        num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)
def wide_float8_experts(config: Config) -> Launch:
    """Gates and ups of 4,096 tokens, 8 of 128 experts each, 1,536 from 2,048, float8 with scales to bfloat16."""
    tokens, n, k = config.get("tokens", 4096), config.get("n", 1536), config.get("k", 2048)
    choices, experts, block = 8, config.get("experts", 128), config["BLOCK_M"]
    pairs, drawn = tokens * choices, random.Random(3)
    routed: list[list[int]] = [[] for _ in range(experts)]
    for token in range(tokens):
        for choice, expert in enumerate(drawn.sample(range(experts), choices)):
            routed[expert].append(token * choices + choice)
    # As many tiles as the worst routing needs: the last ones have no expert.
    most = triton.cdiv(pairs, block) + experts
    order, owners = [], []
    for expert, chosen in enumerate(routed):
        tiles = triton.cdiv(len(chosen), block)
        order += chosen + [pairs] * (tiles * block - len(chosen))
        owners += [expert] * tiles
    order += [pairs] * (most * block - len(order))
    owners += [-1] * (most - len(owners))
    lists = [torch.tensor(values, device="cuda", dtype=torch.int32) for values in (order, owners)]
    tensors = normal(tokens, k, dtype=_BYTE_FLOAT), normal(experts, n, k, dtype=_BYTE_FLOAT)
    scales, out = (uniform(tokens), uniform(experts, n)), empty(pairs, n, dtype=_BRAIN)
    grid = most, n // config["BLOCK_N"]
    grid = grid[::-1] if config["ROWS_AXIS"] else grid
    return launch(_float8_experts, grid, *tensors, *scales, *lists, out, pairs, n, k, config=config, CHOICES=choices)


@triton.jit
def _host_descriptors(
    x_desc, w_desc, y_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=FLAT):
        pid_m, pid_n = _grouped(tile, tiles_m, tiles_n, GROUP_M)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            x = x_desc.load([pid_m * BLOCK_M, start])
            w = w_desc.load([start, pid_n * BLOCK_N])
            total = tl.dot(x, w, total)
        y_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], total.to(tl.bfloat16))


@family(
    combine(
        BLOCK_M=(64, 128),
        BLOCK_N=(64, 128, 256),
        BLOCK_K=(32, 64),
        GROUP_M=(4, 16),
        FLAT=(0, 1),
        programs=(0, 132),
        num_warps=(4, 8),
        num_stages=(2, 3),
    )
)
def wide_host_descriptors(config: Config) -> Launch:
    """Queries, keys and values of 3,000 tokens, 6,144 from 4,096, bfloat16, by descriptors of the host, persistent."""
    m, n, k = config.get("m", 3000), config.get("n", 6144), config.get("k", 4096)
    block_m, block_n, block_k = config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]
    descriptors = [
        TensorDescriptor.from_tensor(normal(m, k, dtype=_BRAIN), [block_m, block_k]),
        TensorDescriptor.from_tensor(normal(k, n, dtype=_BRAIN), [block_k, block_n]),
        TensorDescriptor.from_tensor(empty(m, n, dtype=_BRAIN), [block_m, block_n]),
    ]
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    grid = (min(config["programs"] or tiles, tiles),)
    return launch(_host_descriptors, grid, *descriptors, m, n, k, config=config)


@triton.jit
def _covariances(
    f_ptr, p_ptr, noise_ptr, out_ptr, count, N: tl.constexpr, BATCH: tl.constexpr, PRECISION: tl.constexpr
):
    precision: tl.constexpr = "ieee" if PRECISION == 2 else ("tf32x3" if PRECISION == 1 else "tf32")
    row, column = tl.arange(0, N)[None, :, None], tl.arange(0, N)[None, None, :]
    noise = tl.load(noise_ptr + row * N + column)
    for first in range(tl.program_id(0) * BATCH, count, tl.num_programs(0) * BATCH):
        track = (first + tl.arange(0, BATCH))[:, None, None]
        place = track * (N * N) + row * N + column
        f = tl.load(f_ptr + place, mask=track < count, other=0.0)
        p = tl.load(p_ptr + place, mask=track < count, other=0.0)
        moved = tl.dot(f, p, input_precision=precision)
        out = tl.dot(moved, tl.permute(f, (0, 2, 1)), input_precision=precision) + noise
        tl.store(out_ptr + place, out, mask=track < count)


@family(
    combine(
        BATCH=(1, 2, 4, 8, 16),
        PRECISION=(0, 1, 2),
        programs=(0, 1056),
        num_warps=(1, 2, 4),
    )
)
def wide_covariances(config: Config) -> Launch:
    """Predicted covariances of 150,001 Kalman filters of 16 states, F P Fᵀ + Q, float32: TF32, three or FMA."""
    count, states = config.get("count", 150001), 16
    tensors = normal(count, states, states), normal(count, states, states), normal(states, states)
    tiles = triton.cdiv(count, config["BATCH"])
    grid = (min(config["programs"] or tiles, tiles),)
    return launch(_covariances, grid, *tensors, empty(count, states, states), count, config=config, N=states)


@triton.jit
def _separable(
    x_ptr, taps_ptr, bias_ptr, w_ptr, y_ptr, pixels, height, width, OUT,
    C: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    y, x = pixel // width % height, pixel % width
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, C, BLOCK_K):
        channel = start + tl.arange(0, BLOCK_K)
        deep = tl.zeros((BLOCK_M, BLOCK_K), tl.float32) + tl.load(bias_ptr + channel).to(tl.float32)[None, :]
        for tap in tl.static_range(9):
            down, right = tap // 3 - 1, tap % 3 - 1
            inside = (y + down >= 0) & (y + down < height) & (x + right >= 0) & (x + right < width) & (pixel < pixels)
            place = (pixel + down * width + right)[:, None] * C + channel[None, :]
            near = tl.load(x_ptr + place, mask=inside[:, None], other=0.0).to(tl.float32)
            deep += near * tl.load(taps_ptr + tap * C + channel).to(tl.float32)[None, :]
        deep = tl.minimum(tl.maximum(deep, 0.0), 6.0).to(w_ptr.dtype.element_ty)
        w_place = channel[:, None] * OUT + column[None, :]
        total = tl.dot(deep, tl.load(w_ptr + w_place, mask=column[None, :] < OUT, other=0.0), total)
    mask = (pixel < pixels)[:, None] & (column < OUT)[None, :]
    tl.store(y_ptr + pixel[:, None] * OUT + column[None, :], total.to(y_ptr.dtype.element_ty), mask=mask)


@family(
    combine(
        BLOCK_M=(16, 32, 64),
        BLOCK_N=(32, 128),
        BLOCK_K=(32, 64),
        num_warps=(2, 4, 8),
        num_stages=(1, 2, 3),
    )
)
def wide_separable(config: Config) -> Launch:
    """3 × 3 by channel with ReLU6, then 1 × 1: 256 images of 14 × 14, 384 channels to 96, float16 (MobileNet)."""
    images, side, channels, out = config.get("images", 256), config.get("side", 14), config.get("channels", 384), 96
    x, taps = normal(images, side, side, channels, dtype=_HALF), normal(9, channels, dtype=_HALF)
    weights = normal(channels, dtype=_HALF), normal(channels, out, dtype=_HALF)
    pixels = images * side * side
    arguments = x, taps, *weights, empty(pixels, out, dtype=_HALF), pixels, side, side, out
    grid = triton.cdiv(pixels, config["BLOCK_M"]), triton.cdiv(out, config["BLOCK_N"])
    return launch(_separable, grid, *arguments, config=config, C=channels)
