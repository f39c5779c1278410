"""A product whose first operand is scaled in registers, and goes to shared memory from there."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_matmul_kernel(a_ptr, b_ptr, c_ptr, size, factor, BLOCK: tl.constexpr, INNER: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, INNER)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, size, INNER):
        a = tl.load(a_ptr + rows[:, None] * size + (start + inner)[None, :])
        b = tl.load(b_ptr + (start + inner)[:, None] * size + columns[None, :])
        total = tl.dot(a, (b * factor).to(tl.float16), total)
    tl.store(c_ptr + rows[:, None] * size + columns[None, :], total.to(tl.float16))


torch.manual_seed(0)
size = 2048
a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
c = torch.empty_like(a)
scaled_matmul_kernel[(size // 128, size // 128)](a, b, c, size, 0.5, BLOCK=128, INNER=64, num_warps=4, num_stages=3)
expected = a.double() @ (b.double() * 0.5)
error = float((c - expected).norm() / expected.norm())
print(f"relative error {error:.1e}")
assert error < 1e-2, "the product is wrong"
