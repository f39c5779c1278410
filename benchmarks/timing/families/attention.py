"""Attention: forward, causal, windowed, decoding, paged and backward; and its linear relative."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF = torch.float16
_OPTIONS = {"num_warps": (4, 8), "num_stages": (1, 2, 3)}


@triton.jit
def _forward(
    query, key, value, out, length, scale, window,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
):  # fmt: skip
    base = tl.program_id(1).to(tl.int64) * length * WIDTH
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, WIDTH)
    inner = tl.arange(0, BLOCK_N)
    left = tl.load(query + base + row[:, None] * WIDTH + column[None, :])
    peak = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    sums = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    first = 0
    last = length
    if CAUSAL:
        last = (tl.program_id(0) + 1) * BLOCK_M
    if WINDOWED:
        first = tl.maximum(tl.program_id(0) * BLOCK_M - window, 0) // BLOCK_N * BLOCK_N
    for start in range(first, last, BLOCK_N):
        place = start + inner
        keys = tl.load(key + base + place[None, :] * WIDTH + column[:, None])
        score = tl.dot(left, keys) * scale
        if CAUSAL:
            score = tl.where(row[:, None] >= place[None, :], score, -1e30)
        if WINDOWED:
            score = tl.where(row[:, None] - place[None, :] <= window, score, -1e30)
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        total = total * factor + tl.sum(power, 1)
        sums = sums * factor[:, None]
        values = tl.load(value + base + place[:, None] * WIDTH + column[None, :])
        sums = tl.dot(power.to(values.dtype), values, sums)
        peak = above
    sums = sums / total[:, None]
    tl.store(out + base + row[:, None] * WIDTH + column[None, :], sums.to(out.dtype.element_ty))


def _attention(config: Config, heads: int, length: int, width: int, *, causal: bool, window: int = 0) -> Launch:
    query, key, value, out = (normal(heads, length, width, dtype=_HALF) for _ in range(4))
    constants = {"WIDTH": width, "CAUSAL": causal, "WINDOWED": window > 0}
    grid = triton.cdiv(length, config["BLOCK_M"]), heads
    arguments = query, key, value, out, length, 1.44269504 / width**0.5, window
    return launch(_forward, grid, *arguments, config=config, **constants)


@family(combine(BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64, 128), **_OPTIONS))
def attention(config: Config) -> Launch:
    """Attention of 64 heads of 64, 4,096 tokens, float16."""
    return _attention(config, 64, 4096, 64, causal=False)


@family(combine(BLOCK_M=(16, 64, 128), BLOCK_N=(16, 64, 128), **_OPTIONS))
def attention_causal(config: Config) -> Launch:
    """Causal attention of 64 heads of 128, 2,048 tokens, float16."""
    return _attention(config, 64, 2048, 128, causal=True)


@family(combine(BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64, 128), num_warps=(4, 8), num_stages=(2, 3)))
def attention_window(config: Config) -> Launch:
    """Causal attention of 32 heads of 64 within a window of 512, 8,192 tokens, float16."""
    return _attention(config, 32, 8192, 64, causal=True, window=512)


@triton.jit
def _decode(
    query, key, value, partial, peaks, length, scale,
    SPLITS: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    group = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    head = tl.arange(0, HEADS)
    column = tl.arange(0, WIDTH)
    inner = tl.arange(0, BLOCK_N)
    left = tl.load(query + (group * HEADS + head[:, None]) * WIDTH + column[None, :])
    base = group * length * WIDTH
    share = length // SPLITS
    peak = tl.full([HEADS], -float("inf"), tl.float32)
    total = tl.zeros([HEADS], tl.float32)
    sums = tl.zeros([HEADS, WIDTH], tl.float32)
    for start in range(split * share, (split + 1) * share, BLOCK_N):
        place = start + inner
        score = tl.dot(left, tl.load(key + base + place[None, :] * WIDTH + column[:, None])) * scale
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        total = total * factor + tl.sum(power, 1)
        values = tl.load(value + base + place[:, None] * WIDTH + column[None, :])
        sums = tl.dot(power.to(values.dtype), values, sums * factor[:, None])
        peak = above
    row = (group * SPLITS + split) * HEADS + head
    tl.store(partial + row[:, None] * WIDTH + column[None, :], sums / total[:, None])
    tl.store(peaks + row, peak + tl.log2(total))


@family(combine(SPLITS=(1, 2, 8, 32), BLOCK_N=(32, 64, 128), num_warps=(2, 4, 8), num_stages=(1, 2, 3)))
def decode(config: Config) -> Launch:
    """One query of 16 heads for each of 128 key heads of 128, 8,192 tokens, in splits, bfloat16."""
    groups, heads, length, width = 128, 16, 8192, 128
    half = torch.bfloat16
    query = normal(groups, heads, width, dtype=half)
    key, value = normal(groups, length, width, dtype=half), normal(groups, length, width, dtype=half)
    rows = groups * config["SPLITS"] * heads
    tensors = query, key, value, empty(rows, width), empty(rows)
    constants = {"HEADS": heads, "WIDTH": width}
    return launch(_decode, (groups, config["SPLITS"]), *tensors, length, 0.1275, config=config, **constants)


@triton.jit
def _paged(
    query, keys, values, table, out, pages, scale,
    PAGE: tl.constexpr, WIDTH: tl.constexpr, KEY_HEADS: tl.constexpr,
):  # fmt: skip
    request, head = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, WIDTH)
    inner = tl.arange(0, PAGE)
    place = (request * KEY_HEADS + head) * WIDTH + column
    left = tl.load(query + place).to(tl.float32)
    peak = -float("inf")
    total = 0.0
    sums = tl.zeros([WIDTH], tl.float32)
    for number in range(pages):
        page = tl.load(table + request * pages + number).to(tl.int64)
        places = ((page * PAGE + inner[:, None]) * KEY_HEADS + head) * WIDTH + column[None, :]
        score = tl.sum(left[None, :] * tl.load(keys + places).to(tl.float32), 1) * scale
        above = tl.maximum(peak, tl.max(score, 0))
        power = tl.exp2(score - above)
        factor = tl.exp2(peak - above)
        total = total * factor + tl.sum(power, 0)
        sums = sums * factor + tl.sum(power[:, None] * tl.load(values + places).to(tl.float32), 0)
        peak = above
    tl.store(out + place, (sums / total).to(tl.float16))


@family(combine(PAGE=(8, 16, 32, 64, 128), num_warps=(1, 2, 4, 8), num_stages=(1, 3)))
def paged_decode(config: Config) -> Launch:
    """One query for each of 64 requests and 8 heads of 128, 4,096 tokens in pages at random places, float16."""
    requests, heads, width, page = 64, 8, 128, config["PAGE"]
    pages = 4096 // page
    keys, values = (normal(requests * pages * page, heads, width, dtype=_HALF) for _ in range(2))
    query, out = normal(requests, heads, width, dtype=_HALF), empty(requests, heads, width, dtype=_HALF)
    tensors = query, keys, values, indices(requests * pages, requests, pages), out
    constants = {"WIDTH": width, "KEY_HEADS": heads}
    return launch(_paged, (requests, heads), *tensors, pages, 0.1275, config=config, **constants)


@triton.jit
def _backward_keys(
    query, key, value, slope, sums, deltas, key_slope, value_slope, length, scale,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    base = head * length * WIDTH
    place = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    column = tl.arange(0, WIDTH)
    keys = tl.load(key + base + place[:, None] * WIDTH + column[None, :])
    values = tl.load(value + base + place[:, None] * WIDTH + column[None, :])
    of_keys = tl.zeros([BLOCK_N, WIDTH], tl.float32)
    of_values = tl.zeros([BLOCK_N, WIDTH], tl.float32)
    for start in range(0, length, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        transposed = tl.load(query + base + row[None, :] * WIDTH + column[:, None])
        power = tl.exp2(tl.dot(keys, transposed) * scale - tl.load(sums + head * length + row)[None, :])
        gradient = tl.load(slope + base + row[:, None] * WIDTH + column[None, :])
        of_values = tl.dot(power.to(tl.float16), gradient, of_values)
        score = tl.dot(values, tl.trans(gradient)) - tl.load(deltas + head * length + row)[None, :]
        of_keys = tl.dot((power * score).to(tl.float16), tl.trans(transposed), of_keys)
    tl.store(key_slope + base + place[:, None] * WIDTH + column[None, :], of_keys.to(tl.float16))
    tl.store(value_slope + base + place[:, None] * WIDTH + column[None, :], of_values.to(tl.float16))


@family(combine(20, BLOCK_M=(16, 32, 64), BLOCK_N=(32, 64, 128), **_OPTIONS))
def attention_backward(config: Config) -> Launch:
    """Gradients of keys and values of 32 heads of 64, 2,048 tokens, float16."""
    heads, length, width = 32, 2048, 64
    tensors = [normal(heads, length, width, dtype=_HALF) for _ in range(6)]
    rows = normal(heads, length), normal(heads, length)
    arguments = *tensors[:4], *rows, *tensors[4:], length, 0.18
    grid = length // config["BLOCK_N"], heads
    return launch(_backward_keys, grid, *arguments, config=config, WIDTH=width)


@triton.jit
def _linear_attention(query, key, value, out, length, WIDTH: tl.constexpr, BLOCK_V: tl.constexpr, CHUNK: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * length * WIDTH
    column = tl.arange(0, WIDTH)
    part = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    step = tl.arange(0, CHUNK)
    state = tl.zeros([WIDTH, BLOCK_V], tl.float32)
    for start in range(0, length, CHUNK):
        place = (start + step)[:, None] * WIDTH
        queries = tl.load(query + base + place + column[None, :])
        keys = tl.load(key + base + place + column[None, :])
        values = tl.load(value + base + place + part[None, :])
        score = tl.dot(queries, tl.trans(keys))
        score = tl.where(step[:, None] >= step[None, :], score, 0.0)
        result = tl.dot(queries, state.to(tl.bfloat16))
        result = tl.dot(score.to(tl.bfloat16), values, result)
        tl.store(out + base + place + part[None, :], result.to(tl.bfloat16))
        state = tl.dot(tl.trans(keys), values, state)


@family(combine(CHUNK=(16, 32, 64, 128), BLOCK_V=(16, 32, 64, 128), num_warps=(2, 4, 8), num_stages=(1, 2)))
def linear_attention(config: Config) -> Launch:
    """Linear attention of 64 heads of 128 in chunks, 4,096 tokens, bfloat16."""
    heads, length, width = 64, 4096, 128
    tensors = (normal(heads, length, width, dtype=torch.bfloat16) for _ in range(4))
    return launch(_linear_attention, (width // config["BLOCK_V"], heads), *tensors, length, config=config, WIDTH=width)


@triton.jit
def _selective_scan(x, steps, a, b, c, out, length, channels, STATES: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    batch = tl.program_id(1).to(tl.int64)
    number = tl.arange(0, STATES)
    decay = tl.load(a + channel[:, None] * STATES + number[None, :])
    state = tl.zeros([BLOCK, STATES], tl.float32)
    for time in range(length):
        place = (batch * length + time) * channels + channel
        step = tl.load(steps + place).to(tl.float32)
        value = tl.load(x + place).to(tl.float32)
        into = tl.load(b + (batch * length + time) * STATES + number)
        outof = tl.load(c + (batch * length + time) * STATES + number)
        state = state * tl.exp(step[:, None] * decay) + (step * value)[:, None] * into[None, :]
        tl.store(out + place, tl.sum(state * outof[None, :], 1).to(tl.bfloat16))


@family(combine(BLOCK=(8, 16, 32, 64, 128), num_warps=(1, 2, 4), num_stages=(1, 3)))
def selective_scan(config: Config) -> Launch:
    """Selective state space of 8 × 512 steps, 4,096 channels of 16 states, a step in each iteration."""
    batch, length, channels, states = 8, 512, 4096, 16
    x, steps, out = (normal(batch, length, channels, dtype=torch.bfloat16) for _ in range(3))
    rows = normal(batch, length, states), normal(batch, length, states)
    grid = channels // config["BLOCK"], batch
    tensors = x, steps, normal(channels, states), *rows, out
    return launch(_selective_scan, grid, *tensors, length, channels, config=config, STATES=states)
