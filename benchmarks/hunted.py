"""Small kernels for `benchmarks.hunt`: each has a few operations that the compiler treats in a way of its own.

Runs under Triton 3.6 to 3.9. A kernel that a version refuses is left out there.
"""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def reduced_rows(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    scaled = x / tl.sum(x * x, 1, keep_dims=True) - tl.max(x, 0, keep_dims=True)
    tl.store(y_ptr + offsets, scaled + tl.argmax(x, 1)[:, None])


@triton.jit
def first_and_second(a_index, a, b_index, b):
    takes_b = b > a
    return tl.where(takes_b, b_index, a_index), tl.where(takes_b, b, a)


@triton.jit
def recurrence_of(a, x, b, y):
    return a * b, b * x + y


@triton.jit
def scanned(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    a, b = tl.associative_scan((x, x * 0.5), 1, recurrence_of)
    c = tl.cumsum(x, 0, reverse=True)
    index, most = tl.reduce((offsets, x), 0, first_and_second)
    tl.store(y_ptr + offsets, a + b * c + most[None, :] + index[None, :])


@triton.jit
def sorted_rows(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, tl.flip(tl.sort(x, descending=True), 1) + x)


@triton.jit
def gathered_rows(x_ptr, index_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + offsets, tl.gather(tl.load(x_ptr + offsets), tl.load(index_ptr + offsets), 0))


@triton.jit
def counted(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    counts = tl.histogram(tl.load(x_ptr + tl.arange(0, M)), N)
    tl.store(y_ptr + tl.arange(0, N), counts)


@triton.jit
def rearranged(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M * N)).reshape(M, N)
    low, high = tl.split(x.reshape(M, N // 2, 2))
    joined = tl.interleave(high, low).trans().reshape(M * N)
    tl.store(y_ptr + tl.arange(0, M * N), joined + tl.join(low, high).permute(2, 0, 1).reshape(M * N))


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    total = tl.zeros((M, N), c_ptr.dtype.element_ty)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * K + (k + depth)[None, :], mask=(k + depth)[None, :] < K, other=0)
        b = tl.load(b_ptr + (k + depth)[:, None] * N + columns[None, :], mask=(k + depth)[:, None] < K, other=0)
        total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=c_ptr.dtype.element_ty)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total)


@triton.jit
def product_of_transposed(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    total = tl.zeros((N, M), tl.float32)
    for k in tl.range(0, K, BLOCK_K, loop_unroll_factor=2):
        a = tl.load(a_ptr + rows[:, None] * K + (k + depth)[None, :])
        b = tl.load(b_ptr + columns[:, None] * K + (k + depth)[None, :])
        total += tl.dot((b * 2).to(a.dtype), a.trans())
    tl.store(c_ptr + rows[None, :] * N + columns[:, None], total)


@triton.jit
def two_products(a_ptr, b_ptr, c_ptr, K, N: tl.constexpr):
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    first = tl.load(a_ptr + square)
    most = tl.full((N,), float("-inf"), tl.float32)
    total = tl.zeros((N, N), tl.float32)
    for k in range(K):
        b = tl.load(b_ptr + k * N * N + square)
        scores = tl.dot(first, b.trans())
        now = tl.maximum(most, tl.max(scores, 1))
        total = total * tl.exp2(most - now)[:, None]
        total = tl.dot(tl.exp2(scores - now[:, None]).to(b.dtype), b, total)
        most = now
    tl.store(c_ptr + square, total)


@triton.jit
def batched_product(a_ptr, b_ptr, c_ptr, B: tl.constexpr, N: tl.constexpr):
    cube = tl.arange(0, B)[:, None, None] * N * N + tl.arange(0, N)[None, :, None] * N + tl.arange(0, N)[None, None, :]
    tl.store(c_ptr + cube, tl.dot(tl.load(a_ptr + cube), tl.load(b_ptr + cube)))


@triton.jit
def scaled_product(a_ptr, s_ptr, b_ptr, t_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, depth, scales = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)
    a = tl.load(a_ptr + rows[:, None] * K + depth[None, :])
    b = tl.load(b_ptr + depth[:, None] * N + columns[None, :])
    s = tl.load(s_ptr + rows[:, None] * (K // 32) + scales[None, :])
    t = tl.load(t_ptr + columns[:, None] * (K // 32) + scales[None, :])
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], tl.dot_scaled(a, s, "e4m3", b, t, "e4m3"))


@triton.jit
def indirect(x_ptr, index_ptr, w_ptr, y_ptr, K, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    weights = tl.load(w_ptr + tl.arange(0, N)[:, None] * N + columns[None, :])
    total = tl.zeros((M, N), tl.float32)
    for k in range(K):
        index = tl.load(index_ptr + k * M + rows)
        x = tl.load(x_ptr + index[:, None] * N + columns[None, :], mask=index[:, None] >= 0, other=0)
        total += tl.dot(x, weights)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], total)


@triton.jit
def in_place(x_ptr, K, N: tl.constexpr):
    offsets = tl.arange(0, N)
    for k in range(1, K):
        before = tl.load(x_ptr + (k - 1) * N + offsets)
        tl.store(x_ptr + k * N + offsets, before * 0.5 + tl.load(x_ptr + k * N + offsets))


@triton.jit
def product_in_place(x_ptr, w_ptr, K, N: tl.constexpr):
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    weights = tl.load(w_ptr + square)
    for k in range(1, K):
        before = tl.load(x_ptr + (k - 1) * N * N + square)
        tl.store(x_ptr + k * N * N + square, tl.dot(before, weights).to(tl.float16))


@triton.jit
def persistent(a_ptr, b_ptr, c_ptr, TILES, K, FLATTEN: tl.constexpr, N: tl.constexpr):
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    for tile in tl.range(tl.program_id(0), TILES, tl.num_programs(0), flatten=FLATTEN):
        total = tl.zeros((N, N), tl.float32)
        for k in range(K):
            a = tl.load(a_ptr + (tile * K + k) * N * N + square)
            total = tl.dot(a, tl.load(b_ptr + k * N * N + square), total)
        tl.store(c_ptr + tile * N * N + square, total.to(tl.float16))


@triton.jit
def described(a_ptr, b_ptr, c_ptr, M, K, N: tl.constexpr, SPECIALIZE: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [N, N])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [N, N])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [N, N])
    row = tl.program_id(0) * N
    total = tl.zeros((N, N), tl.float32)
    for k in tl.range(0, K, N, warp_specialize=SPECIALIZE):
        total = tl.dot(a_desc.load([row, k]), b_desc.load([k, 0]), total)
    c_desc.store([row, 0], total.to(tl.float16))


@triton.jit
def searched(x_ptr, y_ptr, limit, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    rounds = 0
    while tl.max(x) > limit and rounds < 8:
        x = tl.where(x > limit, x * 0.25, x)
        rounds += 1
    if rounds > 3:
        x += tl.sum(x)
    tl.store(y_ptr + offsets, x + rounds)


@triton.jit
def atomics(x_ptr, y_ptr, lock_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    tl.atomic_add(y_ptr + offsets % 8, x, mask=offsets < N - 3)
    tl.atomic_max(y_ptr + N + offsets, x)
    before = tl.atomic_cas(lock_ptr + offsets, offsets, offsets + 1)
    tl.store(y_ptr + 2 * N + offsets, before.to(tl.float32) + tl.atomic_xchg(lock_ptr + N, 1))


@triton.jit
def converted(x_ptr, y_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    narrow = x.to(tl.float8e5).to(tl.float16) + x.to(tl.bfloat16).to(tl.float16)
    bits = x.to(tl.uint32, bitcast=True)
    mixed = tl.umulhi(bits, bits ^ 0x9E3779B9) % 1000 + (bits >> 7).to(tl.uint8).to(tl.uint32)
    tl.store(y_ptr + offsets, narrow.to(tl.float32) + mixed.to(tl.float32) + tl.rand(7, offsets))


@triton.jit
def divided(x_ptr, y_ptr, stride, N: tl.constexpr):
    offsets = tl.arange(0, N)
    row, column = offsets // stride, offsets % stride
    x = tl.load(x_ptr + row * stride + column, mask=row < N // stride, other=-1)
    x = x // 7 * 3 + x % 7 - tl.cdiv(x, 5)
    tl.store(y_ptr + offsets, tl.where(x < 0, tl.abs(x), tl.minimum(x, 100)))


@triton.jit
def mixed_precision(a_ptr, b_ptr, c_ptr, K, N: tl.constexpr):
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros((N, N), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + k * N * N + square).to(tl.float16)
        total += tl.dot(a, tl.load(b_ptr + k * N * N + square))
        if k % 2 == 1:
            total *= 0.5
    tl.store(c_ptr + square, total)


@triton.jit
def reduced_in_loop(x_ptr, y_ptr, K, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros((M,), tl.float32)
    for k in tl.range(0, K, num_stages=3):
        x = tl.load(x_ptr + k * M * N + offsets)
        total += tl.sum(tl.cumsum(x, 1), 1) - tl.max(tl.trans(x), 0)
    tl.store(y_ptr + tl.arange(0, M), total)


@triton.jit
def tiled_dot(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + depth[None, :])
    b = tl.load(b_ptr + depth[:, None] * N + columns[None, :])
    c = tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], c / tl.sum(c, 0)[None, :] + tl.max(c, 1)[:, None])


@triton.jit
def packed_product(a_ptr, s_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(a_ptr + rows[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K)[:, None] * N + columns[None, :])
    s = tl.load(s_ptr + rows[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], tl.dot_scaled(a, s, "e2m1", b, None, "bf16"))


@triton.jit
def described_tiles(x_ptr, y_ptr, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [ROWS, COLUMNS], padding_option="nan")
    y_desc = tl.make_tensor_descriptor(y_ptr, [N, M], [M, 1], [COLUMNS, ROWS])
    for row in tl.range(0, M, ROWS, num_stages=3):
        x = x_desc.load([row, tl.program_id(0) * COLUMNS])
        y_desc.store([tl.program_id(0) * COLUMNS, row], tl.where(x == x, x, 0).trans())


@triton.jit
def described_rows(x_ptr, index_ptr, y_ptr, M, N: tl.constexpr, ROWS: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [1, N])
    y_desc = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [1, N])
    index = tl.load(index_ptr + tl.arange(0, ROWS))
    y_desc.scatter(x_desc.gather(index, 0), index, 0)


@triton.jit
def described_sums(x_ptr, y_ptr, M, N: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [N, N])
    y_desc = tl.make_tensor_descriptor(y_ptr, [N, N], [N, 1], [N, N])
    for row in range(0, M, N):
        y_desc.atomic_add([0, 0], x_desc.load([row, 0]))


@triton.jit
def either(x, y):
    if x > y:
        return x, y
    return y * 2, x


@triton.jit
def branching(x_ptr, y_ptr, flag, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, cache_modifier=".cg", eviction_policy="evict_first")
    y = tl.load(y_ptr + offsets, volatile=True)
    x, y = tl.map_elementwise(either, x, y)
    z = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.debug_barrier()
    if flag > 1:
        for step in tl.static_range(3):
            z = z * y + step
    elif flag == 0:
        return
    tl.store(y_ptr + offsets, z)


@triton.jit
def bits(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    odd = (x & 1) != 0
    counts = tl.sum(odd.to(tl.int32), 1)[:, None] + tl.xor_sum(x, 0)[None, :]
    wide = tl.cumsum(x.to(tl.int64) << 3, 0) ^ tl.cumprod(x.to(tl.int64), 1)
    tl.store(y_ptr + offsets, tl.where(odd, counts, -counts) + (wide % 1013).to(tl.int32))


@triton.jit
def catenated(x_ptr, y_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    y = tl.cat(x, x * 2, can_reorder=True).reshape(2, N, can_reorder=True)
    tl.store(y_ptr + tl.arange(0, N), tl.sum(tl.topk(y, N // 4), 1).sum() + x)
    tl.atomic_add(y_ptr + tl.zeros((N,), tl.int32), x, sem="acq_rel", scope="cta")


@triton.jit
def narrow_sums(x_ptr, y_ptr, K, M: tl.constexpr, N: tl.constexpr):
    total = tl.zeros((M, N), x_ptr.dtype.element_ty)
    pointers = x_ptr + tl.arange(0, M)[:, None] + tl.arange(0, N)[None, :] * M
    while K > 0:
        total = tl.maximum(total, tl.load(pointers), propagate_nan=tl.PropagateNan.ALL)
        pointers += M * N
        K -= 1
    tl.store(y_ptr + tl.arange(0, N), tl.min(total, 0))
    tl.atomic_add(y_ptr + tl.arange(0, N), tl.sum(total, 0))


@triton.jit
def nested_products(a_ptr, b_ptr, c_ptr, K, N: tl.constexpr):
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros((N, N), tl.float32)
    for i in range(K):
        a = tl.load(a_ptr + i * N * N + square)
        part = tl.zeros((N, N), tl.float32)
        for j in tl.range(i, K, num_stages=2, disallow_acc_multi_buffer=True):
            part = tl.dot(a, tl.load(b_ptr + j * N * N + square), part)
        if i % 2 == 0:
            total += tl.dot(part.to(a.dtype), a)
        else:
            total -= part
    tl.store(c_ptr + square, total)


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device="cuda").to(dtype)


def numbers(*shape: int, dtype: torch.dtype = torch.int32, most: int = 16) -> torch.Tensor:
    return torch.randint(0, most, shape, device="cuda").to(dtype)


def launches():
    half, narrow = torch.float16, torch.float8_e5m2
    tile = (floats(16, 64), floats(16, 64))
    yield lambda: reduced_rows[(1,)](*tile, 16, 64)
    yield lambda: scanned[(1,)](*tile, 16, 64)
    yield lambda: sorted_rows[(1,)](*tile, 16, 64)
    yield lambda: gathered_rows[(1,)](tile[0], numbers(16, 64), tile[1], 16, 64)
    yield lambda: counted[(1,)](numbers(256), numbers(32), 256, 32)
    yield lambda: rearranged[(1,)](*tile, 16, 64)
    for dtype, out, precision in (
        (half, torch.float32, None), (half, half, None), (torch.float32, torch.float32, "tf32"),
        (torch.float32, torch.float32, "ieee"), (torch.float32, torch.float32, "tf32x3"),
        (torch.int8, torch.int32, None), (narrow, torch.float32, None), (torch.float64, torch.float64, None),
        (torch.bfloat16, torch.float32, None),
    ):  # fmt: skip
        a, b = (floats(*shape).to(dtype) for shape in ((64, 96), (96, 64)))
        yield lambda a=a, b=b, out=out, p=precision: product[(1,)](a, b, floats(64, 64).to(out), 96, 64, 64, 32, p)
        yield lambda a=a, b=b, out=out, p=precision: product[(1,)](a, b, floats(64, 64).to(out), 90, 16, 32, 32, p)
    for n in (16, 64):
        a = floats(4, n, n, dtype=half)
        yield lambda a=a, n=n: two_products[(1,)](a[0], a, floats(n, n), 4, n)
        yield lambda a=a, n=n: batched_product[(1,)](a, a, floats(4, n, n), 4, n)
        yield lambda a=a, n=n: product_in_place[(1,)](a, a[1], 4, n)
        yield lambda a=a, n=n: mixed_precision[(1,)](numbers(4, n, n, dtype=torch.int8), a, floats(n, n), 4, n)
        for flatten in (False, True):
            c = floats(4, n, n, dtype=half)
            yield lambda n=n, c=c, f=flatten: persistent[(2,)](floats(16, n, n, dtype=half), c, c.clone(), 4, 4, f, n)
            a = floats(n, 4 * n, dtype=half)
            yield lambda a=a, n=n, f=flatten: described[(1,)](a, a.view(4 * n, n), a.clone(), n, 4 * n, n, f)
    a = floats(64, 128, dtype=half)
    yield lambda: product_of_transposed[(1,)](a, a.clone(), floats(64, 64), 128, 64, 64, 32)
    s = numbers(128, 4, dtype=torch.uint8, most=128)
    e = floats(128, 128).to(torch.float8_e4m3fn)
    yield lambda: scaled_product[(1,)](e, s, e.clone(), s.clone(), floats(128, 128), 128, 128, 128)
    yield lambda: indirect[(1,)](floats(16, 32, dtype=half), numbers(4, 64), floats(32, 32, dtype=half),
                                 floats(64, 32), 4, 64, 32)  # fmt: skip
    for m, n in ((1, 64), (2, 2048), (128, 4), (1, 1), (64, 64)):
        tile = (floats(m, n), floats(m, n))
        yield lambda t=tile, m=m, n=n: reduced_rows[(1,)](*t, m, n)
        yield lambda t=tile, m=m, n=n: scanned[(1,)](*t, m, n)
        yield lambda t=tile, m=m, n=n: sorted_rows[(1,)](*t, m, n)
        yield lambda t=tile, m=m, n=n: gathered_rows[(1,)](t[0], numbers(m, n, most=m), t[1], m, n)
        yield lambda t=tile, m=m, n=n: rearranged[(1,)](*t, m, n)
        yield lambda m=m, n=n: bits[(1,)](numbers(m, n), numbers(m, n), m, n)
        yield lambda m=m, n=n: narrow_sums[(1,)](floats(4, n, m, dtype=half), floats(n, dtype=half), 4, m, n)
        yield lambda m=m, n=n: narrow_sums[(1,)](numbers(4, n, m), numbers(n), 4, m, n)
        yield lambda m=m, n=n: narrow_sums[(1,)](
            floats(4, n, m, dtype=torch.bfloat16), floats(n, dtype=torch.bfloat16), 4, m, n
        )
    for m, n, k in ((16, 16, 16), (16, 256, 16), (128, 16, 64), (64, 128, 32), (1, 16, 16), (16, 8, 32), (32, 2, 64)):
        for dtype in (half, torch.float32, torch.int8, torch.float8_e4m3fn, torch.float64, torch.bfloat16):
            out = torch.int32 if dtype == torch.int8 else torch.float64 if dtype == torch.float64 else torch.float32
            a, b, c = floats(m, k).to(dtype), floats(k, n).to(dtype), floats(m, n).to(out)
            yield lambda a=a, b=b, c=c, m=m, n=n, k=k: tiled_dot[(1,)](a, b, c, m, n, k)
    for m, n, k in ((32, 32, 64), (128, 64, 128), (16, 128, 256)):
        packed, scales = numbers(m, k // 2, dtype=torch.uint8), numbers(m, k // 32, dtype=torch.uint8)
        b, c = floats(k, n, dtype=torch.bfloat16), floats(m, n)
        yield lambda p=packed, s=scales, b=b, c=c, m=m, n=n, k=k: packed_product[(1,)](p, s, b, c, m, n, k)
    for dtype in (half, torch.float32, torch.int8):
        x = floats(72, 128).to(dtype)
        yield lambda x=x: described_tiles[(2,)](x, x.clone(), 72, 128, 32, 64)
        yield lambda x=x: described_tiles[(2,)](x, x.clone(), 72, 128, 8, 16)
        yield lambda x=x: described_rows[(1,)](x, numbers(32, most=64), x.clone(), 72, 128, 32)
        yield lambda x=x: described_sums[(1,)](x[:64, :64].contiguous(), x[:32, :32].contiguous(), 64, 32)
    yield lambda: branching[(1,)](floats(256), floats(256), 2, 256)
    yield lambda: catenated[(1,)](floats(256), floats(256), 256)
    a = floats(4, 32, 32, dtype=half)
    yield lambda: nested_products[(1,)](a, a.clone(), floats(32, 32), 4, 32)
    yield lambda: in_place[(1,)](floats(8, 512), 8, 512)
    yield lambda: searched[(1,)](floats(256), floats(256), 0.01, 256)
    yield lambda: atomics[(1,)](floats(256), floats(3 * 256), numbers(257), 256)
    yield lambda: converted[(1,)](floats(256), floats(256), 256)
    yield lambda: divided[(1,)](numbers(256), numbers(256), 12, 256)
    yield lambda: reduced_in_loop[(1,)](floats(4, 16, 64), floats(16), 4, 16, 64)


def main() -> None:
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    for launch in launches():
        try:
            launch()
        except Exception as error:
            print(f"not launched: {str(error).strip().splitlines()[-1:]}", file=sys.stderr)


if __name__ == "__main__":
    main()
