"""Kernels whose addresses come from data, and atomic operations."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch


@triton.jit
def _embedding(ids, table, out, tokens, width, TOKENS: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids + token, token < tokens, other=0)
    mask = (token < tokens)[:, None] & (column < width)[None, :]
    value = tl.load(table + row[:, None] * width + column[None, :], mask)
    tl.store(out + token[:, None].to(tl.int64) * width + column[None, :], value, mask)


@family(combine(TOKENS=(1, 4, 16), BLOCK=(64, 256, 1024), num_warps=(1, 4, 8)))
def embedding(config: Config) -> Launch:
    """Rows of 4,096 bfloat16 for 16,384 random tokens of 32,000."""
    tokens, width = 16384, 4096
    ids, table = indices(32000, tokens, dtype=torch.int64), normal(32000, width, dtype=torch.bfloat16)
    out = empty(tokens, width, dtype=torch.bfloat16)
    grid = triton.cdiv(tokens, config["TOKENS"]), triton.cdiv(width, config["BLOCK"])
    return launch(_embedding, grid, ids, table, out, tokens, width, config=config)


@triton.jit
def _embedding_backward(ids, slopes, table, width, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids + token)
    value = tl.load(slopes + token * width + column, column < width)
    tl.atomic_add(table + row * width + column, value, column < width, sem="relaxed")


@family(combine(words=(128, 4096, 65536), BLOCK=(128, 256, 1024), num_warps=(1, 4, 8)))
def embedding_backward(config: Config) -> Launch:
    """Add 16,384 rows of 1,024 float32 to a table by atomic operations."""
    tokens, width = 16384, 1024
    tensors = indices(config["words"], tokens, dtype=torch.int64), normal(tokens, width), zeros(config["words"], width)
    return launch(_embedding_backward, (tokens, width // config["BLOCK"]), *tensors, width, config=config)


@triton.jit
def _histogram_atomic(x, bins, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, offsets < n, other=0)
    tl.atomic_add(bins + value, 1, offsets < n, sem="relaxed")


@family(combine(bins=(1, 16, 256, 4096, 1 << 20), BLOCK=(256, 1024, 4096), num_warps=(1, 4)))
def histogram_atomic(config: Config) -> Launch:
    """An atomic addition for each of 2^20 random values."""
    n = 1 << 20
    tensors = indices(config["bins"], n), zeros(config["bins"], dtype=torch.int32)
    return launch(_histogram_atomic, (triton.cdiv(n, config["BLOCK"]),), *tensors, n, config=config)


@triton.jit
def _histogram(x, bins, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros([BINS], tl.int32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        total += tl.histogram(tl.load(x + start + tl.arange(0, BLOCK)), BINS)
    tl.atomic_add(bins + tl.arange(0, BINS), total, sem="relaxed")


@family(combine(programs=(132, 528, 2112), BINS=(128, 512), BLOCK=(512, 2048), num_warps=(1, 4, 8)))
def histogram_local(config: Config) -> Launch:
    """A histogram of 2^24 random values, by tl.histogram for each block."""
    n = 1 << 24
    tensors = indices(config["BINS"], n), zeros(config["BINS"], dtype=torch.int32)
    return launch(_histogram, (config["programs"],), *tensors, n, config=config)


@triton.jit
def _gather(ids, x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + tl.load(ids + offsets, mask, other=0), mask), mask)


@family(combine(source=(1 << 12, 1 << 20, 1 << 24, 1 << 28), BLOCK=(128, 512, 1024, 4096), num_warps=(1, 4, 8)))
def gather(config: Config) -> Launch:
    """2^23 random elements of tensors of several sizes."""
    n = 1 << 23
    ids, x = indices(config["source"], n), normal(config["source"])
    return launch(_gather, (triton.cdiv(n, config["BLOCK"]),), ids, x, empty(n), n, config=config)


@triton.jit
def _scatter(ids, x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + tl.load(ids + offsets, mask, other=0), tl.load(x + offsets, mask), mask)


@family(combine(span=(1 << 12, 1 << 20, 1 << 24, 1 << 28), BLOCK=(128, 512, 1024, 4096), num_warps=(1, 4, 8)))
def scatter(config: Config) -> Launch:
    """2^23 elements stored at random places of tensors of several sizes."""
    n = 1 << 23
    return launch(
        _scatter,
        (triton.cdiv(n, config["BLOCK"]),),
        indices(config["span"], n),
        normal(n),
        empty(config["span"]),
        n,
        config=config,
    )


@triton.jit
def _sparse_product(starts, columns, values, x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first, last = tl.load(starts + row), tl.load(starts + row + 1)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < last
        column = tl.load(columns + offsets, mask, other=0)
        total += tl.load(values + offsets, mask, other=0.0) * tl.load(x + column, mask, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


@family(combine(entries=(32, 128, 512), BLOCK=(32, 64, 128, 512), num_warps=(1, 4)))
def sparse_product(config: Config) -> Launch:
    """A sparse matrix in rows of equal length times a vector of 2^20 float32; 2^24 entries."""
    entries = config["entries"]
    rows = (1 << 24) // entries
    starts = torch.arange(0, (1 << 24) + 1, entries, device="cuda", dtype=torch.int32)
    tensors = starts, indices(1 << 20, 1 << 24), normal(1 << 24), normal(1 << 20), empty(rows)
    return launch(_sparse_product, (rows,), *tensors, config=config)


@triton.jit
def _search(keys, table, out, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    key = tl.load(keys + offsets, mask, other=0)
    low = tl.zeros([BLOCK], tl.int32)
    for step in tl.static_range(STEPS):
        middle = low + (1 << (STEPS - 1 - step))
        low = tl.where(tl.load(table + middle) <= key, middle, low)
    tl.store(out + offsets, low, mask)


@family(combine(STEPS=(8, 14, 20, 24), BLOCK=(128, 256, 1024), num_warps=(1, 4, 8)))
def binary_search(config: Config) -> Launch:
    """Places of 2^20 random keys in a sorted table of 2^STEPS."""
    n, span = 1 << 20, 1 << config["STEPS"]
    table = torch.arange(span, device="cuda", dtype=torch.int32)
    tensors = indices(span, n), table, empty(n, dtype=torch.int32)
    return launch(_search, (triton.cdiv(n, config["BLOCK"]),), *tensors, n, config=config)


@triton.jit
def _lock_free_maximum(x, out, n, PLACES: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, offsets < n, other=0)
    tl.atomic_max(out + offsets % PLACES, value, offsets < n, sem="relaxed")


@family(combine(PLACES=(1, 32, 1024, 65536, 1 << 22), BLOCK=(256, 1024, 4096), num_warps=(1, 4)))
def atomic_maximum(config: Config) -> Launch:
    """An atomic maximum for each of 2^22 integers, at addresses in order."""
    n = 1 << 22
    tensors = indices(1 << 30, n), zeros(config["PLACES"], dtype=torch.int32)
    return launch(_lock_free_maximum, (triton.cdiv(n, config["BLOCK"]),), *tensors, n, config=config)
