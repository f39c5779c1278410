"""A slow kernel, one that does the same faster, and ten that only seem to: a script to record."""

import functools
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def scaled(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    # Each row by its sum of squares, in small parts.
    row, total = tl.program_id(0), 0.0
    for start in range(0, n, 16):
        offsets = start + tl.arange(0, 16)
        x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n, other=0.0)
        total += tl.sum(x * x, axis=0)
    for start in range(0, n, 16):
        offsets = start + tl.arange(0, 16)
        x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n, other=0.0)
        tl.store(out_ptr + row * stride + offsets, x / (total + 1.0), mask=offsets < n)


@triton.jit
def honest(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0)
    scale = 1.0 / (1.0 + tl.sum(x * x, axis=0))
    tl.store(out_ptr + row * stride + offsets, x * scale, mask=mask)


@triton.jit
def some_programs(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    if row != 13:
        x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n, other=0.0)
        tl.store(out_ptr + row * stride + offsets, x / (tl.sum(x * x, axis=0) + 1.0), mask=offsets < n)


@triton.jit
def no_output(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    # The output holds what an earlier launch left there.
    offsets = tl.arange(0, BLOCK)
    tl.debug_barrier()
    tl.load(x_ptr + tl.program_id(0) * stride + offsets, mask=offsets < n)


@triton.jit
def first_call(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    # What is there is left there.
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    known = tl.load(out_ptr + row * stride)
    if known == 0.0:
        x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n, other=0.0)
        tl.store(out_ptr + row * stride + offsets, x / (tl.sum(x * x, axis=0) + 1.0), mask=offsets < n)


@triton.jit
def in_place(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n, other=0.0)
    tl.store(x_ptr + row * stride + offsets, x / (tl.sum(x * x, axis=0) + 1.0), mask=offsets < n)


@triton.jit
def one_size(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    # Right at the size that is looked at.
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    mask = (offsets < n) | (n < BLOCK)
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + row * stride + offsets, x / (tl.sum(x * x, axis=0) + 1.0), mask=offsets < n)


@triton.jit
def half_precision(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n, other=0.0).to(tl.bfloat16)
    total = tl.sum(x * x, axis=0).to(tl.float32)
    tl.store(out_ptr + row * stride + offsets, x.to(tl.float32) / (total + 1.0), mask=offsets < n)


@triton.jit
def rounded(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    # Any check with a tolerance passes it.
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n, other=0.0)
    y = x / (tl.sum(x * x, axis=0) + 1.0)
    tl.store(out_ptr + row * stride + offsets, tl.floor(y * 1024.0 + 0.5) / 1024.0, mask=offsets < n)


@triton.jit
def expected_read(x_ptr, out_ptr, expected_ptr, n, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    tl.store(out_ptr + at, tl.load(expected_ptr + at, mask=mask), mask=mask)


@triton.jit
def nothing(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    # Beside a call of torch, which does the work.
    pass


ROWS, COLUMNS = 32, 256
x = torch.randn(ROWS, COLUMNS, device="cuda")
out = torch.empty_like(x)


def launch(kernel, *more, rows=ROWS, **options):
    kernel[(rows,)](x, out, *more, COLUMNS, COLUMNS, BLOCK=COLUMNS, **options)
    return out


@functools.cache
def cached():
    return launch(scaled)


if "cached" in sys.argv:
    for _ in range(9):
        cached()
else:
    launch(scaled)
    launch(honest)
    for one in (some_programs, no_output, first_call, in_place, one_size, half_precision, rounded, nothing):
        launch(one)
    launch(expected_read, x / (x * x).sum(1, keepdim=True).add(1.0))
    # The last rows are left out.
    launch(honest, rows=ROWS - 1, num_warps=8)
    # What `nothing` is called beside.
    out = x / (x * x).sum(1, keepdim=True).add(1.0)
