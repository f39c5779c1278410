"""Unseen: images, filtered, equalised and warped.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch


@triton.jit
def _equalise(image, out, width, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * HEIGHT + tl.arange(0, HEIGHT)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    place = row[:, None] * width + column[None, :]
    pixel = tl.reshape(tl.load(image + place).to(tl.int32), [HEIGHT * WIDTH])
    counts = tl.histogram(pixel, 256)
    levels = tl.cumsum(counts, 0) * 255 // (HEIGHT * WIDTH)
    tl.store(out + place, tl.reshape(tl.gather(levels, pixel, 0), [HEIGHT, WIDTH]).to(tl.uint8))


@family(combine(8, HEIGHT=(16, 32, 64), WIDTH=(64, 128, 256), num_warps=(2, 4, 8, 16)))
def unseen_equalise(config: Config) -> Launch:
    """Equalise each tile of 8,192 × 8,192 bytes: a histogram, its running sum and a look-up."""
    side = config.get("side", 8192)
    tensors = indices(256, side, side, dtype=torch.uint8), empty(side, side, dtype=torch.uint8)
    return launch(_equalise, (side // config["HEIGHT"], side // config["WIDTH"]), *tensors, side, config=config)


@triton.jit
def _bilateral(
    image, out, height, width, near, alike,
    RADIUS: tl.constexpr, UNROLLED: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)
    column = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)
    mask = (row < height)[:, None] & (column < width)[None, :]
    middle = tl.load(image + row[:, None] * width + column[None, :], mask, other=0.0)
    total = tl.zeros([BLOCK_H, BLOCK_W], tl.float32)
    weights = tl.zeros([BLOCK_H, BLOCK_W], tl.float32)
    for down in tl.range(-RADIUS, RADIUS + 1, loop_unroll_factor=UNROLLED):
        for across in tl.static_range(-RADIUS, RADIUS + 1):
            other_row = row + down
            other_column = column + across
            inside = ((other_row >= 0) & (other_row < height))[:, None]
            inside = inside & ((other_column >= 0) & (other_column < width))[None, :]
            value = tl.load(image + other_row[:, None] * width + other_column[None, :], mask & inside, other=0.0)
            apart = value - middle
            weight = tl.exp(-near * (down * down + across * across) - alike * apart * apart)
            weight = tl.where(inside, weight, 0.0)
            total += weight * value
            weights += weight
    tl.store(out + row[:, None] * width + column[None, :], total / weights, mask)


@family(combine(8, UNROLLED=(1, 5), BLOCK_H=(1, 2, 8, 16), BLOCK_W=(32, 64, 128, 256), num_warps=(1, 2, 4, 8)))
def unseen_bilateral(config: Config) -> Launch:
    """Bilateral filter of 5 × 5 neighbours of an image of 3,000 × 4,000 float32."""
    height, width = config.get("height", 3000), config.get("width", 4000)
    tensors = uniform(height, width), empty(height, width)
    grid = triton.cdiv(height, config["BLOCK_H"]), triton.cdiv(width, config["BLOCK_W"])
    return launch(_bilateral, grid, *tensors, height, width, 0.1, 8.0, config=config, RADIUS=2)


@triton.jit
def _warp_backward(
    slopes, places_x, places_y, image, height, width, channels,
    PIXELS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    batch = tl.program_id(2) * height * width
    x = tl.load(places_x + batch + pixel) * (width - 1)
    y = tl.load(places_y + batch + pixel) * (height - 1)
    slope = tl.load(slopes + (batch + pixel)[:, None] * channels + channel[None, :])
    left, top = tl.floor(x).to(tl.int32), tl.floor(y).to(tl.int32)
    across, down = x - left, y - top
    for corner in tl.static_range(4):
        column = left + corner % 2
        row = top + corner // 2
        by_column = across if corner % 2 else 1.0 - across
        by_row = down if corner // 2 else 1.0 - down
        inside = (column < width) & (row < height)
        into = image + (batch + row * width + column)[:, None] * channels + channel[None, :]
        tl.atomic_add(into, slope * (by_column * by_row)[:, None], inside[:, None], sem="relaxed")


@family(combine(8, PIXELS=(4, 16, 32, 128), CHANNELS=(8, 16, 32), num_warps=(1, 2, 4, 8)))
def unseen_warp_backward(config: Config) -> Launch:
    """Gradient of a bilinear warp: 8 images of 128 × 128 × 32 float32, four atomic additions each at random places."""
    batch, height, width, channels = config.get("batch", 8), config.get("height", 128), config.get("width", 128), 32
    pixels = height * width
    tensors = normal(batch, pixels, channels), uniform(batch, pixels), uniform(batch, pixels)
    grid = pixels // config["PIXELS"], channels // config["CHANNELS"], batch
    arguments = *tensors, zeros(batch, pixels, channels), height, width, channels
    return launch(_warp_backward, grid, *arguments, config=config)


@triton.jit
def _middle_of_three(a, b, c):
    return tl.maximum(tl.minimum(a, b), tl.minimum(tl.maximum(a, b), c))


@triton.jit
def _median(image, out, height, width, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr):
    row = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    column = tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)
    before, after = tl.maximum(column - 1, 0), tl.minimum(column + 1, width - 1)
    mask = (row < height)[:, None] & (column < width)[None, :]
    lows = tl.zeros([BLOCK_H, BLOCK_W], image.dtype.element_ty)
    middles = tl.full([BLOCK_H, BLOCK_W], 0, image.dtype.element_ty)
    highs = tl.full([BLOCK_H, BLOCK_W], 255, image.dtype.element_ty)
    first = lows
    second = lows
    for step in tl.static_range(3):
        from_row = image + tl.minimum(tl.maximum(row + step - 1, 0), height - 1)[:, None] * width
        a = tl.load(from_row + before[None, :], mask, other=0)
        b = tl.load(from_row + column[None, :], mask, other=0)
        c = tl.load(from_row + after[None, :], mask, other=0)
        # Of nine values, the median is that of the greatest low, the median middle and the least high of three rows.
        lows = tl.maximum(lows, tl.minimum(tl.minimum(a, b), c))
        highs = tl.minimum(highs, tl.maximum(tl.maximum(a, b), c))
        middle = _middle_of_three(a, b, c)
        if step == 0:
            first = middle
        elif step == 1:
            second = middle
        else:
            middles = _middle_of_three(first, second, middle)
    value = _middle_of_three(lows, middles, highs)
    tl.store(out + row[:, None] * width + column[None, :], value, mask)


@family(combine(8, BLOCK_H=(1, 4, 16, 32), BLOCK_W=(64, 128, 256, 512), num_warps=(1, 2, 4, 8)))
def unseen_median(config: Config) -> Launch:
    """Median of 3 × 3 pixels of an image of 10,000 × 8,000 bytes."""
    height, width = config.get("height", 10000), config.get("width", 8000)
    tensors = indices(256, height, width, dtype=torch.uint8), empty(height, width, dtype=torch.uint8)
    grid = triton.cdiv(width, config["BLOCK_W"]), triton.cdiv(height, config["BLOCK_H"])
    return launch(_median, grid, *tensors, height, width, config=config)
