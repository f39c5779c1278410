"""A good launch, then one that writes far outside of all memory."""

import torch
import triton
import triton.language as tl


@triton.jit
def fill_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, offsets < n)


@triton.jit
def far_kernel(x_ptr, far):
    tl.store(x_ptr + far, 1.0)


x = torch.empty(1024, device="cuda")
fill_kernel[(4,)](x, 1024, BLOCK=256)
far_kernel[(1,)](x, 2**44)
print("not reached")
