"""Loops that a walk has to follow: one within two others, one whose loads decide where the next ones are, one that
calls subroutines, one whose length and addresses stand in small tensors. Gathers at float32 coordinates, and at places
that a binary search finds or a scale gives; groups of channels, of which few begin at a sector. A loop whose
lanes differ, one that data end before its first iteration, and CTAs of which most end at once.
"""

import torch
import triton
import triton.language as tl

COLUMNS, ROWS, SETS, STEPS = 64, 32, 9, 40
LENGTHS = [3, 40, 7, 0, 25, 60, 12, 31]
WIDE = (1 << 33) + 7
WIDTH = 1024
TABLE = 256
CHANNELS, PER_GROUP, PIXELS = 320, 10, 32
TILED, DEPTH = 5, 1600
EXPERTS = 16


@triton.jit
def nested(x, y, sets, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    for column in tl.range(COLUMNS):
        for row in tl.range(ROWS):
            total = 0.0
            for one in tl.range(sets):
                total = total * 0.5 + tl.load(x + (one * ROWS + row) * COLUMNS + column)
            tl.store(y + row * COLUMNS + column, total)


@triton.jit
def chase(x, y, steps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    where = tl.load(x + at)
    for _ in range(steps):
        where = tl.load(x + where)
    tl.store(y + at, where)


@triton.jit
def ragged(x, starts, pages, y, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for number in range(tl.load(starts + row), tl.load(starts + row + 1)):
        page = tl.load(pages + number)
        if page % 3 != 0:
            total += tl.load(x + page * BLOCK + tl.arange(0, BLOCK))
    tl.store(y + row * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def triangle(x, y, SIZE: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for column in tl.range(row + 1):
        for step in tl.range(column % 5 + row // 4):
            total = total * 0.5 + tl.load(x + column * SIZE + step)
    tl.store(y + row, total)


@triton.jit
def shares(x, y, EACH: tl.constexpr, WHOLE: tl.constexpr):
    first = tl.program_id(0) * EACH
    after = first + EACH
    while first < after:
        end = tl.minimum(after, (first // WHOLE + 1) * WHOLE)
        total = 0.0
        for step in range(first, end):
            total = total * 0.5 + tl.load(x + step)
        tl.atomic_add(y + first // WHOLE, total)
        first = end


@triton.jit
def quotients(x, y, divisor, steps, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for step in tl.range(steps):
        at = (step * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
        total += tl.load(x + (at * divisor + step) // divisor)
    tl.store(y + tl.arange(0, BLOCK), total)


@triton.jit
def sampled(places, x, y, width, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.floor(tl.load(places + at) * (width - 1)).to(tl.int32)
    tl.store(y + at, tl.load(x + at // width * width + column, mask=(column >= 0) & (column < width)))


@triton.jit
def searched(values, table, y, TABLE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(values + at)
    low, high = tl.zeros([BLOCK], tl.int32), tl.full([BLOCK], TABLE - 1, tl.int32)
    for _ in tl.static_range(7):
        middle = (low + high) // 2
        is_above = value > tl.load(table + middle)
        low, high = tl.where(is_above, middle, low), tl.where(is_above, high, middle)
    tl.store(y + at, low)


@triton.jit
def resized(x, y, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + tl.floor(at.to(tl.float32) * scale).to(tl.int32)))


@triton.jit
def groups(x, y, CHANNELS: tl.constexpr, PER_GROUP: tl.constexpr, PIXELS: tl.constexpr):
    column = tl.arange(0, 16)
    pixel = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    place = pixel[:, None] * CHANNELS + tl.program_id(0) * PER_GROUP + column[None, :]
    tl.store(y + place, tl.load(x + place, column[None, :] < PER_GROUP), column[None, :] < PER_GROUP)


@triton.jit
def above(x, y, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    line = tl.program_id(0) % HEIGHT
    place = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    tl.store(y + place, tl.load(x + place - WIDTH, line > 0, other=0.0))


@triton.jit
def tiles(a, b, c, M, N, K, BLOCK: tl.constexpr, STEP: tl.constexpr, FLAT: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BLOCK, STEP])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BLOCK, STEP])
    into = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BLOCK, BLOCK])
    for tile in tl.range(tl.program_id(0), M // BLOCK * (N // BLOCK), tl.num_programs(0), flatten=FLAT):
        row, column = tile // (N // BLOCK) * BLOCK, tile % (N // BLOCK) * BLOCK
        total = tl.zeros([BLOCK, BLOCK], tl.float32)
        for k in range(0, K, STEP):
            total = tl.dot(left.load([row, k]), right.load([column, k]).T, total)
        into.store([row, column], total.to(tl.float16))


@triton.jit
def squares(x, rows, columns, height, width, TALL: tl.constexpr, WIDE: tl.constexpr, STEPS: tl.constexpr):
    column = tl.arange(0, WIDE)
    sums = tl.zeros((WIDE,), tl.float32)
    for step in tl.range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * TALL + tl.arange(0, TALL)
        mask = (row < height)[:, None] & (column < width)[None, :]
        square = tl.load(x + row[:, None] * width + column[None, :], mask=mask, other=0.0)
        tl.atomic_add(rows + row, tl.sum(square, 1), mask=row < height, sem="relaxed")
        sums += tl.sum(square, 0)
    tl.atomic_add(columns + column, sums, mask=column < width, sem="relaxed")


@triton.jit
def copies_of(x, counts, places, y, most, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * BLOCK + column)
    for number in tl.range(tl.load(counts + row), loop_unroll_factor=1):
        place = tl.load(places + row * most + number)
        if place == 0:
            tl.store(y + column, value)
        else:
            tl.store(y + place * BLOCK + column, value * 0.5)


@triton.jit
def experts(x, y, starts, width, BLOCK: tl.constexpr):
    first = tl.load(starts + tl.program_id(1)) + tl.program_id(0)
    if first >= tl.load(starts + tl.program_id(1) + 1):
        return
    total = tl.zeros([BLOCK], tl.float32)
    for step in range(0, width, BLOCK):
        total += tl.load(x + first * width + step + tl.arange(0, BLOCK))
    tl.store(y + first * BLOCK + tl.arange(0, BLOCK), total)


x, y = (torch.empty(SETS * ROWS * COLUMNS, device="cuda") for _ in range(2))
nested[(1,)](x, y, SETS, COLUMNS=COLUMNS, ROWS=ROWS)
x, y = (torch.empty(1 << 24, device="cuda", dtype=torch.int32) for _ in range(2))
for warps in (1, 2, 8):
    chase[(1024,)](x, y, STEPS, BLOCK=512, num_warps=warps)
x, y = (torch.empty(STEPS * 256, device="cuda") for _ in range(2))
quotients[(1,)](x, y, WIDE, STEPS, BLOCK=256, num_warps=4)
starts = torch.tensor([0, *LENGTHS]).cumsum(0).to("cuda", torch.int32)
pages = torch.tensor([number * 37 % sum(LENGTHS) for number in range(sum(LENGTHS))], device="cuda", dtype=torch.int32)
x, y = torch.empty(sum(LENGTHS) * 256, device="cuda"), torch.empty(len(LENGTHS) * 256, device="cuda")
ragged[(len(LENGTHS),)](x, starts, pages, y, BLOCK=256, num_warps=2)
x, y = torch.empty(40 * 40, device="cuda"), torch.empty(40, device="cuda")
triangle[(40,)](x, y, SIZE=40, num_warps=1)
x, y = torch.empty(37 * 173, device="cuda"), torch.zeros(37 * 173 // 120 + 1, device="cuda")
shares[(37,)](x, y, EACH=173, WHOLE=120, num_warps=1)
places, x, y = (torch.empty(64 * WIDTH, device="cuda") for _ in range(3))
sampled[(64,)](places, x, y, WIDTH, BLOCK=WIDTH, num_warps=8)
values, table, y = (
    torch.empty(1 << 16, device="cuda"),
    torch.empty(TABLE, device="cuda"),
    torch.empty(1 << 16, device="cuda", dtype=torch.int32),
)
searched[(64,)](values, table, y, TABLE=TABLE, BLOCK=1024)
x, y = torch.empty(1 << 14, device="cuda"), torch.empty(1 << 16, device="cuda")
resized[(64,)](x, y, 0.25, BLOCK=1024)
x, y = (torch.empty(2 * PIXELS, CHANNELS, device="cuda", dtype=torch.float16) for _ in range(2))
groups[(CHANNELS // PER_GROUP, 2)](x, y, CHANNELS=CHANNELS, PER_GROUP=PER_GROUP, PIXELS=PIXELS)
x, y = (torch.empty(8 * 32 * 1024, device="cuda") for _ in range(2))
above[(8 * 32,)](x, y, HEIGHT=32, WIDTH=1024)
triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
# Barriers of five phases each in a tile: of an odd number.
a, b, c = (torch.empty(1024, width, device="cuda", dtype=torch.float16) for width in (480, 480, 1024))
tiles[(64,)](a, b, c, 1024, 1024, 480, BLOCK=64, STEP=32, FLAT=False, num_stages=3)
a, b = (torch.empty(1024, DEPTH, device="cuda", dtype=torch.float16) for _ in range(2))
tiles[(TILED,)](a, b, c, 1024, 1024, DEPTH, BLOCK=64, STEP=32, FLAT=True, num_stages=3)
x, rows, columns = (
    torch.empty(4096, 512, device="cuda"),
    torch.zeros(4096, device="cuda"),
    torch.zeros(512, device="cuda"),
)
squares[(4,)](x, rows, columns, 4096, 512, TALL=16, WIDE=512, STEPS=64, num_warps=4)
x, places = torch.empty(1 << 16, 128, device="cuda"), torch.empty(1 << 16, 8, device="cuda", dtype=torch.int32)
counts, y = torch.empty(1 << 16, device="cuda", dtype=torch.int32), torch.empty(1 << 19, 128, device="cuda")
copies_of[(1 << 16,)](x, counts, places, y, 8, BLOCK=128, num_warps=1)
starts = torch.tensor([64 * number for number in range(EXPERTS + 1)], device="cuda", dtype=torch.int32)
x, y = torch.empty(64 * EXPERTS, 8192, device="cuda"), torch.empty(64 * EXPERTS, 256, device="cuda")
experts[(64 * EXPERTS, EXPERTS)](x, y, starts, 8192, BLOCK=256, num_warps=2)
