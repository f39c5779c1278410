"""Fresh: rows, ragged and irregular data, grids and simulations.

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


@triton.jit
def _norm_parameters(
    x, slope, means, deviations, locks, weight_slopes, bias_slopes, width,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < width
    value = tl.load(x + row * width + column, mask, other=0.0).to(tl.float32)
    gradient = tl.load(slope + row * width + column, mask, other=0.0).to(tl.float32)
    scaled = gradient * (value - tl.load(means + row)) * tl.load(deviations + row)
    group = row % GROUPS
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    of_weight = weight_slopes + group * width + column
    of_bias = bias_slopes + group * width + column
    tl.store(of_weight, tl.load(of_weight, mask, other=0.0) + scaled, mask)
    tl.store(of_bias, tl.load(of_bias, mask, other=0.0) + gradient, mask)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)


@family(combine(8, GROUPS=(64, 256, 1024), BLOCK=(4096, 8192), num_warps=(4, 8, 16)))
def fresh_norm_parameters(config: Config) -> Launch:
    """Gradients of a layer norm's weight and bias, 4,096 rows of 4,096 float16 added up in groups under a lock."""
    rows, width = config.get("rows", 4096), config.get("width", 4096)
    tensors = normal(rows, width, dtype=_HALF), normal(rows, width, dtype=_HALF), normal(rows), uniform(rows)
    sums = zeros(config["GROUPS"], width), zeros(config["GROUPS"], width)
    locks = zeros(config["GROUPS"], dtype=torch.int32)
    return launch(_norm_parameters, (rows,), *tensors, locks, *sums, width, config=config)


@triton.jit
def _add_norm_quantise(
    x, residual, weight, sums, out, scales, width, epsilon, BLOCK: tl.constexpr, GROUP: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width
    value = tl.load(x + row * width + column, mask, other=0.0).to(tl.float32)
    value += tl.load(residual + row * width + column, mask, other=0.0).to(tl.float32)
    tl.store(sums + row * width + column, value.to(sums.dtype.element_ty), mask)
    value *= tl.rsqrt(tl.sum(value * value, 0) / width + epsilon)
    value *= tl.load(weight + column, mask, other=0.0).to(tl.float32)
    grouped = tl.reshape(value, [BLOCK // GROUP, GROUP])
    scale = tl.maximum(tl.max(tl.abs(grouped), 1) / 448.0, 1e-10)
    number = tl.arange(0, BLOCK // GROUP)
    tl.store(scales + row * (width // GROUP) + number, scale, number < width // GROUP)
    value = tl.reshape(grouped / scale[:, None], [BLOCK])
    tl.store(out + row * width + column, value.to(out.dtype.element_ty), mask)


@family(combine(8, BLOCK=(8192, 16384), GROUP=(64, 128, 512), num_warps=(4, 8, 16, 32)))
def fresh_add_norm_quantise(config: Config) -> Launch:
    """Residual, RMS norm and float8 with a scale for each group of a row, 8,192 rows of 7,168 bfloat16 in registers."""
    rows, width = config.get("rows", 8192), config.get("width", 7168)
    x, residual, sums = (normal(rows, width, dtype=_BRAIN) for _ in range(3))
    out, scales = empty(rows, width, dtype=torch.float8_e4m3fn), empty(rows, width // config["GROUP"])
    arguments = x, residual, normal(width, dtype=_BRAIN), sums, out, scales, width, 1e-6
    return launch(_add_norm_quantise, (rows,), *arguments, config=config)


@triton.jit
def _masked_softmax(scores, mask, out, heads, length, scale, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    batch = tl.program_id(1) // heads
    inside = column[None, :] < length
    hidden = tl.load(mask + (batch * length + row[:, None]) * length + column[None, :], inside, other=1)
    places = (tl.program_id(1).to(tl.int64) * length + row[:, None]) * length + column[None, :]
    score = tl.load(scores + places, inside & (hidden == 0), other=-10000.0).to(tl.float32) * scale
    score = tl.where(inside, score, -float("inf"))
    power = tl.exp(score - tl.max(score, 1)[:, None])
    tl.store(out + places, (power / tl.sum(power, 1)[:, None]).to(out.dtype.element_ty), inside)


@family(combine(8, BLOCK=(1024, 2048), ROWS=(1, 2, 4, 8), num_warps=(2, 4, 8)))
def fresh_masked_softmax(config: Config) -> Launch:
    """Softmax of 8 × 16 heads of 1,000 × 1,000 scaled scores with a mask of bytes that the heads share, float16."""
    batch, heads, length = config.get("batch", 8), config.get("heads", 16), config.get("length", 1000)
    scores, out = (normal(batch, heads, length, length, dtype=_HALF) for _ in range(2))
    mask = indices(2, batch, length, length, dtype=torch.int8)
    grid = length // config["ROWS"], batch * heads
    return launch(_masked_softmax, grid, scores, mask, out, heads, length, 0.125, config=config)


@triton.jit
def _nucleus(logits, out, words, mass, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * words
    peak = tl.full([BLOCK], -float("inf"), tl.float32)
    for start in range(0, words, BLOCK):
        place = start + tl.arange(0, BLOCK)
        peak = tl.maximum(peak, tl.load(logits + row + place, place < words, other=-float("inf")))
    above = tl.max(peak, 0)
    power = tl.zeros([BLOCK], tl.float32)
    for start in range(0, words, BLOCK):
        place = start + tl.arange(0, BLOCK)
        power += tl.exp(tl.load(logits + row + place, place < words, other=-float("inf")) - above)
    total = tl.sum(power, 0)
    low = above - 20.0
    high = above
    for _ in range(ROUNDS):
        middle = (low + high) * 0.5
        kept = tl.zeros([BLOCK], tl.float32)
        for start in range(0, words, BLOCK):
            place = start + tl.arange(0, BLOCK)
            value = tl.load(logits + row + place, place < words, other=-float("inf"))
            kept += tl.where(value >= middle, tl.exp(value - above), 0.0)
        enough = tl.sum(kept, 0) >= mass * total
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle)
    tl.store(out + tl.program_id(0), low)


@family(combine(8, BLOCK=(512, 1024, 4096, 8192), num_warps=(4, 8, 16), num_stages=(1, 3)))
def fresh_nucleus(config: Config) -> Launch:
    """The least logit of the words with 0.9 of the probability, found by 12 bisections, 256 rows of 50,257 float32."""
    rows, words = config.get("rows", 256), config.get("words", 50257)
    return launch(_nucleus, (rows,), normal(rows, words) * 3, empty(rows), words, 0.9, config=config, ROUNDS=12)


@triton.jit
def _pad(values, starts, out, most, width, fill, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.load(starts + tl.program_id(1))
    length = tl.load(starts + tl.program_id(1) + 1) - first
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = (row < length)[:, None] & (column < width)[None, :]
        value = tl.load(values + (first + row[:, None]) * width + column[None, :], mask, other=fill)
        into = (tl.program_id(1).to(tl.int64) * most + row[:, None]) * width + column[None, :]
        tl.store(out + into, value, (row < most)[:, None] & (column < width)[None, :])


@family(combine(8, ROWS=(1, 4, 16, 64), BLOCK=(64, 128, 256), num_warps=(1, 2, 4, 8)))
def fresh_pad(config: Config) -> Launch:
    """Ragged rows to a padded tensor: 1,024 sequences of 0 to 300 rows of 250 float32, filled up to 300."""
    sequences, most, width = config.get("sequences", 1024), config.get("most", 300), config.get("width", 250)
    drawn = random.Random(35)
    lengths = [drawn.randrange(most + 1) for _ in range(sequences)]
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    values, out = normal(starts[-1], width), empty(sequences, most, width)
    places = torch.tensor(starts, device="cuda", dtype=torch.int32)
    grid = triton.cdiv(most, config["ROWS"]), sequences
    return launch(_pad, grid, values, places, out, most, width, -1.0, config=config)


@triton.jit
def _resize(
    image, out, height, width, out_height, out_width, channels,
    PIXELS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    batch = tl.program_id(2).to(tl.int64)
    mask = pixel < out_height * out_width
    y = tl.maximum((pixel // out_width + 0.5) * (height / out_height) - 0.5, 0.0)
    x = tl.maximum((pixel % out_width + 0.5) * (width / out_width) - 0.5, 0.0)
    top, left = y.to(tl.int32), x.to(tl.int32)
    down, across = (y - top)[:, None], (x - left)[:, None]
    bottom, right = tl.minimum(top + 1, height - 1), tl.minimum(left + 1, width - 1)
    base = image + batch * height * width * channels + channel[None, :]
    both = mask[:, None] & (channel < channels)[None, :]
    first = tl.load(base + (top * width + left)[:, None] * channels, both).to(tl.float32)
    second = tl.load(base + (top * width + right)[:, None] * channels, both).to(tl.float32)
    third = tl.load(base + (bottom * width + left)[:, None] * channels, both).to(tl.float32)
    fourth = tl.load(base + (bottom * width + right)[:, None] * channels, both).to(tl.float32)
    upper = first + (second - first) * across
    lower = third + (fourth - third) * across
    into = (batch * out_height * out_width + pixel[:, None]) * channels + channel[None, :]
    tl.store(out + into, (upper + (lower - upper) * down).to(out.dtype.element_ty), both)


@family(combine(8, PIXELS=(4, 16, 64, 128), CHANNELS=(8, 32, 64), num_warps=(1, 4, 8)))
def fresh_resize(config: Config) -> Launch:
    """Bilinear enlargement of 16 images of 100 × 150 × 64 to 230 × 333, channels last, float16."""
    batch, height, width = config.get("batch", 16), config.get("height", 100), config.get("width", 150)
    tall, wide, channels = config.get("tall", 230), config.get("wide", 333), 64
    tensors = normal(batch, height, width, channels, dtype=_HALF), empty(batch, tall, wide, channels, dtype=_HALF)
    grid = triton.cdiv(tall * wide, config["PIXELS"]), channels // config["CHANNELS"], batch
    return launch(_resize, grid, *tensors, height, width, tall, wide, channels, config=config)


@triton.jit
def _wave(now, before, speed, out, nx, ny, nz, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    x = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)
    y = tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y)
    z = tl.program_id(2)
    mask = ((y >= 4) & (y < ny - 4))[:, None] & ((x >= 4) & (x < nx - 4))[None, :]
    place = (z * ny + y[:, None]) * nx + x[None, :]
    middle = tl.load(now + place, mask, other=0.0)
    bend = middle * (3.0 * -205.0 / 72.0)
    for step in tl.static_range(1, 5):
        weight = 8.0 / 5.0
        if step == 2:
            weight = -1.0 / 5.0
        if step == 3:
            weight = 8.0 / 315.0
        if step == 4:
            weight = -1.0 / 560.0
        inside = mask & (z >= 4) & (z < nz - 4)
        ring = tl.load(now + place - step, inside, other=0.0) + tl.load(now + place + step, inside, other=0.0)
        ring += tl.load(now + place - step * nx, inside, other=0.0) + tl.load(
            now + place + step * nx, inside, other=0.0
        )
        deep = step * nx * ny
        ring += tl.load(now + place - deep, inside, other=0.0) + tl.load(now + place + deep, inside, other=0.0)
        bend += ring * weight
    value = 2.0 * middle - tl.load(before + place, mask, other=0.0) + tl.load(speed + place, mask, other=0.0) * bend
    tl.store(out + place, value, mask & (z >= 4) & (z < nz - 4))


@family(combine(8, BLOCK_Y=(1, 4, 8, 16), BLOCK_X=(32, 64, 128, 256), num_warps=(1, 2, 4, 8)))
def fresh_wave(config: Config) -> Launch:
    """A step of the wave equation by differences of eighth order in 3D, 25 points, 384³ float32."""
    nx, ny, nz = config.get("nx", 384), config.get("ny", 384), config.get("nz", 384)
    tensors = normal(nz, ny, nx), normal(nz, ny, nx), uniform(nz, ny, nx), zeros(nz, ny, nx)
    grid = triton.cdiv(nx, config["BLOCK_X"]), triton.cdiv(ny, config["BLOCK_Y"]), nz
    return launch(_wave, grid, *tensors, nx, ny, nz, config=config)


@triton.jit
def _bodies(x, y, z, mass, ax, ay, az, n, softening, BLOCK: tl.constexpr, OTHERS: tl.constexpr):
    number = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here_x, here_y, here_z = tl.load(x + number), tl.load(y + number), tl.load(z + number)
    sum_x = tl.zeros([BLOCK, OTHERS], tl.float32)
    sum_y = tl.zeros([BLOCK, OTHERS], tl.float32)
    sum_z = tl.zeros([BLOCK, OTHERS], tl.float32)
    for start in range(0, n, OTHERS):
        other = start + tl.arange(0, OTHERS)
        dx = tl.load(x + other)[None, :] - here_x[:, None]
        dy = tl.load(y + other)[None, :] - here_y[:, None]
        dz = tl.load(z + other)[None, :] - here_z[:, None]
        near = tl.rsqrt(dx * dx + dy * dy + dz * dz + softening)
        pull = near * near * near * tl.load(mass + other)[None, :]
        sum_x += dx * pull
        sum_y += dy * pull
        sum_z += dz * pull
    tl.store(ax + number, tl.sum(sum_x, 1))
    tl.store(ay + number, tl.sum(sum_y, 1))
    tl.store(az + number, tl.sum(sum_z, 1))


@family(combine(8, BLOCK=(16, 32, 64, 128), OTHERS=(8, 32, 64), num_warps=(1, 2, 4), num_stages=(1, 2)))
def fresh_bodies(config: Config) -> Launch:
    """Gravity between all pairs of 32,768 bodies, float32."""
    n = config.get("n", 32768)
    tensors = normal(n), normal(n), normal(n), uniform(n), empty(n), empty(n), empty(n)
    return launch(_bodies, (n // config["BLOCK"],), *tensors, n, 0.01, config=config)


@triton.jit
def _neighbours(features, starts, edges, out, width, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr):
    node = tl.program_id(0)
    first, after = tl.load(starts + node), tl.load(starts + node + 1)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros([AT_ONCE, BLOCK], tl.float32)
    for start in range(first, after, AT_ONCE):
        place = start + tl.arange(0, AT_ONCE)
        other = tl.load(edges + place, place < after, other=0)
        value = tl.load(features + other[:, None] * width + column[None, :], (place < after)[:, None], other=0.0)
        sums += value.to(tl.float32)
    mean = tl.sum(sums, 0) / tl.maximum(after - first, 1)
    tl.store(out + node * width + column, mean.to(out.dtype.element_ty))


@family(combine(8, AT_ONCE=(1, 4, 16), BLOCK=(64, 128, 256), num_warps=(1, 2, 4), num_stages=(1, 3)))
def fresh_neighbours(config: Config) -> Launch:
    """Means of the neighbours' 256 float16 features of 65,536 nodes, few with hundreds of edges, most with some."""
    nodes, width = config.get("nodes", 65536), config.get("width", 256)
    drawn = random.Random(35)
    starts = [0]
    for _ in range(nodes):
        starts.append(starts[-1] + min(int(4 * drawn.paretovariate(1.3)), 800))
    places = torch.tensor(starts, device="cuda", dtype=torch.int32)
    tensors = normal(nodes, width, dtype=_HALF), places, indices(nodes, starts[-1]), empty(nodes, width, dtype=_HALF)
    return launch(_neighbours, (nodes, width // config["BLOCK"]), *tensors, width, config=config)


@triton.jit
def _compact(values, out, count, n, threshold, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(values + place, place < n, other=0.0)
    kept = ((value > threshold) & (place < n)).to(tl.int32)
    number = tl.cumsum(kept, 0) - kept
    first = tl.atomic_add(count, tl.sum(kept, 0), sem="relaxed")
    tl.store(out + first + number, value, kept == 1)


@family(combine(8, BLOCK=(256, 1024, 2048, 4096, 8192), num_warps=(1, 2, 4, 8, 16)))
def fresh_compact(config: Config) -> Launch:
    """Copy those of 2^25 float32 that are above a limit, places by a running sum and one atomic addition each."""
    n = config.get("n", 1 << 25)
    # Launches that are timed add up: the places that they store to are those of the later launches.
    tensors = normal(n), empty(16 * n), zeros(1, dtype=torch.int32)
    return launch(_compact, (triton.cdiv(n, config["BLOCK"]),), *tensors, n, 0.5, config=config)


@triton.jit
def _four_bit_float(packed, table, scales, out, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    byte = tl.load(packed + place, place < n, other=0)
    scale = tl.load(scales + place // (GROUP // 2), place < n, other=0.0)
    low = tl.load(table + (byte & 15).to(tl.int32)) * scale
    high = tl.load(table + (byte >> 4).to(tl.int32)) * scale
    value = tl.interleave(high, low).to(out.dtype.element_ty)
    into = tl.program_id(0) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    tl.store(out + into, value, into < 2 * n)


@family(combine(8, BLOCK=(256, 512, 1024, 2048, 4096), num_warps=(1, 2, 4, 8)))
def fresh_four_bit_float(config: Config) -> Launch:
    """2^27 bfloat16 from 4 bits each: an entry of a table of 16, times the scale of 64 of them."""
    n = config.get("n", 1 << 26)
    tensors = indices(256, n, dtype=torch.uint8), normal(16), uniform(n // 32), empty(2 * n, dtype=_BRAIN)
    return launch(_four_bit_float, (triton.cdiv(n, config["BLOCK"]),), *tensors, n, config=config, GROUP=64)


@triton.jit
def _channel_moments(x, sums, squares, batch, channels, pixels, IMAGES: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    for turn in range(IMAGES):
        image = tl.program_id(1) * IMAGES + turn
        base = (image.to(tl.int64) * channels + channel) * pixels
        for start in range(0, pixels, BLOCK):
            place = start + tl.arange(0, BLOCK)
            value = tl.load(x + base + place, place < pixels, other=0.0).to(tl.float32)
            total += value
            square += value * value
    tl.atomic_add(sums + channel, tl.sum(total, 0), sem="relaxed")
    tl.atomic_add(squares + channel, tl.sum(square, 0), sem="relaxed")


@family(combine(8, IMAGES=(1, 8, 32), BLOCK=(512, 1024, 4096), num_warps=(2, 4, 8), num_stages=(1, 3)))
def fresh_channel_moments(config: Config) -> Launch:
    """Sums and squares of each of 256 channels of 128 images of 50 × 50 float16, channels first."""
    batch, channels, pixels = config.get("batch", 128), config.get("channels", 256), config.get("pixels", 2500)
    tensors = normal(batch, channels, pixels, dtype=_HALF), zeros(channels), zeros(channels)
    grid = channels, batch // config["IMAGES"]
    return launch(_channel_moments, grid, *tensors, batch, channels, pixels, config=config)
