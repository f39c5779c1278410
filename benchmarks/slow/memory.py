"""Pairs whose cause is in how memory is accessed, or how often."""

import torch
import triton
import triton.language as tl

from benchmarks.slow.pair import empty, pair, tensor

N = 1 << 25
HALF = torch.float16


@triton.jit
def scale_rows(x, y, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    here = at < columns
    tl.store(y + row * stride + at, tl.load(x + row * stride + at, here) * 2, here)


@triton.jit(do_not_specialize=["stride", "columns"])
def scale_rows_unspecialised(x, y, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    here = at < columns
    tl.store(y + row * stride + at, tl.load(x + row * stride + at, here) * 2, here)


def rows(width):
    return lambda: (tensor(8192, width, dtype=HALF), empty(8192, width, dtype=HALF))


def launch_rows(kernel, columns):
    return lambda x, y: kernel[(8192,)](x, y, columns, x.stride(0), BLOCK=4096)


pair("unspecialised stride", "IRS101 IRS102", rows(4096), launch_rows(scale_rows_unspecialised, 4096),
     launch_rows(scale_rows, 4096))  # fmt: skip


@triton.jit
def scale_padded(x, y, columns, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    here = at < columns
    tl.store(y + row * STRIDE + at, tl.load(x + row * STRIDE + at, here) * 2, here)


pair("odd row stride", "IRS101 IRS102", rows(4112),
     lambda x, y: scale_padded[(8192,)](x, y, 4096, STRIDE=4097, BLOCK=4096),
     lambda x, y: scale_padded[(8192,)](x, y, 4096, STRIDE=4112, BLOCK=4096))  # fmt: skip


@triton.jit
def scale_shifted(x, y, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    tl.store(y + at + SHIFT, tl.load(x + at + SHIFT, here) * 2, here)


def flat(dtype=HALF, count=N):
    return lambda: (tensor(count + 64, dtype=dtype), empty(count + 64, dtype=dtype))


pair("constant in the offset", "IRS101 IRS102", flat(),
     lambda x, y: scale_shifted[(N // 1024,)](x, y, N, SHIFT=1, BLOCK=1024),
     lambda x, y: scale_shifted[(N // 1024,)](x, y, N, SHIFT=8, BLOCK=1024))  # fmt: skip


@triton.jit
def mask_of_remainder(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = (at < n) & (at % 7 != 8)
    tl.store(y + at, tl.load(x + at, here) * 2, here)


@triton.jit
def mask_of_bound(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    tl.store(y + at, tl.load(x + at, here) * 2, here)


@triton.jit
def mask_of_last(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at <= n - 1
    tl.store(y + at, tl.load(x + at, here) * 2, here)


def launch_flat(kernel, block=1024, count=N, **options):
    return lambda x, y: kernel[(triton.cdiv(count, block),)](x, y, count, BLOCK=block, **options)


pair("mask with a remainder", "IRS101 IRS102", flat(), launch_flat(mask_of_remainder), launch_flat(mask_of_bound))
pair("mask of <= n - 1", "IRS101 IRS102", flat(), launch_flat(mask_of_last), launch_flat(mask_of_bound))


@triton.jit
def first_of_eight(x, y, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    tl.store(y + at, tl.load(x + at * STRIDE, here), here)


pair("one field of eight", "IRS103", lambda: (tensor(8 << 23), empty(1 << 23)),
     lambda x, y: first_of_eight[(1 << 13,)](x, y, 1 << 23, STRIDE=8, BLOCK=1024),
     lambda x, y: first_of_eight[(1 << 13,)](x, y, 1 << 23, STRIDE=1, BLOCK=1024))  # fmt: skip


@triton.jit
def columns_by_thread(x, y, M, K: tl.constexpr):
    rows = tl.program_id(0) * 128 + tl.arange(0, 128)
    total = tl.zeros([128], tl.float32)
    for k in range(K):
        total += tl.load(x + rows * K + k)
    tl.store(y + rows, total)


@triton.jit
def columns_by_tile(x, y, M, K: tl.constexpr):
    rows = tl.program_id(0) * 128 + tl.arange(0, 128)
    total = tl.zeros([128], tl.float32)
    for k in range(0, K, 32):
        total += tl.sum(tl.load(x + rows[:, None] * K + k + tl.arange(0, 32)[None, :]), 1)
    tl.store(y + rows, total)


pair("a thread for each row", "IRS103", lambda: (tensor(1 << 17, 256), empty(1 << 17)),
     lambda x, y: columns_by_thread[(1 << 10,)](x, y, 1 << 17, K=256),
     lambda x, y: columns_by_tile[(1 << 10,)](x, y, 1 << 17, K=256))  # fmt: skip


@triton.jit
def transpose_direct(x, y, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * 4 + tl.arange(0, 4)
    tl.store(y + j[None, :] * N + i[:, None], tl.load(x + i[:, None] * N + j[None, :]))


@triton.jit
def transpose_tiles(x, y, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + j[None, :] * N + i[:, None], tl.load(x + i[:, None] * N + j[None, :]))


pair("transposition by narrow tiles", "IRS103 IRS101", lambda: (tensor(4096, 4096), empty(4096, 4096)),
     lambda x, y: transpose_direct[(16, 1024)](x, y, N=4096, BLOCK=256),
     lambda x, y: transpose_tiles[(64, 64)](x, y, N=4096, BLOCK=64))  # fmt: skip


@triton.jit
def three_passes(x, y, N: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(0, N, BLOCK):
        total += tl.load(x + row * N + k + tl.arange(0, BLOCK))
    mean = tl.sum(total) / N
    square = tl.zeros([BLOCK], tl.float32)
    for k in range(0, N, BLOCK):
        d = tl.load(x + row * N + k + tl.arange(0, BLOCK)) - mean
        square += d * d
    scale = tl.rsqrt(tl.sum(square) / N + 1e-5)
    for k in range(0, N, BLOCK):
        at = row * N + k + tl.arange(0, BLOCK)
        tl.store(y + at, (tl.load(x + at) - mean) * scale)


@triton.jit
def one_pass(x, y, N: tl.constexpr):
    row = tl.program_id(0)
    at = row * N + tl.arange(0, N)
    value = tl.load(x + at)
    d = value - tl.sum(value) / N
    tl.store(y + at, d * tl.rsqrt(tl.sum(d * d) / N + 1e-5))


pair("data read three times", "IRS104 IRS509", lambda: (tensor(2048, 16384), empty(2048, 16384)),
     lambda x, y: three_passes[(2048,)](x, y, N=16384, BLOCK=1024, num_warps=8),
     lambda x, y: one_pass[(2048,)](x, y, N=16384, num_warps=16))  # fmt: skip


@triton.jit
def unpack_again(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, ((tl.load(x + at // 8, at < n) >> (at % 8 * 4)) & 15).to(tl.float16), at < n)


@triton.jit
def unpack_once(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * (BLOCK // 8) + tl.arange(0, BLOCK // 8)
    parts = (tl.load(x + at, at < n // 8)[:, None] >> (tl.arange(0, 8) * 4)[None, :]) & 15
    out = at[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(y + out, parts.to(tl.float16), out < n)


pair("packed words read eight times", "IRS104", lambda: (tensor(N // 8, dtype=torch.int32), empty(N, dtype=HALF)),
     launch_flat(unpack_again, 2048), launch_flat(unpack_once, 2048))  # fmt: skip


@triton.jit
def gemv_by_columns(x, v, y, M, N: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for row in range(M):
        total += tl.load(x + row * N + at) * tl.load(v + row)
    tl.store(y + at, total)


@triton.jit
def gemv_by_tiles(x, v, y, M, N: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.program_id(1) * 128
    total = tl.zeros([BLOCK], tl.float32)
    for row in range(part, part + 128, 16):
        rows = row + tl.arange(0, 16)
        tile = tl.load(x + rows[:, None] * N + at[None, :]) * tl.load(v + rows)[:, None]
        total += tl.sum(tile, 0)
    tl.atomic_add(y + at, total, sem="relaxed")


pair("serial transposed gemv", "IRS505 IRS509 IRS203 IRS506", lambda: (tensor(4096, 4096), tensor(4096), empty(4096)),
     lambda x, v, y: gemv_by_columns[(32,)](x, v, y, 4096, N=4096, BLOCK=128),
     lambda x, v, y: gemv_by_tiles[(32, 32)](x, v, y, 4096, N=4096, BLOCK=128))  # fmt: skip


@triton.jit
def sum_in_while(x, y, n, WIDTH: tl.constexpr, STEP: tl.constexpr):
    at = tl.program_id(0) * n
    end = at + n
    total = tl.zeros([WIDTH], tl.float32)
    while at < end:
        total += tl.load(x + at * STEP + tl.arange(0, WIDTH) * STEP)
        at += WIDTH
    tl.store(y + tl.program_id(0), tl.sum(total))


pair("strided load in a while loop", "IRS103 IRS101", lambda: (tensor(4 << 23), empty(1024)),
     lambda x, y: sum_in_while[(1024,)](x, y, 8192, WIDTH=1024, STEP=4),
     lambda x, y: sum_in_while[(1024,)](x, y, 8192, WIDTH=1024, STEP=1))  # fmt: skip


@triton.jit
def gather_words(x, index, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index + at // 64)
    tl.store(y + at, tl.load(x + row * 64 + at % 64))


@triton.jit
def gather_rows(x, index, y, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * (BLOCK // 64) + tl.arange(0, BLOCK // 64)
    row = tl.load(index + rows)
    inner = tl.arange(0, 64)[None, :]
    tl.store(y + rows[:, None] * 64 + inner, tl.load(x + row[:, None] * 64 + inner))


pair("gather whose rows are hidden by // and %", "IRS101 IRS104",
     lambda: (tensor(1 << 16, 64, dtype=HALF), tensor(N // 64, dtype=torch.int32), empty(N, dtype=HALF)),
     lambda x, i, y: gather_words[(N // 2048,)](x, i, y, N, BLOCK=2048),
     lambda x, i, y: gather_rows[(N // 2048,)](x, i, y, N, BLOCK=2048))  # fmt: skip
