"""Kernels that go over rows, with a planted access that is narrow: `# here` stands on its line."""

import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, y, stride, n, eps, BLOCK: tl.constexpr):
    """A normalisation whose input rows begin anywhere."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + columns, mask=columns < n, other=0.0).to(tl.float32)  # here: IRS101
    scale = tl.rsqrt(tl.sum(values * values, 0) / n + eps)
    factor = tl.load(weight + columns, mask=columns < n, other=0.0).to(tl.float32)
    tl.store(y + row * n + columns, (values * scale * factor).to(tl.float16), mask=columns < n)


@triton.jit
def gate(up, down, y, BLOCK: tl.constexpr):
    """A gated activation one of whose inputs is a view that begins anywhere."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(up + at).to(tl.float32)
    second = tl.load(down + at).to(tl.float32)  # here: IRS101
    tl.store(y + at, (first * tl.sigmoid(first) * second).to(tl.float16))


@triton.jit
def embed(ids, table, y, pitch, BLOCK: tl.constexpr):
    """Rows of a table, chosen by their numbers, whose pitch is not known."""
    token = tl.program_id(0)
    number = tl.load(ids + token)
    columns = tl.arange(0, BLOCK)
    tl.store(y + token * BLOCK + columns, tl.load(table + number * pitch + columns))  # here: IRS101


@triton.jit
def dequantise(codes, scales, y, pitch, BLOCK: tl.constexpr):
    """Bytes with a scale for each row."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    scale = tl.load(scales + row)
    values = tl.load(codes + row * pitch + columns).to(tl.float32)  # here: IRS101
    tl.store(y + row * BLOCK + columns, values * scale)


@triton.jit
def window(x, y, start, BLOCK: tl.constexpr):
    """A window that begins at a number."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + start + columns)  # here: IRS101
    tl.store(y + columns, values)


@triton.jit
def between(x, y, low, high, BLOCK: tl.constexpr):
    """A mask with two ends, of which one is not known."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + columns, mask=(columns >= low) & (columns < high), other=0.0)  # here: IRS101
    tl.store(y + columns, values)


@triton.jit
def block_of_matrix(x, y, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A tile with masks in both dimensions: only that along the contiguous one matters."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + row * 4096 + column, mask=(row < rows) & (column < columns), other=0.0)  # here: IRS101
    tl.store(y + row * 4096 + column, values)


@triton.jit
def _row_of(x, number, pitch, columns):
    return tl.load(x + number * pitch + columns)  # here: IRS101


@triton.jit
def _scaled_row(x, number, pitch, columns, scale):
    return _row_of(x, number, pitch, columns).to(tl.float32) * scale


@triton.jit
def nested(x, y, pitch, scale, BLOCK: tl.constexpr):
    """The access is two calls below the kernel."""
    columns = tl.arange(0, BLOCK)
    values = _scaled_row(x, tl.program_id(0), pitch, columns, scale)
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def matrix_of_strides(x, y, outer, inner, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Both strides are arguments, and the inner one might be 1."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + row * outer + column * inner)  # here: IRS101
    tl.store(y + row * COLUMNS + column, values)


@triton.jit
def in_chunks(x, y, pitch, n, BLOCK: tl.constexpr):
    """A sum over a row, chunk by chunk."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * pitch + columns).to(tl.float32)  # here: IRS101
    tl.store(y + row, tl.sum(total, 0))


@triton.jit
def halves(x, y, pitch, HALF: tl.constexpr):
    """A rotation of two halves of a row, with one load for each."""
    row = tl.program_id(0)
    columns = tl.arange(0, HALF)
    first = tl.load(x + row * pitch + columns)  # here: IRS101
    second = tl.load(x + row * pitch + HALF + columns)  # here: IRS101
    tl.store(y + row * 2 * HALF + columns, second)
    tl.store(y + row * 2 * HALF + HALF + columns, first)


@triton.jit
def histogram_weights(x, weights, y, shift, BLOCK: tl.constexpr):
    """A view shifted by a number of elements that is multiplied by an odd constant."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + columns)
    factor = tl.load(weights + shift * 3 + columns)  # here: IRS101
    tl.store(y + columns, values * factor)


@triton.jit
def narrowed(x, y, pitch, BLOCK: tl.constexpr):
    """A conversion to half the width, whose output rows begin anywhere."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + columns)
    tl.store(y + tl.program_id(0) * pitch + columns, values.to(tl.float16))  # here: IRS102


@triton.jit
def put_rows(x, slots, cache, pitch, BLOCK: tl.constexpr):
    """Rows that go to the slots of a cache."""
    token = tl.program_id(0)
    slot = tl.load(slots + token)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + token * BLOCK + columns)
    tl.store(cache + slot * pitch + columns, values)  # here: IRS102


@triton.jit
def cut_off(x, y, n, BLOCK: tl.constexpr):
    """Whole blocks are read, and a part of them is written."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + columns)
    tl.store(y + columns, values + values, mask=columns < n)  # here: IRS102


@triton.jit
def into_view(x, residual, y, BLOCK: tl.constexpr):
    """The output is a view that begins anywhere."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + columns, tl.load(x + columns) + tl.load(residual + columns))  # here: IRS102


@triton.jit
def pairs(x, y, HALF: tl.constexpr):
    """A rotation of neighbours: even and odd elements by loads of their own."""
    at = tl.program_id(0) * 2 * HALF + 2 * tl.arange(0, HALF)
    even = tl.load(x + at)  # here: IRS103
    odd = tl.load(x + at + 1)  # here: IRS103
    out = tl.program_id(0) * HALF + tl.arange(0, HALF)
    tl.store(y + out, even * odd)


@triton.jit
def halves_of_row(x, y, HALF: tl.constexpr):
    """The twin of `pairs`."""
    at = tl.program_id(0) * 2 * HALF + tl.arange(0, HALF)
    out = tl.program_id(0) * HALF + tl.arange(0, HALF)
    tl.store(y + out, tl.load(x + at) * tl.load(x + at + HALF))


@triton.jit
def channel(x, y, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """One channel of an image whose channels lie side by side."""
    pixels = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + pixels * CHANNELS)  # here: IRS103
    tl.store(y + pixels, values)


@triton.jit
def column_out(x, y, PITCH: tl.constexpr, BLOCK: tl.constexpr):
    """A column of a matrix is written."""
    rows = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + rows)
    tl.store(y + rows * PITCH + tl.program_id(0), values)  # here: IRS103


@triton.jit
def moments(x, y, PITCH: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """The mean of columns that are spread out."""
    at = tl.arange(0, BLOCK) * PITCH
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        total += tl.load(x + at + step * BLOCK * PITCH)  # here: IRS103
    tl.store(y + tl.arange(0, BLOCK), total / STEPS)
