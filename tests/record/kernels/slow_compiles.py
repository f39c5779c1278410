"""Four kernels that take long to compile, each for one reason; the lines that are to blame bear its name."""

import torch
import triton
import triton.language as tl


@triton.jit
def unrolled(x_ptr, y_ptr, stride, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in tl.static_range(COUNT):
        total += tl.exp(tl.load(x_ptr + step * stride + offsets))  # unrolled
    tl.store(y_ptr + offsets, total)


@triton.jit
def huge_tile(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, tl.exp(x))  # tile


@triton.jit
def fallback_dot(x_ptr, y_ptr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    places = rows[:, None] * BLOCK + rows[None, :]
    x = tl.load(x_ptr + places)
    product = tl.dot(x, x, input_precision="ieee")  # dot
    tl.store(y_ptr + places, product)


@triton.jit
def once(x):
    return tl.exp(x) / (1.0 + x * x)  # inlined


@triton.jit
def four_times(x):
    return once(once(once(once(x))))


@triton.jit
def deep(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, four_times(four_times(four_times(four_times(x)))))


if __name__ == "__main__":
    x, y = (torch.empty(1 << 20, device="cuda") for _ in range(2))
    unrolled[(1,)](x, y, 4096, COUNT=24, BLOCK=512)
    huge_tile[(1,)](x, y, BLOCK=8192)
    fallback_dot[(1,)](x, y, BLOCK=32)
    deep[(1,)](x, y, BLOCK=512)
