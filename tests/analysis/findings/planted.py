"""Kernels with a planted cause: `# here` stands on the line that a finding must name."""

# pyright: reportAssignmentType=false, reportArgumentType=false
# Gluon types what is a constexpr in a kernel as what it holds.

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def row(x, y, stride, BLOCK: tl.constexpr):
    """A row that begins anywhere, or at a multiple of 16."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * stride + columns)  # here: IRS101
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def row_out(x, y, stride, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + columns)
    tl.store(y + tl.program_id(0) * stride + columns, values)  # here: IRS102


@triton.jit
def two_strides(x, y, outer, inner, BLOCK: tl.constexpr):
    """One of two strides is to blame."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * outer + tl.program_id(1) * inner + columns)  # here: IRS101
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def counted(x, y, n, BLOCK: tl.constexpr):
    """A mask that ends anywhere."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + columns, mask=columns < n)  # here: IRS101
    tl.store(y + columns, values)


@triton.jit
def fixed_mask(x, y, END: tl.constexpr, BLOCK: tl.constexpr):
    """A mask that ends at a constant."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + columns, mask=columns < END, other=0.0)  # here: IRS101
    tl.store(y + columns, values)


@triton.jit
def _span(x, first, BLOCK: tl.constexpr):
    return tl.load(x + first + tl.arange(0, BLOCK))  # here: IRS101


@triton.jit
def helped(x, y, stride, BLOCK: tl.constexpr):
    """The cause is in the caller, the load in a helper."""
    values = _span(x, tl.program_id(0) * stride, BLOCK)
    tl.store(y + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), values)


@triton.jit
def stepped(x, y, step, BLOCK: tl.constexpr):
    """A stride that may be 1."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + columns * step)  # here: IRS101
    tl.store(y + columns, values)


@triton.jit
def every(x, y, STEP: tl.constexpr, BLOCK: tl.constexpr):
    """Every STEP-th element."""
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + columns * STEP)  # here: IRS103
    tl.store(y + columns, values)


@triton.jit
def every_out(x, y, STEP: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + columns)
    tl.store(y + columns * STEP, values)  # here: IRS103


@triton.jit
def wrapped(x, y, size, LAST: tl.constexpr, TILE: tl.constexpr):
    """Rows that begin again at a size, next to each other in memory; or with that dimension last, and transposed."""
    inner = (tl.program_id(0) * TILE + tl.arange(0, TILE)) % size
    outer = tl.arange(0, TILE)
    if LAST:
        values = tl.trans(tl.load(x + inner[None, :] + outer[:, None] * size))  # here: IRS103
    else:
        values = tl.load(x + inner[:, None] + outer[None, :] * size)  # here: IRS103
    tl.store(y + outer[:, None] * TILE + tl.arange(0, TILE)[None, :], values)


@triton.jit
def wrapped_out(x, y, size, LAST: tl.constexpr, TILE: tl.constexpr):
    """The same of a store."""
    inner = (tl.program_id(0) * TILE + tl.arange(0, TILE)) % size
    outer = tl.arange(0, TILE)
    values = tl.load(x + outer[:, None] * TILE + tl.arange(0, TILE)[None, :])
    if LAST:
        tl.store(y + inner[None, :] + outer[:, None] * size, tl.trans(values))  # here: IRS103
    else:
        tl.store(y + inner[:, None] + outer[None, :] * size, values)  # here: IRS103


@triton.jit
def product(a, b, c, size, tight, TILE: tl.constexpr):
    """The left operand comes in rows that begin anywhere."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * tight + (start + columns)[None, :])  # here: IRS201 IRS101
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)  # here: IRS302
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def unrolled(a, b, c, size, TILE: tl.constexpr):
    """A loop that the compiler unrolls; the loop of what remains is never pipelined, and no fault of the kernel's."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in tl.range(0, size, TILE, loop_unroll_factor=4):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])  # here: IRS201
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])  # here: IRS201
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def twice(a, b, c, size, STAGES: tl.constexpr, TILE: tl.constexpr):
    """A loop with a dot in another one with a dot: each load is waited for in one of them."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    for start in range(0, size, TILE):
        total = tl.dot(tl.full((TILE, TILE), 1.0, tl.float16), tl.full((TILE, TILE), 2.0, tl.float16))
        for inner in tl.range(0, size, TILE, num_stages=STAGES):
            left = tl.load(a + rows[:, None] * size + (inner + columns)[None, :])  # here: IRS201
            right = tl.load(b + (inner + rows)[:, None] * TILE + columns[None, :])  # here: IRS201
            total = tl.dot(left, right, total)
        tl.store(c + rows[:, None] * size + (start + columns)[None, :], total)


@triton.jit
def turning(a, b, c, size, TILE: tl.constexpr):
    """A while loop."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    start = 0
    while start < size:
        left = tl.load(a + rows[:, None] * TILE + (start + columns)[None, :])  # here: IRS201
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])  # here: IRS201
        total = tl.dot(left, right, total)
        start += TILE
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def used(a, b, c, size, SCALE: tl.constexpr, TILE: tl.constexpr):
    """Every iteration uses the dot at once, or none does."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)  # here: IRS302
        if SCALE:
            total = total * 0.5
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def serialised(a, b, c, size, TELL: tl.constexpr, TILE: tl.constexpr):
    """A call of the runtime between the dots."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)  # here: IRS303
        if TELL:
            tl.device_print("start", start)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def dot(a, b, c, HOW: tl.constexpr, M: tl.constexpr, TILE: tl.constexpr):
    """One dot."""
    rows, columns, inner = tl.arange(0, M), tl.arange(0, TILE), tl.arange(0, TILE)
    left = tl.load(a + rows[:, None] * TILE + inner[None, :])
    right = tl.load(b + inner[:, None] * TILE + columns[None, :])
    total = tl.dot(left, right, input_precision=HOW)  # here: IRS601 IRS301 IRS603
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def widened(a, b, c, MORE: tl.constexpr, TILE: tl.constexpr):
    """A dot in float32 of what 16 bits held, or of more on its left."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    left = tl.load(a + rows[:, None] * TILE + columns[None, :]).to(tl.float32)
    right = tl.load(b + columns[:, None] + rows[None, :] * TILE).to(tl.float32)
    if MORE:
        left = left * 1.1
    total = tl.dot(left, tl.trans(right), input_precision="tf32")  # here: IRS603
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def locked(a, b, c, lock, size, LOCK: tl.constexpr, TILE: tl.constexpr):
    """Each iteration of a loop waits for a lock, or none does."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])  # here: IRS201
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])  # here: IRS201
        total = tl.dot(left, right)
        if LOCK:
            while tl.atomic_cas(lock, 0, 1) == 1:
                pass
        tl.store(c + rows[:, None] * size + (start + columns)[None, :], total)
        if LOCK:
            tl.atomic_xchg(lock, 0)


@triton.jit
def turned(x, y, TURN: tl.constexpr, TILE: tl.constexpr):
    """A transposition, or a copy."""
    rows, columns = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    values = tl.load(x + rows * TILE + columns)
    tl.store(y + (columns * TILE + rows if TURN else rows * TILE + columns), values)  # here: IRS401


@triton.jit
def held(x, y, size, TILE: tl.constexpr):
    """More values at once than a thread has registers."""
    rows, columns = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    first = tl.load(x + rows * TILE + columns)
    total = first
    for turn in range(size):
        total = total * first + tl.sin(total + turn)
    tl.store(y + rows * TILE + columns, total)


@triton.jit
def tiles(a, b, c, size, TILE: tl.constexpr):
    """Buffers that fit, or do not."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])  # here: IRS201
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])  # here: IRS201
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@gluon.jit
def through(x, y, PHASES: gl.constexpr, TILE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=PHASES, order=[1, 0])
    rows = gl.arange(0, TILE, layout=gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, TILE, layout=gl.SliceLayout(0, layout))[None, :]
    held = gl.allocate_shared_memory(gl.float32, [TILE, TILE], shared, gl.load(x + rows * TILE + columns))
    turned = held.permute((1, 0)).load(layout)  # here: IRS402
    gl.store(y + rows * TILE + columns, turned)


@triton.jit
def far_rows(x, y, stride, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """A row that begins beyond 2**31 elements."""
    columns = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    if WIDE:
        row = row.to(tl.int64)
    first = row * stride  # here: IRS701
    tl.store(y + row * BLOCK + columns, tl.load(x + first + columns))


@triton.jit
def hashed(x, y, BLOCK: tl.constexpr):
    """A product that is meant to wrap around."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    slot = ((place * 0x1E3779B1) >> 7) & 1023
    tl.store(y + place, tl.load(x + slot))


@triton.jit
def masked_far(x, y, n, BLOCK: tl.constexpr):
    """A mask that an index passes once it has wrapped around."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # here: IRS701
    tl.store(y + place, tl.load(x + place, mask=place < n), mask=place < n)


@triton.jit
def summed_far(x, y, size, step, BLOCK: tl.constexpr):
    """An offset that a loop carries."""
    place = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(size):
        total += tl.load(x + place)
        place += step  # here: IRS701
    tl.store(y + tl.arange(0, BLOCK), total)


@triton.jit
def added(x, y, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.atomic_add(y + places, tl.load(x + places))  # here: IRS602


@triton.jit
def crowded(x, y, size, TILE: tl.constexpr):
    """A tile that fills a thread's registers, or a small one."""
    rows, columns = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for turn in range(size):
        total += tl.load(x + turn * TILE * TILE + rows * TILE + columns)
    tl.store(y + rows * TILE + columns, total)


@triton.jit
def blended(a, b, c, d, e, size, HEAVY: tl.constexpr, TILE: tl.constexpr):
    """A matmul whose end needs several tiles at once, or none but its own."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)
    places = rows[:, None] * TILE + columns[None, :]
    if HEAVY:
        first = tl.load(d + places)  # here: IRS504
        second = tl.load(e + places)  # here: IRS504
        third = tl.load(e + TILE * TILE + places)  # here: IRS504
        high = tl.maximum(tl.maximum(first, second), third)  # here: IRS504
        total = tl.where(high > 0, total * first + second, total * third) / tl.sum(high, 1)[:, None]  # here: IRS504
    tl.store(c + places, total)  # here: IRS504


@triton.jit
def gathered(a, b, c, ix, size, GATHER: tl.constexpr, TILE: tl.constexpr):
    """The rows of the right operand are looked up, or stand in order."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        at = tl.load(ix + start + columns) if GATHER else start + columns
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + at[:, None] * TILE + columns[None, :])  # here: IRS202
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def kept_in(a, b, c, size, HOW: tl.constexpr, TILE: tl.constexpr):
    """A loop that is not pipelined as a whole, but with HOW 0."""
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    new, old = 1.0, 1.0
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])  # here: IRS201
        right = tl.load(b + (start + rows)[:, None] * TILE + columns[None, :])  # here: IRS201
        total = tl.dot(left, right, total)
        if HOW == 1:
            tl.debug_barrier()
        if HOW == 2:
            for _ in range(start):
                new *= 1.5
        if HOW == 3:
            total *= old
            old = new
            new = start * 0.5
    tl.store(c + rows[:, None] * TILE + columns[None, :], total * new)
