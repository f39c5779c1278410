"""Unseen: rows, ragged rows, tables of pointers, random bits, and what experts and float8 need before a product.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import random

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN = torch.float16, torch.bfloat16


def _starts(lengths: list[int]) -> torch.Tensor:
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return torch.tensor(starts, device="cuda", dtype=torch.int32)


@triton.jit
def _swiglu_backward(slope, gate, up, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        place = start + tl.arange(0, BLOCK)
        mask = place < n
        given = tl.load(slope + place, mask, other=0.0).to(tl.float32)
        left = tl.load(gate + place, mask, other=0.0).to(tl.float32)
        right = tl.load(up + place, mask, other=0.0).to(tl.float32)
        part = tl.sigmoid(left)
        silu = left * part
        tl.store(gate + place, (given * right * (part + silu * (1.0 - part))).to(gate.dtype.element_ty), mask)
        tl.store(up + place, (given * silu).to(up.dtype.element_ty), mask)


@family(combine(8, BLOCK=(512, 1024, 2048, 4096), programs=(0, 264, 1056), num_warps=(2, 4, 8), num_stages=(1, 3)))
def unseen_swiglu_backward(config: Config) -> Launch:
    """Gradients of both sides of SwiGLU in their place, 8,192 × 11,008 bfloat16; a program for each tile, or a few."""
    n = config.get("n", 8192 * 11008)
    tensors = (normal(n, dtype=_BRAIN) for _ in range(3))
    programs = config["programs"] or triton.cdiv(n, config["BLOCK"])
    return launch(_swiglu_backward, (programs,), *tensors, n, config=config)


@triton.jit
def _group_norm_last(
    x, weight, bias, out, pixels, channels, epsilon,
    PER_GROUP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, WIDTH)
    channel = tl.program_id(0) * PER_GROUP + column
    inside = column < PER_GROUP
    base = tl.program_id(1).to(tl.int64) * pixels * channels
    total = tl.zeros([BLOCK, WIDTH], tl.float32)
    square = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in range(0, pixels, BLOCK):
        pixel = start + tl.arange(0, BLOCK)
        mask = (pixel < pixels)[:, None] & inside[None, :]
        value = tl.load(x + base + pixel[:, None] * channels + channel[None, :], mask, other=0.0).to(tl.float32)
        total += value
        square += value * value
    count = pixels * PER_GROUP
    mean = tl.sum(tl.sum(total, 1), 0) / count
    scale = tl.rsqrt(tl.sum(tl.sum(square, 1), 0) / count - mean * mean + epsilon)
    slope = tl.load(weight + channel, inside, other=0.0).to(tl.float32) * scale
    shift = tl.load(bias + channel, inside, other=0.0).to(tl.float32) - mean * slope
    for start in range(0, pixels, BLOCK):
        pixel = start + tl.arange(0, BLOCK)
        mask = (pixel < pixels)[:, None] & inside[None, :]
        place = base + pixel[:, None] * channels + channel[None, :]
        value = tl.load(x + place, mask, other=0.0).to(tl.float32) * slope[None, :] + shift[None, :]
        tl.store(out + place, (value * tl.sigmoid(value)).to(out.dtype.element_ty), mask)


@family(combine(8, BLOCK=(32, 64, 128, 256, 512), num_warps=(2, 4, 8, 16), num_stages=(1, 2, 4)))
def unseen_group_norm_last(config: Config) -> Launch:
    """Group norm and SiLU of 16 images of 64 × 64 × 320 float16, channels last: groups of 10 channels."""
    batch, pixels, channels = config.get("batch", 16), config.get("pixels", 4096), 320
    x, out = normal(batch, pixels, channels, dtype=_HALF), empty(batch, pixels, channels, dtype=_HALF)
    arguments = x, normal(channels, dtype=_HALF), normal(channels, dtype=_HALF), out, pixels, channels, 1e-5
    return launch(_group_norm_last, (32, batch), *arguments, config=config, PER_GROUP=10, WIDTH=16)


@triton.jit
def _embedding_bag(
    table, items, weights, starts, out, bags,
    WIDTH: tl.constexpr, AT_ONCE: tl.constexpr, BAGS: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, WIDTH)
    for bag in range(tl.program_id(0) * BAGS, tl.minimum(tl.program_id(0) * BAGS + BAGS, bags)):
        first, after = tl.load(starts + bag), tl.load(starts + bag + 1)
        sums = tl.zeros([AT_ONCE, WIDTH], tl.float32)
        for start in range(first, after, AT_ONCE):
            place = start + tl.arange(0, AT_ONCE)
            item = tl.load(items + place, place < after, other=0).to(tl.int64)
            weight = tl.load(weights + place, place < after, other=0.0)
            row = tl.load(table + item[:, None] * WIDTH + column[None, :], (place < after)[:, None], other=0.0)
            sums += row.to(tl.float32) * weight[:, None]
        tl.store(out + bag * WIDTH + column, tl.sum(sums, 0))


@family(combine(8, AT_ONCE=(1, 4, 8, 16), BAGS=(1, 4, 16), num_warps=(1, 2, 4), num_stages=(1, 2, 4)))
def unseen_embedding_bag(config: Config) -> Launch:
    """Weighted sums of 0 to 60 random rows of a table of 2^20 × 128 float16 for each of 32,768 bags."""
    bags, rows, width = config.get("bags", 32768), config.get("rows", 1 << 20), 128
    drawn = random.Random(35)
    starts = _starts([drawn.randrange(61) for _ in range(bags)])
    count = config.get("count", 1 << 20)
    tensors = normal(rows, width, dtype=_HALF), indices(rows, count), normal(count), starts, empty(bags, width)
    grid = (triton.cdiv(bags, config["BAGS"]),)
    return launch(_embedding_bag, grid, *tensors, bags, config=config, WIDTH=width)


@triton.jit
def _jagged_softmax(values, starts, out, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first, after = tl.load(starts + tl.program_id(0)), tl.load(starts + tl.program_id(0) + 1)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    peak = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(first, after, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < after)[:, None] & (column < width)[None, :]
        value = tl.load(values + row[:, None] * width + column[None, :], mask, other=-1e30)
        above = tl.maximum(peak, tl.max(value, 0))
        total = total * tl.exp(peak - above) + tl.sum(tl.where(mask, tl.exp(value - above[None, :]), 0.0), 0)
        peak = above
    for start in range(first, after, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < after)[:, None] & (column < width)[None, :]
        place = row[:, None] * width + column[None, :]
        value = tl.load(values + place, mask, other=-1e30)
        tl.store(out + place, tl.exp(value - peak[None, :]) / total[None, :], mask)


@family(combine(8, ROWS=(8, 32, 64, 256), BLOCK=(8, 16, 32, 64), num_warps=(1, 2, 4, 8), num_stages=(1, 3)))
def unseen_jagged_softmax(config: Config) -> Launch:
    """Softmax of each of 60 columns along ragged rows: 4,096 sequences of 1 to 250 rows, float32."""
    sequences, width = config.get("sequences", 4096), config.get("width", 60)
    drawn = random.Random(35)
    lengths = [drawn.randrange(1, 251) for _ in range(sequences)]
    starts, total = _starts(lengths), sum(lengths)
    grid = sequences, triton.cdiv(width, config["BLOCK"])
    return launch(_jagged_softmax, grid, normal(total, width), starts, empty(total, width), width, config=config)


@triton.jit
def _lion(
    pointers, sizes, chunk_tensors, chunk_numbers, rate, decay,
    CHUNK: tl.constexpr, BLOCK: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    tensor = tl.load(chunk_tensors + tl.program_id(0))
    size = tl.load(sizes + tensor)
    weights = tl.load(pointers + tensor * 3).to(tl.pointer_type(tl.float32))
    momenta = tl.load(pointers + tensor * 3 + 1).to(tl.pointer_type(tl.float32))
    slopes = tl.load(pointers + tensor * 3 + 2).to(tl.pointer_type(tl.bfloat16))
    if ALIGNED:
        size = tl.multiple_of(size, 16)
        weights = tl.multiple_of(weights, 16)
        momenta = tl.multiple_of(momenta, 16)
        slopes = tl.multiple_of(slopes, 16)
    first = tl.load(chunk_numbers + tl.program_id(0)) * CHUNK
    for start in range(0, CHUNK, BLOCK):
        place = first + start + tl.arange(0, BLOCK)
        mask = place < size
        slope = tl.load(slopes + place, mask, other=0.0).to(tl.float32)
        momentum = tl.load(momenta + place, mask, other=0.0)
        weight = tl.load(weights + place, mask, other=0.0)
        mixed = momentum * 0.9 + slope * 0.1
        sign = tl.where(mixed > 0, 1.0, tl.where(mixed < 0, -1.0, 0.0))
        tl.store(weights + place, weight * (1.0 - rate * decay) - rate * sign, mask)
        tl.store(momenta + place, momentum * 0.99 + slope * 0.01, mask)


@family(combine(8, CHUNK=(2048, 8192, 32768), BLOCK=(512, 1024, 2048), ALIGNED=(0, 1), num_warps=(4, 8)))
def unseen_lion_tensors(config: Config) -> Launch:
    """A step of Lion over 160 tensors of 4,096 to 2^20 weights by a table of their pointers, gradients in bfloat16."""
    drawn = random.Random(35)
    lengths = [drawn.choice((4096, 65536, 1 << 18, 1 << 20)) for _ in range(config.get("tensors", 160))]
    kept, addresses, chunk_tensors, chunk_numbers = [], [], [], []
    for number, length in enumerate(lengths):
        kept.append((normal(length), normal(length), normal(length, dtype=_BRAIN)))
        addresses += [tensor.data_ptr() for tensor in kept[-1]]
        chunks = triton.cdiv(length, config["CHUNK"])
        chunk_tensors += [number] * chunks
        chunk_numbers += range(chunks)
    pointers = torch.tensor(addresses, device="cuda", dtype=torch.int64)
    # As long as the table lives, what it points to must.
    pointers.tensors = kept  # pyright: ignore[reportAttributeAccessIssue]
    tables = (torch.tensor(each, device="cuda", dtype=torch.int32) for each in (lengths, chunk_tensors, chunk_numbers))
    return launch(_lion, (len(chunk_tensors),), pointers, *tables, 1e-3, 0.1, config=config)


@triton.jit
def _stochastic_rounding(x, out, n, seed, FOUR: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, place < n, other=0.0)
    if FOUR:
        number = tl.program_id(0) * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
        first, second, third, fourth = tl.randint4x(seed, number)
        drawn = tl.reshape(tl.join(tl.join(first, second), tl.join(third, fourth)), [BLOCK])
    else:
        drawn = tl.randint(seed, place)
    bits = value.to(tl.int32, bitcast=True) + (drawn & 0xFFFF).to(tl.int32)
    rounded = ((bits >> 16) << 16).to(tl.float32, bitcast=True)
    tl.store(out + place, rounded.to(tl.bfloat16), place < n)


@family(combine(8, FOUR=(0, 1), BLOCK=(256, 512, 1024, 2048, 4096), num_warps=(1, 2, 4, 8)))
def unseen_stochastic_rounding(config: Config) -> Launch:
    """2^26 float32 to bfloat16, up or down by random bits of Philox, one or four words of each call."""
    n = config.get("n", 1 << 26)
    grid = (triton.cdiv(n, config["BLOCK"]),)
    return launch(_stochastic_rounding, grid, normal(n), empty(n, dtype=_BRAIN), n, 35, config=config)


@triton.jit
def _expert_positions(chosen, offsets, out, EXPERTS: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    expert = tl.arange(0, EXPERTS)
    running = tl.load(offsets + tl.program_id(0) * EXPERTS + expert)
    for start in range(0, CHUNK, BLOCK):
        place = tl.program_id(0) * CHUNK + start + tl.arange(0, BLOCK)
        hot = (tl.load(chosen + place)[:, None] == expert[None, :]).to(tl.int32)
        before = tl.cumsum(hot, 0) - hot + running[None, :]
        tl.store(out + place, tl.sum(before * hot, 1))
        running += tl.sum(hot, 0)


@family(combine(8, BLOCK=(16, 32, 64, 128), num_warps=(1, 2, 4, 8), num_stages=(1, 3)))
def unseen_expert_positions(config: Config) -> Launch:
    """Places of 2^20 pairs of a token and an expert once they are sorted by their 64 experts, in chunks of 1,024."""
    n, experts, chunk = config.get("n", 1 << 20), 64, 1024
    offsets = zeros(n // chunk, experts, dtype=torch.int32)
    tensors = indices(experts, n), offsets, empty(n, dtype=torch.int32)
    return launch(_expert_positions, (n // chunk,), *tensors, config=config, EXPERTS=experts, CHUNK=chunk)


@triton.jit
def _quantise_tiles(
    x, out, turned, scales, rows, width,
    AGAIN: tl.constexpr, TRANS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    column = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    place = row[:, None] * width + column[None, :]
    value = tl.load(x + place).to(tl.float32)
    scale = tl.maximum(tl.max(tl.max(tl.abs(value), 1), 0) / 448.0, 1e-10)
    tl.store(scales + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), scale)
    if AGAIN:
        value = tl.load(x + place, volatile=True).to(tl.float32)
    small = (value / scale).to(out.dtype.element_ty)
    tl.store(out + place, small)
    if TRANS:
        tl.store(turned + column[:, None] * rows + row[None, :], tl.trans(small))
    else:
        tl.store(turned + column[None, :] * rows + row[:, None], small)


@family(combine(8, AGAIN=(0, 1), TRANS=(0, 1), num_warps=(4, 8, 16)))
def unseen_quantise_tiles(config: Config) -> Launch:
    """8,192 × 7,168 bfloat16 to float8 and its transpose, a scale for each 128 × 128."""
    rows, width = config.get("rows", 8192), config.get("width", 7168)
    kinds = {"dtype": torch.float8_e4m3fn}
    tensors = normal(rows, width, dtype=_BRAIN), empty(rows, width, **kinds), empty(width, rows, **kinds)
    grid = rows // 128, width // 128
    return launch(_quantise_tiles, grid, *tensors, uniform(*grid), rows, width, config=config, SIZE=128)
