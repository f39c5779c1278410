"""Kernels in a file that imports no torch, for signatures."""

import triton
import triton.language as tl


@triton.jit
def axpy(x_ptr, y_ptr, n, a, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = None if EVEN else offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, a * x + y, mask=mask)


@triton.jit
def broken(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(x_ptr + offsets, x + undefined_name)  # noqa: F821


@triton.jit
def tile_product(a_ptr, b_ptr, c_ptr, size, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    accumulator = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, size, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * size + (start + rows)[None, :])
        b = tl.load(b_ptr + (start + rows)[:, None] * size + rows[None, :])
        accumulator = tl.dot(a, b, accumulator)
    tl.store(c_ptr + rows[:, None] * size + rows[None, :], accumulator)
