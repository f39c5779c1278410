"""Blind: products of training and small formats: gradients, batches by TMA, float8, ternary, adapters, triangles.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN = torch.float16, torch.bfloat16


@triton.jit
def _weight_gradient(
    dy_ptr, x_ptr, dw_ptr, T, N, K, stride_dy, stride_x, stride_dw,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_T: tl.constexpr, SPLIT_T: tl.constexpr,
):  # fmt: skip
    pid_n, pid_k, pid_t = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    steps = tl.cdiv(T, BLOCK_T * SPLIT_T)
    start = pid_t * steps * BLOCK_T
    dy_block = tl.make_block_ptr(
        dy_ptr, (N, T), (1, stride_dy), (pid_n * BLOCK_N, start), (BLOCK_N, BLOCK_T), (0, 1)
    )  # fmt: skip
    x_block = tl.make_block_ptr(x_ptr, (T, K), (stride_x, 1), (start, pid_k * BLOCK_K), (BLOCK_T, BLOCK_K), (1, 0))
    acc = tl.zeros((BLOCK_N, BLOCK_K), dtype=tl.float32)
    for _ in range(steps):
        dy = tl.load(dy_block)
        x = tl.load(x_block)
        acc = tl.dot(dy, x, acc)
        dy_block = tl.advance(dy_block, (0, BLOCK_T))
        x_block = tl.advance(x_block, (BLOCK_T, 0))
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    dw_ptrs = dw_ptr + offs_n[:, None] * stride_dw + offs_k[None, :]
    if SPLIT_T == 1:
        tl.store(dw_ptrs, tl.load(dw_ptrs) + acc)
    else:
        tl.atomic_add(dw_ptrs, acc, sem="relaxed")


@family(
    combine(
        8, BLOCK_N=(64, 128), BLOCK_K=(64, 128, 256), BLOCK_T=(32, 64), SPLIT_T=(1, 2, 4, 8), num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)  # fmt: skip
def blind_weight_gradient(config: Config) -> Launch:
    """Gradient of a layer's 1,024 × 4,096 weights over 16,384 tokens, bfloat16, added to the float32 one (split-K)."""
    tokens, n, k = config.get("tokens", 16384), config.get("n", 1024), config.get("k", 4096)
    arguments = normal(tokens, n, dtype=_BRAIN), normal(tokens, k, dtype=_BRAIN), zeros(n, k), tokens, n, k, n, k, k
    grid = n // config["BLOCK_N"], k // config["BLOCK_K"], config["SPLIT_T"]
    return launch(_weight_gradient, grid, *arguments, config=config)


@triton.jit
def _batched_descriptors(
    a_ptr, b_ptr, c_ptr, batches, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BATCH_INNER: tl.constexpr,
):  # fmt: skip
    a_desc = tl.make_tensor_descriptor(a_ptr, [batches, M, K], [M * K, K, 1], [1, BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [batches, N, K], [N * K, K, 1], [1, BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, [batches, M, N], [M * N, N, 1], [1, BLOCK_M, BLOCK_N])
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    for number in tl.range(tl.program_id(0), batches * tiles, tl.num_programs(0)):
        if BATCH_INNER:
            batch, tile = number % batches, number // batches
        else:
            batch, tile = number // tiles, number % tiles
        off_m = (tile // tiles_n) * BLOCK_M
        off_n = (tile % tiles_n) * BLOCK_N
        acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([batch, off_m, k]).reshape(BLOCK_M, BLOCK_K)
            b = b_desc.load([batch, off_n, k]).reshape(BLOCK_N, BLOCK_K)
            acc = tl.dot(a, b.T, acc)
        c_desc.store([batch, off_m, off_n], acc.to(tl.bfloat16).reshape(1, BLOCK_M, BLOCK_N))


@family(
    combine(
        8, BLOCK_M=(64, 128), BLOCK_N=(64, 128, 256), BLOCK_K=(32, 64), BATCH_INNER=(0, 1),
        programs=(66, 132, 264, 3072), num_warps=(4, 8), num_stages=(2, 3),
    )
)  # fmt: skip
def blind_batched_descriptors(config: Config) -> Launch:
    """48 bfloat16 products of 1,024 × 1,024 × 512 by TMA descriptors of three dimensions, b transposed."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    batches, m, n, k = config.get("batches", 48), config.get("m", 1024), config.get("n", 1024), config.get("k", 512)
    tensors = normal(batches, m, k, dtype=_BRAIN), normal(batches, n, k, dtype=_BRAIN)
    tiles = batches * triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"])
    arguments = *tensors, empty(batches, m, n, dtype=_BRAIN), batches, m, n, k
    return launch(_batched_descriptors, (min(config["programs"], tiles),), *arguments, config=config)


@triton.jit
def _float8_gradient(
    dy, w, scale, out, amax, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    in_group = GROUP * tiles_n
    first_m = pid // in_group * GROUP
    height = min(tiles_m - first_m, GROUP)
    pid_m = first_m + pid % in_group % height
    pid_n = pid % in_group // height
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    dy_ptrs = dy + (rm[:, None] * k + rk[None, :])
    w_ptrs = w + (rn[None, :] * k + rk[:, None])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(tl.cdiv(k, BK)):
        acc += tl.dot(tl.load(dy_ptrs), tl.load(w_ptrs))
        dy_ptrs += BK
        w_ptrs += BK
    acc = acc * tl.load(scale)
    tl.atomic_max(amax, tl.max(tl.abs(acc)), sem="relaxed")
    tl.store(out + rm[:, None] * n + rn[None, :], acc.to(out.dtype.element_ty))


@family(
    combine(8, BM=(64, 128), BN=(64, 128, 256), BK=(64, 128), GROUP=(1, 8, 64), num_warps=(4, 8), num_stages=(2, 3, 4))
)
def blind_float8_gradient(config: Config) -> Launch:
    """float8 e5m2 gradients times e4m3 weights, 8,192 × 4,096 × 4,096 to bfloat16, with the greatest magnitude kept."""
    m, n, k = config.get("m", 8192), config.get("n", 4096), config.get("k", 4096)
    tensors = normal(m, k, dtype=torch.float8_e5m2), normal(n, k, dtype=torch.float8_e4m3fn), uniform(1)
    arguments = *tensors, empty(m, n, dtype=_BRAIN), zeros(1), m, n, k
    grid = (triton.cdiv(m, config["BM"]) * triton.cdiv(n, config["BN"]),)
    return launch(_float8_gradient, grid, *arguments, config=config)


@triton.jit
def _convolution_weights(
    x, dy, dw, images, height, width,
    C_IN: tl.constexpr, C_OUT: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tap = pid % 9
    tile_i = pid // 9 % (C_IN // BLOCK_I)
    tile_o = pid // 9 // (C_IN // BLOCK_I)
    down, across = tap // 3 - 1, tap % 3 - 1
    out_channel = tile_o * BLOCK_O + tl.arange(0, BLOCK_O)
    in_channel = tile_i * BLOCK_I + tl.arange(0, BLOCK_I)
    pixels = images * height * width
    total = tl.zeros([BLOCK_O, BLOCK_I], dtype=tl.float32)
    for start in range(tl.program_id(1) * BLOCK_P, pixels, SPLITS * BLOCK_P):
        pixel = start + tl.arange(0, BLOCK_P)
        image = pixel // (height * width)
        row = pixel // width % height + down
        column = pixel % width + across
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (pixel < pixels)
        place = (image * height + row) * width + column
        given = tl.load(x + place[:, None] * C_IN + in_channel[None, :], mask=inside[:, None], other=0.0)
        slope = tl.load(dy + pixel[None, :] * C_OUT + out_channel[:, None], mask=pixel[None, :] < pixels, other=0.0)
        total = tl.dot(slope, given, total)
    tl.atomic_add(dw + out_channel[:, None] * (9 * C_IN) + (tap * C_IN + in_channel)[None, :], total)


@family(
    combine(
        8, BLOCK_O=(64, 128), BLOCK_I=(32, 64, 128), BLOCK_P=(32, 64), SPLITS=(1, 4, 12, 48), num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)  # fmt: skip
def blind_convolution_weights(config: Config) -> Launch:
    """Gradient of 3 × 3 weights: 32 images of 28 × 28, 256 into 256 channels last, float16, splits of the pixels."""
    images, side, channels = config.get("images", 32), config.get("side", 28), config.get("channels", 256)
    x, dy = (normal(images, side, side, channels, dtype=_HALF) for _ in range(2))
    grid = 9 * (channels // config["BLOCK_O"]) * (channels // config["BLOCK_I"]), config["SPLITS"]
    arguments = x, dy, zeros(channels, 3, 3, channels), images, side, side
    return launch(_convolution_weights, grid, *arguments, config=config, C_IN=channels, C_OUT=channels)


@triton.jit
def ternary_matmul_kernel(
    x_ptr, packed_ptr, x_scale_ptr, w_scale, y_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_Q: tl.constexpr, N_FIRST: tl.constexpr,
):  # fmt: skip
    pid_m = tl.program_id(1) if N_FIRST else tl.program_id(0)
    pid_n = tl.program_id(0) if N_FIRST else tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    quarter = K // 4
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for q in range(0, quarter, BLOCK_Q):
        offs_q = q + tl.arange(0, BLOCK_Q)
        packed = tl.load(packed_ptr + offs_n[None, :] * quarter + offs_q[:, None])
        for part in tl.static_range(4):
            x = tl.load(x_ptr + offs_m[:, None] * K + (part * quarter + offs_q)[None, :])
            w = ((packed >> (2 * part)) & 3).to(tl.int8) - 1
            accumulator += tl.dot(x, w.to(tl.int8))
    y = accumulator.to(tl.float32) * tl.load(x_scale_ptr + offs_m)[:, None] * w_scale
    tl.store(y_ptr + offs_m[:, None] * N + offs_n[None, :], y.to(tl.bfloat16))


@family(
    combine(
        8, BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64, 128), BLOCK_Q=(32, 64, 128), N_FIRST=(0, 1), num_warps=(4, 8),
        num_stages=(1, 2, 3),
    )
)  # fmt: skip
def blind_ternary_weights(config: Config) -> Launch:
    """int8 times weights of -1, 0 and 1, four in a byte, 1,024 × 6,912 × 2,560, scales of rows, to bfloat16."""
    m, n, k = config.get("m", 1024), config.get("n", 6912), config.get("k", 2560)
    digits = indices(3, 4, n, k // 4, dtype=torch.uint8)
    packed = digits[0] + digits[1] * 4 + digits[2] * 16 + digits[3] * 64
    tiles_m, tiles_n = triton.cdiv(m, config["BLOCK_M"]), triton.cdiv(n, config["BLOCK_N"])
    grid = (tiles_n, tiles_m) if config["N_FIRST"] else (tiles_m, tiles_n)
    arguments = normal(m, k, dtype=torch.int8), packed, uniform(m), 0.37, empty(m, n, dtype=_BRAIN), m, n, k
    return launch(ternary_matmul_kernel, grid, *arguments, config=config)


@triton.jit
def _adapted_linear(
    x_ptr, w_ptr, a_ptr, b_ptr, y_ptr, scaling, M, N, K,
    R: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = tl.swizzle2d(
        tl.program_id(0) // tl.cdiv(N, BLOCK_N), tl.program_id(0) % tl.cdiv(N, BLOCK_N), tl.cdiv(M, BLOCK_M),
        tl.cdiv(N, BLOCK_N), GROUP_M,
    )  # fmt: skip
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_r = tl.arange(0, R)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    low = tl.zeros((BLOCK_M, R), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        x = tl.load(x_ptr + offs_m[:, None] * K + offs_k[None, :], mask=offs_k[None, :] < left, other=0.0)
        w = tl.load(w_ptr + offs_n[None, :] * K + offs_k[:, None], mask=offs_k[:, None] < left, other=0.0)
        a = tl.load(a_ptr + offs_r[None, :] * K + offs_k[:, None], mask=offs_k[:, None] < left, other=0.0)
        acc = tl.dot(x, w, acc)
        low = tl.dot(x, a, low)
        x_ptr += BLOCK_K
        w_ptr += BLOCK_K
        a_ptr += BLOCK_K
    b = tl.load(b_ptr + offs_n[None, :] * R + offs_r[:, None])
    acc += scaling * tl.dot(low.to(b.dtype), b)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], acc.to(y_ptr.dtype.element_ty), mask=mask)


@family(
    combine(
        8, BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128, 256), BLOCK_K=(32, 64), GROUP_M=(1, 8), num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)  # fmt: skip
def blind_adapted_linear(config: Config) -> Launch:
    """A linear layer with its adapter of rank 32 in one loop (LoRA), 2,000 × 4,096 × 4,096, bfloat16."""
    m, n, k = config.get("m", 2000), config.get("n", 4096), config.get("k", 4096)
    tensors = normal(m, k, dtype=_BRAIN), normal(n, k, dtype=_BRAIN), normal(32, k, dtype=_BRAIN) / 8
    arguments = *tensors, normal(n, 32, dtype=_BRAIN), empty(m, n, dtype=_BRAIN), 0.5, m, n, k
    grid = (triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"]),)
    return launch(_adapted_linear, grid, *arguments, config=config, R=32)


@triton.jit
def _triangular_tile(
    lower, b, c, tile, columns, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    row = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, (tile + 1) * BLOCK_M, BLOCK_K):
        place = start + tl.arange(0, BLOCK_K)
        seen = place[None, :] <= row[:, None]
        left = tl.load(lower + row[:, None] * n + place[None, :], mask=seen, other=0.0)
        total = tl.dot(left, tl.load(b + place[:, None] * columns + column[None, :]), total)
    tl.store(c + row[:, None] * columns + column[None, :], total.to(c.dtype.element_ty))


@triton.jit
def _triangular_product(
    lower, b, c, n, columns, ORDER: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    tiles = tl.cdiv(n, BLOCK_M)
    tile = tl.program_id(0)
    if ORDER > 0:
        # The longest rows first, and with 2, the shortest by the same program.
        tile = tiles - 1 - tile
    _triangular_tile(lower, b, c, tile, columns, n, BLOCK_M, BLOCK_N, BLOCK_K)
    if ORDER == 2:
        _triangular_tile(lower, b, c, tl.program_id(0), columns, n, BLOCK_M, BLOCK_N, BLOCK_K)


@family(
    combine(
        8, ORDER=(0, 1, 2), BLOCK_M=(64, 128), BLOCK_N=(64, 128), BLOCK_K=(32, 64), num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)  # fmt: skip
def blind_triangular_product(config: Config) -> Launch:
    """The lower triangle of 4,096 × 4,096 times 4,096 × 2,048, float16: long rows last, first, or with short ones."""
    n, columns = config.get("n", 4096), config.get("columns", 2048)
    tensors = normal(n, n, dtype=_HALF), normal(n, columns, dtype=_HALF), empty(n, columns, dtype=_HALF)
    tiles = n // config["BLOCK_M"]
    grid = tiles // 2 if config["ORDER"] == 2 else tiles, columns // config["BLOCK_N"]
    return launch(_triangular_product, grid, *tensors, n, columns, config=config)
