"""Kernels that use shared memory in every way Triton knows, for the tests of memory over time and of its costs."""

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, size, TILE: tl.constexpr):
    """Buffers of a pipelined loop, and a conversion after it."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total.to(tl.float16))


@triton.jit
def specialised(a, b, c, size, TILE: tl.constexpr):
    """The same by specialised warps, where the target can."""
    rows = tl.arange(0, TILE)
    left = tl.make_tensor_descriptor(a, [TILE, size], [size, 1], [TILE, 64])
    right = tl.make_tensor_descriptor(b, [size, TILE], [TILE, 1], [64, TILE])
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in tl.range(0, size, 64, warp_specialize=True):
        total = tl.dot(left.load([0, start]), right.load([start, 0]), total)
    tl.store(c + rows[:, None] * TILE + rows[None, :], total.to(tl.float16))


@triton.jit
def sums(x, y, TILE: tl.constexpr):
    """Scratch of reductions, of a scan and of conversions, one after another."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    values = tl.load(x + rows[:, None] * TILE + columns[None, :])
    tl.store(y + rows, tl.sum(values, 1) + tl.max(values, 0))
    running = tl.cumsum(values, 0)
    tl.store(y + rows[:, None] * TILE + columns[None, :], tl.trans(running))


@triton.jit
def gathered(x, index, y, TILE: tl.constexpr):
    """A gather, a histogram and atomics whose results are used."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    places = rows[:, None] * TILE + columns[None, :]
    values = tl.gather(tl.load(x + places), tl.load(index + places), 0)
    tl.store(y + places, values)
    counts = tl.histogram(tl.load(index + rows), TILE)
    before = tl.atomic_add(y + rows, counts.to(tl.float32))
    ticket = tl.atomic_add(index, 1)
    tl.store(y + rows, before + ticket.to(tl.float32))


@triton.jit(noinline=True)
def total_of(x, TILE: tl.constexpr):
    """A function that is called, and has scratch of its own."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    values = tl.load(x + rows[:, None] * TILE + columns[None, :])
    return tl.sum(tl.sum(tl.cumsum(values, 0), 0), 0)


@triton.jit
def calling(x, y, TILE: tl.constexpr):
    """Two calls, and scratch beside them."""
    rows = tl.arange(0, TILE)
    total = total_of(x, TILE) + total_of(y, TILE)
    tl.store(y + rows, tl.cumsum(tl.load(x + rows) * total, 0))


@triton.jit
def branching(a, b, c, size, flag, TILE: tl.constexpr):
    """A buffer that only one branch reads, between two that loops carry."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    left = tl.load(a + rows[:, None] * TILE + columns[None, :])
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        if flag > start:
            total = tl.dot(left, right, total)
        else:
            total += tl.sum(total, 0)[None, :]
    if flag > 0:
        total = tl.dot(tl.trans(left), total.to(tl.float16), total)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)
