"""Products on matrix units whose sums are made in an order of one's choice, in TF32, bfloat16 and float16."""

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, size, inner, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, BACKWARDS: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for step in range(0, inner, BLOCK_K):
        start = inner - BLOCK_K - step if BACKWARDS else step
        k = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + rows[:, None] * inner + k[None, :])
        right = tl.load(b + k[:, None] * size + columns[None, :])
        total = tl.dot(left, right, total, input_precision="tf32")
    tl.store(c + rows[:, None] * size + columns[None, :], total.to(c.dtype.element_ty))


def launch(dtype, block_k=32, backwards=False, inputs=None, warps=4):
    """One launch on seeded inputs, or on those of another one; returns its arguments."""
    size, inner = 256, 2048
    if inputs is None:
        generator = torch.Generator("cuda").manual_seed(0)
        shapes = ((size, inner), (inner, size))
        a, b = (torch.randn(shape, generator=generator, device="cuda").to(dtype) for shape in shapes)
        inputs = a, b, torch.empty(size, size, device="cuda", dtype=dtype)
    grid = (size // 64, size // 64)
    product[grid](*inputs, size, inner, BLOCK=64, BLOCK_K=block_k, BACKWARDS=backwards, num_warps=warps)
    return inputs


if __name__ == "__main__":
    launch(torch.float32)
