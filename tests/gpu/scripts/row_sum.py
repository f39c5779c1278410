"""Sums of rows: several warps reduce one row, through shared memory and barriers. Its own check counts too."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, offsets < columns, 0.0)
    largest = tl.max(x, 0)
    tl.store(out_ptr + row * columns + offsets, x - largest + tl.sum(x, 0), offsets < columns)


torch.manual_seed(0)
x = torch.randn(2048, 4096, device="cuda")
out = torch.empty_like(x)
row_sum_kernel[(2048,)](x, out, 4096, BLOCK=4096, num_warps=8)
expected = x.double() - x.double().amax(1, keepdim=True) + x.double().sum(1, keepdim=True)
error = float((out - expected).norm() / expected.norm())
print(f"relative error {error:.1e}")
assert error < 1e-4, "the sums are wrong"
