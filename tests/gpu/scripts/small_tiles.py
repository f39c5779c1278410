"""A product in tiles of 16×16, far too small for the tensor cores."""

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        left = tl.load(a + row[:, None] * n + k + inner[None, :])
        right = tl.load(b + (k + inner[:, None]) * n + column[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.float16))


if __name__ == "__main__":
    n = 2048
    a, b, c = (torch.randn(n, n, device="cuda", dtype=torch.float16) for _ in range(3))
    product[lambda meta: (triton.cdiv(n, meta["BLOCK"]), triton.cdiv(n, meta["BLOCK"]))](a, b, c, n, BLOCK=16)
