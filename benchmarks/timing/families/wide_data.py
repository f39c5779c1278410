"""Wide: moments of an optimiser, a sparse product, a grid in 3D, a permutation by TMA, running sums, images.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN = torch.float16, torch.bfloat16


@triton.jit
def _factored_moments(
    slope_ptr, row_ptr, column_ptr, rows, width, factor,
    TALL: tl.constexpr, WIDE: tl.constexpr, STEPS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    inside = column < width
    first = tl.program_id(1) * (TALL * STEPS)
    sums = tl.zeros((WIDE,), tl.float32)
    for step in tl.range(STEPS, num_stages=STAGES):
        row = first + step * TALL + tl.arange(0, TALL)
        mask = (row < rows)[:, None] & inside[None, :]
        slope = tl.load(slope_ptr + row[:, None] * width + column[None, :], mask=mask, other=0.0).to(tl.float32)
        square = slope * slope * factor
        tl.atomic_add(row_ptr + row, tl.sum(square, 1), mask=row < rows, sem="relaxed")
        sums += tl.sum(square, 0)
    tl.atomic_add(column_ptr + column, sums, mask=inside, sem="relaxed")


@family(
    combine(
        TALL=(4, 8, 16, 32, 64), WIDE=(64, 128, 256, 512), STEPS=(1, 4, 16, 64), STAGES=(1, 2, 4), num_warps=(2, 4, 8)
    )
)
def wide_factored_moments(config: Config) -> Launch:
    """Squares of 14,336 × 8,192 bfloat16 gradients added up by rows and by columns at once, as Adafactor needs."""
    rows, width = config.get("rows", 14336), config.get("width", 8192)
    arguments = normal(rows, width, dtype=_BRAIN), zeros(rows), zeros(width), rows, width, 1 / 64
    grid = triton.cdiv(width, config["WIDE"]), triton.cdiv(rows, config["TALL"] * config["STEPS"])
    return launch(_factored_moments, grid, *arguments, config=config)


@triton.jit
def _add_within(left_first, left, right_first, right):
    return left_first | right_first, tl.where(right_first > 0, right, left + right)


@triton.jit
def _sparse_by_entry(
    row_ptr, column_ptr, value_ptr, x_ptr, y_ptr, entries,
    BLOCK: tl.constexpr, PARTS: tl.constexpr, SCAN: tl.constexpr,
):  # fmt: skip
    for part in range(PARTS):
        start = (tl.program_id(0) * PARTS + part) * BLOCK
        lane = tl.arange(0, BLOCK)
        place = start + lane
        live = place < entries
        row = tl.load(row_ptr + place, mask=live, other=0)
        column = tl.load(column_ptr + place, mask=live, other=0)
        value = tl.load(value_ptr + place, mask=live, other=0.0)
        product = value * tl.load(x_ptr + column, mask=live, other=0.0)
        if SCAN:
            earlier = tl.load(row_ptr + place - 1, mask=live & (place > 0), other=-1)
            later = tl.load(row_ptr + place + 1, mask=place + 1 < entries, other=-1)
            _, product = tl.associative_scan(((row != earlier).to(tl.int32), product), 0, _add_within)
            live = live & ((row != later) | (lane == BLOCK - 1))
        tl.atomic_add(y_ptr + row, product, mask=live, sem="relaxed")


@family(combine(BLOCK=(128, 256, 512, 1024, 2048, 4096), PARTS=(1, 4, 16), SCAN=(0, 1), num_warps=(1, 2, 4, 8)))
def wide_sparse_by_entry(config: Config) -> Launch:
    """16,000,000 sorted entries of a sparse float32 matrix by a vector of 2^20, each added, or each row's sum (COO)."""
    entries, columns = config.get("entries", 16_000_000), config.get("columns", 1 << 20)
    drawn = torch.Generator().manual_seed(35)
    # About 20 entries in a row: a row begins with a twentieth of the entries.
    rows = (torch.rand(entries, generator=drawn) < 0.05).cumsum(0).to(torch.int32)
    tensors = rows.to("cuda"), indices(columns, entries), normal(entries), normal(columns)
    grid = (triton.cdiv(entries, config["BLOCK"] * config["PARTS"]),)
    return launch(_sparse_by_entry, grid, *tensors, zeros(entries // 16), entries, config=config)


@triton.jit
def _poisson_sweep(
    u_ptr, f_ptr, out_ptr, side,
    BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    x = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)[None, :]
    y = tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y)[:, None]
    first = tl.program_id(2) * DEPTH
    plane = side * side
    inside = (y < side) & (x < side)
    left, right = inside & (x > 0), inside & (x + 1 < side)
    above, below = inside & (y > 0), inside & (y + 1 < side)
    place = first * plane + y * side + x
    # The planes before and after stay in registers.
    behind = tl.load(u_ptr + place - plane, mask=inside & (first > 0), other=0.0)
    here = tl.load(u_ptr + place, mask=inside, other=0.0)
    for z in range(first, tl.minimum(first + DEPTH, side)):
        ahead = tl.load(u_ptr + place + plane, mask=inside & (z + 1 < side), other=0.0)
        around = tl.load(u_ptr + place - 1, mask=left, other=0.0) + tl.load(u_ptr + place + 1, mask=right, other=0.0)
        around += tl.load(u_ptr + place - side, mask=above, other=0.0)
        around += tl.load(u_ptr + place + side, mask=below, other=0.0)
        f = tl.load(f_ptr + place, mask=inside, other=0.0)
        fresh = (around + behind + ahead - f) * 0.16666666666666666
        tl.store(out_ptr + place, here + 0.8 * (fresh - here), mask=inside)
        behind, here = here, ahead
        place += plane


@family(combine(BLOCK_Y=(1, 2, 4, 8, 16), BLOCK_X=(32, 64, 128, 256), DEPTH=(1, 4, 16, 72), num_warps=(2, 4, 8)))
def wide_poisson_sweep(config: Config) -> Launch:
    """A damped sweep of Jacobi's method for Poisson's equation in 3D, 288³ float64, planes kept in registers."""
    side = config.get("side", 288)
    tensors = [normal(side, side, side, dtype=torch.float64) for _ in "uf"]
    arguments = *tensors, empty(side, side, side, dtype=torch.float64), side
    blocks = config["BLOCK_X"], config["BLOCK_Y"], config["DEPTH"]
    return launch(_poisson_sweep, tuple(triton.cdiv(side, block) for block in blocks), *arguments, config=config)


@triton.jit
def _permute_descriptors(
    x_ptr, y_ptr, batches, tokens, width,
    TALL: tl.constexpr, WIDE: tl.constexpr, TOKENS_FAST: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    x_desc = tl.make_tensor_descriptor(x_ptr, [batches, tokens, width], [tokens * width, width, 1], [1, TALL, WIDE])
    y_desc = tl.make_tensor_descriptor(y_ptr, [batches, width, tokens], [tokens * width, tokens, 1], [1, WIDE, TALL])
    down, across = tl.cdiv(tokens, TALL), tl.cdiv(width, WIDE)
    for tile in tl.range(tl.program_id(0), batches * down * across, tl.num_programs(0), num_stages=STAGES):
        batch, inner = tile // (down * across), tile % (down * across)
        if TOKENS_FAST:
            first, column = inner % down * TALL, inner // down * WIDE
        else:
            first, column = inner // across * TALL, inner % across * WIDE
        x = x_desc.load([batch, first, column]).reshape(TALL, WIDE)
        y_desc.store([batch, column, first], x.T.reshape(1, WIDE, TALL))


@family(
    combine(
        TALL=(32, 64, 128), WIDE=(32, 64, 128), TOKENS_FAST=(0, 1), STAGES=(1, 2, 3), programs=(132, 264, 528, 0),
        num_warps=(2, 4, 8),
    )
)  # fmt: skip
def wide_permute_descriptors(config: Config) -> Launch:
    """6 × 4,352 tokens of 3,072 bfloat16 to channels first, tiles by TMA descriptors of three dimensions."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    batches, tokens, width = config.get("batches", 6), config.get("tokens", 4352), config.get("width", 3072)
    x, y = normal(batches, tokens, width, dtype=_BRAIN), empty(batches, width, tokens, dtype=_BRAIN)
    tiles = batches * triton.cdiv(tokens, config["TALL"]) * triton.cdiv(width, config["WIDE"])
    grid = (min(config["programs"] or tiles, tiles),)
    return launch(_permute_descriptors, grid, x, y, batches, tokens, width, config=config)


@triton.jit
def _running_columns(image_ptr, sum_ptr, height, width, CHUNK: tl.constexpr, WIDE: tl.constexpr, STAGES: tl.constexpr):
    column = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    base = tl.program_id(1).to(tl.int64) * height * width
    carry = tl.zeros((WIDE,), tl.int32)
    for start in tl.range(0, height, CHUNK, num_stages=STAGES):
        row = start + tl.arange(0, CHUNK)
        mask = (row < height)[:, None] & (column < width)[None, :]
        place = base + row[:, None] * width + column[None, :]
        pixel = tl.load(image_ptr + place, mask=mask, other=0).to(tl.int32)
        tl.store(sum_ptr + place, tl.cumsum(pixel, 0) + carry[None, :], mask=mask)
        carry += tl.sum(pixel, 0)


@family(combine(CHUNK=(4, 8, 16, 32, 64), WIDE=(32, 64, 128, 256), STAGES=(1, 2, 4), num_warps=(1, 2, 4, 8)))
def wide_running_columns(config: Config) -> Launch:
    """Running sums down the columns of 48 images of 1,080 × 1,920 bytes, to int32, for integral images."""
    images, height, width = config.get("images", 48), config.get("height", 1080), config.get("width", 1920)
    image = indices(256, images, height, width, dtype=torch.uint8)
    arguments = image, empty(images, height, width, dtype=torch.int32), height, width
    return launch(_running_columns, (triton.cdiv(width, config["WIDE"]), images), *arguments, config=config)


@triton.jit
def _crop_normalise(
    image_ptr, corner_ptr, gain_ptr, bias_ptr, out_ptr, height, width,
    SIDE: tl.constexpr, BLOCK: tl.constexpr, FLAT: tl.constexpr, TOGETHER: tl.constexpr,
):  # fmt: skip
    image = tl.program_id(1)
    top = tl.load(corner_ptr + image * 3)
    left = tl.load(corner_ptr + image * 3 + 1)
    mirrored = tl.load(corner_ptr + image * 3 + 2)
    if FLAT:
        pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        y, x = pixel // SIDE, pixel % SIDE
        mask = pixel < SIDE * SIDE
    else:
        # Rows of 256, of which a crop has fewer.
        lane = tl.arange(0, BLOCK)
        y, x = tl.program_id(0) * (BLOCK // 256) + lane // 256, lane % 256
        pixel = y * SIDE + x
        mask = (y < SIDE) & (x < SIDE)
    source_x = left + tl.where(mirrored > 0, SIDE - 1 - x, x)
    source = image_ptr + (image.to(tl.int64) * height * width + (top + y) * width + source_x) * 3
    target = out_ptr + image.to(tl.int64) * (3 * SIDE * SIDE) + pixel
    first = 0 if TOGETHER else tl.program_id(2)
    for channel in range(first, first + (3 if TOGETHER else 1)):
        value = tl.load(source + channel, mask=mask, other=0).to(tl.float32)
        value = value * tl.load(gain_ptr + channel) + tl.load(bias_ptr + channel)
        tl.store(target + channel * (SIDE * SIDE), value.to(out_ptr.dtype.element_ty), mask=mask)


@family(combine(BLOCK=(256, 512, 1024, 2048, 4096), FLAT=(0, 1), TOGETHER=(0, 1), num_warps=(1, 2, 4, 8)))
def wide_crop_normalise(config: Config) -> Launch:
    """Crops of 224 × 224, half of them mirrored, of 1,000 images of 3 bytes a pixel, to float16 channels first."""
    images, height, width, side = config.get("images", 1000), config.get("height", 256), config.get("width", 320), 224
    tensors = indices(256, images, height, width, 3, dtype=torch.uint8), empty(images, 3, side, side, dtype=_HALF)
    corners = [indices(high, images) for high in (height - side + 1, width - side + 1, 2)]
    scales = [torch.tensor(values, device="cuda") for values in ([0.017, 0.0175, 0.0174], [-2.1, -2.0, -1.8])]
    tiles = triton.cdiv(side * side, config["BLOCK"]) if config["FLAT"] else triton.cdiv(side * 256, config["BLOCK"])
    grid = tiles, images, 1 if config["TOGETHER"] else 3
    arguments = tensors[0], torch.stack(corners, 1), *scales, tensors[1], height, width
    return launch(_crop_normalise, grid, *arguments, config=config, SIDE=side)
