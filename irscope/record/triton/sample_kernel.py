"""A small matmul, compiled to show the pipeline of a target."""

import triton
import triton.language as tl


@triton.jit
def sample_matmul(a_ptr, b_ptr, c_ptr, size, BLOCK: tl.constexpr):
    """One tile of a square matmul, row-major."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    accumulator = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, size, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * size + (start + inner)[None, :])
        b = tl.load(b_ptr + (start + inner)[:, None] * size + columns[None, :])
        accumulator = tl.dot(a, b, accumulator)
    tl.store(c_ptr + rows[:, None] * size + columns[None, :], accumulator)
