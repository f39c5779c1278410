"""A launch that computes a NaN, on some of its elements."""

import torch
import triton
import triton.language as tl


@triton.jit
def root_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.sqrt(tl.load(x_ptr + offsets)))


x = torch.arange(-3.0, 253.0, device="cuda")
root_kernel[(1,)](x, torch.empty_like(x), BLOCK=256)
