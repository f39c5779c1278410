"""Held out: a norm's gradients, sums by label, graphs, gathers between pixels and in hash tables, and a fluid.

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
def _norm_backward(
    x, slopes, gains, scales, out, parts, rows, epsilon,
    WIDTH: tl.constexpr, DEALT: tl.constexpr, AGAIN: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, WIDTH)
    gain = tl.load(gains + column).to(tl.float32)
    sums = tl.zeros([WIDTH], tl.float32)
    each = tl.cdiv(rows, tl.num_programs(0))
    for number in range(each):
        row = number * tl.num_programs(0) + tl.program_id(0) if DEALT else tl.program_id(0) * each + number
        place = row * WIDTH + column
        value = tl.load(x + place, row < rows, other=0.0).to(tl.float32)
        slope = tl.load(slopes + place, row < rows, other=0.0).to(tl.float32)
        if AGAIN:
            scale = tl.rsqrt(tl.sum(value * value, 0) / WIDTH + epsilon)
        else:
            scale = tl.load(scales + row, row < rows, other=0.0)
        value = value * scale
        sums += slope * value
        slope = slope * gain
        gradient = scale * (slope - value * (tl.sum(slope * value, 0) / WIDTH))
        tl.store(out + place, gradient.to(out.dtype.element_ty), row < rows)
    tl.store(parts + tl.program_id(0) * WIDTH + column, sums)


@family(combine(8, DEALT=(0, 1), AGAIN=(0, 1), programs=(132, 264, 528, 1056), num_warps=(4, 8, 16)))
def held_norm_backward(config: Config) -> Launch:
    """Gradients of RMS norm, 16,384 rows of 4,096 bfloat16: by its input, and parts of that by the gains."""
    rows, programs = config.get("rows", 16384), config["programs"]
    x, slopes, out = (normal(rows, 4096, dtype=_BRAIN) for _ in range(3))
    scales = torch.rsqrt((x.float() ** 2).mean(1) + 1e-5)
    arguments = x, slopes, normal(4096, dtype=_BRAIN), scales, out, empty(programs, 4096), rows, 1e-5
    return launch(_norm_backward, (programs,), *arguments, config=config, WIDTH=4096)


@triton.jit
def _sums_by_label(
    x, labels, sums, counts,
    LABELS: tl.constexpr, WIDTH: tl.constexpr, ONE_HOT: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    column, label = tl.arange(0, WIDTH), tl.arange(0, LABELS)
    local = tl.zeros([LABELS, WIDTH], tl.float32)
    local_counts = tl.zeros([LABELS], tl.int32)
    for start in range(0, CHUNK, BLOCK):
        point = tl.program_id(0) * CHUNK + start + tl.arange(0, BLOCK)
        value = tl.load(x + point[:, None] * WIDTH + column[None, :])
        mine = tl.load(labels + point)
        if ONE_HOT:
            hot = label[:, None] == mine[None, :]
            local = tl.dot(hot.to(value.dtype), value, local)
            local_counts += tl.sum(hot.to(tl.int32), 1)
        else:
            tl.atomic_add(sums + mine[:, None] * WIDTH + column[None, :], value.to(tl.float32), sem="relaxed")
            tl.atomic_add(counts + mine, 1, sem="relaxed")
    if ONE_HOT:
        tl.atomic_add(sums + label[:, None] * WIDTH + column[None, :], local, sem="relaxed")
        tl.atomic_add(counts + label, local_counts, sem="relaxed")


@family(combine(8, ONE_HOT=(0, 1), CHUNK=(512, 2048, 8192), BLOCK=(32, 64, 128), num_warps=(4, 8), num_stages=(1, 3)))
def held_sums_by_label(config: Config) -> Launch:
    """Sums and counts of 2^19 points of 64 float16 by 128 labels, as in k-means: by atomics, or a one-hot product."""
    points, labels = config.get("points", 1 << 19), 128
    tensors = normal(points, 64, dtype=_HALF), indices(labels, points)
    arguments = *tensors, zeros(labels, 64), zeros(labels, dtype=torch.int32)
    return launch(_sums_by_label, (points // config["CHUNK"],), *arguments, config=config, LABELS=labels, WIDTH=64)


@triton.jit
def _graph_attention(
    x, from_scores, to_scores, starts, others, out,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, NODE_FIRST: tl.constexpr, ONLINE: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    if NODE_FIRST:
        node, head = tl.program_id(0), tl.program_id(1)
    else:
        head, node = tl.program_id(0), tl.program_id(1)
    first, after = tl.load(starts + node), tl.load(starts + node + 1)
    mine = tl.load(to_scores + node * HEADS + head)
    column = tl.arange(0, WIDTH)
    peak = -1e30
    if not ONLINE:
        for start in range(first, after, AT_ONCE):
            edge = start + tl.arange(0, AT_ONCE)
            other = tl.load(others + edge, edge < after, other=0)
            score = tl.load(from_scores + other * HEADS + head, edge < after, other=0.0) + mine
            score = tl.where(edge < after, tl.maximum(score, 0.2 * score), -1e30)
            peak = tl.maximum(peak, tl.max(score, 0))
    total = 0.0
    mixed = tl.zeros([WIDTH], tl.float32)
    for start in range(first, after, AT_ONCE):
        edge = start + tl.arange(0, AT_ONCE)
        other = tl.load(others + edge, edge < after, other=0)
        score = tl.load(from_scores + other * HEADS + head, edge < after, other=0.0) + mine
        score = tl.where(edge < after, tl.maximum(score, 0.2 * score), -1e30)
        if ONLINE:
            above = tl.maximum(peak, tl.max(score, 0))
            factor = tl.exp(peak - above)
            total = total * factor
            mixed = mixed * factor
            peak = above
        weight = tl.exp(score - peak)
        place = (other[:, None] * HEADS + head) * WIDTH + column[None, :]
        value = tl.load(x + place, (edge < after)[:, None], other=0.0).to(tl.float32)
        total += tl.sum(weight, 0)
        mixed += tl.sum(value * weight[:, None], 0)
    mixed = mixed / tl.maximum(total, 1e-20)
    tl.store(out + (node * HEADS + head) * WIDTH + column, mixed.to(out.dtype.element_ty))


@family(combine(8, ONLINE=(0, 1), AT_ONCE=(4, 8, 16, 32), NODE_FIRST=(0, 1), num_warps=(1, 2, 4)))
def held_graph_attention(config: Config) -> Launch:
    """Softmax over the edges to each of 50,000 nodes, 3 to 400 of them, and the mean of 4 heads of 64 float16."""
    nodes, heads = config.get("nodes", 50000), 4
    drawn = random.Random(35)
    starts, others = [0], []
    for _ in range(nodes):
        degree = min(int(drawn.paretovariate(1.1) * 3), 400)
        others += [int(nodes * drawn.random() ** 2) for _ in range(degree)]
        starts.append(len(others))
    tables = (torch.tensor(each, device="cuda", dtype=torch.int32) for each in (starts, others))
    arguments = normal(nodes, heads, 64, dtype=_HALF), normal(nodes, heads), normal(nodes, heads), *tables
    grid = (nodes, heads) if config["NODE_FIRST"] else (heads, nodes)
    out = empty(nodes, heads, 64, dtype=_HALF)
    return launch(_graph_attention, grid, *arguments, out, config=config, HEADS=heads, WIDTH=64)


@triton.jit
def _corner(values, row, column, height, width, weight, channel, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    place = (row * width + column)[:, None] * (HEADS * WIDTH) + channel[None, :]
    value = tl.load(values + place, inside[:, None], other=0.0)
    return value.to(tl.float32) * weight[:, None]


@triton.jit
def _sampled_points(
    values, shapes, places, weights, out, queries, pixels,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, LEVELS: tl.constexpr, POINTS: tl.constexpr,
    HEAD_FIRST: tl.constexpr, UNROLLED: tl.constexpr, BLOCK_Q: tl.constexpr,
):  # fmt: skip
    if HEAD_FIRST:
        head, tile = tl.program_id(0), tl.program_id(1)
    else:
        tile, head = tl.program_id(0), tl.program_id(1)
    query = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    mask = query < queries
    channel = head * WIDTH + tl.arange(0, WIDTH)
    of_query = (tl.program_id(2) * queries + query) * HEADS + head
    values += tl.program_id(2) * pixels * (HEADS * WIDTH)
    sums = tl.zeros([BLOCK_Q, WIDTH], tl.float32)
    for level in range(LEVELS):
        height, width = tl.load(shapes + level * 3), tl.load(shapes + level * 3 + 1)
        image = values + tl.load(shapes + level * 3 + 2) * (HEADS * WIDTH)
        for point in tl.range(POINTS, loop_unroll_factor=UNROLLED):
            number = (of_query * LEVELS + level) * POINTS + point
            across = tl.load(places + number * 2, mask, other=0.0) * width - 0.5
            down = tl.load(places + number * 2 + 1, mask, other=0.0) * height - 0.5
            weight = tl.load(weights + number, mask, other=0.0)
            left, above = tl.floor(across), tl.floor(down)
            right_part, low_part = across - left, down - above
            column, row = left.to(tl.int32), above.to(tl.int32)
            high, low = weight * (1.0 - low_part), weight * low_part
            sums += _corner(image, row, column, height, width, high * (1.0 - right_part), channel, HEADS, WIDTH)
            sums += _corner(image, row, column + 1, height, width, high * right_part, channel, HEADS, WIDTH)
            sums += _corner(image, row + 1, column, height, width, low * (1.0 - right_part), channel, HEADS, WIDTH)
            sums += _corner(image, row + 1, column + 1, height, width, low * right_part, channel, HEADS, WIDTH)
    into = (tl.program_id(2) * queries + query)[:, None] * (HEADS * WIDTH) + channel[None, :]
    tl.store(out + into, sums.to(out.dtype.element_ty), mask[:, None])


@family(combine(8, HEAD_FIRST=(0, 1), UNROLLED=(1, 4), BLOCK_Q=(2, 4, 8, 16, 32), num_warps=(1, 2, 4)))
def held_sampled_points(config: Config) -> Launch:
    """Deformable attention: 16 points of four levels near each of 2 × 17,821 pixels, 8 heads of 32 float16."""
    batch, tall, wide, heads = config.get("batch", 2), config.get("tall", 100), config.get("wide", 134), 8
    sides = [(triton.cdiv(tall, 1 << level), triton.cdiv(wide, 1 << level)) for level in range(4)]
    rows, centres, pixels = [], [], 0
    for height, width in sides:
        rows.append([height, width, pixels])
        pixels += height * width
        centres += [[(x + 0.5) / width, (y + 0.5) / height] for y in range(height) for x in range(width)]
    shapes = torch.tensor(rows, device="cuda", dtype=torch.int32)
    centre = torch.tensor(centres, device="cuda", dtype=torch.float32).reshape(1, pixels, 1, 1, 2)
    places = centre + normal(batch, pixels, heads, 16, 2) * 0.03
    weights = torch.softmax(normal(batch, pixels, heads, 16), 3)
    values, out = (normal(batch, pixels, heads, 32, dtype=_HALF) for _ in range(2))
    tiles = triton.cdiv(pixels, config["BLOCK_Q"])
    grid = (heads, tiles, batch) if config["HEAD_FIRST"] else (tiles, heads, batch)
    arguments = values, shapes, places, weights, out, pixels, pixels
    return launch(_sampled_points, grid, *arguments, config=config, HEADS=heads, WIDTH=32, LEVELS=4, POINTS=4)


@triton.jit
def _hash_encoding(
    places, sides, table, words, out, points,
    SIZE: tl.constexpr, LEVELS: tl.constexpr, PACKED: tl.constexpr, LEVEL_FIRST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    if LEVEL_FIRST:
        level, tile = tl.program_id(0), tl.program_id(1)
    else:
        tile, level = tl.program_id(0), tl.program_id(1)
    point = tile * BLOCK + tl.arange(0, BLOCK)
    side = tl.load(sides + level)
    x = tl.load(places + point * 3) * side
    y = tl.load(places + point * 3 + 1) * side
    z = tl.load(places + point * 3 + 2) * side
    left, front, low = tl.floor(x), tl.floor(y), tl.floor(z)
    column, row, plane = left.to(tl.uint32), front.to(tl.uint32), low.to(tl.uint32)
    across, along, up = x - left, y - front, z - low
    count = side.to(tl.uint32) + 1
    first = tl.zeros([BLOCK], tl.float32)
    second = tl.zeros([BLOCK], tl.float32)
    for corner in tl.static_range(8):
        i, j, k = column + (corner & 1), row + (corner >> 1 & 1), plane + (corner >> 2)
        weight = across if corner & 1 else 1.0 - across
        weight *= along if corner >> 1 & 1 else 1.0 - along
        weight *= up if corner >> 2 else 1.0 - up
        # A level whose corners all fit is stored without hashes.
        hashed = (i ^ (j * 2654435761) ^ (k * 805459861)) & (SIZE - 1)
        entry = tl.where(side < 80.0, i + count * (j + count * k), hashed)
        entry = entry.to(tl.int32) + level * SIZE
        if PACKED:
            word = tl.load(words + entry)
            first += weight * (word & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
            second += weight * (word >> 16).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        else:
            first += weight * tl.load(table + entry * 2).to(tl.float32)
            second += weight * tl.load(table + entry * 2 + 1).to(tl.float32)
    into = point * (LEVELS * 2) + level * 2
    tl.store(out + into, first.to(out.dtype.element_ty))
    tl.store(out + into + 1, second.to(out.dtype.element_ty))


@family(combine(8, PACKED=(0, 1), LEVEL_FIRST=(0, 1), BLOCK=(128, 256, 512, 1024), num_warps=(1, 2, 4, 8)))
def held_hash_encoding(config: Config) -> Launch:
    """Interpolate among 8 corners of 16 grids of 16³ to 2,048³, hashed to 2^19 pairs of float16 each, 2^19 points."""
    points, size, levels = config.get("points", 1 << 19), 1 << 19, 16
    sides = torch.tensor([int(16 * 128 ** (level / 15)) for level in range(levels)], device="cuda", dtype=torch.float32)
    table = normal(levels * size, 2, dtype=_HALF)
    arguments = uniform(points, 3), sides, table, table.view(torch.int32), empty(points, levels, 2, dtype=_HALF), points
    tiles = points // config["BLOCK"]
    grid = (levels, tiles) if config["LEVEL_FIRST"] else (tiles, levels)
    return launch(_hash_encoding, grid, *arguments, config=config, SIZE=size, LEVELS=levels)


@triton.jit
def _pulled(now, row, column, height, width, number: tl.constexpr, PLANES: tl.constexpr):
    # The number holds the direction: what arrives comes from the other side, around the borders.
    other_row = row - (number // 3 - 1)
    other_column = column - (number % 3 - 1)
    other_row = tl.where(other_row < 0, height - 1, tl.where(other_row == height, 0, other_row))
    other_column = tl.where(other_column < 0, width - 1, tl.where(other_column == width, 0, other_column))
    cell = other_row[:, None] * width + other_column[None, :]
    return tl.load(now + (number * height * width + cell if PLANES else cell * 9 + number))


@triton.jit
def _relax(later, value, mass, x, y, cell, cells, rate, number: tl.constexpr, PLANES: tl.constexpr):
    across: tl.constexpr = number % 3 - 1
    down: tl.constexpr = number // 3 - 1
    share: tl.constexpr = 4 / 9 if number == 4 else (1 / 9 if number % 2 == 1 else 1 / 36)
    along = 3.0 * (x * across + y * down)
    calm = share * mass * (1.0 + along + 0.5 * along * along - 1.5 * (x * x + y * y))
    tl.store(later + (number * cells + cell if PLANES else cell * 9 + number), value + rate * (calm - value))


@triton.jit
def _lattice_fluid(
    now, later, height, width, rate,
    PLANES: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    column = tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)
    parts = ()
    for number in tl.static_range(9):
        parts += (_pulled(now, row, column, height, width, number, PLANES),)
    f0, f1, f2, f3, f4, f5, f6, f7, f8 = parts
    mass = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
    x = (f2 + f5 + f8 - f0 - f3 - f6) / mass
    y = (f6 + f7 + f8 - f0 - f1 - f2) / mass
    cell, cells = row[:, None] * width + column[None, :], height * width
    for number in tl.static_range(9):
        _relax(later, parts[number], mass, x, y, cell, cells, rate, number, PLANES)


@family(combine(8, PLANES=(0, 1), BLOCK_H=(1, 2, 4), BLOCK_W=(128, 256, 512), num_warps=(2, 4, 8)))
def held_lattice_fluid(config: Config) -> Launch:
    """A step of a lattice Boltzmann fluid, nine directions of 2,048 × 4,096 cells of float32, in planes or by cell."""
    height, width = config.get("height", 2048), config.get("width", 4096)
    now, later = uniform(9 * height * width) + 0.5, empty(9 * height * width)
    grid = width // config["BLOCK_W"], height // config["BLOCK_H"]
    return launch(_lattice_fluid, grid, now, later, height, width, 1.2, config=config)
