"""Products of matrices: orders, types, epilogues, split sums, few rows, groups of experts, packed weights."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.timing.data import empty, indices, normal, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_TILES = {"BLOCK_M": (64, 128, 256), "BLOCK_N": (64, 128, 256), "BLOCK_K": (32, 64, 128)}
_OPTIONS = {"num_warps": (4, 8), "num_stages": (2, 3, 4)}
_HALF = torch.float16


def _fits(rows: list[dict[str, int]], bytes_each: int = 2, most: int = 26) -> list[dict[str, int]]:
    """Keep what fits into shared memory and, by its accumulator, roughly into registers."""
    kept = []
    for row in rows:
        shared = row["num_stages"] * row["BLOCK_K"] * (row["BLOCK_M"] + row["BLOCK_N"]) * bytes_each
        if shared <= 220_000 and row["BLOCK_M"] * row["BLOCK_N"] <= 32768:
            kept.append(row)
    return kept[:most]


@triton.jit
def _order(program, tiles_m, tiles_n, GROUP: tl.constexpr):
    width = GROUP * tiles_n
    group = program // width
    first = group * GROUP
    size = min(tiles_m - first, GROUP)
    return first + (program % width) % size, (program % width) // size


@triton.jit
def _matmul(
    a, b, c, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    PRECISION: tl.constexpr = "tf32",
):  # fmt: skip
    tile_m, tile_n = _order(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP)
    row = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    column = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    inner = tl.arange(0, BLOCK_K)
    a_place = a + row[:, None] * stride_am + inner[None, :] * stride_ak
    b_place = b + inner[:, None] * stride_bk + column[None, :] * stride_bn
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, tl.cdiv(k, BLOCK_K)):
        mask = inner < k - start * BLOCK_K
        left = tl.load(a_place, mask[None, :], other=0.0)
        right = tl.load(b_place, mask[:, None], other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
        a_place += BLOCK_K * stride_ak
        b_place += BLOCK_K * stride_bk
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * n + column[None, :], total.to(c.dtype.element_ty), mask)


def _product(config: Config, m: int, n: int, k: int, dtype: torch.dtype, out: torch.dtype, **constants) -> Launch:
    a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
    if constants.pop("transposed", False):
        b = normal(n, k, dtype=dtype).T
    grid = (triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"]),)
    tensors = a, b, empty(m, n, dtype=out)
    return launch(_matmul, grid, *tensors, m, n, k, *a.stride(), *b.stride(), config=config, **constants)


@family(_fits(combine(200, **_TILES, **_OPTIONS), most=200)[::5])
def matmul(config: Config) -> Launch:
    """float16 product of 4,096 × 4,096 × 4,096 in groups of 8 rows of tiles."""
    return _product(config, 4096, 4096, 4096, _HALF, _HALF, GROUP=8)


@family(combine(GROUP=(1, 2, 4, 8, 16, 64), BLOCK_M=(64, 128), BLOCK_N=(64, 128), num_warps=(4,), BLOCK_K=(64,)))
def matmul_order(config: Config) -> Launch:
    """bfloat16 product of 8,192 × 8,192 × 2,048 in several orders of tiles."""
    return _product(config, 8192, 8192, 2048, torch.bfloat16, torch.bfloat16)


@family(
    _fits(combine(200, BLOCK_M=(16, 32, 64, 128), BLOCK_N=(32, 64, 128), BLOCK_K=(16, 32, 64), **_OPTIONS), most=200)[
        ::9
    ]
)
def matmul_small_tiles(config: Config) -> Launch:
    """float16 product of 2,048 × 2,048 × 4,096 with small tiles, mma and wgmma."""
    return _product(config, 2048, 2048, 4096, _HALF, _HALF, GROUP=8)


@family(_fits(combine(200, **_TILES, num_warps=(4, 8), num_stages=(1, 3)), most=200)[::4])
def matmul_transposed(config: Config) -> Launch:
    """bfloat16 product with a transposed second operand, 4,096 × 11,008 × 4,096."""
    return _product(config, 4096, 11008, 4096, torch.bfloat16, torch.bfloat16, GROUP=8, transposed=True)


@family(combine(BLOCK_M=(64, 128), BLOCK_N=(64, 128), BLOCK_K=(32, 64), num_warps=(4, 8), num_stages=(2, 3)))
def matmul_odd(config: Config) -> Launch:
    """float16 product of 3,001 × 2,999 × 2,001: nothing divisible by 16."""
    return _product(config, 3001, 2999, 2001, _HALF, _HALF, GROUP=8)


@family(_fits(combine(200, BLOCK_M=(64, 128), BLOCK_N=(64, 128, 256), BLOCK_K=(64, 128), **_OPTIONS), 1, 200)[::2])
def matmul_float8(config: Config) -> Launch:
    """float8 product with a transposed second operand, 8,192 × 4,096 × 4,096."""
    return _product(config, 8192, 4096, 4096, torch.float8_e4m3fn, torch.bfloat16, GROUP=8, transposed=True)


@family(_fits(combine(200, BLOCK_M=(32, 64, 128), BLOCK_N=(64, 128), BLOCK_K=(16, 32, 64), **_OPTIONS), 4, 200)[::3])
def matmul_tf32(config: Config) -> Launch:
    """TF32 product of 4,096 × 4,096 × 2,048."""
    return _product(config, 4096, 4096, 2048, torch.float32, torch.float32, GROUP=8)


@family(
    combine(20, BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64, 128), BLOCK_K=(8, 16, 32), num_warps=(4, 8), num_stages=(1, 3))
)
def matmul_float32(config: Config) -> Launch:
    """float32 product on FMA units, 2,048 × 2,048 × 1,024."""
    return _product(config, 2048, 2048, 1024, torch.float32, torch.float32, GROUP=8, PRECISION="ieee")


@triton.jit
def _matmul_integer(a, b, c, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.int32)
    for start in range(0, k, BLOCK_K):
        left = tl.load(a + row[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + column[None, :] * k + (start + inner)[:, None])
        total = tl.dot(left, right, total, out_dtype=tl.int32)
    tl.store(c + row[:, None] * n + column[None, :], total)


@family(_fits(combine(200, BLOCK_M=(64, 128), BLOCK_N=(64, 128), BLOCK_K=(64, 128), **_OPTIONS), 1, 200)[::2])
def matmul_int8(config: Config) -> Launch:
    """int8 product of 4,096 × 4,096 × 4,096 with int32 sums, tiles by two axes of the grid."""
    n = 4096
    a, b = normal(n, n, dtype=torch.int8), normal(n, n, dtype=torch.int8)
    grid = n // config["BLOCK_N"], n // config["BLOCK_M"]
    return launch(_matmul_integer, grid, a, b, empty(n, n, dtype=torch.int32), n, n, config=config)


@triton.jit
def _split_k(
    a, b, c, m, n, k, SPLIT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K * SPLIT):
        place = start + inner
        left = tl.load(a + row[:, None] * k + place[None, :], (row < m)[:, None], other=0.0)
        right = tl.load(b + place[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    mask = (row < m)[:, None] & (column < n)[None, :]
    if SPLIT == 1:
        tl.store(c + row[:, None] * n + column[None, :], total, mask)
    else:
        tl.atomic_add(c + row[:, None] * n + column[None, :], total, mask, sem="relaxed")


@family(
    combine(
        SPLIT=(1, 2, 4, 8, 16), BLOCK_M=(32, 64), BLOCK_N=(64, 128), BLOCK_K=(64,), num_warps=(4,), num_stages=(3, 4)
    )
)
def split_k(config: Config) -> Launch:
    """float16 product of 256 × 2,048 × 16,384, parts of the sum added by atomic operations."""
    m, n, k = 256, 2048, 16384
    tensors = normal(m, k, dtype=_HALF), normal(k, n, dtype=_HALF), zeros(m, n)
    grid = triton.cdiv(m, config["BLOCK_M"]), triton.cdiv(n, config["BLOCK_N"]), config["SPLIT"]
    return launch(_split_k, grid, *tensors, m, n, k, config=config)


@family(
    combine(
        SPLIT=(1, 4, 8),
        BLOCK_M=(16,),
        BLOCK_N=(16, 32, 64, 128),
        BLOCK_K=(64, 128, 256),
        num_warps=(2, 4),
        num_stages=(2, 4),
    )
)
def few_rows(config: Config) -> Launch:
    """bfloat16 product of 16 × 8,192 × 8,192: weights are read once."""
    m, n, k = 16, 8192, 8192
    tensors = normal(m, k, dtype=torch.bfloat16), normal(k, n, dtype=torch.bfloat16), zeros(m, n)
    grid = 1, n // config["BLOCK_N"], config["SPLIT"]
    return launch(_split_k, grid, *tensors, m, n, k, config=config)


@triton.jit
def _persistent(
    a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr
):
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        tile_m, tile_n = _order(tile, tiles_m, tiles_n, GROUP)
        row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for start in range(0, k, BLOCK_K):
            left = tl.load(a + row[:, None] * k + (start + inner)[None, :])
            right = tl.load(b + (start + inner)[:, None] * n + column[None, :])
            total = tl.dot(left, right, total)
        tl.store(c + row[:, None] * n + column[None, :], total.to(c.dtype.element_ty))


@family(
    _fits(
        combine(
            200,
            programs=(66, 132, 264),
            BLOCK_M=(64, 128),
            BLOCK_N=(128, 256),
            BLOCK_K=(32, 64),
            num_warps=(4, 8),
            num_stages=(3, 4),
        ),
        most=200,
    )[::3]
)
def matmul_persistent(config: Config) -> Launch:
    """float16 product of 4,096 × 8,192 × 1,024 by a fixed number of programs."""
    m, n, k = 4096, 8192, 1024
    tensors = normal(m, k, dtype=_HALF), normal(k, n, dtype=_HALF), empty(m, n, dtype=_HALF)
    return launch(_persistent, (config["programs"],), *tensors, m, n, k, config=config, GROUP=8)


@triton.jit
def _descriptors(
    a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr
):
    tile_m, tile_n = _order(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        left = a.load([tile_m * BLOCK_M, start])
        right = b.load([tile_n * BLOCK_N, start])
        total = tl.dot(left, right.T, total)
    c.store([tile_m * BLOCK_M, tile_n * BLOCK_N], total.to(c.dtype))


@family(_fits(combine(200, BLOCK_M=(64, 128), BLOCK_N=(64, 128, 256), BLOCK_K=(64, 128), **_OPTIONS), 2, 200)[::2])
def matmul_descriptors(config: Config) -> Launch:
    """float16 product of 4,096 × 4,096 × 4,096 whose tiles are copied by TMA."""
    n = 4096
    a, b, c = normal(n, n, dtype=_HALF), normal(n, n, dtype=_HALF), empty(n, n, dtype=_HALF)
    tile_m, tile_n, tile_k = config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]
    described = (
        TensorDescriptor.from_tensor(a, [tile_m, tile_k]),
        TensorDescriptor.from_tensor(b, [tile_n, tile_k]),
        TensorDescriptor.from_tensor(c, [tile_m, tile_n]),
    )
    grid = (n // tile_m * (n // tile_n),)
    return launch(_descriptors, grid, *described, n, n, n, config=config, GROUP=8)


@triton.jit
def _batched(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        left = tl.load(a + batch * m * k + row[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + batch * k * n + (start + inner)[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + batch * m * n + row[:, None] * n + column[None, :], total.to(c.dtype.element_ty))


@family(combine(BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64, 128), BLOCK_K=(32, 64), num_warps=(2, 4, 8), num_stages=(1, 2)))
def batched(config: Config) -> Launch:
    """1,024 bfloat16 products of 256 × 256 × 128."""
    count, m, n, k = 1024, 256, 256, 128
    tensors = (normal(count, *shape, dtype=torch.bfloat16) for shape in ((m, k), (k, n), (m, n)))
    grid = m // config["BLOCK_M"], n // config["BLOCK_N"], count
    return launch(_batched, grid, *tensors, m, n, k, config=config)


@triton.jit
def _gemv(a, x, out, rows, width, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, width, BLOCK_N):
        column = start + tl.arange(0, BLOCK_N)
        value = tl.load(a + row[:, None].to(tl.int64) * width + column[None, :]).to(tl.float32)
        total += value * tl.load(x + column).to(tl.float32)[None, :]
    tl.store(out + row, tl.sum(total, 1))


@family(combine(BLOCK_M=(1, 4, 16, 64), BLOCK_N=(64, 256, 1024), num_warps=(1, 4, 8), num_stages=(1, 4)))
def matrix_vector(config: Config) -> Launch:
    """16,384 × 8,192 float16 times a vector."""
    rows, width = 16384, 8192
    tensors = normal(rows, width, dtype=_HALF), normal(width, dtype=_HALF), empty(rows)
    return launch(_gemv, (rows // config["BLOCK_M"],), *tensors, rows, width, config=config)


@triton.jit
def _gemv_transposed(a, x, out, rows, width, SHARE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_N], tl.float32)
    first = tl.program_id(1) * SHARE
    for start in range(first, first + SHARE, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        value = tl.load(a + row[:, None].to(tl.int64) * width + column[None, :]).to(tl.float32)
        total += tl.sum(value * tl.load(x + row).to(tl.float32)[:, None], 0)
    tl.atomic_add(out + column, total, sem="relaxed")


@family(combine(SHARE=(256, 2048, 16384), BLOCK_M=(1, 16, 64), BLOCK_N=(32, 128, 512), num_warps=(1, 4, 8)))
def vector_matrix(config: Config) -> Launch:
    """A vector times 16,384 × 4,096 bfloat16, parts of the sum by atomic operations."""
    rows, width = 16384, 4096
    tensors = normal(rows, width, dtype=torch.bfloat16), normal(rows, dtype=torch.bfloat16), zeros(width)
    grid = width // config["BLOCK_N"], rows // config["SHARE"]
    return launch(_gemv_transposed, grid, *tensors, rows, width, config=config)


@triton.jit
def _experts(
    x, weights, out, sorted_tokens, tile_experts, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    expert = tl.load(tile_experts + tile).to(tl.int64)
    place = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    token = tl.load(sorted_tokens + place).to(tl.int64)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        left = tl.load(x + token[:, None] * k + (start + inner)[None, :])
        right = tl.load(weights + expert * n * k + column[None, :] * k + (start + inner)[:, None])
        total = tl.dot(left, right, total)
    tl.store(out + place[:, None].to(tl.int64) * n + column[None, :], total.to(tl.bfloat16))


@family(
    combine(
        BLOCK_M=(16, 32, 64, 128), BLOCK_N=(64, 128, 256), BLOCK_K=(32, 64, 128), num_warps=(4, 8), num_stages=(2, 3)
    )
)
def experts(config: Config) -> Launch:
    """8,192 routed tokens through 32 experts, 1,024 × 2,048 bfloat16 each, 256 tokens for each expert."""
    routed, count, n, k = 8192, 32, 1024, 2048
    tiles = routed // config["BLOCK_M"]
    tile_experts = torch.arange(tiles, device="cuda", dtype=torch.int32) * count // tiles
    x, weights = normal(4096, k, dtype=torch.bfloat16), normal(count, n, k, dtype=torch.bfloat16)
    tensors = x, weights, empty(routed, n, dtype=torch.bfloat16), indices(4096, routed), tile_experts
    return launch(_experts, (tiles, n // config["BLOCK_N"]), *tensors, n, k, config=config)


@triton.jit
def _packed(
    a, b, scales, c, m, n, k, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    shift = (inner % 8) * 4
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        place = start + inner
        left = tl.load(a + row[:, None] * k + place[None, :], (row < m)[:, None], other=0.0)
        packed = tl.load(b + (place // 8)[:, None] * n + column[None, :])
        scale = tl.load(scales + (start // GROUP) * n + column)
        right = (((packed >> shift[:, None]) & 0xF) - 8).to(tl.float16) * scale[None, :]
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.float16), (row < m)[:, None])


@family(
    combine(
        22,
        m=(16, 64),
        BLOCK_M=(16, 64),
        BLOCK_N=(32, 64, 128),
        BLOCK_K=(32, 64, 128),
        num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)
def four_bit_weights(config: Config) -> Launch:
    """float16 times 4-bit weights in groups of 128, 16 or 64 rows, 8,192 × 4,096."""
    m, n, k = config["m"], 8192, 4096
    tensors = normal(m, k, dtype=_HALF), indices(1 << 30, k // 8, n), normal(k // 128, n, dtype=_HALF)
    grid = triton.cdiv(m, config["BLOCK_M"]), n // config["BLOCK_N"]
    return launch(_packed, grid, *tensors, empty(m, n, dtype=_HALF), m, n, k, config=config, GROUP=128)


@triton.jit
def _bias_gelu(a, b, bias, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        left = tl.load(a + row[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    total += tl.load(bias + column)[None, :].to(tl.float32)
    total = total * tl.sigmoid(1.5957691 * (total + 0.044715 * total * total * total))
    tl.store(c + row[:, None] * n + column[None, :], total.to(c.dtype.element_ty))


@family(_fits(combine(200, BLOCK_M=(64, 128), BLOCK_N=(64, 128, 256), BLOCK_K=(32, 64), **_OPTIONS), 2, 200)[::2])
def bias_gelu(config: Config) -> Launch:
    """bfloat16 product of 8,192 × 4,096 × 512 with bias and GELU."""
    m, n, k = 8192, 4096, 512
    half = torch.bfloat16
    tensors = normal(m, k, dtype=half), normal(k, n, dtype=half), normal(n, dtype=half), empty(m, n, dtype=half)
    grid = m // config["BLOCK_M"], n // config["BLOCK_N"]
    return launch(_bias_gelu, grid, *tensors, m, n, k, config=config)


@triton.jit
def _convolution(
    x, weight, out, height, width, channels, filters,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = pixel % width
    row = (pixel // width) % height
    image = pixel // (width * height)
    output = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for tap in range(9):
        y = row + tap // 3 - 1
        z = column + tap % 3 - 1
        inside = (y >= 0) & (y < height) & (z >= 0) & (z < width)
        source = ((image * height + y) * width + z) * channels
        for start in range(0, channels, BLOCK_K):
            left = tl.load(x + source[:, None] + (start + inner)[None, :], inside[:, None], other=0.0)
            place = (tap * channels + start + inner)[:, None] * filters + output[None, :]
            total = tl.dot(left, tl.load(weight + place), total)
    tl.store(out + pixel[:, None] * filters + output[None, :], total.to(tl.float16))


@family(combine(BLOCK_M=(64, 128), BLOCK_N=(64, 128), BLOCK_K=(32, 64), num_warps=(4, 8), num_stages=(2, 3)))
def convolution(config: Config) -> Launch:
    """3 × 3 convolution of 32 images of 56 × 56 × 128 float16 into 128 channels, channels last."""
    images, side, channels = 32, 56, 128
    pixels = images * side * side
    x, weight = normal(pixels, channels, dtype=_HALF), normal(9 * channels, channels, dtype=_HALF)
    out = empty(pixels, channels, dtype=_HALF)
    grid = pixels // config["BLOCK_M"], channels // config["BLOCK_N"]
    return launch(_convolution, grid, x, weight, out, side, side, channels, channels, config=config)


@triton.jit
def _low_rank(x, down, up, out, width, RANK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rank = tl.arange(0, RANK)
    inner = tl.arange(0, BLOCK_K)
    middle = tl.zeros([BLOCK_M, RANK], tl.float32)
    for start in range(0, width, BLOCK_K):
        left = tl.load(x + row[:, None] * width + (start + inner)[None, :])
        middle = tl.dot(left, tl.load(down + (start + inner)[:, None] * RANK + rank[None, :]), middle)
    half = middle.to(tl.bfloat16)
    for start in range(0, width, BLOCK_K):
        right = tl.load(up + rank[:, None] * width + (start + inner)[None, :])
        tl.store(out + row[:, None] * width + (start + inner)[None, :], tl.dot(half, right).to(tl.bfloat16))


@family(combine(BLOCK_M=(16, 32, 64, 128), BLOCK_K=(32, 64, 128), num_warps=(4, 8), num_stages=(2, 4)))
def low_rank(config: Config) -> Launch:
    """8,192 × 4,096 bfloat16 down to rank 32 and up again."""
    tokens, width, rank, half = 8192, 4096, 32, torch.bfloat16
    tensors = normal(tokens, width, dtype=half), normal(width, rank, dtype=half), normal(rank, width, dtype=half)
    out = empty(tokens, width, dtype=half)
    return launch(_low_rank, (tokens // config["BLOCK_M"],), *tensors, out, width, config=config, RANK=rank)
