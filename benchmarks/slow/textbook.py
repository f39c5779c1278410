"""Pairs of causes that textbooks name, written without a look at what irscope finds: none was timed."""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from benchmarks.slow.elsewhere import load_row
from benchmarks.slow.pair import empty, pair, tensor

HALF, BRAIN = torch.float16, torch.bfloat16


@triton.jit
def transpose_flat(x, y, M, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + (at % N) * M + at // N, tl.load(x + at))


@triton.jit
def transpose_square(x, y, M, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + j[:, None] * M + i[None, :], tl.load(x + i[:, None] * N + j[None, :]).T)


pair(
    "flat transposition",
    "IRS103",
    lambda: (tensor(4096, 8192), empty(8192, 4096)),
    lambda x, y: transpose_flat[(4096 * 8192 // 1024,)](x, y, 4096, 8192, BLOCK=1024),
    lambda x, y: transpose_square[(64, 128)](x, y, 4096, 8192, BLOCK=64),
)


@triton.jit
def add_bias(x, bias, y, columns, x_stride, y_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        here = at < columns
        value = tl.load(x + row * x_stride + at, here) + tl.load(bias + at, here)
        tl.store(y + row * y_stride + at, tl.maximum(value, 0.0), here)


def launch_bias(columns, stride):
    return lambda x, b, y: add_bias[(8192,)](x, b, y, columns, stride, stride, BLOCK=2048)


pair(
    "rows of 5001 halves",
    "IRS101 IRS102",
    lambda: (tensor(8192, 5008, dtype=HALF), tensor(5008, dtype=HALF), empty(8192, 5008, dtype=HALF)),
    launch_bias(5001, 5001),
    launch_bias(5008, 5008),
)


@triton.jit
def embed(table, index, y, WIDTH: tl.constexpr, WIDE: tl.constexpr):
    row = tl.load(index + tl.program_id(0))
    if WIDE:
        row = row.to(tl.int64)
    at = tl.arange(0, WIDTH)
    tl.store(y + tl.program_id(0) * WIDTH + at, tl.load(table + row * WIDTH + at))


def launch_embed(wide):
    return lambda t, i, y: embed[(1 << 15,)](t, i, y, WIDTH=4096, WIDE=wide)


pair(
    "int32 index into a table of 4.9 G elements",
    "IRS701",
    lambda: (tensor(1_200_000, 4096, dtype=HALF), tensor(1 << 15, dtype=torch.int32), empty(1 << 15, 4096, dtype=HALF)),
    launch_embed(False),
    launch_embed(True),
)


@triton.jit
def rms_norm(x, w, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([WIDTH], tl.float32)
    for start in range(0, n, WIDTH):
        value = tl.load(x + row * n + start + tl.arange(0, WIDTH)).to(tl.float32)
        total += value * value
    scale = tl.rsqrt(tl.sum(total) / n + 1e-6)
    for start in range(0, n, WIDTH):
        at = start + tl.arange(0, WIDTH)
        value = tl.load(x + row * n + at).to(tl.float32) * scale * tl.load(w + at).to(tl.float32)
        tl.store(y + row * n + at, value.to(BRAIN_OF.value))


BRAIN_OF = tl.constexpr(tl.bfloat16)


@triton.jit
def rms_norm_once(x, w, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    value = tl.load(x + row * n + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value) / n + 1e-6)
    tl.store(y + row * n + at, (value * scale * tl.load(w + at).to(tl.float32)).to(tl.bfloat16))


def normed(count, width):
    return lambda: (tensor(count, width, dtype=BRAIN), tensor(width, dtype=BRAIN), empty(count, width, dtype=BRAIN))


pair(
    "a norm that reads its row twice",
    "IRS104",
    normed(8192, 8192),
    lambda x, w, y: rms_norm[(8192,)](x, w, y, 8192, WIDTH=1024),
    lambda x, w, y: rms_norm_once[(8192,)](x, w, y, 8192, WIDTH=8192, num_warps=8),
)


@triton.jit
def sigmoid_scaled(x, y, scale, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    value = tl.load(x + at, here, 0.0)
    factor = tl.full((), 1.702, tl.float64 if WIDE else tl.float32)
    for _ in tl.static_range(4):
        value = (value * factor).to(tl.float32 if not WIDE else tl.float64)
        value = value / (1.0 + tl.exp(-value))
    tl.store(y + at, value.to(tl.float32), here)


def launch_sigmoid(wide):
    return lambda x, y: sigmoid_scaled[(1 << 15,)](x, y, 1.0, 1 << 25, BLOCK=1024, WIDE=wide)


pair(
    "a float64 constant",
    "IRS604",
    lambda: (tensor(1 << 25), empty(1 << 25)),
    launch_sigmoid(True),
    launch_sigmoid(False),
)


@triton.jit
def attend(
    q,
    k,
    v,
    o,
    scale,
    T,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    WIDEN: tl.constexpr,
    CAUSAL: tl.constexpr,
    ENDS: tl.constexpr,
):
    start = tl.program_id(0) * BM
    base = tl.program_id(1).to(tl.int64) * T * D
    i = start + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + base + i[:, None] * D + d[None, :])
    if WIDEN:
        query = query.to(tl.float32)
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    end = start + BM if ENDS else T
    for n in range(0, end, BN):
        j = n + tl.arange(0, BN)
        key = tl.load(k + base + j[:, None] * D + d[None, :])
        value = tl.load(v + base + j[:, None] * D + d[None, :])
        if WIDEN:
            key, value = key.to(tl.float32), value.to(tl.float32)
        s = tl.dot(query, tl.trans(key)) * scale
        if CAUSAL:
            s = tl.where(i[:, None] >= j[None, :], s, float("-inf"))
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        part = tl.exp2(most - new)
        total = total * part + tl.sum(p, 1)
        result = tl.dot(p.to(value.dtype), value, result * part[:, None])
        most = new
    tl.store(o + base + i[:, None] * D + d[None, :], (result / total[:, None]).to(tl.bfloat16))


def heads(count=64, rows=4096, width=128):
    return lambda: (
        *(tensor(count, rows, width, dtype=BRAIN) for _ in range(3)),
        empty(count, rows, width, dtype=BRAIN),
    )


def launch_attention(bm=128, bn=64, widen=False, causal=True, ends=True, rows=4096, count=64, **options):
    return lambda q, k, v, o: attend[(rows // bm, count)](
        q,
        k,
        v,
        o,
        0.088,
        rows,
        D=128,
        BM=bm,
        BN=bn,
        WIDEN=widen,
        CAUSAL=causal,
        ENDS=ends,
        **{"num_warps": 8, "num_stages": 3, **options},
    )


FULL = launch_attention(causal=False, ends=False)
pair(
    "attention in float32",
    "IRS305 IRS501",
    heads(),
    launch_attention(widen=True, causal=False, ends=False, num_stages=1),
    FULL,
)
pair("causal attention over all keys", "IRS204", heads(), launch_attention(ends=False), launch_attention())
pair(
    "attention without stages",
    "IRS201 IRS302 IRS202",
    heads(),
    launch_attention(causal=False, ends=False, num_stages=1),
    FULL,
)
pair(
    "attention with two warps",
    "IRS304 IRS308 IRS501",
    heads(),
    launch_attention(64, 64, causal=False, ends=False, num_warps=2),
    FULL,
)


@triton.jit
def bias_gradient_by_atomics(g, b, M, N: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.load(g + i[:, None] * N + j[None, :]).to(tl.float32)
    tl.atomic_add(b + j[None, :] + i[:, None] * 0, value, sem="relaxed")


@triton.jit
def bias_gradient(g, b, M, N: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.load(g + i[:, None] * N + j[None, :]).to(tl.float32)
    tl.atomic_add(b + j, tl.sum(value, 0), sem="relaxed")


pair(
    "bias gradient by an atomic for each element",
    "IRS605",
    lambda: (tensor(16384, 4096, dtype=HALF), empty(4096)),
    lambda g, b: bias_gradient_by_atomics[(512, 32)](g, b, 16384, N=4096, ROWS=32, COLUMNS=128),
    lambda g, b: bias_gradient[(128, 32)](g, b, 16384, N=4096, ROWS=128, COLUMNS=128),
)


@triton.jit
def column_sums(x, y, M, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for row in range(M):
        total += tl.load(x + row * N + at)
    tl.store(y + at, total)


@triton.jit
def column_sums_in_parts(x, y, M, N, BLOCK: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * PART
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for row in range(first, first + PART, ROWS):
        total += tl.load(x + (row + tl.arange(0, ROWS))[:, None] * N + at[None, :])
    tl.atomic_add(y + at, tl.sum(total, 0), sem="relaxed")


pair(
    "column sums, serial over the rows",
    "IRS505",
    lambda: (tensor(32768, 1024), empty(1024)),
    lambda x, y: column_sums[(8,)](x, y, 32768, 1024, BLOCK=128),
    lambda x, y: column_sums_in_parts[(8, 64)](x, y, 32768, 1024, BLOCK=128, ROWS=16, PART=512),
)


@triton.jit
def clip_even(x, y, n, BLOCK: tl.constexpr, ODD: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = (at * 2 + 1 < n * 2) if ODD else at < n
    tl.store(y + at, tl.minimum(tl.load(x + at, here, 0.0), 1.0), here)


def launch_clip(odd):
    return lambda x, y: clip_even[((1 << 26) // 2048,)](x, y, 1 << 26, BLOCK=2048, ODD=odd)


pair(
    "mask of doubled indices",
    "IRS101 IRS102",
    lambda: (tensor(1 << 26, dtype=HALF), empty(1 << 26, dtype=HALF)),
    launch_clip(True),
    launch_clip(False),
)


@triton.jit(do_not_specialize=["n"])
def swiglu_unspecialised(x, g, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    gate = tl.load(g + at, here, 0.0).to(tl.float32)
    value = tl.load(x + at, here, 0.0).to(tl.float32) * gate * tl.sigmoid(gate)
    tl.store(y + at, value.to(tl.float16), here)


@triton.jit
def swiglu(x, g, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    gate = tl.load(g + at, here, 0.0).to(tl.float32)
    value = tl.load(x + at, here, 0.0).to(tl.float32) * gate * tl.sigmoid(gate)
    tl.store(y + at, value.to(tl.float16), here)


def launch_swiglu(kernel):
    return lambda x, g, y: kernel[((1 << 25) // 1024,)](x, g, y, 1 << 25, BLOCK=1024)


pair(
    "size that is not specialised",
    "IRS101 IRS102",
    lambda: tuple(tensor(1 << 25, dtype=HALF) for _ in range(3)),
    launch_swiglu(swiglu_unspecialised),
    launch_swiglu(swiglu),
)


@triton.jit
def paged_sum(x, y, lengths, stride, WIDTH: tl.constexpr, STEP: tl.constexpr):
    row = tl.program_id(0)
    length = 8192
    at = 0
    total = tl.zeros([WIDTH], tl.float32)
    while at < length:
        total += tl.load(x + row * 8192 * STEP + (at + tl.arange(0, WIDTH)) * STEP)
        at += WIDTH
    tl.store(y + row, tl.sum(total))


pair(
    "a field of two in a while loop",
    "IRS103 IRS101",
    lambda: (tensor(4096, 8192 * 2), empty(4096), empty(4096)),
    lambda x, y, n: paged_sum[(4096,)](x, y, n, 8192, WIDTH=1024, STEP=2),
    lambda x, y, n: paged_sum[(4096,)](x, y, n, 8192, WIDTH=1024, STEP=1),
)


@triton.jit
def matmul(
    a,
    b,
    c,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr = 8,
    SPLIT: tl.constexpr = 1,
    PRECISION: tl.constexpr = "tf32",
):
    pid = tl.program_id(0)
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = GROUP * across
    first = pid // width * GROUP
    size = min(down - first, GROUP)
    m, n = first + pid % width % size, pid % width // size
    i = (m * BM + tl.arange(0, BM)) % M
    j = (n * BN + tl.arange(0, BN)) % N
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    left = a + i[:, None] * K + k[None, :]
    right = b + k[:, None] * N + j[None, :]
    total = tl.zeros([BM, BN], tl.float32)
    for step in range(0, tl.cdiv(K, BK * SPLIT)):
        x = tl.load(left, k[None, :] < K - step * BK * SPLIT, 0.0)
        y = tl.load(right, k[:, None] < K - step * BK * SPLIT, 0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION)
        left += BK * SPLIT
        right += BK * SPLIT * N
    i, j = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN)
    here = (i[:, None] < M) & (j[None, :] < N)
    out = c + i[:, None] * N + j[None, :]
    if SPLIT == 1:
        tl.store(out, total.to(c.dtype.element_ty), here)
    else:
        tl.atomic_add(out, total.to(c.dtype.element_ty), here, sem="relaxed")


def square(m, n, k, dtype=BRAIN, out=BRAIN):
    return lambda: (tensor(m, k, dtype=dtype), tensor(k, n, dtype=dtype), empty(m, n, dtype=out))


def launch(bm=128, bn=128, bk=64, split=1, **options):
    def run(a, b, c):
        (m, k), n = a.shape, b.shape[1]
        matmul[(triton.cdiv(m, bm) * triton.cdiv(n, bn), split)](
            a, b, c, m, n, k, BM=bm, BN=bn, BK=bk, SPLIT=split, **{"num_warps": 8, "num_stages": 3, **options}
        )

    return run


GOOD = launch(128, 256)
pair(
    "split-K in 16 by float atomics",
    "IRS605",
    square(2048, 2048, 8192, HALF, torch.float32),
    launch(split=16),
    launch(),
)
pair("split-K in bfloat16", "IRS605 IRS602", square(2048, 2048, 8192), launch(split=16), launch())
pair("matmul by columns of tiles", "IRS510", square(8192, 8192, 4096), launch(128, 256, GROUP=1), GOOD)
pair("matmul with one stage", "IRS201 IRS202 IRS302", square(4096, 4096, 4096), launch(128, 256, num_stages=1), GOOD)
pair("matmul with tiles of 16", "IRS308 IRS304", square(2048, 2048, 2048), launch(16, 16, 32, num_warps=4), launch())


def launch_k(k):
    return lambda a, b, c: matmul[(32 * 32, 1)](a, b, c, 4096, 4096, k, BM=128, BN=128, BK=64, num_warps=8)


pair("matmul of K = 4097", "IRS101 IRS201 IRS302", square(4096, 4096, 4112), launch_k(4097), launch_k(4112))
pair("matmul with BK=16", "IRS509 IRS302 IRS202 IRS308", square(4096, 4096, 4096), launch(128, 128, 16), GOOD)
pair("64 CTAs for a matmul", "IRS505", square(1024, 1024, 8192), launch(128, 128), launch(64, 64, 64, num_warps=4))
pair(
    "float32 by IEEE",
    "IRS601",
    square(2048, 2048, 2048, torch.float32, torch.float32),
    launch(64, 64, 32, PRECISION="ieee", num_warps=4),
    launch(128, 128, 32),
)


@triton.jit
def gemv(a, x, y, M, K, BK: tl.constexpr, BM: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros([BM, BK], tl.float32)
    for k in range(0, K, BK):
        at = k + tl.arange(0, BK)
        total += tl.load(a + i[:, None] * K + at[None, :]).to(tl.float32) * tl.load(x + at).to(tl.float32)[None, :]
    tl.store(y + i, tl.sum(total, 1))


pair(
    "gemv with 32 elements of a row at a time",
    "IRS506 IRS203 IRS509",
    lambda: (tensor(16384, 8192, dtype=HALF), tensor(8192, dtype=HALF), empty(16384)),
    lambda a, x, y: gemv[(16384,)](a, x, y, 16384, 8192, BK=32, BM=1),
    lambda a, x, y: gemv[(4096,)](a, x, y, 16384, 8192, BK=512, BM=4),
)


@triton.jit
def largest_of_all(x, y, n, BLOCK: tl.constexpr):
    most = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, BLOCK * tl.num_programs(0)):
        most = tl.maximum(most, tl.load(x + start + tl.arange(0, BLOCK)))
    tl.atomic_max(y, tl.max(most), sem="relaxed")


pair(
    "one program looks for the maximum",
    "IRS505",
    lambda: (tensor(1 << 25), empty(1)),
    lambda x, y: largest_of_all[(1,)](x, y, 1 << 25, BLOCK=8192, num_warps=8),
    lambda x, y: largest_of_all[(1056,)](x, y, 1 << 25, BLOCK=4096, num_warps=8),
)


@triton.jit
def sine_rows(x, y, n, WIDTH: tl.constexpr, ROUNDS: tl.constexpr):
    at = tl.arange(0, WIDTH)
    here = at < n
    value = tl.load(x + tl.program_id(0) * n + at, here, 0.0)
    for _ in range(ROUNDS):
        value = tl.sin(value) + 0.5
    tl.store(y + tl.program_id(0) * n + at, value, here)


pair(
    "rows of 1088 in tiles of 2048",
    "IRS105",
    lambda: (tensor(8192, 1088), empty(8192, 1088)),
    lambda x, y: sine_rows[(8192,)](x, y, 1088, WIDTH=2048, ROUNDS=128),
    lambda x, y: sine_rows[(8704,)](x, y, 1024, WIDTH=1024, ROUNDS=128),
)


@triton.jit
def scalar_dot(x, w, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for at in range(0, n):
        total += tl.load(x + row * n + at) * tl.load(w + at)
    tl.store(y + row, total)


@triton.jit
def vector_dot(x, w, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + at) * tl.load(w + at)
    tl.store(y + row, tl.sum(total))


pair(
    "scalar loads in a loop",
    "IRS206",
    lambda: (tensor(16384, 4096), tensor(4096), empty(16384)),
    lambda x, w, y: scalar_dot[(16384,)](x, w, y, 4096, BLOCK=1),
    lambda x, w, y: vector_dot[(16384,)](x, w, y, 4096, BLOCK=2048),
)


@triton.jit
def select_loaded(c, a, b, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    is_first = tl.load(c + at // 4096) > 0
    tl.store(y + at, tl.where(is_first, tl.load(a + at, here), tl.load(b + at, here)), here)


@triton.jit
def select_masked(c, a, b, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    is_first = tl.load(c + tl.program_id(0) * BLOCK // 4096) > 0
    value = tl.load(a + at, here & is_first, 0.0) + tl.load(b + at, here & ~is_first, 0.0)
    tl.store(y + at, value, here)


def launch_select(kernel):
    return lambda c, a, b, y: kernel[((1 << 25) // 1024,)](c, a, b, y, 1 << 25, BLOCK=1024)


pair(
    "both sides of tl.where are loaded",
    "IRS106",
    lambda: (tensor(1 << 13, dtype=torch.int32), *(tensor(1 << 25) for _ in range(2)), empty(1 << 25)),
    launch_select(select_loaded),
    launch_select(select_masked),
)


@triton.jit
def softmax_over_columns(x, y, M: tl.constexpr, N: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    at = i[:, None] * N + j[None, :]
    value = tl.load(x + at)
    e = tl.exp(value - tl.max(value, 0)[None, :])
    tl.store(y + at, e / tl.sum(e, 0)[None, :])


pair(
    "softmax over a column for each program",
    "IRS103",
    lambda: (tensor(1024, 32768), empty(1024, 32768)),
    lambda x, y: softmax_over_columns[(32768,)](x, y, M=1024, N=32768, COLUMNS=1),
    lambda x, y: softmax_over_columns[(2048,)](x, y, M=1024, N=32768, COLUMNS=16, num_warps=16),
)


@triton.jit
def normalise_in_loop(x, w, y, n, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    for start in range(0, n, WIDTH):
        j = start + tl.arange(0, WIDTH)
        at = i[:, None] * n + j[None, :]
        value = tl.load(x + at)
        prefix = tl.cumsum(value, 1)
        tl.store(y + at, prefix)


pair(
    "a scan in each iteration",
    "IRS205 IRS401",
    lambda: (tensor(4096, 8192), tensor(8192), empty(4096, 8192)),
    lambda x, w, y: normalise_in_loop[(4096,)](x, w, y, 8192, ROWS=1, WIDTH=256, num_warps=8),
    lambda x, w, y: normalise_in_loop[(1024,)](x, w, y, 8192, ROWS=4, WIDTH=256, num_warps=4),
)


@triton.jit(do_not_specialize=["stride"])
def helped_unspecialised(x, y, columns, stride, WIDTH: tl.constexpr):
    value = load_row(x, tl.program_id(0), stride, columns, WIDTH).to(tl.float32)
    tl.store(y + tl.program_id(0), tl.sum(value * value))


@triton.jit
def helped(x, y, columns, stride, WIDTH: tl.constexpr):
    value = load_row(x, tl.program_id(0), stride, columns, WIDTH).to(tl.float32)
    tl.store(y + tl.program_id(0), tl.sum(value * value))


def launch_helped(kernel):
    return lambda x, y: kernel[(16384,)](x, y, 4096, 4096, WIDTH=4096)


pair(
    "helper of another module",
    "IRS101",
    lambda: (tensor(16384, 4096, dtype=HALF), empty(16384)),
    launch_helped(helped_unspecialised),
    launch_helped(helped),
)


@gluon.jit
def gluon_copy(x, y, N, LAYOUT: gl.constexpr, M: gl.constexpr, COLUMNS: gl.constexpr):
    i = gl.program_id(0) * M + gl.arange(0, M, gl.SliceLayout(1, LAYOUT))
    j = gl.program_id(1) * COLUMNS + gl.arange(0, COLUMNS, gl.SliceLayout(0, LAYOUT))
    at = i[:, None] * N + j[None, :]
    gl.store(y + at, gl.load(x + at) * 2)


def launch_gluon(layout):
    return lambda x, y: gluon_copy[(128, 64)](x, y, 8192, LAYOUT=layout, M=64, COLUMNS=128)


ROW_MAJOR = gl.BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0])
pair(
    "Gluon layout across the rows",
    "IRS103",
    lambda: (tensor(8192, 8192, dtype=HALF), empty(8192, 8192, dtype=HALF)),
    launch_gluon(gl.BlockedLayout([1, 1], [32, 1], [1, 4], [0, 1])),
    launch_gluon(ROW_MAJOR),
)
pair(
    "Gluon layout of one element a thread",
    "IRS101 IRS102",
    lambda: (tensor(8192, 8192, dtype=HALF), empty(8192, 8192, dtype=HALF)),
    launch_gluon(gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])),
    launch_gluon(ROW_MAJOR),
)


SMALL = [triton.Config({"BM": 32, "BN": 32, "BK": 32}, num_warps=4, num_stages=2)]
LARGE = [triton.Config({"BM": 128, "BN": 256, "BK": 64}, num_warps=8, num_stages=3)]


def launch_tuned(configs):
    tuned = triton.autotune(configs, key=["M", "N", "K"])(matmul)

    def run(a, b, c):
        (m, k), n = a.shape, b.shape[1]
        tuned[lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]), 1)](a, b, c, m, n, k)

    return run


pair("autotuned over small tiles", "IRS308 IRS304", square(4096, 4096, 4096), launch_tuned(SMALL), launch_tuned(LARGE))


@triton.jit
def pooled_without_dot(a, b, c, K: tl.constexpr, N, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    for k in range(K):
        total += tl.load(a + i * K + k).to(tl.float32)[:, None] * tl.load(b + k * N + j).to(tl.float32)[None, :]
    tl.store(c + i[:, None] * N + j[None, :], total.to(tl.bfloat16))


pair(
    "matmul by outer products",
    "IRS306",
    square(4096, 4096, 1024),
    lambda a, b, c: pooled_without_dot[(64, 64)](a, b, c, K=1024, N=4096, BM=64, BN=64),
    GOOD,
)


@triton.jit
def dequantise(q, scale, y, n, BLOCK: tl.constexpr, PER: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(q + at // PER)
    value = (word >> (at % PER * 8)) & 255
    tl.store(y + at, value.to(tl.float16) * tl.load(scale + at // 128))


@triton.jit
def dequantise_bytes(q, scale, y, n, BLOCK: tl.constexpr, PER: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(q.to(tl.pointer_type(tl.uint8)) + at)
    block = tl.program_id(0) * (BLOCK // 128) + tl.arange(0, BLOCK // 128)
    scales = tl.reshape(tl.broadcast_to(tl.load(scale + block)[:, None], (BLOCK // 128, 128)), (BLOCK,))
    tl.store(y + at, value.to(tl.float16) * scales)


def launch_dequantise(kernel):
    return lambda q, s, y: kernel[((1 << 26) // 2048,)](q, s, y, 1 << 26, BLOCK=2048, PER=4)


pair(
    "packed bytes read four times",
    "IRS104",
    lambda: (tensor(1 << 24, dtype=torch.int32), tensor(1 << 19, dtype=HALF), empty(1 << 26, dtype=HALF)),
    launch_dequantise(dequantise),
    launch_dequantise(dequantise_bytes),
)


@triton.jit
def row_norms(x, y, n, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    value = tl.load(x + rows[:, None] * n + tl.arange(0, WIDTH)[None, :])
    tl.store(y + rows, tl.sqrt(tl.sum(value * value, 1)))


def launch_norms(count, rows, warps):
    return lambda x, y: row_norms[(count // rows,)](x, y, 256, ROWS=rows, WIDTH=256, num_warps=warps)


pair(
    "32 warps for rows of 256",
    "IRS506",
    lambda: (tensor(1 << 17, 256), empty(1 << 17)),
    launch_norms(1 << 17, 1, 32),
    launch_norms(1 << 17, 16, 4),
)


@triton.jit
def rotate(x, cos, y, n, HALF_WIDTH: tl.constexpr, APART: tl.constexpr):
    row = tl.program_id(0)
    k = tl.arange(0, HALF_WIDTH)
    first = 2 * k if APART else k
    second = first + (1 if APART else HALF_WIDTH)
    base = row * 2 * HALF_WIDTH
    a, b, c = tl.load(x + base + first), tl.load(x + base + second), tl.load(cos + k)
    tl.store(y + base + first, a * c - b * c)
    tl.store(y + base + second, b * c + a * c)


def launch_rotate(apart):
    return lambda x, c, y: rotate[(1 << 15,)](x, c, y, 1024, HALF_WIDTH=1024, APART=apart)


pair(
    "interleaved rotary embedding",
    "IRS103 IRS101 IRS102",
    lambda: (tensor(1 << 15, 2048, dtype=HALF), tensor(1024, dtype=HALF), empty(1 << 15, 2048, dtype=HALF)),
    launch_rotate(True),
    launch_rotate(False),
)


@triton.jit
def cross_entropy(x, target, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    most = -float("inf")
    for start in range(0, n, WIDTH):
        at = start + tl.arange(0, WIDTH)
        most = tl.maximum(most, tl.max(tl.load(x + row * n + at, at < n, -float("inf"))))
    total = 0.0
    for start in range(0, n, WIDTH):
        at = start + tl.arange(0, WIDTH)
        total += tl.sum(tl.exp(tl.load(x + row * n + at, at < n, -float("inf")) - most))
    tl.store(y + row, most + tl.log(total) - tl.load(x + row * n + tl.load(target + row)))


@triton.jit
def cross_entropy_online(x, target, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    most = tl.full([WIDTH], -1e30, tl.float32)
    total = tl.zeros([WIDTH], tl.float32)
    for start in range(0, n, WIDTH):
        at = start + tl.arange(0, WIDTH)
        value = tl.load(x + row * n + at, at < n, -float("inf"))
        new = tl.maximum(most, value)
        total = total * tl.exp(most - new) + tl.exp(value - new)
        most = new
    top = tl.max(most)
    total_of_row = tl.sum(total * tl.exp(most - top))
    tl.store(y + row, top + tl.log(total_of_row) - tl.load(x + row * n + tl.load(target + row)))


def launch_entropy(kernel, width, warps):
    return lambda x, t, y: kernel[(8192,)](x, t, y, 32000, WIDTH=width, num_warps=warps)


pair(
    "cross entropy of two passes",
    "IRS104 IRS205",
    lambda: (tensor(8192, 32000), tensor(8192, dtype=torch.int32), empty(8192)),
    launch_entropy(cross_entropy, 512, 4),
    launch_entropy(cross_entropy_online, 2048, 4),
)
