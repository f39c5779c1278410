"""Pairs whose cause is in the launch, or in what the threads of a CTA do together."""

import torch
import triton
import triton.language as tl

from benchmarks.slow.memory import flat, launch_flat, mask_of_bound
from benchmarks.slow.pair import empty, pair, tensor

N = 1 << 25


@triton.jit
def sum_part(x, y, n, BLOCK: tl.constexpr):
    size = tl.cdiv(n, tl.num_programs(0))
    start = tl.program_id(0) * size
    total = tl.zeros([BLOCK], tl.float32)
    for at in range(start, start + size, BLOCK):
        total += tl.load(x + at + tl.arange(0, BLOCK))
    tl.atomic_add(y, tl.sum(total), sem="relaxed")


def values(count=N):
    return lambda: (tensor(count), empty(64))


def launch_sum(programs, block=2048, count=N, **options):
    return lambda x, y: sum_part[(programs,)](x, y, count, BLOCK=block, **options)


pair("64 programs on 132 SMs", "IRS505", values(), launch_sum(64), launch_sum(1024, num_warps=8))
pair("one program for the GPU", "IRS505", values(1 << 22), launch_sum(1, 4096, 1 << 22),
     launch_sum(512, 2048, 1 << 22, num_warps=8))  # fmt: skip
pair("8 programs", "IRS505", values(), launch_sum(8, 8192, num_warps=16), launch_sum(1024, 2048, num_warps=8))


@triton.jit
def softmax_rows(x, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    value = tl.load(x + row * n + at, at < n, -float("inf"))
    e = tl.exp(value - tl.max(value))
    tl.store(y + row * n + at, e / tl.sum(e), at < n)


def rows(count, width):
    return lambda: (tensor(count, width), empty(count, width))


def launch_softmax(count, width, warps):
    return lambda x, y: softmax_rows[(count,)](x, y, width, WIDTH=width, num_warps=warps)


pair("16 warps for rows of 512", "IRS506", rows(1 << 16, 512), launch_softmax(1 << 16, 512, 16),
     launch_softmax(1 << 16, 512, 2))  # fmt: skip
pair("32 warps for rows of 1024", "IRS506 IRS205", rows(1 << 15, 1024), launch_softmax(1 << 15, 1024, 32),
     launch_softmax(1 << 15, 1024, 4))  # fmt: skip
pair("one warp for rows of 32768", "IRS501", rows(1 << 11, 1 << 15), launch_softmax(1 << 11, 1 << 15, 1),
     launch_softmax(1 << 11, 1 << 15, 32))  # fmt: skip
pair("64 elements for 128 threads", "IRS506 IRS508 IRS509", flat(torch.float32, 1 << 23),
     launch_flat(mask_of_bound, 64, 1 << 23), launch_flat(mask_of_bound, 1024, 1 << 23))  # fmt: skip
pair("CTAs of one warp with 32 elements", "IRS508 IRS506 IRS509 IRS502", flat(torch.float32, 1 << 22),
     launch_flat(mask_of_bound, 32, 1 << 22, num_warps=1), launch_flat(mask_of_bound, 1024, 1 << 22))  # fmt: skip


@triton.jit
def sums_in_loop(x, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for at in range(0, n, WIDTH):
        total += tl.sum(tl.load(x + row * n + at + tl.arange(0, WIDTH)))
    tl.store(y + row, total)


@triton.jit
def sums_after_loop(x, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([WIDTH], tl.float32)
    for at in range(0, n, WIDTH):
        total += tl.load(x + row * n + at + tl.arange(0, WIDTH))
    tl.store(y + row, tl.sum(total))


def launch_sums(kernel, width=1024, warps=16):
    return lambda x, y: kernel[(x.shape[0],)](x, y, x.shape[1], WIDTH=width, num_warps=warps)


pair("a reduction in each iteration", "IRS205", rows(2048, 16384), launch_sums(sums_in_loop),
     launch_sums(sums_after_loop))  # fmt: skip


@triton.jit
def largest_in_loop(x, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    most = -float("inf")
    total = 0.0
    for at in range(0, n, WIDTH):
        value = tl.load(x + row * n + at + tl.arange(0, WIDTH))
        new = tl.maximum(most, tl.max(value))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(value - new))
        most = new
    tl.store(y + row, most + tl.log(total))


@triton.jit
def largest_by_lane(x, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    most = tl.full([WIDTH], -1e30, tl.float32)
    total = tl.zeros([WIDTH], tl.float32)
    for at in range(0, n, WIDTH):
        value = tl.load(x + row * n + at + tl.arange(0, WIDTH))
        new = tl.maximum(most, value)
        total = total * tl.exp(most - new) + tl.exp(value - new)
        most = new
    top = tl.max(most)
    tl.store(y + row, top + tl.log(tl.sum(total * tl.exp(most - top))))


pair("logsumexp by iterations", "IRS205", rows(2048, 32768), launch_sums(largest_in_loop, 512),
     launch_sums(largest_by_lane, 512))  # fmt: skip


@triton.jit
def atomic_each(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + at * 0, tl.load(x + at, at < n, 0.0), at < n, sem="relaxed")


@triton.jit
def atomic_once(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + at, at < n, 0.0)), sem="relaxed")


pair("an atomic for each element", "IRS605 IRS602", values(1 << 20), launch_flat(atomic_each, 1024, 1 << 20),
     launch_flat(atomic_once, 1024, 1 << 20))  # fmt: skip


@triton.jit
def count_bins(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + tl.load(x + at) % 16, 1, sem="relaxed")


@triton.jit
def count_bins_first(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + tl.arange(0, 16), tl.histogram(tl.load(x + at) % 16, 16), sem="relaxed")


def whole_numbers():
    return tensor(1 << 22, dtype=torch.int32), empty(64, dtype=torch.int32)


pair("histogram by atomics", "IRS605 IRS602", whole_numbers, launch_flat(count_bins, 2048, 1 << 22),
     launch_flat(count_bins_first, 2048, 1 << 22))  # fmt: skip


@triton.jit
def gelu_double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n).to(tl.float64)
    tl.store(y + at, (value / (1.0 + tl.exp(-1.702 * value))).to(tl.float32), at < n)


@triton.jit
def gelu_single(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n)
    tl.store(y + at, value / (1.0 + tl.exp(-1.702 * value)), at < n)


pair("accidental float64", "IRS604", flat(torch.float32), launch_flat(gelu_double), launch_flat(gelu_single))


@triton.jit
def polynomial(x, y, n, TERMS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    if WIDE:
        value = value.to(tl.float64)
    result = value * 0
    for term in tl.static_range(TERMS):
        result = result * value + (0.5 + term)
    tl.store(y + at, result.to(tl.float32))


def launch_polynomial(wide):
    return lambda x, y: polynomial[(N // 1024,)](x, y, N, TERMS=64, BLOCK=1024, WIDE=wide)


pair("polynomial in float64", "IRS604", flat(torch.float32), launch_polynomial(True), launch_polynomial(False))


@triton.jit
def heavy_tiles(x, y, n, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n, 0.0)
    for _ in range(ROUNDS):
        value = value * 0.999 + tl.sin(value)
    tl.store(y + at, value, at < n)


COUNT = 165 * 4096


def launch_heavy(block, warps):
    return lambda x, y: heavy_tiles[(triton.cdiv(COUNT, block),)](x, y, COUNT, ROUNDS=256, BLOCK=block,
                                                                 num_warps=warps)  # fmt: skip


pair("a wave of one CTA", "IRS507", flat(torch.float32, COUNT), launch_heavy(4096, 32), launch_heavy(512, 4))


@triton.jit
def chase(x, y, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    size = tl.cdiv(n, tl.num_programs(0))
    start = tl.program_id(0) * size
    total = tl.zeros([BLOCK], tl.float32)
    for at in tl.range(start, start + size, BLOCK, num_stages=STAGES):
        total += tl.exp(tl.load(x + at + tl.arange(0, BLOCK)))
    tl.store(y + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total)


def launch_chase(stages, block=512):
    return lambda x, y: chase[(132 * 4,)](x, y, 132 * 4 * 65536, BLOCK=block, STAGES=stages, num_warps=4)


pair("loads of a loop without stages", "IRS203 IRS201 IRS509 IRS505 IRS506",
     lambda: (tensor(132 * 4 * 65536), empty(132 * 4 * 2048)), launch_chase(1), launch_chase(5, 2048))  # fmt: skip


@triton.jit
def divided(x, y, n, d, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = at.to(tl.int64) if WIDE else at
    row = number // d
    column = number % d
    tl.store(y + at, tl.load(x + row * d + column) * (row % 3 + column % 5).to(tl.float32))


def launch_divided(wide):
    return lambda x, y: divided[(N // 1024,)](x, y, N, 1000, BLOCK=1024, WIDE=wide)


pair("64-bit divisions for each element", "IRS606", flat(torch.float32), launch_divided(True), launch_divided(False))
