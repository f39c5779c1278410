"""A launch that is well, in a script that is not content with it."""

import torch
import triton
import triton.language as tl


@triton.jit
def fill_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


x = torch.empty(256, device="cuda")
fill_kernel[(1,)](x, BLOCK=256)
assert float(x.sum()) == 257, "the sum is 256, and 257 was wanted"
