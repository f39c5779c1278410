"""Kernels whose locations are told apart only by the whole chain of calls."""

import triton
import triton.language as tl

from helpers import damped, scaled, shifted


@triton.jit
def local(x):
    return tl.exp(x)


@triton.jit
def chains(x_ptr, y_ptr, count, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    first = scaled(x, factor)
    second = scaled(
        first,
        factor + 1.0,
    )
    third = shifted(second, factor, 2.0)
    biggest = tl.max(third, axis=0)
    total = tl.sum(local(third - biggest), axis=0)
    last = damped(total)
    tl.store(y_ptr + offsets, third / total + last, mask=mask)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, SIZE: tl.constexpr):
    rows = tl.arange(0, SIZE)
    a_ptrs = a_ptr + rows[:, None] * K + rows[None, :]
    b_ptrs = b_ptr + rows[:, None] * SIZE + rows[None, :]
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for k in range(0, K, SIZE):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs + k * SIZE)
        if k > SIZE:
            total = scaled(total, 2.0)
        total = tl.dot(a, b, total)
        a_ptrs += SIZE
    tl.store(c_ptr + rows[:, None] * SIZE + rows[None, :], total.to(tl.float16))


@triton.jit
def twice(x_ptr, y_ptr, factor, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    near = shifted(x, factor, 2.0)
    near_max = tl.max(near, axis=0)
    far = shifted(near + near_max, factor, 3.0)
    far_max = tl.max(far, axis=0)
    tl.store(y_ptr + offsets, near * near_max + far * far_max)
