"""Kernels that reduce, normalise, scan or sort rows, and one that reduces columns."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_ROW_WARPS = (1, 2, 4, 8, 16, 32)


@triton.jit
def _softmax(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < width
    value = tl.load(x + row * width + offsets, mask, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * width + offsets, (power / tl.sum(power, 0)).to(out.dtype.element_ty), mask)


@family(combine(width=(512, 1024, 4096, 16384), num_warps=_ROW_WARPS))
def softmax(config: Config) -> Launch:
    """Softmax of rows of float16 in registers, 2^26 elements."""
    width = config["width"]
    rows = (1 << 26) // width
    x = normal(rows, width, dtype=torch.float16)
    return launch(_softmax, (rows,), x, torch.empty_like(x), width, config=config, BLOCK=width)


@triton.jit
def _softmax_online(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    peak = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * width + offsets, offsets < width, other=-1e30)
        above = tl.maximum(peak, value)
        total = total * tl.exp(peak - above) + tl.exp(value - above)
        peak = above
    highest = tl.max(peak, 0)
    scale = 1.0 / tl.sum(total * tl.exp(peak - highest), 0)
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < width
        value = tl.load(x + row * width + offsets, mask, other=-1e30)
        tl.store(out + row * width + offsets, tl.exp(value - highest) * scale, mask)


@family(combine(BLOCK=(512, 1024, 2048, 4096), num_warps=(2, 4, 8, 16), num_stages=(1, 3)))
def softmax_online(config: Config) -> Launch:
    """Softmax of 1,024 rows of 50,257 float32 in two passes of a loop."""
    x = normal(1024, 50257)
    return launch(_softmax_online, (1024,), x, torch.empty_like(x), 50257, config=config)


@triton.jit
def _softmax_reducing(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    peak = -float("inf")
    total = 0.0
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * width + offsets, offsets < width, other=-float("inf"))
        above = tl.maximum(peak, tl.max(value, 0))
        total = total * tl.exp(peak - above) + tl.sum(tl.exp(value - above), 0)
        peak = above
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < width
        value = tl.load(x + row * width + offsets, mask, other=-float("inf"))
        tl.store(out + row * width + offsets, tl.exp(value - peak) / total, mask)


@family(combine(BLOCK=(512, 1024, 2048, 4096, 8192), num_warps=(1, 4, 8, 16, 32)))
def softmax_reducing(config: Config) -> Launch:
    """Softmax of 2,048 rows of 32,768 float32 with two reductions in each iteration."""
    x = normal(2048, 32768)
    return launch(_softmax_reducing, (2048,), x, torch.empty_like(x), 32768, config=config)


@triton.jit
def _layer_norm(x, weight, bias, out, means, scales, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < width
    value = tl.load(x + row * width + offsets, mask, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / width
    centred = tl.where(mask, value - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / width + 1e-5)
    gain, shift = tl.load(weight + offsets, mask), tl.load(bias + offsets, mask)
    tl.store(out + row * width + offsets, (centred * scale * gain + shift).to(out.dtype.element_ty), mask)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)


@family(combine(width=(768, 1600, 5120, 12288), num_warps=_ROW_WARPS))
def layer_norm(config: Config) -> Launch:
    """Layer norm of rows of bfloat16 whose length is no power of two."""
    width = config["width"]
    rows = (1 << 26) // width
    x = normal(rows, width, dtype=torch.bfloat16)
    tensors = x, normal(width), normal(width), torch.empty_like(x), empty(rows), empty(rows)
    return launch(_layer_norm, (rows,), *tensors, width, config=config, BLOCK=triton.next_power_of_2(width))


@triton.jit
def _layer_norm_backward(x, weight, slope, out, means, scales, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < width
    value = tl.load(x + row * width + offsets, mask, other=0.0).to(tl.float32)
    gradient = tl.load(slope + row * width + offsets, mask, other=0.0).to(tl.float32)
    gain = tl.load(weight + offsets, mask, other=0.0)
    scale = tl.load(scales + row)
    normalised = tl.where(mask, (value - tl.load(means + row)) * scale, 0.0)
    weighted = gain * gradient
    first = tl.sum(normalised * weighted, 0) / width
    second = tl.sum(weighted, 0) / width
    tl.store(out + row * width + offsets, ((weighted - normalised * first - second) * scale).to(tl.float16), mask)


@family(combine(width=(1024, 4096, 8192, 16384), num_warps=_ROW_WARPS))
def layer_norm_backward(config: Config) -> Launch:
    """Gradient of layer norm by its input, float16."""
    width = config["width"]
    rows = (1 << 25) // width
    x, slope = normal(rows, width, dtype=torch.float16), normal(rows, width, dtype=torch.float16)
    tensors = x, normal(width), slope, torch.empty_like(x), normal(rows), normal(rows)
    return launch(_layer_norm_backward, (rows,), *tensors, width, config=config, BLOCK=width)


@triton.jit
def _rms_norm(x, weight, out, rows, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (column < width)[None, :]
    places = row[:, None].to(tl.int64) * width + column[None, :]
    value = tl.load(x + places, mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 1) / width + 1e-6)
    gain = tl.load(weight + column, column < width, other=0.0)
    tl.store(out + places, (value * scale[:, None] * gain[None, :]).to(out.dtype.element_ty), mask)


@family(combine(ROWS=(1, 2, 4, 8, 16, 32), num_warps=(1, 2, 4, 8, 16)))
def rms_norm_tiles(config: Config) -> Launch:
    """RMS norm of 2^18 heads of 128 bfloat16, several rows in a program."""
    rows, width = 1 << 18, 128
    x = normal(rows, width, dtype=torch.bfloat16)
    grid = (triton.cdiv(rows, config["ROWS"]),)
    return launch(_rms_norm, grid, x, normal(width), torch.empty_like(x), rows, width, config=config, BLOCK=width)


@triton.jit
def _add_rms_norm(x, residual, weight, out, width, BLOCK: tl.constexpr, LOOP: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, LOOP, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < width
        value = tl.load(x + row * width + offsets, mask, other=0.0) + tl.load(
            residual + row * width + offsets, mask, other=0.0
        )
        tl.store(residual + row * width + offsets, value, mask)
        squares += value.to(tl.float32) * value.to(tl.float32)
    scale = tl.rsqrt(tl.sum(squares, 0) / width + 1e-6)
    for start in range(0, LOOP, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < width
        value = tl.load(residual + row * width + offsets, mask, other=0.0).to(tl.float32)
        gain = tl.load(weight + offsets, mask, other=0.0)
        tl.store(out + row * width + offsets, (value * scale * gain).to(out.dtype.element_ty), mask)


@family(combine(BLOCK=(256, 512, 1024, 2048, 4096, 8192), num_warps=(1, 4, 8, 16)))
def add_rms_norm(config: Config) -> Launch:
    """Addition of a residual and RMS norm of 8,192 rows of 8,192 bfloat16, in two loops."""
    rows, width = 8192, 8192
    x, residual = normal(rows, width, dtype=torch.bfloat16), normal(rows, width, dtype=torch.bfloat16)
    tensors = x, residual, normal(width), torch.empty_like(x)
    return launch(_add_rms_norm, (rows,), *tensors, width, config=config, LOOP=width)


@triton.jit
def _cross_entropy(logits, targets, losses, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    peak = float("-inf")
    total = 0.0
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(logits + row * width + offsets, offsets < width, other=-float("inf")).to(tl.float32)
        above = tl.maximum(peak, tl.max(value, 0))
        total = total * tl.exp(peak - above) + tl.sum(tl.exp(value - above), 0)
        peak = above
    loss = peak + tl.log(total) - tl.load(logits + row * width + target).to(tl.float32)
    tl.store(losses + row, loss)
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < width
        value = tl.load(logits + row * width + offsets, mask, other=-float("inf")).to(tl.float32)
        share = tl.exp(value - peak) / total
        share = tl.where(offsets == target, share - 1.0, share)
        tl.store(logits + row * width + offsets, share.to(logits.dtype.element_ty), mask)


@family(combine(BLOCK=(1024, 4096, 8192, 16384, 32768), num_warps=(4, 8, 16, 32)))
def cross_entropy(config: Config) -> Launch:
    """Cross entropy of 2,048 rows over 128,256 bfloat16 with its gradient in place."""
    rows, width = 2048, 128256
    logits, targets = normal(rows, width, dtype=torch.bfloat16), indices(width, rows, dtype=torch.int64)
    return launch(_cross_entropy, (rows,), logits, targets, empty(rows), width, config=config)


@triton.jit
def _row_sums(x, out, rows, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS], tl.float32)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (column < width)[None, :]
        total += tl.sum(tl.load(x + row[:, None].to(tl.int64) * width + column[None, :], mask, other=0.0), 1)
    tl.store(out + row, total, row < rows)


@family(combine(ROWS=(1, 4, 16, 64), BLOCK=(32, 128, 512), num_warps=(1, 4, 8), num_stages=(1, 3)))
def row_sums(config: Config) -> Launch:
    """Sums of 8,192 rows of 8,192 float32, reduced in each iteration."""
    x = normal(8192, 8192)
    grid = (triton.cdiv(8192, config["ROWS"]),)
    return launch(_row_sums, grid, x, empty(8192), 8192, 8192, config=config)


@triton.jit
def _column_sums(x, out, rows, width, SHARE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    first = tl.program_id(1) * SHARE
    for start in range(first, first + SHARE, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        mask = (row < rows)[:, None] & (column < width)[None, :]
        total += tl.load(x + row[:, None] * width + column[None, :], mask, other=0.0)
    tl.atomic_add(out + column, tl.sum(total, 0), column < width)


@family(combine(SHARE=(256, 1024, 4096), BLOCK_M=(1, 8, 32), BLOCK_N=(32, 64, 128, 512), num_warps=(1, 4, 8)))
def column_sums(config: Config) -> Launch:
    """Sums of 4,096 columns of 8,192 float32, by an atomic addition for each part."""
    rows, width = 8192, 4096
    grid = triton.cdiv(width, config["BLOCK_N"]), rows // config["SHARE"]
    return launch(_column_sums, grid, normal(rows, width), zeros(width), rows, width, config=config)


@triton.jit
def _argmax(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best = -float("inf")
    place = 0
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * width + offsets, offsets < width, other=-float("inf")).to(tl.float32)
        here, at = tl.max(value, 0, return_indices=True)
        place = tl.where(here > best, start + at, place)
        best = tl.maximum(best, here)
    tl.store(out + row, place)


@family(combine(BLOCK=(512, 1024, 2048, 4096, 8192, 16384), num_warps=(1, 2, 4, 8, 16)))
def argmax(config: Config) -> Launch:
    """Index of the largest of 32,000 bfloat16, 1,024 rows."""
    x = normal(1024, 32000, dtype=torch.bfloat16)
    return launch(_argmax, (1024,), x, empty(1024, dtype=torch.int32), 32000, config=config)


@triton.jit
def _cumulative(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    before = 0.0
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < width
        value = tl.load(x + row * width + offsets, mask, other=0.0)
        tl.store(out + row * width + offsets, tl.cumsum(value, 0) + before, mask)
        before += tl.sum(value, 0)


@family(combine(BLOCK=(256, 512, 1024, 2048, 4096, 8192), num_warps=(1, 2, 4, 8, 16)))
def cumulative_sum(config: Config) -> Launch:
    """Running sums of 2,048 rows of 16,384 float32."""
    x = normal(2048, 16384)
    return launch(_cumulative, (2048,), x, torch.empty_like(x), 16384, config=config)


@triton.jit
def _combine_linear(left_factor, left, right_factor, right):
    return left_factor * right_factor, left * right_factor + right


@triton.jit
def _linear_scan(gates, x, out, steps, width, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1).to(tl.int64) * steps * width
    state = tl.zeros([1, BLOCK], tl.float32)
    for start in range(0, steps, CHUNK):
        places = base + (start + tl.arange(0, CHUNK))[:, None] * width + column[None, :]
        gate = tl.load(gates + places)
        factor, value = tl.associative_scan((gate, tl.load(x + places)), 0, _combine_linear)
        value += factor * state
        tl.store(out + places, value)
        last = (tl.arange(0, CHUNK) == CHUNK - 1)[:, None]
        state = tl.sum(tl.where(last, value, 0.0), 0)[None, :]


@family(combine(CHUNK=(8, 16, 32, 64), BLOCK=(32, 64, 128), num_warps=(1, 2, 4, 8)))
def linear_scan(config: Config) -> Launch:
    """A gated linear recurrence over 1,024 steps of 16 × 2,048 channels, in chunks by an associative scan."""
    batch, steps, width = 16, 1024, 2048
    gates, x = normal(batch, steps, width), normal(batch, steps, width)
    grid = width // config["BLOCK"], batch
    return launch(_linear_scan, grid, gates, x, torch.empty_like(x), steps, width, config=config)


@triton.jit
def _serial_scan(gates, x, out, steps, width, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1).to(tl.int64) * steps * width
    state = tl.zeros([BLOCK], tl.float32)
    for step in range(0, steps):
        place = base + step * width + column
        state = state * tl.load(gates + place) + tl.load(x + place)
        tl.store(out + place, state)


@family(combine(BLOCK=(32, 64, 128, 256, 512), num_warps=(1, 2, 4), num_stages=(1, 4)))
def serial_scan(config: Config) -> Launch:
    """The same recurrence, a step in each iteration."""
    batch, steps, width = 16, 1024, 2048
    gates, x = normal(batch, steps, width), normal(batch, steps, width)
    grid = width // config["BLOCK"], batch
    return launch(_serial_scan, grid, gates, x, torch.empty_like(x), steps, width, config=config)


@triton.jit
def _sort(x, out, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    places = row[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + places, tl.sort(tl.load(x + places)))


@family(combine(ROWS=(1, 4, 16), BLOCK=(64, 256, 512), num_warps=(1, 2, 4, 8)))
def sort_rows(config: Config) -> Launch:
    """Bitonic sort of rows, 2^22 float32."""
    n = 1 << 22
    grid = (n // config["BLOCK"] // config["ROWS"],)
    return launch(_sort, grid, normal(n), empty(n), config=config)


@triton.jit
def _router(logits, weights, experts, rows, COUNT: tl.constexpr, ROWS: tl.constexpr, TOP: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COUNT)
    value = tl.load(logits + row[:, None] * COUNT + column[None, :], (row < rows)[:, None], other=0.0)
    total = tl.zeros([ROWS], tl.float32)
    for rank in tl.static_range(TOP):
        best, at = tl.max(value, 1, return_indices=True)
        power = tl.exp(best)
        total += power
        tl.store(weights + row * TOP + rank, power, row < rows)
        tl.store(experts + row * TOP + rank, at, row < rows)
        value = tl.where(column[None, :] == at[:, None], -float("inf"), value)


@family(combine(ROWS=(1, 2, 4, 8, 16, 32), num_warps=(1, 2, 4, 8)))
def top_k_router(config: Config) -> Launch:
    """The 8 largest of 128 experts for 131,072 tokens."""
    rows = 131072
    tensors = normal(rows, 128), empty(rows, 8), empty(rows, 8, dtype=torch.int32)
    grid = (rows // config["ROWS"],)
    return launch(_router, grid, *tensors, rows, config=config, COUNT=128, TOP=8)


@triton.jit
def _quantise_rows(x, out, scales, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < width
    value = tl.load(x + row * width + offsets, mask, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(value), 0) / 448.0 + 1e-10
    tl.store(out + row * width + offsets, (value / scale).to(tl.float8e4nv), mask)
    tl.store(scales + row, scale)


@family(combine(width=(1536, 4096, 7168, 14336), num_warps=_ROW_WARPS))
def quantise_rows(config: Config) -> Launch:
    """Quantise rows of bfloat16 to float8 by their largest value."""
    width = config["width"]
    rows = (1 << 26) // width
    x = normal(rows, width, dtype=torch.bfloat16)
    tensors = x, empty(rows, width, dtype=torch.float8_e4m3fn), empty(rows)
    return launch(_quantise_rows, (rows,), *tensors, width, config=config, BLOCK=triton.next_power_of_2(width))


@triton.jit
def _quantise_groups(x, out, scales, GROUPS: tl.constexpr, GROUP: tl.constexpr):
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    places = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    value = tl.load(x + places).to(tl.float32)
    scale = tl.max(tl.abs(value), 1) / 448.0 + 1e-10
    tl.store(out + places, (value / scale[:, None]).to(tl.float8e4nv))
    tl.store(scales + group, scale)


@family(combine(GROUPS=(1, 2, 4, 8, 16, 32, 64), num_warps=(1, 2, 4, 8)))
def quantise_groups(config: Config) -> Launch:
    """Quantise 2^26 bfloat16 to float8 in groups of 128."""
    n = 1 << 26
    tensors = normal(n, dtype=torch.bfloat16), empty(n, dtype=torch.float8_e4m3fn), empty(n // 128)
    return launch(_quantise_groups, (n // 128 // config["GROUPS"],), *tensors, config=config, GROUP=128)


@triton.jit
def _group_norm(x, weight, bias, out, channels, SPACE: tl.constexpr, PER_GROUP: tl.constexpr, BLOCK: tl.constexpr):
    group, image = tl.program_id(0), tl.program_id(1)
    base = (image.to(tl.int64) * channels + group * PER_GROUP) * SPACE
    first = tl.zeros([BLOCK], tl.float32)
    second = tl.zeros([BLOCK], tl.float32)
    for start in range(0, PER_GROUP * SPACE, BLOCK):
        value = tl.load(x + base + start + tl.arange(0, BLOCK)).to(tl.float32)
        first += value
        second += value * value
    count = PER_GROUP * SPACE
    mean = tl.sum(first, 0) / count
    scale = tl.rsqrt(tl.sum(second, 0) / count - mean * mean + 1e-5)
    for start in range(0, PER_GROUP * SPACE, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        channel = group * PER_GROUP + offsets // SPACE
        value = (tl.load(x + base + offsets).to(tl.float32) - mean) * scale
        value = value * tl.load(weight + channel) + tl.load(bias + channel)
        tl.store(out + base + offsets, value.to(out.dtype.element_ty))


@family(combine(BLOCK=(512, 1024, 2048, 4096, 8192), num_warps=(1, 4, 8, 16)))
def group_norm(config: Config) -> Launch:
    """Group norm of 32 images of 512 channels of 64 × 64 float16, 32 groups."""
    images, channels, space = 32, 512, 4096
    x = normal(images, channels, space, dtype=torch.float16)
    tensors = x, normal(channels), normal(channels), torch.empty_like(x)
    constants = {"SPACE": space, "PER_GROUP": channels // 32}
    return launch(_group_norm, (32, images), *tensors, channels, config=config, **constants)


@triton.jit
def _merge(mean_a, square_a, count_a, mean_b, square_b, count_b):
    count = count_a + count_b
    share = count_b / tl.maximum(count, 1.0)
    step = mean_b - mean_a
    return mean_a + step * share, square_a + square_b + step * step * count_a * share, count


@triton.jit
def _welford(x, means, variances, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    value = tl.load(x + row[:, None] * width + column[None, :])
    ones = tl.full([ROWS, BLOCK], 1.0, tl.float32)
    mean, square, count = tl.reduce((value, ones * 0.0, ones), 1, _merge)
    tl.store(means + row, mean)
    tl.store(variances + row, square / count)


@family(combine(width=(256, 1024, 4096), ROWS=(1, 2, 8), num_warps=(1, 4, 8)))
def welford(config: Config) -> Launch:
    """Mean and variance of rows by Welford's reduction, 2^25 float32."""
    width = config["width"]
    rows = (1 << 25) // width
    grid = (rows // config["ROWS"],)
    return launch(_welford, grid, normal(rows, width), empty(rows), empty(rows), width, config=config, BLOCK=width)


@triton.jit
def _few_programs(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x + offsets, offsets < n, other=0.0)
    tl.atomic_add(out, tl.sum(total, 0))


@family(combine(programs=(16, 64, 132, 528, 2048), BLOCK=(1024, 4096), num_warps=(4, 8), num_stages=(1, 4)))
def full_sum(config: Config) -> Launch:
    """The sum of 2^25 float32 by a fixed number of programs and one atomic addition each."""
    n = 1 << 25
    return launch(_few_programs, (config["programs"],), normal(n), zeros(1), n, config=config)


@triton.jit
def _kl_divergence(x, y, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < width
        log_p = tl.load(x + row * width + offsets, mask, other=0.0).to(tl.float32)
        q = tl.load(y + row * width + offsets, mask, other=0.0).to(tl.float32)
        total += tl.where(mask, q * (tl.log(tl.maximum(q, 1e-10)) - log_p), 0.0)
    tl.store(out + row, tl.sum(total, 0))


@family(combine(BLOCK=(512, 1024, 4096, 8192), num_warps=(1, 4, 8, 16), num_stages=(1, 3)))
def kl_divergence(config: Config) -> Launch:
    """Kullback-Leibler divergence of 2,048 rows of 32,000 bfloat16."""
    shape = 2048, 32000
    x, y = normal(*shape, dtype=torch.bfloat16), normal(*shape, dtype=torch.bfloat16)
    return launch(_kl_divergence, (2048,), x, y, empty(2048), 32000, config=config)
