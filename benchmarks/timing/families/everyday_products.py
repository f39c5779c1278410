"""Everyday: matrix products as they are written most days: plain pointers, epilogues, split-K, integers, convolution.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, family, launch, listed

_HALF, _BRAIN = torch.float16, torch.bfloat16


@triton.jit
def _grouped_tile(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    per_group = GROUP_M * tiles_n
    group = tile // per_group
    top = group * GROUP_M
    height = tl.minimum(tiles_m - top, GROUP_M)
    inner = tile - group * per_group
    return top + inner % height, inner // height


@triton.jit
def _matmul_layouts(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = _grouped_tile(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), total)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty), mask=inside)


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K GROUP_M a_columns b_columns num_warps num_stages",
        (128, 256, 64, 8, 0, 1, 8, 3),
        (128, 128, 64, 8, 0, 0, 8, 4),
        (128, 128, 32, 4, 0, 1, 4, 4),
        (64, 128, 64, 8, 1, 0, 4, 3),
        (64, 64, 32, 1, 0, 1, 4, 2),
        (128, 64, 64, 16, 1, 1, 4, 3),
        (32, 64, 32, 8, 0, 0, 2, 5),
        (256, 128, 64, 8, 0, 0, 8, 1),
    )
)
def everyday_matmul_layouts(config: Config) -> Launch:
    """float16, 4,096 × 4,096 × 2,048, each operand by rows or by columns."""
    m, n, k = config.get("m", 4096), config.get("n", 4096), config.get("k", 2048)
    a = normal(k, m, dtype=_HALF).T if config["a_columns"] else normal(m, k, dtype=_HALF)
    b = normal(n, k, dtype=_HALF).T if config["b_columns"] else normal(k, n, dtype=_HALF)
    strides = *a.stride(), *b.stride(), n, 1
    grid = (triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"]),)
    return launch(_matmul_layouts, grid, a, b, empty(m, n, dtype=_HALF), m, n, k, *strides, config=config)


@triton.jit
def _gelu(x):
    # x times the sigmoid of twice what the hyperbolic tangent of the approximation takes.
    return x * tl.sigmoid(1.5957691216 * (x + 0.044715 * x * x * x))


@triton.jit
def _linear_gelu(
    x_ptr, w_ptr, bias_ptr, y_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        pid_m, pid_n = _grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
        rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            inner = start + tl.arange(0, BLOCK_K)
            x_mask = (rows[:, None] < M) & (inner[None, :] < K)
            w_mask = (columns[None, :] < N) & (inner[:, None] < K)
            x = tl.load(x_ptr + rows[:, None] * K + inner[None, :], mask=x_mask, other=0.0)
            w = tl.load(w_ptr + columns[None, :] * K + inner[:, None], mask=w_mask, other=0.0)
            total = tl.dot(x, w, total)
        bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
        y = _gelu(total + bias[None, :])
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(y_ptr + rows[:, None] * N + columns[None, :], y.to(y_ptr.dtype.element_ty), mask=inside)


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K GROUP_M programs num_warps num_stages",
        (128, 256, 64, 8, 0, 8, 3),
        (128, 128, 64, 8, 0, 4, 3),
        (128, 256, 64, 8, 132, 8, 3),
        (128, 128, 64, 4, 264, 8, 4),
        (64, 128, 32, 8, 0, 4, 4),
        (64, 256, 32, 1, 132, 4, 3),
        (128, 64, 128, 8, 0, 8, 2),
        (64, 64, 64, 8, 528, 4, 5),
    )
)
def everyday_linear_gelu(config: Config) -> Launch:
    """A layer with bias and GELU, 6,168 × 5,120 × 1,280, bfloat16, all dimensions masked, persistent or not."""
    m, n, k = config.get("m", 6168), config.get("n", 5120), config.get("k", 1280)
    tensors = normal(m, k, dtype=_BRAIN), normal(n, k, dtype=_BRAIN) / 32, normal(n, dtype=_BRAIN)
    tiles = triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"])
    grid = (min(config["programs"] or tiles, tiles),)
    return launch(_linear_gelu, grid, *tensors, empty(m, n, dtype=_BRAIN), m, n, k, config=config)


@triton.jit
def _skinny_split(
    x_ptr, w_ptr, y_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    rows = tl.arange(0, BLOCK_M)
    x_ptrs = x_ptr + rows[:, None] * K + inner[None, :]
    w_ptrs = w_ptr + columns[None, :] * K + inner[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K * SPLIT_K):
        x = tl.load(x_ptrs, mask=rows[:, None] < M, other=0.0)
        total += tl.dot(x, tl.load(w_ptrs))
        x_ptrs += BLOCK_K * SPLIT_K
        w_ptrs += BLOCK_K * SPLIT_K
    y_ptrs = y_ptr + rows[:, None] * N + columns[None, :]
    if SPLIT_K == 1:
        tl.store(y_ptrs, total, mask=rows[:, None] < M)
    else:
        tl.atomic_add(y_ptrs, total, mask=rows[:, None] < M)


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K SPLIT_K num_warps num_stages",
        (16, 64, 128, 1, 4, 4),
        (16, 128, 64, 1, 4, 3),
        (16, 32, 256, 2, 4, 3),
        (16, 64, 128, 4, 4, 3),
        (16, 16, 256, 1, 2, 4),
        (16, 128, 128, 8, 8, 2),
        (16, 64, 64, 16, 4, 5),
        (16, 256, 32, 1, 8, 2),
    )
)
def everyday_skinny_split(config: Config) -> Launch:
    """12 tokens by weights of 8,192 × 8,192, bfloat16 to float32: bound by the weights, with split-K or without."""
    m, n, k = config.get("m", 12), config.get("n", 8192), config.get("k", 8192)
    arguments = normal(m, k, dtype=_BRAIN), normal(n, k, dtype=_BRAIN), zeros(m, n), m, n, k
    return launch(_skinny_split, (n // config["BLOCK_N"], config["SPLIT_K"]), *arguments, config=config)


@triton.jit
def _int8_scaled(
    x_ptr, w_ptr, x_scale_ptr, w_scale_ptr, y_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = _grouped_tile(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + (rows % M)[:, None] * K + inner[None, :]
    w_ptrs = w_ptr + (columns % N)[None, :] * K + inner[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(x_ptrs), tl.load(w_ptrs), total, out_dtype=tl.int32)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    x_scale = tl.load(x_scale_ptr + rows, mask=rows < M, other=0.0)
    w_scale = tl.load(w_scale_ptr + columns, mask=columns < N, other=0.0)
    y = total.to(tl.float32) * x_scale[:, None] * w_scale[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], y.to(y_ptr.dtype.element_ty), mask=inside)


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K GROUP_M num_warps num_stages",
        (128, 256, 128, 8, 8, 3),
        (128, 128, 128, 8, 4, 3),
        (128, 128, 64, 8, 8, 4),
        (64, 128, 128, 8, 4, 2),
        (64, 64, 64, 1, 4, 3),
        (32, 128, 64, 8, 4, 4),
        (256, 64, 64, 4, 8, 5),
        (64, 32, 32, 8, 2, 2),
    )
)
def everyday_int8_scaled(config: Config) -> Launch:
    """int8 by int8 with a scale for each row and each column, 4,000 × 6,144 × 4,096, to bfloat16."""
    m, n, k = config.get("m", 4000), config.get("n", 6144), config.get("k", 4096)
    tensors = normal(m, k, dtype=torch.int8), normal(n, k, dtype=torch.int8), uniform(m), uniform(n)
    grid = (triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"]),)
    return launch(_int8_scaled, grid, *tensors, empty(m, n, dtype=_BRAIN), m, n, k, config=config)


@triton.jit
def _int4_weights(
    x_ptr, packed_ptr, scale_ptr, zero_ptr, y_ptr, M, N, K,
    GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = K // (BLOCK_K * SPLIT_K)
    first = tl.program_id(2) * steps
    shift = (tl.arange(0, BLOCK_K) % 8) * 4
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(first, first + steps):
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + inner[None, :], mask=rows[:, None] < M, other=0.0)
        packed = tl.load(packed_ptr + (inner // 8)[:, None] * N + columns[None, :])
        group = step * BLOCK_K // GROUP
        scale = tl.load(scale_ptr + group * N + columns)
        zero = tl.load(zero_ptr + group * N + columns)
        digit = ((packed >> shift[:, None]) & 15).to(tl.float16)
        total = tl.dot(x, (digit - zero[None, :]) * scale[None, :], total)
    y_ptrs = y_ptr + rows[:, None] * N + columns[None, :]
    if SPLIT_K == 1:
        tl.store(y_ptrs, total, mask=rows[:, None] < M)
    else:
        tl.atomic_add(y_ptrs, total, mask=rows[:, None] < M, sem="relaxed")


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K SPLIT_K num_warps num_stages",
        (64, 128, 64, 1, 4, 3),
        (64, 64, 128, 2, 4, 3),
        (32, 128, 64, 4, 4, 4),
        (16, 64, 64, 1, 2, 2),
        (64, 256, 32, 4, 8, 3),
        (64, 32, 128, 1, 4, 4),
        (32, 64, 32, 8, 4, 2),
        (64, 128, 64, 4, 8, 1),
    )
)
def everyday_int4_weights(config: Config) -> Launch:
    """64 tokens in float16 by 8,192 × 8,192 weights of four bits, eight in an int32, scale and zero for each 128."""
    m, n, k = config.get("m", 64), config.get("n", 8192), config.get("k", 8192)
    tensors = normal(m, k, dtype=_HALF), indices(2**31 - 1, k // 8, n), uniform(k // 128, n, dtype=_HALF) / 16
    zeros_of = indices(16, k // 128, n).to(_HALF)
    grid = n // config["BLOCK_N"], triton.cdiv(m, config["BLOCK_M"]), config["SPLIT_K"]
    return launch(_int4_weights, grid, *tensors, zeros_of, zeros(m, n), m, n, k, config=config, GROUP=128)


@triton.jit
def _convolution(
    x_ptr, w_ptr, bias_ptr, y_ptr, images, height, width, out_height, out_width,
    C_IN: tl.constexpr, C_OUT: tl.constexpr, STEP: tl.constexpr, FLAT: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    tiles_o: tl.constexpr = C_OUT // BLOCK_O
    tile_p, tile_o = tl.program_id(0) // tiles_o, tl.program_id(0) % tiles_o
    place = tile_p * BLOCK_P + tl.arange(0, BLOCK_P)
    out = tile_o * BLOCK_O + tl.arange(0, BLOCK_O)
    image = place // (out_height * out_width)
    top = (place // out_width) % out_height * STEP - 1
    left = place % out_width * STEP - 1
    total = tl.zeros((BLOCK_P, BLOCK_O), dtype=tl.float32)
    if FLAT:
        for start in range(0, 9 * C_IN, BLOCK_C):
            inner = start + tl.arange(0, BLOCK_C)
            tap, channel = inner // C_IN, inner % C_IN
            row = top[:, None] + (tap // 3)[None, :]
            column = left[:, None] + (tap % 3)[None, :]
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (image < images)[:, None]
            pixel = (image[:, None] * height + row) * width + column
            x = tl.load(x_ptr + pixel * C_IN + channel[None, :], mask=inside, other=0.0)
            w = tl.load(w_ptr + out[None, :] * (9 * C_IN) + inner[:, None])
            total = tl.dot(x, w, total)
    else:
        for tap in range(9):
            row, column = top + tap // 3, left + tap % 3
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (image < images)
            pixel = (image * height + row) * width + column
            for start in range(0, C_IN, BLOCK_C):
                channel = start + tl.arange(0, BLOCK_C)
                x = tl.load(x_ptr + pixel[:, None] * C_IN + channel[None, :], mask=inside[:, None], other=0.0)
                w = tl.load(w_ptr + out[None, :] * (9 * C_IN) + (tap * C_IN + channel)[:, None])
                total = tl.dot(x, w, total)
    y = tl.maximum(total + tl.load(bias_ptr + out)[None, :], 0.0)
    inside = place[:, None] < images * out_height * out_width
    tl.store(y_ptr + place[:, None] * C_OUT + out[None, :], y.to(y_ptr.dtype.element_ty), mask=inside)


@family(
    listed(
        "BLOCK_P BLOCK_O BLOCK_C FLAT step num_warps num_stages",
        (128, 128, 64, 1, 1, 8, 3),
        (128, 256, 32, 1, 1, 8, 3),
        (128, 128, 32, 0, 1, 4, 4),
        (64, 64, 64, 1, 1, 4, 3),
        (64, 128, 64, 0, 2, 4, 3),
        (128, 64, 32, 1, 2, 4, 2),
        (32, 256, 32, 0, 1, 8, 4),
        (256, 64, 64, 1, 1, 8, 2),
    )
)
def everyday_convolution(config: Config) -> Launch:
    """3 × 3 with bias and ReLU as an implicit product: 48 images of 28 × 28, 128 into 256 channels last, float16."""
    images, side, step = config.get("images", 48), config.get("side", 28), config["step"]
    c_in, c_out, out = config.get("c_in", 128), 256, (side - 1) // step + 1
    tensors = normal(images, side, side, c_in, dtype=_HALF), normal(c_out, 3, 3, c_in, dtype=_HALF) / 32
    arguments = *tensors, normal(c_out), empty(images, out, out, c_out, dtype=_HALF), images, side, side, out, out
    grid = (triton.cdiv(images * out * out, config["BLOCK_P"]) * (c_out // config["BLOCK_O"]),)
    return launch(_convolution, grid, *arguments, config=config, C_IN=c_in, C_OUT=c_out, STEP=step)
