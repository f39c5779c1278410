"""A kernel that calls functions, in a loop, with several results, and one within another."""

import torch
import triton
import triton.language as tl


@triton.jit(noinline=True)
def power(x, n):
    result = x
    for _ in range(n):
        result = result * x
    if result > 100:
        return x
    return result


@triton.jit(noinline=True)
def both(x_ptr, x, n):
    return power(x, n) - power(tl.load(x_ptr + n), 1), n * 3


@triton.jit
def calling(x_ptr, y_ptr, n):
    x = tl.load(x_ptr + tl.program_id(0))
    count = 0
    for step in range(n):
        x, more = both(x_ptr, x, step)
        count += more
    tl.store(y_ptr + tl.program_id(0), x + count)


x = torch.randn(8, device="cuda")
calling[(8,)](x, torch.empty_like(x), 5)
