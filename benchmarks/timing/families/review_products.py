"""Review: matrix products that libraries contain and users tune, with one problem in each family.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import random

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, family, launch, listed

_HALF, _BRAIN, _BYTE_FLOAT = torch.float16, torch.bfloat16, torch.float8_e4m3fn


@triton.jit
def _gemm(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    pid_n, pid_m = tl.program_id(0), tl.program_id(1)
    pid_m, pid_n = tl.swizzle2d(pid_m, pid_n, tl.num_programs(1), tl.num_programs(0), GROUP_M)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        if EVEN:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K - k * BLOCK_K), other=0.0)
            b = tl.load(b_ptrs, mask=(offs_n[None, :] < N) & (offs_k[:, None] < K - k * BLOCK_K), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :]
    c = acc.to(c_ptr.dtype.element_ty)
    if EVEN:
        tl.store(c_ptrs, c)
    else:
        tl.store(c_ptrs, c, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K GROUP_M EVEN num_warps num_stages",
        (128, 256, 64, 8, 1, 8, 3),
        (128, 128, 64, 4, 1, 4, 4),
        (256, 128, 32, 8, 0, 8, 4),
        (128, 128, 32, 1, 1, 16, 2),
        (64, 256, 64, 8, 0, 4, 3),
        (64, 64, 32, 8, 1, 2, 5),
        (64, 64, 128, 32, 0, 4, 1),
        (32, 32, 64, 8, 1, 1, 3),
    )
)
def review_gemm(config: Config) -> Launch:
    """bfloat16, 4,096 × 4,608 × 3,072, both operands by rows, with masks or without."""
    m, n, k = config.get("m", 4096), config.get("n", 4608), config.get("k", 3072)
    tensors = normal(m, k, dtype=_BRAIN), normal(k, n, dtype=_BRAIN), empty(m, n, dtype=_BRAIN)
    grid = triton.cdiv(n, config["BLOCK_N"]), triton.cdiv(m, config["BLOCK_M"])
    return launch(_gemm, grid, *tensors, m, n, k, k, n, n, config=config)


@triton.jit
def _linear_erf(
    x_ptr, w_ptr, bias_ptr, pre_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, ROWS_FIRST: tl.constexpr,
    LATE_STORE: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    if ROWS_FIRST:
        grid_m = tl.cdiv(M, BLOCK_M)
        pid_m, pid_n = pid % grid_m, pid // grid_m
    else:
        grid_n = tl.cdiv(N, BLOCK_N)
        pid_m, pid_n = pid // grid_n, pid % grid_n
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + (offs_m % M)[:, None] * K + offs_k[None, :]
    w_ptrs = w_ptr + offs_n[None, :] * K + offs_k[:, None]
    bias = tl.load(bias_ptr + offs_n).to(tl.float32)
    if LATE_STORE:
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    else:
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32) + bias[None, :]
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(x_ptrs), tl.load(w_ptrs), acc)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    if LATE_STORE:
        acc += bias[None, :]
    mask = offs_m[:, None] < M
    place = offs_m[:, None] * N + offs_n[None, :]
    tl.store(pre_ptr + place, acc.to(pre_ptr.dtype.element_ty), mask=mask)
    out = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    tl.store(out_ptr + place, out.to(out_ptr.dtype.element_ty), mask=mask)


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K ROWS_FIRST LATE_STORE num_warps num_stages",
        (128, 256, 64, 1, 1, 8, 3),
        (128, 128, 64, 1, 0, 8, 3),
        (128, 128, 32, 0, 1, 4, 5),
        (256, 64, 64, 0, 1, 8, 2),
        (64, 128, 128, 1, 1, 4, 2),
        (64, 64, 64, 0, 0, 8, 3),
        (32, 128, 32, 1, 1, 2, 4),
        (16, 64, 64, 0, 1, 1, 2),
    )
)
def review_linear_erf(config: Config) -> Launch:
    """Linear layer with bias and GELU by erf, 6,000 × 6,144 × 1,536, float16, that keeps what GELU takes."""
    m, n, k = config.get("m", 6000), config.get("n", 6144), config.get("k", 1536)
    tensors = normal(m, k, dtype=_HALF), normal(n, k, dtype=_HALF) / 32, normal(n, dtype=_HALF)
    outputs = empty(m, n, dtype=_HALF), empty(m, n, dtype=_HALF)
    grid = (triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"]),)
    return launch(_linear_erf, grid, *tensors, *outputs, m, n, k, config=config)


@triton.jit
def _batched_values(
    p_ptr, v_ptr, o_ptr, M, N, K, stride_pb, stride_vb, stride_ob,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BATCH_AXIS: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(BATCH_AXIS).to(tl.int64)
    pid = tl.program_id(1 - BATCH_AXIS)
    grid_n = tl.cdiv(N, BLOCK_N)
    offs_m = (pid // grid_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = (pid % grid_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    p_ptrs = p_ptr + batch * stride_pb + offs_m[:, None] * K + offs_k[None, :]
    v_ptrs = v_ptr + batch * stride_vb + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        p = tl.load(p_ptrs, eviction_policy="evict_first")
        v = tl.load(v_ptrs, eviction_policy="evict_last")
        acc = tl.dot(p, v, acc)
        p_ptrs += BLOCK_K
        v_ptrs += BLOCK_K * N
    o_ptrs = o_ptr + batch * stride_ob + offs_m[:, None] * N + offs_n[None, :]
    tl.store(o_ptrs, acc.to(o_ptr.dtype.element_ty))


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K BATCH_AXIS num_warps num_stages",
        (128, 128, 64, 1, 8, 3),
        (128, 128, 32, 1, 4, 5),
        (64, 128, 128, 0, 4, 3),
        (128, 64, 64, 0, 4, 4),
        (64, 64, 32, 1, 4, 2),
        (256, 32, 64, 1, 8, 2),
        (64, 16, 64, 0, 2, 3),
        (16, 128, 32, 1, 1, 1),
    )
)
def review_batched_values(config: Config) -> Launch:
    """Probabilities by values of 160 heads, 1,024 × 128 × 1,024 each, float16: the left has most of the bytes."""
    batch, m, n, k = config.get("batch", 160), config.get("m", 1024), 128, config.get("k", 1024)
    tensors = uniform(batch, m, k, dtype=_HALF), normal(batch, k, n, dtype=_HALF), empty(batch, m, n, dtype=_HALF)
    grid = triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"]), batch
    grid = grid if config["BATCH_AXIS"] else grid[::-1]
    return launch(_batched_values, grid, *tensors, m, n, k, m * k, k * n, m * n, config=config)


@triton.jit
def _moe_down(
    x_ptr, w_ptr, gate_ptr, sorted_ptr, expert_ptr, out_ptr, pairs, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    grid_n = tl.cdiv(N, BLOCK_N)
    grid_m = tl.num_programs(0) // grid_n
    pid_m, pid_n = tl.swizzle2d(pid // grid_n, pid % grid_n, grid_m, grid_n, GROUP_M)
    expert = tl.load(expert_ptr + pid_m).to(tl.int64)
    slot = tl.load(sorted_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M))
    real = slot < pairs
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + slot[:, None] * K + offs_k[None, :]
    w_ptrs = w_ptr + expert * N * K + offs_n[None, :] * K + offs_k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(x_ptrs, mask=real[:, None], other=0.0), tl.load(w_ptrs), acc)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    gate = tl.load(gate_ptr + slot, mask=real, other=0.0)
    out = (acc * gate[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + slot[:, None] * N + offs_n[None, :], out, mask=real[:, None])


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K GROUP_M num_warps num_stages",
        (128, 128, 64, 8, 8, 3),
        (64, 256, 64, 8, 8, 4),
        (64, 128, 64, 1, 4, 4),
        (128, 64, 128, 32, 4, 2),
        (64, 64, 32, 1, 4, 3),
        (32, 128, 128, 8, 4, 3),
        (16, 128, 64, 1, 4, 4),
        (256, 32, 32, 16, 8, 1),
    )
)
def review_moe_down(config: Config) -> Launch:
    """Down projections of 3,000 tokens to 4 of 32 experts, some of them popular: 2,048 from 1,408, bfloat16."""
    tokens, n, k = config.get("tokens", 3000), config.get("n", 2048), config.get("k", 1408)
    choices, experts, block = 4, 32, config["BLOCK_M"]
    pairs, drawn = tokens * choices, random.Random(7)
    routed: list[list[int]] = [[] for _ in range(experts)]
    for pair in range(pairs):
        routed[int(experts * drawn.random() ** 1.5)].append(pair)
    order, owners = [], []
    for expert, slots in enumerate(routed):
        tiles = triton.cdiv(len(slots), block)
        order += slots + [pairs] * (tiles * block - len(slots))
        owners += [expert] * tiles
    lists = [torch.tensor(values, device="cuda", dtype=torch.int32) for values in (order, owners)]
    tensors = normal(pairs, k, dtype=_BRAIN), normal(experts, n, k, dtype=_BRAIN), uniform(pairs)
    grid = (len(owners) * triton.cdiv(n, config["BLOCK_N"]),)
    return launch(_moe_down, grid, *tensors, *lists, empty(pairs, n, dtype=_BRAIN), pairs, n, k, config=config)


@triton.jit
def _float8_blocks(
    a_ptr, b_ptr, as_ptr, bs_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SCALE_A_ALONE: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    grid_m, grid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tl.swizzle2d(pid // grid_n, pid % grid_n, grid_m, grid_n, GROUP_M)
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * K + offs_k[:, None]
    scales_k = K // 128
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        group = k * BLOCK_K // 128
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        a_scale = tl.load(as_ptr + offs_m * scales_k + group)
        if SCALE_A_ALONE:
            # A tile of at most 128 columns has one scale of b.
            b_scale = tl.load(bs_ptr + (pid_n * BLOCK_N // 128) * scales_k + group)
            acc += tl.dot(a, b) * (a_scale * b_scale)[:, None]
        else:
            b_scales = tl.load(bs_ptr + (offs_n // 128) * scales_k + group)
            acc += tl.dot(a, b) * a_scale[:, None] * b_scales[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K GROUP_M SCALE_A_ALONE num_warps num_stages",
        (64, 128, 128, 32, 1, 4, 3),
        (128, 128, 128, 8, 1, 8, 4),
        (128, 128, 128, 8, 0, 4, 3),
        (64, 128, 64, 1, 0, 4, 5),
        (64, 256, 128, 8, 0, 8, 2),
        (32, 64, 128, 16, 1, 4, 3),
        (128, 32, 64, 4, 1, 4, 2),
        (16, 64, 128, 1, 0, 2, 4),
    )
)
def review_float8_blocks(config: Config) -> Launch:
    """float8, 1,500 × 4,608 × 7,168 to bfloat16, a scale for each 1 × 128 of the left, 128 × 128 of the right."""
    m, n, k = config.get("m", 1500), config.get("n", 4608), config.get("k", 7168)
    tensors = normal(m, k, dtype=_BYTE_FLOAT), normal(n, k, dtype=_BYTE_FLOAT)
    scales = uniform(m, k // 128), uniform(triton.cdiv(n, 128), k // 128)
    grid = (triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"]),)
    return launch(_float8_blocks, grid, *tensors, *scales, empty(m, n, dtype=_BRAIN), m, n, k, config=config)


@triton.jit
def _w8a16(
    x_ptr, w_ptr, scale_ptr, y_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BY_COLUMNS: tl.constexpr,
    SCALE_FIRST: tl.constexpr,
):  # fmt: skip
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_k = tl.arange(0, BLOCK_K)
    rows = offs_m[:, None] < M
    x_ptrs = x_ptr + offs_m[:, None] * K + offs_k[None, :]
    if BY_COLUMNS:
        w_ptrs = w_ptr + offs_n[None, :] * K + offs_k[:, None]
    else:
        w_ptrs = w_ptr + offs_k[:, None] * N + offs_n[None, :]
    scale = tl.load(scale_ptr + offs_n)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=rows, other=0.0)
        w = tl.load(w_ptrs)
        w = (w.to(tl.float32) * scale[None, :]).to(x.dtype) if SCALE_FIRST else w.to(x.dtype)
        acc = tl.dot(x, w, acc)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K if BY_COLUMNS else BLOCK_K * N
    if not SCALE_FIRST:
        acc = acc * scale[None, :]
    tl.store(y_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(y_ptr.dtype.element_ty), mask=rows)


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K BY_COLUMNS SCALE_FIRST num_warps num_stages",
        (64, 64, 128, 1, 0, 4, 4),
        (64, 128, 64, 0, 0, 4, 3),
        (64, 128, 64, 1, 0, 8, 4),
        (64, 32, 128, 1, 1, 4, 3),
        (32, 64, 64, 0, 0, 4, 5),
        (64, 256, 64, 0, 1, 8, 2),
        (16, 128, 64, 1, 0, 4, 3),
        (64, 64, 32, 0, 1, 2, 1),
    )
)
def review_w8a16(config: Config) -> Launch:
    """50 tokens in bfloat16 by 14,336 × 5,120 weights of int8 with a scale for each output, by rows or by columns."""
    m, n, k = config.get("m", 50), config.get("n", 14336), config.get("k", 5120)
    shape = (n, k) if config["BY_COLUMNS"] else (k, n)
    arguments = normal(m, k, dtype=_BRAIN), normal(*shape, dtype=torch.int8), uniform(n), empty(m, n, dtype=_BRAIN)
    grid = n // config["BLOCK_N"], triton.cdiv(m, config["BLOCK_M"])
    return launch(_w8a16, grid, *arguments, m, n, k, config=config)


@triton.jit
def _split_k(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
    CHUNKED: tl.constexpr, WORKSPACE: tl.constexpr,
):  # fmt: skip
    pid, split = tl.program_id(0), tl.program_id(1)
    grid_n = tl.cdiv(N, BLOCK_N)
    offs_m = (pid // grid_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = (pid % grid_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    if CHUNKED:
        first, step = split * (K // SPLITS), BLOCK_K
    else:
        first, step = split * BLOCK_K, BLOCK_K * SPLITS
    offs_k = first + tl.arange(0, BLOCK_K)
    # a is stored by columns, so that both tiles are contiguous along the outer dimension.
    a_ptrs = a_ptr + offs_k[None, :] * M + offs_m[:, None]
    b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K // (BLOCK_K * SPLITS)):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += step * M
        b_ptrs += step * N
    place = offs_m[:, None] * N + offs_n[None, :]
    if WORKSPACE:
        tl.store(c_ptr + split * M * N + place, acc)
    else:
        tl.atomic_add(c_ptr + place, acc, sem="relaxed")


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K SPLITS CHUNKED WORKSPACE num_warps num_stages",
        (128, 128, 64, 4, 1, 1, 8, 4),
        (128, 128, 64, 8, 0, 0, 4, 3),
        (128, 256, 64, 8, 1, 0, 8, 3),
        (128, 128, 64, 1, 1, 1, 8, 4),
        (64, 128, 32, 16, 1, 1, 4, 4),
        (64, 64, 64, 32, 0, 0, 4, 2),
        (128, 64, 32, 4, 0, 1, 4, 1),
        (32, 64, 64, 2, 1, 0, 2, 3),
    )
)
def review_split_k(config: Config) -> Launch:
    """float16, 512 × 2,048 × 16,384, the left by columns, in splits: added atomically, or kept for another kernel."""
    m, n, k = config.get("m", 512), config.get("n", 2048), config.get("k", 16384)
    splits = config["SPLITS"] if config["WORKSPACE"] else 1
    arguments = normal(k, m, dtype=_HALF), normal(k, n, dtype=_HALF), zeros(splits, m, n), m, n, k
    grid = triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"]), config["SPLITS"]
    return launch(_split_k, grid, *arguments, config=config)


@triton.jit
def _persistent_descriptors(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PIECES: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    PIECE_N: tl.constexpr = BLOCK_N // PIECES
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, PIECE_N])
    grid_m, grid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), grid_m * grid_n, tl.num_programs(0), flatten=FLAT):
        pid_m, pid_n = tl.swizzle2d(tile // grid_n, tile % grid_n, grid_m, grid_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BLOCK_K)):
            a = a_desc.load([pid_m * BLOCK_M, k * BLOCK_K])
            b = b_desc.load([pid_n * BLOCK_N, k * BLOCK_K])
            acc = tl.dot(a, b.T, acc)
        if PIECES == 2:
            halves = tl.permute(tl.reshape(acc, (BLOCK_M, 2, PIECE_N)), (0, 2, 1))
            left, right = tl.split(halves)
            c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], left.to(c_ptr.dtype.element_ty))
            c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N + PIECE_N], right.to(c_ptr.dtype.element_ty))
        else:
            c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_ptr.dtype.element_ty))


@family(
    listed(
        "BLOCK_M BLOCK_N BLOCK_K GROUP_M PIECES FLAT programs num_warps num_stages",
        (128, 256, 64, 8, 2, 1, 132, 8, 3),
        (128, 128, 64, 8, 1, 1, 132, 8, 4),
        (128, 256, 64, 8, 1, 0, 132, 8, 3),
        (128, 128, 128, 1, 2, 0, 264, 4, 3),
        (64, 256, 32, 16, 1, 0, 264, 4, 4),
        (64, 128, 64, 8, 1, 1, 66, 4, 5),
        (64, 64, 64, 8, 1, 0, 5000, 4, 2),
        (64, 32, 128, 4, 1, 0, 1056, 4, 1),
    )
)
def review_persistent_descriptors(config: Config) -> Launch:
    """float16, 5,120 × 5,120 × 2,560, right operand by columns, persistent, tiles by TMA descriptors of the kernel."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    m, n, k = config.get("m", 5120), config.get("n", 5120), config.get("k", 2560)
    arguments = normal(m, k, dtype=_HALF), normal(n, k, dtype=_HALF), empty(m, n, dtype=_HALF), m, n, k
    tiles = triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"])
    return launch(_persistent_descriptors, (min(config["programs"], tiles),), *arguments, config=config)


@triton.jit
def _batch_gemv(
    x_ptr, w_ptr, y_ptr, N, K,
    BATCH: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STREAM: tl.constexpr, LATE_SUM: tl.constexpr,
):  # fmt: skip
    policy: tl.constexpr = "evict_first" if STREAM else ""
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    batch = tl.arange(0, BATCH)
    if LATE_SUM:
        wide = tl.zeros((BATCH, BLOCK_N, BLOCK_K), dtype=tl.float32)
    acc = tl.zeros((BATCH, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        w = tl.load(w_ptr + offs_n[:, None] * K + k + offs_k[None, :], eviction_policy=policy).to(tl.float32)
        x = tl.load(x_ptr + batch[:, None] * K + k + offs_k[None, :]).to(tl.float32)
        product = w[None, :, :] * x[:, None, :]
        if LATE_SUM:
            wide += product
        else:
            acc += tl.sum(product, 2)
    if LATE_SUM:
        acc = tl.sum(wide, 2)
    tl.store(y_ptr + batch[:, None] * N + offs_n[None, :], acc.to(y_ptr.dtype.element_ty))


@family(
    listed(
        "BLOCK_N BLOCK_K STREAM LATE_SUM num_warps num_stages",
        (4, 1024, 1, 1, 4, 3),
        (1, 4096, 0, 0, 8, 2),
        (16, 256, 0, 1, 4, 3),
        (8, 128, 1, 1, 1, 4),
        (32, 128, 0, 0, 4, 4),
        (2, 512, 0, 0, 2, 1),
        (64, 64, 1, 0, 8, 2),
        (64, 16, 0, 0, 16, 1),
    )
)
def review_batch_gemv(config: Config) -> Launch:
    """Weights of 24,576 × 4,096 float16 by two vectors, without tensor cores: sums in each step or at the end."""
    n, k = config.get("n", 24576), config.get("k", 4096)
    arguments = normal(2, k, dtype=_HALF), normal(n, k, dtype=_HALF), empty(2, n, dtype=_HALF), n, k
    return launch(_batch_gemv, (n // config["BLOCK_N"],), *arguments, config=config, BATCH=2)
