"""Pairs whose cause is in a product: its operands, its tile, its loop, or the order of its CTAs."""

import torch
import triton
import triton.language as tl

from benchmarks.slow.pair import empty, pair, tensor

HALF = torch.float16


@triton.jit
def product(
    a, b, c, M, N, K, B_K, B_N,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr = 8, WIDEN: tl.constexpr = False,
    PRECISION: tl.constexpr = "tf32", STAGES: tl.constexpr = None,
):  # fmt: skip
    rows, columns = tl.num_programs(0), tl.num_programs(1)
    m, n = tl.program_id(0), tl.program_id(1)
    if GROUP > 1:
        m, n = tl.swizzle2d(m, n, rows, columns, GROUP)
    i = m * BM + tl.arange(0, BM)
    j = n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left = a + i[:, None] * K + k[None, :]
    right = b + k[:, None] * B_K + j[None, :] * B_N
    total = tl.zeros([BM, BN], tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        x, y = tl.load(left), tl.load(right)
        if WIDEN:
            x, y = x.to(tl.float32), y.to(tl.float32)
        total = tl.dot(x, y, total, input_precision=PRECISION)
        left += BK
        right += BK * B_K
    tl.store(c + i[:, None] * N + j[None, :], total.to(c.dtype.element_ty))


def square(size=4096, dtype=HALF, out=HALF):
    return lambda: (tensor(size, size, dtype=dtype), tensor(size, size, dtype=dtype), empty(size, size, dtype=out))


def launch(bm=128, bn=128, bk=64, transposed=False, **options):
    def run(a, b, c):
        m, k, n = a.shape[0], a.shape[1], c.shape[1]
        strides = (1, k) if transposed else (n, 1)
        product[(m // bm, n // bn)](a, b, c, m, n, k, *strides, BM=bm, BN=bn, BK=bk,
                                    **{"num_warps": 8, "num_stages": 3, **options})  # fmt: skip

    return run


GOOD = launch(128, 256)
FLOAT = square(2048, torch.float32, torch.float32)
EIGHT = square(4096, torch.float8_e4m3fn)
pair("fp16 widened before the dot", "IRS305", square(), launch(WIDEN=True, bk=32), GOOD)
pair("TF32 with row-major B", "IRS307 IRS402", FLOAT, launch(bk=32), launch(bk=32, transposed=True))
pair("fp8 with row-major B", "IRS307 IRS402 IRS302", EIGHT, launch(bk=128, bn=128), launch(bk=128, transposed=True))
pair("float32 by FMA", "IRS601 IRS301", FLOAT, launch(64, 64, 32, PRECISION="ieee", num_warps=4),
     launch(bk=32, transposed=True))  # fmt: skip
pair("tile of 32 rows", "IRS304 IRS308", square(), launch(32, 128, num_warps=4), GOOD)
pair("two warps for a tile of 64", "IRS304 IRS308", square(), launch(64, 64, num_warps=2), GOOD)
pair("tile of 16×16", "IRS308 IRS304", square(2048), launch(16, 16, 64, num_warps=1), launch())
pair("tile of 32×32", "IRS308 IRS304", square(), launch(32, 32, 64, num_warps=4), GOOD)
pair("one stage", "IRS201 IRS202 IRS302", square(), launch(num_stages=1), launch())
pair("tl.range(num_stages=1)", "IRS201 IRS202 IRS302", square(), launch(STAGES=1), launch())
pair("one warp for a tile of 128×128", "IRS501 IRS304", square(2048), launch(num_warps=1, bk=32), launch())
pair("four warps for a tile of 256×256", "IRS501", square(), launch(256, 256, 32, num_warps=4), GOOD)


@triton.jit
def product_without_dot(a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    for k in range(0, K, BK):
        at = k + tl.arange(0, BK)
        x = tl.load(a + i[:, None] * K + at[None, :])
        y = tl.load(b + at[:, None] * N + j[None, :])
        total += tl.sum(x.to(tl.float32)[:, :, None] * y.to(tl.float32)[None, :, :], 1)
    tl.store(c + i[:, None] * N + j[None, :], total.to(tl.float16))


pair(
    "multiplied and added up",
    # Triton makes a dot of it, in TF32 and of the same small tile.
    "IRS308 IRS305 IRS306",
    square(1024),
    lambda a, b, c: product_without_dot[(32, 32)](a, b, c, 1024, 1024, BM=32, BN=32, BK=16),
    launch(64, 64, 64),
)


@triton.jit
def outer_products(a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    for k in range(K):
        x = tl.load(a + i * K + k).to(tl.float32)
        y = tl.load(b + k * N + j).to(tl.float32)
        total += x[:, None] * y[None, :]
    tl.store(c + i[:, None] * N + j[None, :], total.to(tl.float16))


pair(
    "outer products added up",
    "IRS306",
    square(2048),
    lambda a, b, c: outer_products[(32, 32)](a, b, c, 2048, 2048, BM=64, BN=64),
    launch(128, 128),
)


@triton.jit
def attend(q, k, v, o, T: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL_END: tl.constexpr):
    start = tl.program_id(0) * BM
    base = tl.program_id(1) * T * D
    i = start + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + base + i[:, None] * D + d[None, :])
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    end = start + BM if CAUSAL_END else T
    for n in range(0, end, BN):
        j = n + tl.arange(0, BN)
        key = tl.load(k + base + j[None, :] * D + d[:, None])
        s = tl.where(i[:, None] >= j[None, :], tl.dot(query, key) * 0.125, -1e9)
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        part = tl.exp(most - new)
        total = total * part + tl.sum(p, 1)
        value = tl.load(v + base + j[:, None] * D + d[None, :])
        result = tl.dot(p.to(tl.float16), value, result * part[:, None])
        most = new
    tl.store(o + base + i[:, None] * D + d[None, :], (result / total[:, None]).to(tl.float16))


def heads():
    return (*(tensor(32, 4096, 64, dtype=HALF) for _ in range(3)), empty(32, 4096, 64, dtype=HALF))


def launch_attention(ends):
    return lambda q, k, v, o: attend[(4096 // 128, 32)](q, k, v, o, T=4096, D=64, BM=128, BN=64, CAUSAL_END=ends,
                                                        num_warps=4, num_stages=3)  # fmt: skip


pair("causal loop over all keys", "IRS204", heads, launch_attention(False), launch_attention(True))


@triton.jit
def split_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    part = K // SPLIT
    k = tl.program_id(2) * part + tl.arange(0, BK)
    left = a + i[:, None] * K + k[None, :]
    right = b + k[:, None] * N + j[None, :]
    total = tl.zeros([BM, BN], tl.float32)
    for _ in range(0, part, BK):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * N
    tl.atomic_add(c + i[:, None] * N + j[None, :], total, sem="relaxed")


def launch_split(split):
    return lambda a, b, c: split_product[(16, 16, split)](a, b, c, 2048, 2048, 2048, BM=128, BN=128, BK=64,
                                                          SPLIT=split, num_warps=8)  # fmt: skip


pair("split-K by float atomics", "IRS605 IRS602", square(2048, HALF, torch.float32), launch_split(32),
     launch(PRECISION="tf32"))  # fmt: skip
pair("64 CTAs of a product on 132 SMs", "IRS505 IRS507 IRS501", square(2048), launch(256, 256, 64, num_warps=8),
     launch(128, 128))  # fmt: skip
