"""Kernels with planted reasons: what the compiler must say of each, and on which line, is known."""

import triton
import triton.language as tl


@triton.jit
def narrow(x, y, wide, tight, BLOCK: tl.constexpr):
    """Rows of a stride that nothing divides beside rows of one that 16 does."""
    rows = tl.program_id(0) + 1
    columns = tl.arange(0, BLOCK)
    narrow_load = tl.load(x + rows * tight + columns)
    wide_load = tl.load(x + rows * wide + columns)
    strided_load = tl.load(x + columns * wide)
    tl.store(y + rows * wide + columns, narrow_load + wide_load + strided_load)


@triton.jit
def product(a, b, c, size, tight, TILE: tl.constexpr):
    """The left operand comes in pieces of two bytes: too small to be pipelined, and so not from several buffers."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * tight + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def used(a, b, c, size, TILE: tl.constexpr):
    """Every iteration uses the dot at once."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total) * 0.5
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def serialised(a, b, c, size, TILE: tl.constexpr):
    """A call of the runtime between the dots."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)
        tl.device_print("start", start)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def _row(x, stride, BLOCK: tl.constexpr):
    return tl.load(x + (tl.program_id(0) + 1) * stride + tl.arange(0, BLOCK))


@triton.jit
def helped(x, y, wide, tight, BLOCK: tl.constexpr):
    """One helper, called with a stride that 16 divides and with one that nothing does."""
    helped_wide = _row(x, wide, BLOCK)
    helped_narrow = _row(x, tight, BLOCK)
    tl.store(y + tl.arange(0, BLOCK), helped_wide + helped_narrow)


@triton.jit
def small(a, b, c, ROWS: tl.constexpr, TILE: tl.constexpr):
    """Too few rows for wgmma, of a type that MI300 does not have."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, TILE)
    first = tl.load(a + rows[:, None] * TILE + columns[None, :])
    second = tl.load(b + columns[:, None] * TILE + columns[None, :])
    few_rows = tl.dot(first, second)
    tl.store(c + rows[:, None] * TILE + columns[None, :], few_rows)


@triton.jit
def specialised(a, b, c, m, n, k, TILE: tl.constexpr):
    """Tiles one after another, whose loads, dots and stores have warps of their own."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [TILE, 64])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [TILE, 64])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [TILE, TILE])
    across = tl.cdiv(n, TILE)
    tiles = tl.cdiv(m, TILE) * across
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True, warp_specialize=True):
        row, column = (tile // across) * TILE, (tile % across) * TILE
        total = tl.zeros((TILE, TILE), tl.float32)
        for start in range(0, k, 64):
            total = tl.dot(left.load([row, start]), right.load([column, start]).T, total)
        out.store([row, column], total.to(tl.float16))
