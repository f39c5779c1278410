"""Kernels with dots: loads that are not pipelined, dots without matrix units, tiles that do not fit."""

# pyright: reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# Triton types what a kernel calls as what it is in Python.

import triton
import triton.language as tl


@triton.jit
def scores(q, k, y, keys, pitch, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    """A sum of attention scores: the rows of the keys begin anywhere."""
    rows, depth = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
    query = tl.load(q + rows[:, None] * DEPTH + depth[None, :])
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, keys, BLOCK):
        key = tl.load(k + (start + rows)[None, :] * pitch + depth[:, None])  # here: IRS201 IRS101
        total = tl.dot(query, key, total)  # here: IRS301
    tl.store(y + rows[:, None] * BLOCK + rows[None, :], total)


@triton.jit
def spread(a, b, y, size, pitch, step, ROWS: tl.constexpr, DEPTH: tl.constexpr, COLUMNS: tl.constexpr):
    """A product of a matrix whose elements lie apart in both directions."""
    rows, depth, columns = tl.arange(0, ROWS), tl.arange(0, DEPTH), tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, size, DEPTH):
        left = tl.load(a + rows[:, None] * size + (start + depth)[None, :])
        right = tl.load(b + (start + depth)[:, None] * pitch + columns[None, :] * step)  # here: IRS103 IRS201
        total = tl.dot(left, right, total)
    tl.store(y + rows[:, None] * COLUMNS + columns[None, :], total)


@triton.jit
def attention(q, k, v, y, keys, scale, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    """Attention with a running maximum; its second dot is scaled in each iteration."""
    rows, depth = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
    query = tl.load(q + rows[:, None] * DEPTH + depth[None, :])
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    weight = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, DEPTH), tl.float32)
    for start in range(0, keys, BLOCK):
        key = tl.load(k + (start + rows)[None, :] * DEPTH + depth[:, None])  # here: IRS201
        score = tl.dot(query, key) * scale  # here: IRS302
        higher = tl.maximum(most, tl.max(score, 1))
        part = tl.exp(score - higher[:, None])
        kept = tl.exp(most - higher)
        weight = weight * kept + tl.sum(part, 1)
        value = tl.load(v + (start + rows)[:, None] * DEPTH + depth[None, :])  # here: IRS201
        total = tl.dot(part.to(tl.float16), value, total * kept[:, None])
        most = higher
    tl.store(y + rows[:, None] * DEPTH + depth[None, :], (total / weight[:, None]).to(tl.float16))


@triton.jit
def quantised(a, codes, scales, y, size, pitch, TILE: tl.constexpr):
    """Weights in bytes, whose rows begin anywhere."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    scale = tl.load(scales + columns)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(codes + (start + rows)[:, None] * pitch + columns[None, :])  # here: IRS201 IRS101
        total = tl.dot(left, right.to(tl.float16), total)
    tl.store(y + rows[:, None] * TILE + columns[None, :], total * scale[None, :])


@triton.jit
def expert(a, order, b, y, size, pitch, TILE: tl.constexpr):
    """Rows that are gathered by their numbers, and begin anywhere."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    tokens = tl.load(order + tl.program_id(0) * TILE + rows)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + tokens[:, None] * pitch + (start + columns)[None, :])  # here: IRS201 IRS101
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(y + tl.program_id(0) * TILE * TILE + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def until_done(a, b, y, ends, TILE: tl.constexpr):
    """A while loop up to a number that is read."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    end = tl.load(ends + tl.program_id(0))
    total = tl.zeros((TILE, TILE), tl.float32)
    step = end - end
    while step < end:
        left = tl.load(a + step * TILE * TILE + rows[:, None] * TILE + columns[None, :])  # here: IRS201
        right = tl.load(b + step * TILE * TILE + rows[:, None] * TILE + columns[None, :])  # here: IRS201
        total = tl.dot(left, right, total)
        step += 1
    tl.store(y + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def two_products(a, b, c, y, size, TILE: tl.constexpr):
    """Two dots of one operand in a loop."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    first = tl.zeros((TILE, TILE), tl.float32)
    second = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])  # here: IRS201
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])  # here: IRS201
        other = tl.load(c + (start + rows)[:, None] * TILE + columns[None, :])  # here: IRS201
        first = tl.dot(left, right, first)
        second = tl.dot(left, other, second)
    tl.store(y + rows[:, None] * TILE + columns[None, :], first * tl.sigmoid(second))


@triton.jit
def in_stages(a, b, y, size, STAGES: tl.constexpr, TILE: tl.constexpr):
    """The loop says how many stages it wants."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in tl.range(0, size, TILE, num_stages=STAGES):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])  # here: IRS201
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])  # here: IRS201
        total = tl.dot(left, right, total)  # here: IRS302
    tl.store(y + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def rounded_each_time(a, b, y, size, ROUND: tl.constexpr, TILE: tl.constexpr):
    """The accumulator is rounded in each iteration, or once at the end."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        part = tl.dot(left, right, total)  # here: IRS302
        total = part.to(tl.bfloat16).to(tl.float32) if ROUND else part
    tl.store(y + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def checked(a, b, y, size, CHECK: tl.constexpr, TILE: tl.constexpr):
    """What is loaded is printed in the loop."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)  # here: IRS303
        if CHECK:
            tl.device_print("at", start // TILE)
            tl.device_print("of", size)
    tl.store(y + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def in_loop(a, b, y, size, HOW: tl.constexpr, TILE: tl.constexpr):
    """A product of f32 in a loop."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total, input_precision=HOW)  # here: IRS601
    tl.store(y + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def summed(x, y, TILE: tl.constexpr):
    """A product of f32 without a dot, which the compiler makes of its sum."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    tile = tl.load(x + rows[:, None] * TILE + columns[None, :])
    product = tl.sum(tile[:, :, None] * tile[None, :, :], 1)  # here: IRS601 IRS603
    tl.store(y + rows[:, None] * TILE + columns[None, :], product)


@triton.jit
def _inner_product(left, right, HOW: tl.constexpr):
    return tl.dot(left, tl.trans(right), input_precision=HOW)  # here: IRS601 IRS301


@triton.jit
def gram(x, y, HOW: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The products of all rows with each other, in a helper."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    values = tl.load(x + rows[:, None] * COLUMNS + columns[None, :])
    tl.store(y + rows[:, None] * ROWS + rows[None, :], _inner_product(values, values, HOW))


@triton.jit
def row_sums(x, y, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A softmax over rows that are held whole: more of them than registers."""
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + rows * COLUMNS + columns)
    powers = tl.exp(values - tl.max(values, 1)[:, None])
    ranks = tl.cumsum(powers, 1)
    tl.store(y + rows * COLUMNS + columns, (powers * ranks) / tl.sum(powers, 1)[:, None])


@triton.jit
def polynomial(x, y, BLOCK: tl.constexpr):
    """Powers that are all needed at the end."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    one = tl.load(x + at)
    two = tl.exp(one)
    three = tl.exp(one * two)
    four = tl.exp(two + three)
    five = tl.exp(three * four)
    total = one + two * three + four * five
    tl.store(y + at, total * three / tl.sum(total * two, 0) + four / tl.sum(five, 0))
