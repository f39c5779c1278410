"""Held out: attention to pages and by bytes, a state space model, a recurrence, and words chosen from logits.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import random

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, normal, uniform
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN = torch.float16, torch.bfloat16


@triton.jit
def _grouped_decode(
    query, keys, values, pages, lengths, out, sums, most_pages, scale,
    KEY_HEADS: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
    PAGE: tl.constexpr, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    request, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + request)
    each = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_N) * BLOCK_N
    first = split * each
    after = tl.minimum(first + each, length)
    row, column = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    of_row = (request * KEY_HEADS + head) * GROUP + row
    left = tl.load(query + of_row[:, None] * WIDTH + column[None, :], (row < GROUP)[:, None], other=0.0)
    peak = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(first, after, BLOCK_N):
        token = start + tl.arange(0, BLOCK_N)
        seen = token < after
        page = tl.load(pages + request * most_pages + token // PAGE, seen, other=0).to(tl.int64)
        slot = ((page * PAGE + token % PAGE) * KEY_HEADS + head) * WIDTH
        key = tl.load(keys + slot[None, :] + column[:, None], seen[None, :], other=0.0)
        score = tl.where(seen[None, :], tl.dot(left, key) * scale, -1e30)
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        value = tl.load(values + slot[:, None] + column[None, :], seen[:, None], other=0.0)
        total = total * factor + tl.sum(power, 1)
        mixed = tl.dot(power.to(value.dtype), value, mixed * factor[:, None])
        peak = above
    part = of_row * SPLITS + split
    mixed = mixed / tl.where(total > 0, total, 1.0)[:, None]
    tl.store(out + part[:, None] * WIDTH + column[None, :], mixed, (row < GROUP)[:, None])
    tl.store(sums + part, peak + tl.log2(total), row < GROUP)


@family(
    combine(
        8, PAGE=(16, 64), SPLITS=(2, 4, 8, 16), BLOCK_N=(16, 32, 64, 128), num_warps=(2, 4, 8), num_stages=(1, 2, 3)
    )
)
def held_grouped_decode(config: Config) -> Launch:
    """One query of 64 heads of 128 for 64 requests with 200 to 8,000 tokens of 8 key heads in pages, bfloat16.

    The eight heads of a key head are rows of one product; the splits are combined by another kernel.
    """
    drawn = random.Random(35)
    requests, heads, page = config.get("requests", 64), config.get("heads", 8), config["PAGE"]
    shortest, longest = config.get("shortest", 200), config.get("longest", 8000)
    lengths = [drawn.randrange(shortest, longest + 1) for _ in range(requests)]
    counts = [triton.cdiv(length, page) for length in lengths]
    order = list(range(sum(counts)))
    drawn.shuffle(order)
    rows, begin = [], 0
    for count in counts:
        rows.append(order[begin : begin + count] + [0] * (max(counts) - count))
        begin += count
    tables = (torch.tensor(each, device="cuda", dtype=torch.int32) for each in (rows, lengths))
    keys, values = (normal(sum(counts), page, heads, 128, dtype=_BRAIN) for _ in range(2))
    out = empty(requests, heads * 8, config["SPLITS"], 128), empty(requests, heads * 8, config["SPLITS"])
    query = normal(requests, heads * 8, 128, dtype=_BRAIN)
    arguments = query, keys, values, *tables, *out, max(counts), 0.1275
    grid = requests, heads, config["SPLITS"]
    return launch(
        _grouped_decode, grid, *arguments, config=config, KEY_HEADS=heads, GROUP=8, ROWS=16, WIDTH=128
    )  # fmt: skip


@triton.jit
def _byte_attention(
    query, key, value, query_scales, key_scales, out, length,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    base = tl.program_id(1) * length
    row = base + tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, WIDTH)
    left = tl.load(query + row[:, None] * WIDTH + column[None, :])
    left_scale = tl.load(query_scales + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0))
    key_scales += tl.program_id(1) * (length // BLOCK_N)
    peak = tl.full([BLOCK_M], -1e30, tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    mixed = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    for start in range(0, length, BLOCK_N):
        place = base + start + tl.arange(0, BLOCK_N)
        right = tl.load(key + place[None, :] * WIDTH + column[:, None])
        scale = left_scale * tl.load(key_scales + start // BLOCK_N)
        score = tl.dot(left, right).to(tl.float32) * scale
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        total = total * factor + tl.sum(power, 1)
        values = tl.load(value + place[:, None] * WIDTH + column[None, :])
        mixed = tl.dot(power.to(values.dtype), values, mixed * factor[:, None])
        peak = above
    tl.store(out + row[:, None] * WIDTH + column[None, :], (mixed / total[:, None]).to(out.dtype.element_ty))


@family(combine(8, BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128), num_warps=(4, 8), num_stages=(1, 2, 3, 4)))
def held_byte_attention(config: Config) -> Launch:
    """Attention of 24 heads of 128, 4,608 tokens: int8 queries and keys with a scale for each block, float16 values."""
    heads, length = config.get("heads", 24), config.get("length", 4608)
    query, key = (normal(heads, length, 128, dtype=torch.int8) for _ in range(2))
    scales = (uniform(heads, length // config[name]) * 0.02 for name in ("BLOCK_M", "BLOCK_N"))
    value, out = normal(heads, length, 128, dtype=_HALF), empty(heads, length, 128, dtype=_HALF)
    grid = length // config["BLOCK_M"], heads
    return launch(_byte_attention, grid, query, key, value, *scales, out, length, config=config, WIDTH=128)


@triton.jit
def _chunk_outputs(
    products, x, gates, steps, decays, reads, states, skips, out, heads,
    CHUNK: tl.constexpr, WIDTH: tl.constexpr, STATE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    chunk, head = tl.program_id(1), tl.program_id(2)
    begin = tl.program_id(0) // (WIDTH // BLOCK_N) * BLOCK_M
    row = begin + tl.arange(0, BLOCK_M)
    column = tl.program_id(0) % (WIDTH // BLOCK_N) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, STATE)
    time = chunk * CHUNK + row
    steps += (head * tl.num_programs(1) + chunk) * CHUNK
    decays += (head * tl.num_programs(1) + chunk) * CHUNK
    decay = tl.load(decays + row)
    read = tl.load(reads + time[:, None] * STATE + inner[None, :])
    state = tl.load(states + ((chunk * heads + head) * WIDTH + column[None, :]) * STATE + inner[:, None])
    sums = tl.dot(read, state) * tl.exp(decay)[:, None]
    for start in range(0, begin + BLOCK_M, BLOCK_K):
        place = start + tl.arange(0, BLOCK_K)
        weight = tl.load(products + time[:, None] * CHUNK + place[None, :])
        weight = weight * tl.exp(tl.minimum(decay[:, None] - tl.load(decays + place)[None, :], 0.0))
        weight = tl.where(row[:, None] >= place[None, :], weight * tl.load(steps + place)[None, :], 0.0)
        value = tl.load(x + ((chunk * CHUNK + place[:, None]) * heads + head) * WIDTH + column[None, :])
        sums = tl.dot(weight.to(value.dtype), value, sums)
    into = (time[:, None] * heads + head) * WIDTH + column[None, :]
    gate = tl.load(gates + into).to(tl.float32)
    sums += tl.load(x + into).to(tl.float32) * tl.load(skips + head)
    tl.store(out + into, (sums * gate * tl.sigmoid(gate)).to(out.dtype.element_ty))


@family(
    combine(8, BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64), BLOCK_K=(32, 64), num_warps=(2, 4, 8), num_stages=(1, 2, 3, 4))
)
def held_chunk_outputs(config: Config) -> Launch:
    """Outputs of chunks of 256 of 8,192 steps of a state space model, 80 heads of 64 × 128 states, bfloat16.

    From the states before each chunk and the products within it, with decays, a skip and a gate.
    """
    length, heads, chunk = config.get("length", 8192), config.get("heads", 80), 256
    chunks = length // chunk
    x, gates, out = (normal(length, heads, 64, dtype=_BRAIN) for _ in range(3))
    steps = uniform(heads, chunks, chunk)
    arguments = (
        normal(chunks, chunk, chunk), x, gates, steps, -(steps * 0.1).cumsum(2), normal(length, 128, dtype=_BRAIN),
        normal(chunks, heads, 64, 128, dtype=_BRAIN), normal(heads), out, heads,
    )  # fmt: skip
    grid = chunk // config["BLOCK_M"] * (64 // config["BLOCK_N"]), chunks, heads
    return launch(_chunk_outputs, grid, *arguments, config=config, CHUNK=chunk, WIDTH=64, STATE=128)


@triton.jit
def _gates(given, sequence, time, length, heads, column, WIDTH: tl.constexpr):
    step = sequence.to(tl.int64) * length + time
    place = given + step[:, None] * 3 * heads * WIDTH + column[None, :]
    mask = time < length
    reset = tl.load(place, mask, other=0.0).to(tl.float32)
    update = tl.load(place + heads * WIDTH, mask, other=0.0).to(tl.float32)
    return reset, update, tl.load(place + 2 * heads * WIDTH, mask, other=0.0).to(tl.float32)


@triton.jit
def _recurrent_heads(
    given, weights, out, length, heads,
    WIDTH: tl.constexpr, AHEAD: tl.constexpr, BLOCK_B: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    sequence = tl.program_id(1) * BLOCK_B + tl.arange(0, BLOCK_B)
    column, row = tl.arange(0, WIDTH), tl.arange(0, WIDTH)
    of_weight = head * 3 * WIDTH * WIDTH + row[:, None] * WIDTH + column[None, :]
    reset_weight = tl.load(weights + of_weight)
    update_weight = tl.load(weights + of_weight + WIDTH * WIDTH)
    new_weight = tl.load(weights + of_weight + 2 * WIDTH * WIDTH)
    column += head * WIDTH
    state = tl.zeros([BLOCK_B, WIDTH], tl.float32)
    reset, update, new = _gates(given, sequence, 0, length, heads, column, WIDTH)
    for time in range(length):
        # Of this step, or of the next one, while this one is computed.
        loaded_reset, loaded_update, loaded_new = _gates(given, sequence, time + AHEAD, length, heads, column, WIDTH)
        if not AHEAD:
            reset, update, new = loaded_reset, loaded_update, loaded_new
        half = state.to(weights.dtype.element_ty)
        reset = tl.sigmoid(reset + tl.dot(half, reset_weight))
        update = tl.sigmoid(update + tl.dot(half, update_weight))
        new = 2.0 * tl.sigmoid(2.0 * (new + reset * tl.dot(half, new_weight))) - 1.0
        state = update * state + (1.0 - update) * new
        step = sequence.to(tl.int64) * length + time
        tl.store(out + step[:, None] * heads * WIDTH + column[None, :], state.to(out.dtype.element_ty))
        reset, update, new = loaded_reset, loaded_update, loaded_new


@family(combine(8, AHEAD=(0, 1), BLOCK_B=(16, 32), num_warps=(1, 2, 4, 8)))
def held_recurrent_heads(config: Config) -> Launch:
    """A gated recurrent unit over 256 steps of 128 sequences, 16 heads of 64 with weights of their own, bfloat16."""
    batch, length, heads = config.get("batch", 128), config.get("length", 256), config.get("heads", 16)
    given, weights = normal(batch, length, 3, heads, 64, dtype=_BRAIN), normal(heads, 3, 64, 64, dtype=_BRAIN) * 0.1
    arguments = given, weights, empty(batch, length, heads, 64, dtype=_BRAIN), length, heads
    grid = heads, triton.cdiv(batch, config["BLOCK_B"])
    return launch(_recurrent_heads, grid, *arguments, config=config, WIDTH=64)


@triton.jit
def _sample_words(
    logits, temperatures, best, words, width, seed,
    SPLITS: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, split = tl.program_id(0), tl.program_id(1)
    warmth = tl.load(temperatures + row)
    each = tl.cdiv(width, SPLITS * BLOCK) * BLOCK
    first = split * each
    if EACH:
        peak, word = -float("inf"), 0
    else:
        peak, word = tl.full([BLOCK], -float("inf"), tl.float32), tl.zeros([BLOCK], tl.int32)
    for start in range(first, tl.minimum(first + each, width), BLOCK):
        column = start + tl.arange(0, BLOCK)
        logit = tl.load(logits + row * width + column, column < width, other=-float("inf")).to(tl.float32)
        noise = -tl.log(-tl.log(tl.maximum(tl.rand(seed + row, column), 1e-20)))
        value = logit / warmth + noise
        if EACH:
            most, place = tl.max(value, 0, return_indices=True)
            word = tl.where(most > peak, start + place, word)
            peak = tl.maximum(most, peak)
        else:
            word = tl.where(value > peak, column, word)
            peak = tl.maximum(value, peak)
    if not EACH:
        most, place = tl.max(peak, 0, return_indices=True)
        word = tl.sum(tl.where(tl.arange(0, BLOCK) == place, word, 0), 0)
        peak = most
    tl.store(best + row * SPLITS + split, peak)
    tl.store(words + row * SPLITS + split, word)


@family(combine(8, EACH=(0, 1), SPLITS=(1, 4, 16), BLOCK=(512, 1024, 2048, 4096), num_warps=(2, 4, 8)))
def held_sample_words(config: Config) -> Launch:
    """Draw a word of 128,256 for each of 256 rows of bfloat16: the largest of logit and Gumbel noise by Philox."""
    rows, width = config.get("rows", 256), config.get("width", 128256)
    parts = rows, config["SPLITS"]
    tensors = normal(rows, width, dtype=_BRAIN), uniform(rows) + 0.5, empty(*parts), empty(*parts, dtype=torch.int32)
    return launch(_sample_words, parts, *tensors, width, 35, config=config)


@triton.jit
def _largest_words(x, best, words, width, SPLITS: tl.constexpr, KEPT: tl.constexpr, BLOCK: tl.constexpr):
    row, split = tl.program_id(0), tl.program_id(1)
    each = tl.cdiv(width, SPLITS * BLOCK) * BLOCK
    first = split * each
    kept = tl.full([KEPT], -(1 << 62), tl.int64)
    for start in range(first, tl.minimum(first + each, width), BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * width + column, column < width, other=-float("inf"))
        bits = value.to(tl.int32, bitcast=True)
        # Integers in the order of the values, and each with its place.
        ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        pairs = (ordered.to(tl.int64) << 32) | column.to(tl.int64)
        newest = tl.topk(pairs, KEPT)
        kept = tl.topk(tl.reshape(tl.join(kept, newest), [2 * KEPT]), KEPT)
    ordered = (kept >> 32).to(tl.int32)
    bits = tl.where(ordered < 0, ordered ^ 0x7FFFFFFF, ordered)
    into = (row * SPLITS + split) * KEPT + tl.arange(0, KEPT)
    tl.store(best + into, bits.to(tl.float32, bitcast=True))
    tl.store(words + into, (kept & 0xFFFFFFFF).to(tl.int32))


@family(combine(8, SPLITS=(2, 4, 8, 16), BLOCK=(256, 512, 1024, 2048), num_warps=(1, 2, 4, 8)))
def held_largest_words(config: Config) -> Launch:
    """The 32 largest of 32,000 float32 and their places, 512 rows in splits, by partial sorts of int64."""
    rows, width, kept = config.get("rows", 512), config.get("width", 32000), 32
    shape = rows, config["SPLITS"], kept
    tensors = normal(rows, width), empty(*shape), empty(*shape, dtype=torch.int32)
    return launch(_largest_words, (rows, config["SPLITS"]), *tensors, width, config=config, KEPT=kept)
