"""Kernels that are launched in two configurations each: a script to record."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0)
    total = tl.sum(x)
    tl.store(y_ptr + row, total)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    rows, steps = tl.arange(0, BLOCK), tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * K + k + steps[None, :])
        b = tl.load(b_ptr + (k + steps[:, None]) * BLOCK + rows[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], total)


@triton.jit
def scaled(x_ptr, y_ptr, BLOCK: tl.constexpr, ADDS: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places)
    scaled = x * 0.3
    if ADDS:
        scaled += 1.0
    tl.store(y_ptr + places, scaled)


@triton.jit
def counted(x_ptr, y_ptr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + places % 16, tl.load(x_ptr + places))


def floats(*shape, dtype=torch.float32):
    return torch.randn(shape, device="cuda", dtype=dtype)


for warps in (4, 8):
    row_sum[(3,)](floats(3, 900), floats(3), 900, BLOCK=1024, num_warps=warps)
    scaled[(4,)](floats(1024), floats(1024), BLOCK=256, ADDS=False, num_warps=warps)
    scaled[(4,)](floats(1024), floats(1024), BLOCK=256, ADDS=True, num_warps=warps)
    scaled[(4,)](floats(1024), floats(1024), BLOCK=256, ADDS=True, num_warps=warps, enable_fp_fusion=False)
    counted[(4,)](floats(1024), floats(16), BLOCK=256, num_warps=warps)
for step in (32, 64):
    half = torch.float16
    product[(1,)](floats(64, 128, dtype=half), floats(128, 64, dtype=half), floats(64, 64), 128, BLOCK=64, BLOCK_K=step)
