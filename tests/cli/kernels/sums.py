"""The sums of a tile's rows: it is compiled in half a matmul's time, by as many passes."""

import triton
import triton.language as tl


@triton.jit
def row_sums(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + rows[:, None] * COLUMNS + columns[None, :])
    tl.store(out_ptr + rows, tl.sum(x, axis=1))


@triton.jit
def scaled_norms(x_ptr, out_ptr, scale, shift, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Multiplies and adds, which may be contracted, and a maximum and a sum over warps, which need barriers."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + columns[None, :] * ROWS + rows[:, None]) * scale + shift
    x = x - tl.max(x, axis=1)[:, None]
    tl.store(out_ptr + rows, tl.sum(x, axis=1))
