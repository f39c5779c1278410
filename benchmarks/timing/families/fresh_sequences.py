"""Fresh: attention in the forms that servers run, caches of keys and values, and recurrent states.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import random

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform
from benchmarks.timing.family import Config, Launch, combine, family, launch

_BRAIN = torch.bfloat16


@triton.jit
def _latent_decode(
    query, cache, partial, sums, heads, length, scale,
    SPLITS: tl.constexpr, LATENT: tl.constexpr, ROPE: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    batch, split = tl.program_id(0), tl.program_id(2)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    latent = tl.arange(0, LATENT)
    rope = LATENT + tl.arange(0, ROPE)
    from_query = (batch * heads + head[:, None]) * (LATENT + ROPE)
    left = tl.load(query + from_query + latent[None, :])
    turned = tl.load(query + from_query + rope[None, :])
    cache += batch.to(tl.int64) * length * (LATENT + ROPE)
    share = length // SPLITS
    peak = tl.full([BLOCK_H], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    mixed = tl.zeros([BLOCK_H, LATENT], tl.float32)
    for start in range(split * share, (split + 1) * share, BLOCK_N):
        place = (start + tl.arange(0, BLOCK_N))[:, None] * (LATENT + ROPE)
        entries = tl.load(cache + place + latent[None, :])
        score = tl.dot(left, tl.trans(entries))
        score = tl.dot(turned, tl.trans(tl.load(cache + place + rope[None, :])), score) * scale
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        total = total * factor + tl.sum(power, 1)
        mixed = tl.dot(power.to(entries.dtype), entries, mixed * factor[:, None])
        peak = above
    row = (batch * heads + head) * SPLITS + split
    tl.store(partial + row[:, None] * LATENT + latent[None, :], mixed / total[:, None])
    tl.store(sums + row, peak + tl.log2(total))


@family(combine(8, BLOCK_H=(16, 32, 64), BLOCK_N=(16, 32, 64), SPLITS=(1, 4), num_warps=(4, 8), num_stages=(1, 2)))
def fresh_latent_decode(config: Config) -> Launch:
    """One query of 128 heads for 32 requests over a latent cache of 512 + 64 that all heads share, 4,096 tokens."""
    batch, heads, length = config.get("batch", 32), config.get("heads", 128), config.get("length", 4096)
    query, cache = normal(batch, heads, 576, dtype=_BRAIN), normal(batch, length, 576, dtype=_BRAIN)
    rows = batch * heads * config["SPLITS"]
    grid = batch, heads // config["BLOCK_H"], config["SPLITS"]
    arguments = query, cache, empty(rows, 512), empty(rows), heads, length, 0.0601
    return launch(_latent_decode, grid, *arguments, config=config, LATENT=512, ROPE=64)


@triton.jit
def _combine_splits(partial, sums, out, SPLITS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    split = tl.arange(0, SPLITS)
    column = tl.arange(0, WIDTH)
    weight = tl.load(sums + row[:, None] * SPLITS + split[None, :])
    weight = tl.exp2(weight - tl.max(weight, 1)[:, None])
    weight = weight / tl.sum(weight, 1)[:, None]
    places = (row[:, None, None] * SPLITS + split[None, :, None]) * WIDTH + column[None, None, :]
    value = tl.sum(tl.load(partial + places) * weight[:, :, None], 1)
    tl.store(out + row[:, None] * WIDTH + column[None, :], value.to(out.dtype.element_ty))


@family(combine(8, SPLITS=(4, 16, 64), ROWS=(1, 2, 4), num_warps=(2, 4, 8)))
def fresh_combine_splits(config: Config) -> Launch:
    """Weighted mean of the splits of a decode: 2^26 float32 of heads of 128 into bfloat16."""
    rows = config.get("rows", (1 << 19) // config["SPLITS"])
    tensors = normal(rows, config["SPLITS"], 128), normal(rows, config["SPLITS"]), empty(rows, 128, dtype=_BRAIN)
    return launch(_combine_splits, (rows // config["ROWS"],), *tensors, config=config, WIDTH=128)


@triton.jit
def _packed(
    query, key, value, out, starts, heads, key_heads, scale,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    first = tl.load(starts + tl.program_id(2))
    length = tl.load(starts + tl.program_id(2) + 1) - first
    begin = tl.program_id(0) * BLOCK_M
    if begin >= length:
        return
    head = tl.program_id(1)
    key_head = head // (heads // key_heads)
    row = begin + tl.arange(0, BLOCK_M)
    column = tl.arange(0, WIDTH)
    of_query = ((first + row[:, None]) * heads + head) * WIDTH + column[None, :]
    left = tl.load(query + of_query, row[:, None] < length, other=0.0)
    peak = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    mixed = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    for start in range(0, tl.minimum(begin + BLOCK_M, length), BLOCK_N):
        place = start + tl.arange(0, BLOCK_N)
        of_key = ((first + place[:, None]) * key_heads + key_head) * WIDTH + column[None, :]
        keys = tl.load(key + of_key, place[:, None] < length, other=0.0)
        score = tl.dot(left, tl.trans(keys)) * scale
        score = tl.where(row[:, None] >= place[None, :], score, -1e30)
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        total = total * factor + tl.sum(power, 1)
        values = tl.load(value + of_key, place[:, None] < length, other=0.0)
        mixed = tl.dot(power.to(values.dtype), values, mixed * factor[:, None])
        peak = above
    tl.store(out + of_query, (mixed / total[:, None]).to(out.dtype.element_ty), row[:, None] < length)


@family(combine(8, BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64, 128), num_warps=(4, 8), num_stages=(2, 3)))
def fresh_packed_attention(config: Config) -> Launch:
    """Causal attention of 32 heads of 128, 8 of keys, over 16 packed sequences of 100 to 2,000 tokens, bfloat16."""
    most, heads, key_heads = config.get("most", 2000), config.get("heads", 32), config.get("key_heads", 8)
    lengths = [random.Random(number).randrange(most // 20, most) for number in range(config.get("sequences", 16))]
    starts = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
    query, out = (normal(starts[-1], heads, 128, dtype=_BRAIN) for _ in range(2))
    key, value = (normal(starts[-1], key_heads, 128, dtype=_BRAIN) for _ in range(2))
    grid = triton.cdiv(max(lengths), config["BLOCK_M"]), heads, len(lengths)
    arguments = query, key, value, out, torch.tensor(starts, device="cuda", dtype=torch.int32), heads, key_heads, 0.1275
    return launch(_packed, grid, *arguments, config=config, WIDTH=128)


@triton.jit
def _chosen_blocks(
    query, key, value, chosen, out, length, kept, scale,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    base = head * length * WIDTH
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, WIDTH)
    left = tl.load(query + base + row[:, None] * WIDTH + column[None, :])
    left = (left * scale).to(query.dtype.element_ty)
    chosen += (head * tl.num_programs(0) + tl.program_id(0)) * kept
    peak = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    mixed = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    for number in range(kept):
        place = tl.load(chosen + number) * BLOCK_N + tl.arange(0, BLOCK_N)
        places = base + place[:, None] * WIDTH + column[None, :]
        score = tl.dot(left, tl.trans(tl.load(key + places)))
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        total = total * factor + tl.sum(power, 1)
        mixed = tl.dot(power.to(value.dtype.element_ty), tl.load(value + places), mixed * factor[:, None])
        peak = above
    tl.store(out + base + row[:, None] * WIDTH + column[None, :], (mixed / total[:, None]).to(out.dtype.element_ty))


@family(combine(8, BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128), num_warps=(4, 8), num_stages=(1, 2, 4)))
def fresh_chosen_blocks(config: Config) -> Launch:
    """Attention of 16 heads of 64, 16,384 tokens, to 1,024 tokens each in blocks at listed places, float16."""
    heads, length, seen = config.get("heads", 16), config.get("length", 16384), config.get("seen", 1024)
    query, key, value, out = (normal(heads, length, 64, dtype=torch.float16) for _ in range(4))
    rows, kept = length // config["BLOCK_M"], seen // config["BLOCK_N"]
    chosen = indices(length // config["BLOCK_N"], heads, rows, kept)
    arguments = query, key, value, chosen, out, length, kept, 0.1803
    return launch(_chosen_blocks, (rows, heads), *arguments, config=config, WIDTH=64)


@triton.jit
def _norm_rope_store(
    joined, weight, cosines, sines, positions, slots, query, key_cache, value_cache, heads, key_heads,
    WIDTH: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    token = (tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)).to(tl.int64)
    head = tl.program_id(1)
    half = tl.arange(0, WIDTH // 2)
    places = (token[:, None] * (heads + 2 * key_heads) + head) * WIDTH + half[None, :]
    low = tl.load(joined + places).to(tl.float32)
    high = tl.load(joined + places + WIDTH // 2).to(tl.float32)
    if head >= heads + key_heads:
        slot = tl.load(slots + token)
        kept = (slot[:, None] * key_heads + head - heads - key_heads) * WIDTH + half[None, :]
        tl.store(value_cache + kept, low.to(value_cache.dtype.element_ty))
        tl.store(value_cache + kept + WIDTH // 2, high.to(value_cache.dtype.element_ty))
        return
    norm = tl.rsqrt((tl.sum(low * low, 1) + tl.sum(high * high, 1)) / WIDTH + 1e-6)[:, None]
    low = low * norm * tl.load(weight + half)[None, :]
    high = high * norm * tl.load(weight + WIDTH // 2 + half)[None, :]
    position = tl.load(positions + token)[:, None] * (WIDTH // 2) + half[None, :]
    cosine, sine = tl.load(cosines + position), tl.load(sines + position)
    first = (low * cosine - high * sine).to(query.dtype.element_ty)
    second = (high * cosine + low * sine).to(query.dtype.element_ty)
    if head < heads:
        into = (token[:, None] * heads + head) * WIDTH + half[None, :]
        tl.store(query + into, first)
        tl.store(query + into + WIDTH // 2, second)
    else:
        slot = tl.load(slots + token)
        into = (slot[:, None] * key_heads + head - heads) * WIDTH + half[None, :]
        tl.store(key_cache + into, first)
        tl.store(key_cache + into + WIDTH // 2, second)


@family(combine(8, TOKENS=(1, 4, 16, 64), num_warps=(1, 2, 4, 8)))
def fresh_norm_rope_store(config: Config) -> Launch:
    """RMS norm and rotation of 32 + 8 heads of 128, keys and values to slots of a cache, 8,192 tokens, bfloat16."""
    tokens, heads, key_heads = config.get("tokens", 8192), config.get("heads", 32), config.get("key_heads", 8)
    joined = normal(tokens, heads + 2 * key_heads, 128, dtype=_BRAIN)
    angles = torch.randn(4096, 64, device="cuda")
    positions, slots = indices(4096, tokens), torch.randperm(2 * tokens, device="cuda")[:tokens]
    caches = [empty(2 * tokens, key_heads, 128, dtype=_BRAIN) for _ in range(2)]
    outputs = empty(tokens, heads, 128, dtype=_BRAIN), *caches
    arguments = joined, normal(128), angles.cos(), angles.sin(), positions, slots, *outputs, heads, key_heads
    grid = tokens // config["TOKENS"], heads + 2 * key_heads
    return launch(_norm_rope_store, grid, *arguments, config=config, WIDTH=128)


@triton.jit
def _state_update(
    state, x, step, decay, into, outof, skip, out, heads,
    WIDTH: tl.constexpr, STATES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    batch, head = tl.program_id(2).to(tl.int64), tl.program_id(1)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = tl.arange(0, STATES)
    time = tl.load(step + batch * heads + head)
    time = tl.where(time > 20.0, time, tl.log(1.0 + tl.exp(time)))
    factor = tl.exp(-time * tl.exp(tl.load(decay + head)))
    value = tl.load(x + (batch * heads + head) * WIDTH + row).to(tl.float32)
    places = ((batch * heads + head) * WIDTH + row[:, None]) * STATES + number[None, :]
    held = tl.load(state + places).to(tl.float32) * factor
    held += (value * time)[:, None] * tl.load(into + batch * STATES + number).to(tl.float32)[None, :]
    tl.store(state + places, held.to(state.dtype.element_ty))
    seen = tl.sum(held * tl.load(outof + batch * STATES + number).to(tl.float32)[None, :], 1)
    seen += value * tl.load(skip + head)
    tl.store(out + (batch * heads + head) * WIDTH + row, seen.to(out.dtype.element_ty))


@family(combine(8, BLOCK=(4, 8, 16, 32, 64), num_warps=(1, 2, 4, 8)))
def fresh_state_update(config: Config) -> Launch:
    """One step of a state space model: 128 requests of 80 heads of 64 × 128 states in float32."""
    batch, heads = config.get("batch", 128), config.get("heads", 80)
    x, out = (normal(batch, heads, 64, dtype=_BRAIN) for _ in range(2))
    rows = normal(batch, 128, dtype=_BRAIN), normal(batch, 128, dtype=_BRAIN)
    arguments = normal(batch, heads, 64, 128), x, normal(batch, heads), normal(heads), *rows, normal(heads), out, heads
    grid = 64 // config["BLOCK"], heads, batch
    return launch(_state_update, grid, *arguments, config=config, WIDTH=64, STATES=128)


@triton.jit
def _chunk_states(
    x, into, decays, steps, out, length, heads,
    CHUNK: tl.constexpr, WIDTH: tl.constexpr, STATES: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    chunk, head = tl.program_id(1).to(tl.int64), tl.program_id(2)
    row = tl.program_id(0) // (STATES // BLOCK_N) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(0) % (STATES // BLOCK_N) * BLOCK_N + tl.arange(0, BLOCK_N)
    last = tl.load(decays + (chunk * CHUNK + CHUNK - 1) * heads + head)
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, CHUNK, BLOCK_K):
        time = chunk * CHUNK + start + tl.arange(0, BLOCK_K)
        weight = tl.exp(last - tl.load(decays + time * heads + head)) * tl.load(steps + time * heads + head)
        left = tl.load(x + (time[None, :] * heads + head) * WIDTH + row[:, None])
        right = tl.load(into + time[:, None] * STATES + column[None, :]).to(tl.float32) * weight[:, None]
        sums = tl.dot(left, right.to(left.dtype), sums)
    places = ((chunk * heads + head) * WIDTH + row[:, None]) * STATES + column[None, :]
    tl.store(out + places, sums.to(out.dtype.element_ty))


@family(combine(8, BLOCK_M=(32, 64), BLOCK_N=(32, 64, 128), BLOCK_K=(32, 64), num_warps=(2, 4, 8), num_stages=(1, 3)))
def fresh_chunk_states(config: Config) -> Launch:
    """States of 64 × 128 at the ends of chunks of 256 of 16,384 steps, 64 heads, weighted by decay, bfloat16."""
    length, heads, chunk = config.get("length", 16384), config.get("heads", 64), config.get("chunk", 256)
    x, into = normal(length, heads, 64, dtype=_BRAIN), normal(length, 128, dtype=_BRAIN)
    decays = -uniform(length // chunk, chunk, heads).cumsum(1) * 0.1
    out = empty(length // chunk, heads, 64, 128, dtype=_BRAIN)
    arguments = x, into, decays, uniform(length, heads), out, length, heads
    grid = 64 // config["BLOCK_M"] * (128 // config["BLOCK_N"]), length // chunk, heads
    return launch(_chunk_states, grid, *arguments, config=config, CHUNK=chunk, WIDTH=64, STATES=128)


@triton.jit
def _delta_rule(query, key, value, rates, gates, out, length, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * length
    row = tl.arange(0, WIDTH)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros([WIDTH, BLOCK], tl.float32)
    for time in range(length):
        place = (base + time) * WIDTH
        keys = tl.load(key + place + row).to(tl.float32)
        state *= tl.exp(tl.load(gates + base + time))
        missing = tl.load(value + place + column).to(tl.float32) - tl.sum(state * keys[:, None], 0)
        state += keys[:, None] * (missing * tl.load(rates + base + time))[None, :]
        queries = tl.load(query + place + row).to(tl.float32)
        tl.store(out + place + column, tl.sum(state * queries[:, None], 0).to(out.dtype.element_ty))


@family(combine(8, BLOCK=(8, 16, 32, 64), num_warps=(1, 2, 4), num_stages=(1, 3)))
def fresh_delta_rule(config: Config) -> Launch:
    """The gated delta rule of 64 heads of 128, 512 steps one after another, bfloat16."""
    heads, length = config.get("heads", 64), config.get("length", 512)
    query, value, out = (normal(heads, length, 128, dtype=_BRAIN) for _ in range(3))
    key = torch.nn.functional.normalize(normal(heads, length, 128), dim=-1).to(_BRAIN)
    arguments = query, key, value, uniform(heads, length), -uniform(heads, length), out, length
    return launch(_delta_rule, (128 // config["BLOCK"], heads), *arguments, config=config, WIDTH=128)


@triton.jit
def _triangular_inverse(lower, out, SIZE: tl.constexpr):
    row = tl.arange(0, SIZE)
    base = tl.program_id(0).to(tl.int64) * SIZE * SIZE
    places = base + row[:, None] * SIZE + row[None, :]
    inverse = -tl.where(row[:, None] > row[None, :], tl.load(lower + places), 0.0)
    for number in range(1, SIZE):
        line = -tl.load(lower + base + number * SIZE + row)
        line = tl.where(row < number, line, 0.0)
        line += tl.sum(line[:, None] * inverse, 0)
        inverse = tl.where((row == number)[:, None], line[None, :], inverse)
    tl.store(out + places, inverse + tl.where(row[:, None] == row[None, :], 1.0, 0.0))


@family(combine(8, SIZE=(16, 32, 64), num_warps=(1, 2, 4, 8)))
def fresh_triangular_inverse(config: Config) -> Launch:
    """Inverses of unit lower triangles by forward substitution: 2^24 float32 in matrices of several sizes."""
    size = config["SIZE"]
    count = config.get("count", (1 << 24) // size**2)
    lower, out = normal(count, size, size) * 0.1, empty(count, size, size)
    return launch(_triangular_inverse, (count,), lower, out, config=config)
