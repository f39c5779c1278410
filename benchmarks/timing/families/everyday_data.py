"""Everyday: elementwise chains, rotary embedding, transposes, sums of columns, scattered rows, counts, quantisation.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, family, launch, listed

_HALF, _BRAIN = torch.float16, torch.bfloat16


@triton.jit
def _gelu_dropout(both_ptr, y_ptr, n, width, stride, gate_step, up_offset, seed, keep, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        place = start + tl.arange(0, BLOCK)
        inside = place < n
        source = both_ptr + (place // width) * stride + (place % width) * gate_step
        gate = tl.load(source, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(source + up_offset, mask=inside, other=0.0).to(tl.float32)
        value = 0.5 * gate * (1.0 + tl.math.erf(gate * 0.7071067811865476)) * up
        kept = tl.rand(seed, place) < keep
        tl.store(y_ptr + place, tl.where(kept, value / keep, 0.0).to(y_ptr.dtype.element_ty), mask=inside)


@family(
    listed(
        "BLOCK programs interleaved num_warps",
        (1024, 0, 0, 4),
        (4096, 0, 0, 8),
        (512, 0, 1, 2),
        (2048, 0, 1, 4),
        (1024, 1056, 0, 4),
        (8192, 264, 0, 16),
        (256, 0, 0, 1),
        (4096, 132, 1, 4),
    )
)
def everyday_gelu_dropout(config: Config) -> Launch:
    """Gate by GELU, times up, with dropout, 4,000 × 11,008, bfloat16: gate and up as halves of rows or as pairs."""
    rows, width = config.get("rows", 4000), config.get("width", 11008)
    steps = (2, 1) if config["interleaved"] else (1, width)
    tiles = triton.cdiv(rows * width, config["BLOCK"])
    grid = (min(config["programs"] or tiles, tiles),)
    arguments = normal(rows, 2 * width, dtype=_BRAIN), empty(rows, width, dtype=_BRAIN)
    return launch(_gelu_dropout, grid, *arguments, rows * width, width, 2 * width, *steps, 1234, 0.9, config=config)


@triton.jit
def _rotary(
    x_ptr, cosine_ptr, sine_ptr, position_ptr, y_ptr, tokens, heads,
    DIM: tl.constexpr, TOKENS: tl.constexpr, HEADS: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    half = tl.arange(0, DIM // 2)
    inside = token < tokens
    position = tl.load(position_ptr + token, mask=inside, other=0)
    angle = position[:, None] * (DIM // 2) + half[None, :]
    cosine = tl.load(cosine_ptr + angle, mask=inside[:, None], other=0.0)[:, None, :]
    sine = tl.load(sine_ptr + angle, mask=inside[:, None], other=0.0)[:, None, :]
    row = (token[:, None] * heads + head[None, :]) * DIM
    if PAIRS:
        low, apart = row[:, :, None] + 2 * half[None, None, :], 1
    else:
        low, apart = row[:, :, None] + half[None, None, :], DIM // 2
    mask = inside[:, None, None] & (head < heads)[None, :, None]
    a = tl.load(x_ptr + low, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + low + apart, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + low, (a * cosine - b * sine).to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(y_ptr + low + apart, (b * cosine + a * sine).to(y_ptr.dtype.element_ty), mask=mask)


@family(
    listed(
        "TOKENS HEADS PAIRS num_warps",
        (1, 32, 0, 4),
        (1, 8, 0, 1),
        (4, 8, 0, 4),
        (8, 4, 1, 8),
        (1, 16, 1, 4),
        (2, 32, 1, 8),
        (1, 1, 0, 1),
        (4, 32, 0, 16),
    )
)
def everyday_rotary(config: Config) -> Launch:
    """Rotary embedding of 9,000 tokens by 32 heads of 128, bfloat16, float32 tables: halves or pairs."""
    tokens, heads, dim = config.get("tokens", 9000), config.get("heads", 32), 128
    tables = uniform(4096, dim // 2), uniform(4096, dim // 2)
    x, y = normal(tokens, heads, dim, dtype=_BRAIN), empty(tokens, heads, dim, dtype=_BRAIN)
    grid = triton.cdiv(tokens, config["TOKENS"]), triton.cdiv(heads, config["HEADS"])
    return launch(_rotary, grid, x, *tables, indices(4096, tokens), y, tokens, heads, config=config, DIM=dim)


@triton.jit
def _transposed_copy(
    x_ptr, y_ptr, rows_total, columns_total, stride_x, stride_y,
    TALL: tl.constexpr, WIDE: tl.constexpr, DOWN_FIRST: tl.constexpr, TURN: tl.constexpr,
):  # fmt: skip
    if DOWN_FIRST:
        across, down = tl.program_id(1), tl.program_id(0)
    else:
        across, down = tl.program_id(0), tl.program_id(1)
    rows = down * TALL + tl.arange(0, TALL)
    columns = across * WIDE + tl.arange(0, WIDE)
    inside = (rows[:, None] < rows_total) & (columns[None, :] < columns_total)
    x = tl.load(x_ptr + rows[:, None] * stride_x + columns[None, :], mask=inside)
    if TURN:
        target = y_ptr + columns[:, None] * stride_y + rows[None, :]
        tl.store(target, tl.trans(x), mask=tl.trans(inside))
    else:
        tl.store(y_ptr + rows[:, None] + columns[None, :] * stride_y, x, mask=inside)


@family(
    listed(
        "TALL WIDE DOWN_FIRST TURN gap num_warps",
        (64, 64, 0, 1, 0, 4),
        (32, 32, 0, 1, 0, 4),
        (128, 32, 1, 1, 0, 4),
        (16, 128, 0, 0, 0, 4),
        (128, 128, 0, 1, 8, 8),
        (64, 64, 1, 0, 1, 8),
        (8, 256, 0, 1, 0, 2),
        (256, 16, 1, 0, 8, 16),
    )
)
def everyday_transposed_copy(config: Config) -> Launch:
    """10,000 × 8,192 float16 transposed, tile by tile, with rows of the copy apart by more than their length or not."""
    rows, columns = config.get("rows", 10000), config.get("columns", 8192)
    stride = rows + config["gap"]
    arguments = normal(rows, columns, dtype=_HALF), zeros(columns, stride, dtype=_HALF), rows, columns, columns, stride
    tiles = triton.cdiv(columns, config["WIDE"]), triton.cdiv(rows, config["TALL"])
    return launch(_transposed_copy, tiles[::-1] if config["DOWN_FIRST"] else tiles, *arguments, config=config)


@triton.jit
def _column_sums(
    x_ptr, total_ptr, rows_total, width, ATOMIC: tl.constexpr, LATE: tl.constexpr, SPLITS: tl.constexpr,
    TALL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    split = tl.program_id(1)
    if LATE:
        tile = tl.zeros((TALL, WIDE), tl.float32)
    sums = tl.zeros((WIDE,), tl.float32)
    for start in range(split * TALL, rows_total, SPLITS * TALL):
        rows = start + tl.arange(0, TALL)
        inside = (rows[:, None] < rows_total) & (columns[None, :] < width)
        x = tl.load(x_ptr + rows[:, None] * width + columns[None, :], mask=inside, other=0.0).to(tl.float32)
        if LATE:
            tile += x
        else:
            sums += tl.sum(x, 0)
    if LATE:
        sums = tl.sum(tile, 0)
    if ATOMIC:
        tl.atomic_add(total_ptr + columns, sums, mask=columns < width)
    else:
        tl.store(total_ptr + split * width + columns, sums, mask=columns < width)


@family(
    listed(
        "ATOMIC LATE SPLITS TALL WIDE num_warps num_stages",
        (1, 1, 64, 32, 128, 4, 3),
        (0, 1, 32, 16, 256, 4, 3),
        (1, 0, 16, 64, 64, 4, 2),
        (0, 0, 128, 8, 512, 4, 1),
        (1, 1, 256, 16, 64, 2, 2),
        (0, 0, 8, 128, 32, 8, 3),
        (1, 0, 1024, 32, 128, 8, 1),
        (0, 1, 4, 32, 64, 1, 2),
    )
)
def everyday_column_sums(config: Config) -> Launch:
    """Sums over 40,000 rows of 5,120 columns, bfloat16: added atomically, or stored for each split."""
    rows, width = config.get("rows", 40000), config.get("width", 5120)
    total = zeros(width) if config["ATOMIC"] else empty(config["SPLITS"], width)
    grid = triton.cdiv(width, config["WIDE"]), config["SPLITS"]
    return launch(_column_sums, grid, normal(rows, width, dtype=_BRAIN), total, rows, width, config=config)


@triton.jit
def _scatter_rows(slope_ptr, word_ptr, table_ptr, tokens, width, padding, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    tokens_here = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = tokens_here < tokens
    word = tl.load(word_ptr + tokens_here, mask=inside, other=0)
    inside = inside & (word != padding)
    for start in range(tl.program_id(1) * BLOCK, width, tl.num_programs(1) * BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = inside[:, None] & (columns[None, :] < width)
        slope = tl.load(slope_ptr + tokens_here[:, None] * width + columns[None, :], mask=mask, other=0.0)
        target = table_ptr + word[:, None] * width + columns[None, :]
        tl.atomic_add(target, slope.to(tl.float32), mask=mask, sem="relaxed")


@family(
    listed(
        "ROWS BLOCK splits num_warps",
        (1, 1024, 2, 4),
        (1, 2048, 1, 8),
        (4, 512, 1, 4),
        (8, 256, 4, 8),
        (1, 256, 8, 1),
        (2, 1024, 2, 16),
        (8, 64, 1, 1),
        (1, 128, 1, 2),
    )
)
def everyday_scatter_rows(config: Config) -> Launch:
    """Gradient of an embedding: 16,384 rows of 2,048, bfloat16, added to 32,000 float32 rows, some of them often."""
    tokens, width, words = config.get("tokens", 16384), config.get("width", 2048), config.get("words", 32000)
    chosen = (uniform(tokens) ** 3 * words).to(torch.int64)
    arguments = normal(tokens, width, dtype=_BRAIN), chosen, zeros(words, width), tokens, width, 1
    return launch(_scatter_rows, (triton.cdiv(tokens, config["ROWS"]), config["splits"]), *arguments, config=config)


@triton.jit
def _count_values(x_ptr, counts_ptr, n, BINS: tl.constexpr, DIRECT: tl.constexpr, BLOCK: tl.constexpr):
    if DIRECT:
        for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
            place = start + tl.arange(0, BLOCK)
            value = tl.load(x_ptr + place, mask=place < n, other=0)
            tl.atomic_add(counts_ptr + value, 1, mask=place < n, sem="relaxed")
    else:
        counts = tl.zeros((BINS,), tl.int32)
        for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
            place = start + tl.arange(0, BLOCK)
            value = tl.load(x_ptr + place, mask=place < n, other=0)
            counts += tl.histogram(value, BINS, mask=place < n)
        tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts, sem="relaxed")


@family(
    listed(
        "DIRECT BINS BLOCK programs num_warps",
        (0, 256, 1024, 1056, 4),
        (0, 256, 4096, 264, 8),
        (0, 512, 2048, 528, 4),
        (0, 1024, 8192, 132, 16),
        (0, 256, 512, 0, 2),
        (0, 128, 2048, 0, 4),
        (1, 1024, 1024, 0, 4),
        (1, 512, 2048, 528, 8),
    )
)
def everyday_count_values(config: Config) -> Launch:
    """How often each of 128 to 1,024 values occurs among 12,000,000 int32: counts of blocks added up, or one by one."""
    n = config.get("n", 12_000_000)
    tiles = triton.cdiv(n, config["BLOCK"])
    grid = (min(config["programs"] or tiles, tiles),)
    counts = zeros(config["BINS"], dtype=torch.int32)
    return launch(_count_values, grid, indices(config["BINS"], n), counts, n, config=config)


@triton.jit
def _quantise_blocks(
    x_ptr, y_ptr, scale_ptr, rows_total, width, stride_row, stride_group, ROWS: tl.constexpr, GROUPS: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    groups = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    inner = tl.arange(0, 128)
    inside = (rows[:, None] < rows_total) & (groups[None, :] * 128 < width)
    place = rows[:, None, None] * width + groups[None, :, None] * 128 + inner[None, None, :]
    x = tl.load(x_ptr + place, mask=inside[:, :, None], other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 2), 1e-10) / 448.0
    y = x / scale[:, :, None]
    tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=inside[:, :, None])
    tl.store(scale_ptr + rows[:, None] * stride_row + groups[None, :] * stride_group, scale, mask=inside)


@family(
    listed(
        "ROWS GROUPS turned num_warps",
        (1, 8, 0, 4),
        (1, 1, 0, 1),
        (4, 4, 1, 4),
        (8, 1, 1, 4),
        (1, 64, 0, 8),
        (2, 16, 0, 16),
        (8, 8, 1, 8),
        (4, 1, 0, 2),
    )
)
def everyday_quantise_blocks(config: Config) -> Launch:
    """bfloat16 to float8 with a scale for each 128 of a row, 8,192 × 7,168, scales by rows or by columns."""
    rows, width = config.get("rows", 8192), config.get("width", 7168)
    groups = width // 128
    strides = (1, rows) if config["turned"] else (groups, 1)
    scales = empty(groups, rows) if config["turned"] else empty(rows, groups)
    grid = triton.cdiv(rows, config["ROWS"]), triton.cdiv(groups, config["GROUPS"])
    arguments = normal(rows, width, dtype=_BRAIN), empty(rows, width, dtype=torch.float8_e4m3fn), scales
    return launch(_quantise_blocks, grid, *arguments, rows, width, *strides, config=config)
