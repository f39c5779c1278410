"""Kernels narrow because of a constant or for want of a hint, or with one layout too many; `# here` is on the line."""

import triton
import triton.language as tl


@triton.jit
def fixed_pitch(x, y, PITCH: tl.constexpr, BLOCK: tl.constexpr):
    """Rows whose pitch is a constant."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * PITCH + columns)  # here: IRS101
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def written_pitch(x, y, ODD: tl.constexpr, BLOCK: tl.constexpr):
    """A pitch that stands in the kernel as a number."""
    columns = tl.arange(0, BLOCK)
    first = tl.program_id(0) * 1001 if ODD else tl.program_id(0) * 1008
    values = tl.load(x + first + columns)  # here: IRS101
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def _first_of(row, WIDTH: tl.constexpr):
    return row * WIDTH


@triton.jit
def called_pitch(x, y, PITCH: tl.constexpr, BLOCK: tl.constexpr):
    """A pitch under another name, in a helper."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + _first_of(tl.program_id(0), PITCH) + columns)  # here: IRS101
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def masked_pitch(x, y, N: tl.constexpr, BLOCK: tl.constexpr):
    """The mask ends where the row does."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * N + columns, mask=columns < N, other=0.0)  # here: IRS101
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def tile_pitch(x, y, PITCH: tl.constexpr, TILE: tl.constexpr):
    """The rows of a tile."""
    rows, columns = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    values = tl.load(x + rows * PITCH + columns)  # here: IRS101
    tl.store(y + rows * TILE + columns, values)


@triton.jit
def fixed_pitch_out(x, y, PITCH: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + columns)
    tl.store(y + tl.program_id(0) * PITCH + columns, values)  # here: IRS102


@triton.jit
def wrapped_around(x, y, n, HINT: tl.constexpr, BLOCK: tl.constexpr):
    """Indices that begin again at n."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = columns % n
    if HINT:
        at = tl.max_contiguous(tl.multiple_of(at, 8), 8)
    values = tl.load(x + at)  # here: IRS101
    tl.store(y + columns, values)


@triton.jit
def _begin_of(row, stride, HINT: tl.constexpr):
    first = row * stride
    if HINT:
        first = tl.multiple_of(first, 8)
    return first


@triton.jit
def called_stride(x, y, stride, HINT: tl.constexpr, BLOCK: tl.constexpr):
    """The product is in a helper."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + _begin_of(tl.program_id(0), stride, HINT) + columns)  # here: IRS101
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def unpadded(x, y, n, BLOCK: tl.constexpr):
    """Rows that are masked, and so read one by one whatever their layout, to rows that begin anywhere."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + columns, mask=columns < n)
    tl.store(y + tl.program_id(0) * n + columns, values, mask=columns < n)  # here: IRS401


@triton.jit
def weighted_rows(x, weights, y, n, stride, BLOCK: tl.constexpr):
    """Weights that are read once, and rows that begin anywhere."""
    columns = tl.arange(0, BLOCK)
    factor = tl.load(weights + columns)
    for row in range(n):
        values = tl.load(x + row * stride + columns)
        tl.store(y + row * stride + columns, values * factor)  # here: IRS401
