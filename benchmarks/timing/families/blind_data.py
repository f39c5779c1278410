"""Blind: a Fourier transform, scans with look-back, hashes, strings, random paths, sparse products, bits and orders.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF = torch.float16


@triton.jit
def _twiddle(table, N: tl.constexpr, STRIDE: tl.constexpr, TABLE: tl.constexpr):
    angle = tl.arange(0, N // 2) // STRIDE * STRIDE
    if TABLE:
        cosine, sine = tl.load(table + angle * 2), tl.load(table + angle * 2 + 1)
    else:
        turn = angle.to(tl.float32) * (-6.283185307179586 / N)
        cosine, sine = tl.cos(turn), tl.sin(turn)
    return cosine[None, :], sine[None, :]


@triton.jit
def _woven(first, second, N: tl.constexpr, STRIDE: tl.constexpr):
    """Put STRIDE elements of the second after as many of the first."""
    joined = tl.reshape(tl.join(first, second), [first.shape[0], N // 2 // STRIDE, STRIDE, 2])
    return tl.reshape(tl.permute(joined, [0, 1, 3, 2]), [first.shape[0], N])


@triton.jit
def _butterflies(
    x, table, out, N: tl.constexpr, STAGES: tl.constexpr, ROWS: tl.constexpr, TABLE: tl.constexpr, JOINED: tl.constexpr
):
    HALF: tl.constexpr = N // 2
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    number = tl.arange(0, N)
    place = row[:, None] * N + number[None, :]
    if JOINED:
        real, imaginary = tl.split(tl.load(x + place[:, :, None] * 2 + tl.arange(0, 2)[None, None, :]))
    else:
        real, imaginary = tl.load(x + place * 2), tl.load(x + place * 2 + 1)
    # Stockham's order: each stage takes element i and i + N/2, and puts its results next to each other at its stride.
    for stage in tl.static_range(STAGES):
        cosine, sine = _twiddle(table, N, 1 << stage, TABLE)
        a, b = tl.split(tl.permute(tl.reshape(real, [ROWS, 2, HALF]), [0, 2, 1]))
        c, d = tl.split(tl.permute(tl.reshape(imaginary, [ROWS, 2, HALF]), [0, 2, 1]))
        less, lesser = a - b, c - d
        real = _woven(a + b, less * cosine - lesser * sine, N, 1 << stage)
        imaginary = _woven(c + d, less * sine + lesser * cosine, N, 1 << stage)
    if JOINED:
        tl.store(out + place[:, :, None] * 2 + tl.arange(0, 2)[None, None, :], tl.join(real, imaginary))
    else:
        tl.store(out + place * 2, real)
        tl.store(out + place * 2 + 1, imaginary)


@family(combine(8, ROWS=(1, 2, 4), TABLE=(0, 1), JOINED=(0, 1), num_warps=(2, 4, 8)))
def blind_butterflies(config: Config) -> Launch:
    """Fourier transform of 16,384 rows of 512 complex float32, nine stages in registers and shared memory."""
    rows, n = config.get("rows", 16384), 512
    turn = torch.arange(n // 2, device="cuda", dtype=torch.float32) * (-2 * math.pi / n)
    table = torch.stack([torch.cos(turn), torch.sin(turn)], 1)
    arguments = normal(rows, n, 2), table, empty(rows, n, 2)
    return launch(_butterflies, (rows // config["ROWS"],), *arguments, config=config, N=n, STAGES=9)


@triton.jit
def lookback_scan_kernel(x_ptr, y_ptr, states_ptr, counter_ptr, n, BLOCK: tl.constexpr, WINDOW: tl.constexpr):
    # Tickets are drawn in the order of arrival, so that whom a program waits for has begun. They count on from launch
    # to launch: a state belongs to this launch by its number.
    ticket = tl.atomic_add(counter_ptr, 1)
    tiles = tl.num_programs(0)
    tile = ticket % tiles
    partial = (ticket // tiles).to(tl.int64) * 2 + 1
    offs = tile * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    total = tl.sum(x, 0).to(tl.int64)
    if tile == 0:
        tl.atomic_xchg(states_ptr, ((partial + 1) << 32) | total)
    else:
        tl.atomic_xchg(states_ptr + tile, (partial << 32) | total)
    before = tl.zeros([], tl.int64)
    lane = tl.arange(0, WINDOW)
    newest = tile - 1
    while newest >= 0:
        other = newest - lane
        word = tl.load(states_ptr + other, mask=other >= 0, other=0, volatile=True)
        flag = tl.where(other >= 0, word >> 32, partial + 1)
        value = word & 0xFFFFFFFF
        stop = tl.min(tl.where(flag > partial, lane, WINDOW), 0)
        taken = lane <= stop
        if tl.min(tl.where(taken, flag, partial), 0) >= partial:
            before += tl.sum(tl.where(taken, value, 0), 0)
            newest = tl.where(stop < WINDOW, -1, newest - WINDOW)
    if tile > 0:
        tl.atomic_xchg(states_ptr + tile, ((partial + 1) << 32) | (before + total))
    y = tl.cumsum(x, 0) + before.to(tl.int32)
    tl.store(y_ptr + offs, y, mask=offs < n)


@family(combine(8, BLOCK=(512, 1024, 2048, 4096, 8192), WINDOW=(1, 8, 32), num_warps=(2, 4, 8, 16)))
def blind_lookback_scan(config: Config) -> Launch:
    """Running sums of 33,000,000 int32 in one pass: each program looks back at the sums of the ones before it."""
    n = config.get("n", 33_000_000)
    tiles = triton.cdiv(n, config["BLOCK"])
    states, counter = zeros(tiles, dtype=torch.int64), zeros(1, dtype=torch.int32)
    arguments = indices(8, n), empty(n, dtype=torch.int32), states, counter, n
    return launch(lookback_scan_kernel, (tiles,), *arguments, config=config)


def _hash_table(keys: torch.Tensor, bits: int) -> torch.Tensor:
    """Put distinct keys at the first free place from their hash on, all at once in rounds; -1 is free."""
    size = 1 << bits
    table = torch.full((size,), -1, dtype=torch.int32)
    place = ((keys.long() * 2654435761 & 0xFFFFFFFF) >> (32 - bits)).clone()
    while keys.numel():
        free = table[place] == -1
        table[place[free]] = keys[free]
        out = table[place] != keys
        keys, place = keys[out], (place[out] + 1) % size
    return table


@triton.jit
def _hash_probe(
    probes,
    pairs,
    keys,
    values,
    out,
    n,
    BITS: tl.constexpr,
    PAIRED: tl.constexpr,
    AT_MOST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wanted = tl.load(probes + i, mask=i < n, other=0)
    slot = ((wanted.to(tl.uint32) * 2654435761) >> (32 - BITS)).to(tl.int32)
    found = tl.full([BLOCK], -1, tl.int32)
    searching = i < n
    left = tl.max(searching.to(tl.int32), 0)
    while left > 0:
        # Some steps are made without asking whether any lane still searches.
        for _ in tl.static_range(AT_MOST):
            if PAIRED:
                pair = tl.load(pairs + slot, mask=searching, other=-1)
                key, value = pair.to(tl.int32), (pair >> 32).to(tl.int32)
            else:
                key = tl.load(keys + slot, mask=searching, other=-1)
                value = tl.load(values + slot, mask=searching & (key == wanted), other=-1)
            found = tl.where(searching & (key == wanted), value, found)
            searching = searching & (key != wanted) & (key != -1)
            slot = (slot + 1) & ((1 << BITS) - 1)
        left = tl.max(searching.to(tl.int32), 0)
    tl.store(out + i, found, mask=i < n)


@family(combine(8, PAIRED=(0, 1), AT_MOST=(1, 2, 4), BLOCK=(64, 128, 256, 512, 1024), num_warps=(1, 2, 4, 8)))
def blind_hash_probe(config: Config) -> Launch:
    """Look up 6,000,000 keys, half of them there, in a table of 2^22 places half full (join): pairs, or two tables."""
    n, bits = config.get("n", 6_000_000), config.get("bits", 22)
    drawn = torch.Generator().manual_seed(35)
    keys = torch.randint(0, 1 << 30, (1 << (bits - 1),), generator=drawn, dtype=torch.int32).unique()
    table = _hash_table(keys, bits)
    values = torch.arange(1 << bits, dtype=torch.int32)
    pairs = (values.long() << 32) | (table.long() & 0xFFFFFFFF)
    some = keys[torch.randint(0, keys.numel(), (n,), generator=drawn)]
    others = torch.randint(0, 1 << 30, (n,), generator=drawn, dtype=torch.int32)
    probes = torch.where(torch.rand(n, generator=drawn) < 0.5, some, others)
    tensors = (each.to("cuda") for each in (probes, pairs, table, values))
    grid = (triton.cdiv(n, config["BLOCK"]),)
    return launch(_hash_probe, grid, *tensors, empty(n, dtype=torch.int32), n, config=config, BITS=bits)


@triton.jit
def _minimum(a, b):
    return tl.minimum(a, b)


@triton.jit
def _edit_distance(first, second, out, pairs, LENGTH: tl.constexpr, PAIRS: tl.constexpr, ACROSS: tl.constexpr):
    # Strings along the last axis, or along the first one, where neighbours in a warp are of different pairs.
    AXIS: tl.constexpr = 0 if ACROSS else 1
    pair = tl.program_id(0) * PAIRS + tl.arange(0, PAIRS)
    place = tl.arange(0, LENGTH)
    pair = tl.expand_dims(pair, AXIS)
    spot = tl.expand_dims(place, 1 - AXIS)
    letters = tl.load(second + pair * LENGTH + spot)
    # Distances less their column: inserting letters is then a running minimum.
    costs = tl.zeros_like(letters).to(tl.int32)
    earlier = tl.maximum(spot - 1, 0) + tl.zeros_like(costs)
    for step in range(LENGTH):
        letter = tl.load(first + pair * LENGTH + step)
        above_left = tl.where(spot == 0, step, tl.gather(costs, earlier, AXIS))
        swapped = above_left - 1 + (letters != letter).to(tl.int32)
        best = tl.minimum(costs + 1, swapped)
        best = tl.where(spot == 0, tl.minimum(best, step + 1), best)
        costs = tl.associative_scan(best, AXIS, _minimum)
    last = tl.sum(tl.where(spot == LENGTH - 1, costs + LENGTH, 0), AXIS)
    tl.store(out + tl.program_id(0) * PAIRS + tl.arange(0, PAIRS), last)


@family(combine(8, ACROSS=(0, 1), PAIRS=(1, 2, 4, 8, 16, 32), num_warps=(1, 2, 4)))
def blind_edit_distance(config: Config) -> Launch:
    """Levenshtein's distance of 16,384 pairs of strings of 128 bytes, a row of the table in each iteration."""
    pairs = config.get("pairs", 16384)
    first, second = (indices(4, pairs, 128, dtype=torch.uint8) + 65 for _ in range(2))
    arguments = first, second, empty(pairs, dtype=torch.int32), pairs
    return launch(_edit_distance, (pairs // config["PAIRS"],), *arguments, config=config, LENGTH=128)


@triton.jit
def option_paths_kernel(
    out_ptr, steps, spot, strike, drift, volatility, seed, FOUR: tl.constexpr, UNROLL: tl.constexpr, BLOCK: tl.constexpr
):
    path = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    price = tl.zeros((BLOCK,), tl.float32)
    average = tl.zeros((BLOCK,), tl.float32)
    if FOUR:
        for step in tl.range(0, steps, 4, loop_unroll_factor=UNROLL):
            a, b, c, d = tl.randn4x(seed, path * steps + step)
            price += drift + volatility * a
            average += tl.exp(price)
            price += drift + volatility * b
            average += tl.exp(price)
            price += drift + volatility * c
            average += tl.exp(price)
            price += drift + volatility * d
            average += tl.exp(price)
    else:
        for step in tl.range(0, steps, loop_unroll_factor=UNROLL):
            price += drift + volatility * tl.randn(seed, path * steps + step)
            average += tl.exp(price)
    payoff = tl.maximum(spot * average / steps - strike, 0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(payoff, 0) / BLOCK)


@family(combine(8, FOUR=(0, 1), UNROLL=(1, 2), BLOCK=(64, 128, 256, 512, 1024), num_warps=(1, 2, 4, 8)))
def blind_option_paths(config: Config) -> Launch:
    """Prices of an Asian option: 2^20 paths of 64 steps of normal numbers by Philox and Box and Muller."""
    paths, steps = config.get("paths", 1 << 20), config.get("steps", 64)
    blocks = paths // config["BLOCK"]
    arguments = empty(blocks), steps, 100.0, 101.0, -0.0002, 0.02, 35
    return launch(option_paths_kernel, (blocks,), *arguments, config=config)


@triton.jit
def _sampled_products(
    x, y, starts, rows, columns, values, out, edges,
    WIDTH: tl.constexpr, PART: tl.constexpr, BY_ROW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    inner = tl.arange(0, PART)
    if BY_ROW:
        # A program for each row, whose vector stays in registers where it is loaded whole.
        row = tl.program_id(0)
        start, end = tl.load(starts + row), tl.load(starts + row + 1)
    else:
        row = 0
        start = tl.program_id(0) * BLOCK
        end = tl.minimum(start + BLOCK, edges)
    for first in range(start, end, BLOCK):
        edge = first + tl.arange(0, BLOCK)
        mask = edge < end
        column = tl.load(columns + edge, mask=mask, other=0)
        total = tl.zeros([BLOCK], tl.float32)
        for part in tl.static_range(0, WIDTH, PART):
            right = tl.load(y + column[:, None] * WIDTH + part + inner[None, :], mask=mask[:, None], other=0.0)
            if BY_ROW:
                left = tl.load(x + row * WIDTH + part + inner)[None, :]
            else:
                rows_here = tl.load(rows + edge, mask=mask, other=0)
                left = tl.load(x + rows_here[:, None] * WIDTH + part + inner[None, :], mask=mask[:, None], other=0.0)
            total += tl.sum(left.to(tl.float32) * right.to(tl.float32), 1)
        tl.store(out + edge, total * tl.load(values + edge, mask=mask, other=0.0), mask=mask)


@family(combine(8, BY_ROW=(0, 1), BLOCK=(8, 16, 32, 64, 128), PART=(32, 64, 128), num_warps=(1, 2, 4)))
def blind_sampled_products(config: Config) -> Launch:
    """Products of rows of two matrices of 60,000 × 128 float16 at 1,000,000 places of a sparse one (SDDMM)."""
    nodes, edges = config.get("nodes", 60000), config.get("edges", 1_000_000)
    drawn = torch.Generator().manual_seed(35)
    # Few rows have many entries.
    rows = (torch.rand(edges, generator=drawn) ** 1.5 * nodes).int().sort().values
    starts = torch.searchsorted(rows, torch.arange(nodes + 1, dtype=torch.int32)).int()
    tables = starts.to("cuda"), rows.to("cuda"), indices(nodes, edges)
    x, y = (normal(nodes, 128, dtype=_HALF) for _ in range(2))
    grid = (nodes if config["BY_ROW"] else triton.cdiv(edges, config["BLOCK"]),)
    arguments = x, y, *tables, normal(edges), empty(edges), edges
    return launch(_sampled_products, grid, *arguments, config=config, WIDTH=128)


@triton.jit
def _life_row(board, row, word, rows, words):
    """A row's word and its neighbours to the left and right of each bit."""
    base = board + tl.where(row < 0, rows - 1, tl.where(row >= rows, 0, row)) * words
    here = tl.load(base + word)
    before = tl.load(base + tl.where(word == 0, words - 1, word - 1))
    after = tl.load(base + tl.where(word == words - 1, 0, word + 1))
    return here, (here << 1) | ((before >> 31) & 1), ((here >> 1) & 0x7FFFFFFF) | (after << 31)


@triton.jit
def _life_sums(board, row, word, rows, words):
    here, left, right = _life_row(board, row, word, rows, words)
    return left ^ here ^ right, (left & here) | (here & right) | (left & right)


@triton.jit
def _bit_life(board, later, rows, words, KEEP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    word = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * ROWS
    up0, up1 = _life_sums(board, first - 1, word, rows, words)
    mid0, mid1 = _life_sums(board, first, word, rows, words)
    for row in range(first, first + ROWS):
        if not KEEP:
            up0, up1 = _life_sums(board, row - 1, word, rows, words)
        low0, low1 = _life_sums(board, row + 1, word, rows, words)
        here, left, right = _life_row(board, row, word, rows, words)
        side0, side1 = left ^ right, left & right
        ones = up0 ^ side0 ^ low0
        carry = (up0 & side0) | (side0 & low0) | (up0 & low0)
        # Two or three neighbours: exactly one of the four bits of weight two.
        one_pair = (up1 ^ side1 ^ low1 ^ carry) & ~((up1 & side1) | (low1 & carry))
        tl.store(later + row * words + word, one_pair & (ones | here))
        up0, up1 = mid0, mid1
        mid0, mid1 = low0, low1


@family(combine(8, KEEP=(0, 1), ROWS=(1, 4, 16, 64), BLOCK=(64, 128, 256, 512), num_warps=(1, 2, 4, 8)))
def blind_bit_life(config: Config) -> Launch:
    """A step of Conway's game of life on a torus of 32,768 × 32,768 cells, 32 in a word; sums of rows kept or not."""
    rows, words = config.get("rows", 32768), config.get("words", 1024)
    board = torch.randint(-(1 << 31), 1 << 31, (rows, words), device="cuda", dtype=torch.int32)
    arguments = board, empty(rows, words, dtype=torch.int32), rows, words
    return launch(_bit_life, (words // config["BLOCK"], rows // config["ROWS"]), *arguments, config=config)


@triton.jit
def _column_order(
    x, sources, targets, out, rows,
    WIDTH: tl.constexpr, SCATTER: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, COLUMN_FIRST: tl.constexpr,
):  # fmt: skip
    tile_row = tl.program_id(1) if COLUMN_FIRST else tl.program_id(0)
    tile_column = tl.program_id(0) if COLUMN_FIRST else tl.program_id(1)
    row = tile_row * ROWS + tl.arange(0, ROWS)
    column = tile_column * BLOCK + tl.arange(0, BLOCK)
    base = row[:, None] * WIDTH
    mask = row[:, None] < rows
    if SCATTER:
        value = tl.load(x + base + column[None, :], mask=mask)
        tl.store(out + base + tl.load(targets + column)[None, :], value, mask=mask)
    else:
        value = tl.load(x + base + tl.load(sources + column)[None, :], mask=mask)
        tl.store(out + base + column[None, :], value, mask=mask)


@family(combine(8, SCATTER=(0, 1), ROWS=(1, 2, 4, 8), BLOCK=(128, 512, 2048), COLUMN_FIRST=(0, 1), num_warps=(2, 4, 8)))
def blind_column_order(config: Config) -> Launch:
    """16,384 rows of 4,096 float16 with their columns in another order: loads at random places, or stores."""
    rows, width = config.get("rows", 16384), 4096
    sources = torch.randperm(width, generator=torch.Generator().manual_seed(35))
    orders = (order.to(torch.int32).to("cuda") for order in (sources, torch.argsort(sources)))
    tiles = triton.cdiv(rows, config["ROWS"]), width // config["BLOCK"]
    grid = tiles[::-1] if config["COLUMN_FIRST"] else tiles
    arguments = normal(rows, width, dtype=_HALF), *orders, empty(rows, width, dtype=_HALF), rows
    return launch(_column_order, grid, *arguments, config=config, WIDTH=width)
