"""A matmul of 16 columns: it is compiled in half the time of a square one, with the same passes at work."""

import triton
import triton.language as tl


@triton.jit
def tile_product(a_ptr, b_ptr, c_ptr, size, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    accumulator = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, size, COLUMNS):
        a = tl.load(a_ptr + rows[:, None] * size + (start + columns)[None, :])
        b = tl.load(b_ptr + (start + columns)[:, None] * COLUMNS + columns[None, :])
        accumulator = tl.dot(a, b, accumulator)
    tl.store(c_ptr + rows[:, None] * COLUMNS + columns[None, :], accumulator)
