"""Unseen: attention with what models add to it, and recurrences over steps.

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
def _convolution_update(
    x, states, slots, weight, bias, out, batch, channels, slot_stride, channel_stride, tap_stride,
    REQUESTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(weight + channel * 4).to(tl.float32)
    second = tl.load(weight + channel * 4 + 1).to(tl.float32)
    third = tl.load(weight + channel * 4 + 2).to(tl.float32)
    fourth = tl.load(weight + channel * 4 + 3).to(tl.float32)
    shift = tl.load(bias + channel).to(tl.float32)
    for turn in range(REQUESTS):
        request = tl.program_id(0) * REQUESTS + turn
        state = states + tl.load(slots + request).to(tl.int64) * slot_stride + channel * channel_stride
        oldest, older, old = tl.load(state), tl.load(state + tap_stride), tl.load(state + 2 * tap_stride)
        new = tl.load(x + request * channels + channel)
        total = shift + first * oldest.to(tl.float32) + second * older.to(tl.float32)
        total += third * old.to(tl.float32) + fourth * new.to(tl.float32)
        tl.store(state, older)
        tl.store(state + tap_stride, old)
        tl.store(state + 2 * tap_stride, new)
        tl.store(out + request * channels + channel, (total * tl.sigmoid(total)).to(out.dtype.element_ty))


@family(combine(8, last=(0, 1), REQUESTS=(1, 4, 16), BLOCK=(128, 256, 512, 1024), num_warps=(1, 2, 4)))
def unseen_convolution_update(config: Config) -> Launch:
    """One step of a causal convolution of 4 taps and SiLU, 2,048 requests of 4,096 channels, bfloat16.

    The states of a request lie by channel, or by tap where `last` is 1.
    """
    batch, channels = config.get("batch", 2048), config.get("channels", 4096)
    order = list(range(batch))
    random.Random(35).shuffle(order)
    slots = torch.tensor(order, device="cuda", dtype=torch.int32)
    x, out, states = normal(batch, channels, dtype=_BRAIN), empty(batch, channels, dtype=_BRAIN), batch * channels * 3
    strides = (channels * 3, 1, channels) if config["last"] else (channels * 3, 3, 1)
    parameters = normal(channels, 4, dtype=_BRAIN), normal(channels, dtype=_BRAIN)
    arguments = x, normal(states, dtype=_BRAIN), slots, *parameters, out, batch, channels, *strides
    grid = batch // config["REQUESTS"], channels // config["BLOCK"]
    return launch(_convolution_update, grid, *arguments, config=config)


@triton.jit
def _chunk_decays(
    steps, rates, bias, times, decays, length, heads,
    CHUNK: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    chunk, batch = tl.program_id(1), tl.program_id(2)
    head = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)
    time = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = head < heads
    mask = inside[:, None] & (time < length)[None, :]
    step = tl.load(steps + (batch * length + time[None, :]) * heads + head[:, None], mask, other=0.0).to(tl.float32)
    step += tl.load(bias + head, inside, other=0.0)[:, None]
    step = tl.where(step <= 20.0, tl.log(1.0 + tl.exp(step)), step)
    step = tl.where(mask, step, 0.0)
    into = ((batch * heads + head[:, None]) * tl.num_programs(1) + chunk) * CHUNK + tl.arange(0, CHUNK)[None, :]
    tl.store(times + into, step, inside[:, None])
    rate = tl.load(rates + head, inside, other=0.0)
    tl.store(decays + into, tl.cumsum(step * rate[:, None], 1), inside[:, None])


@family(combine(8, CHUNK=(128, 256), BLOCK_H=(1, 2, 4, 8, 16, 32), num_warps=(1, 2, 4, 8)))
def unseen_chunk_decays(config: Config) -> Launch:
    """Softplus of steps and running sums of decays in chunks: 32 × 4,096 steps of 80 heads of a state space model."""
    batch, length, heads = config.get("batch", 32), config.get("length", 4096), config.get("heads", 80)
    out = (empty(batch, heads, length) for _ in range(2))
    arguments = normal(batch, length, heads, dtype=_BRAIN), -uniform(heads), normal(heads), *out, length, heads
    grid = triton.cdiv(heads, config["BLOCK_H"]), triton.cdiv(length, config["CHUNK"]), batch
    return launch(_chunk_decays, grid, *arguments, config=config)


@triton.jit
def _wkv(keys, values, decays, bonuses, out, length, channels, BLOCK: tl.constexpr):
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    decay, bonus = tl.load(decays + channel), tl.load(bonuses + channel)
    base = tl.program_id(1).to(tl.int64) * length * channels
    above = tl.zeros([BLOCK], tl.float32)
    below = tl.zeros([BLOCK], tl.float32)
    peak = tl.full([BLOCK], -1e30, tl.float32)
    for time in range(length):
        place = base + time * channels + channel
        key = tl.load(keys + place).to(tl.float32)
        value = tl.load(values + place).to(tl.float32)
        most = tl.maximum(peak, bonus + key)
        past, now = tl.exp(peak - most), tl.exp(bonus + key - most)
        tl.store(out + place, ((past * above + now * value) / (past * below + now)).to(out.dtype.element_ty))
        most = tl.maximum(peak - decay, key)
        past, now = tl.exp(peak - decay - most), tl.exp(key - most)
        above = past * above + now * value
        below = past * below + now
        peak = most


@family(combine(8, BLOCK=(32, 64, 128, 256), num_warps=(1, 2, 4), num_stages=(1, 2, 4)))
def unseen_wkv(config: Config) -> Launch:
    """The recurrence of RWKV-4 over 1,024 steps of 8 × 4,096 channels, bfloat16."""
    batch, length, channels = config.get("batch", 8), config.get("length", 1024), config.get("channels", 4096)
    tensors = (normal(batch, length, channels, dtype=_BRAIN) for _ in range(2))
    arguments = *tensors, uniform(channels), normal(channels), empty(batch, length, channels, dtype=_BRAIN)
    return launch(_wkv, (channels // config["BLOCK"], batch), *arguments, length, channels, config=config)


@triton.jit
def _viterbi(emissions, moves, back, best, length, STATES: tl.constexpr, ACROSS: tl.constexpr):
    state = tl.arange(0, STATES)
    if ACROSS:
        move = tl.load(moves + state[None, :] * STATES + state[:, None])
    else:
        move = tl.load(moves + state[:, None] * STATES + state[None, :])
    base = tl.program_id(0) * length * STATES
    score = tl.load(emissions + base + state)
    for time in range(1, length):
        place = base + time * STATES + state
        if ACROSS:
            most, origin = tl.max(score[None, :] + move, 1, return_indices=True)
        else:
            most, origin = tl.max(score[:, None] + move, 0, return_indices=True)
        tl.store(back + place, origin.to(tl.uint8))
        score = most + tl.load(emissions + place)
    tl.store(best + tl.program_id(0) * STATES + state, score)


@family(combine(8, ACROSS=(0, 1), num_warps=(1, 2, 4, 8), num_stages=(1, 3)))
def unseen_viterbi(config: Config) -> Launch:
    """Viterbi's recurrence over 128 steps of 64 states with the origins, 1,024 sequences, float32."""
    sequences, length, states = config.get("sequences", 1024), config.get("length", 128), 64
    back = empty(sequences, length, states, dtype=torch.uint8)
    arguments = normal(sequences, length, states), normal(states, states), back, empty(sequences, states), length
    return launch(_viterbi, (sequences,), *arguments, config=config, STATES=states)


@triton.jit
def _query_gradient(
    query, key, value, slope, sums, deltas, out, length, scale, cap,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # The longest rows first.
    begin = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * length
    row = begin + tl.arange(0, BLOCK_M)
    column = tl.arange(0, WIDTH)
    of_row = (base + row[:, None]) * WIDTH + column[None, :]
    left, given = tl.load(query + of_row), tl.load(slope + of_row)
    total, delta = tl.load(sums + base + row), tl.load(deltas + base + row)
    gradient = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    for start in range(0, begin + BLOCK_M, BLOCK_N):
        place = start + tl.arange(0, BLOCK_N)
        of_key = (base + place[:, None]) * WIDTH + column[None, :]
        keys = tl.load(key + of_key)
        values = tl.load(value + of_key)
        turned = 1.0 - 2.0 / (tl.exp(tl.dot(left, tl.trans(keys)) * (2.0 * scale / cap)) + 1.0)
        power = tl.exp(turned * cap - total[:, None])
        power = tl.where(row[:, None] >= place[None, :], power, 0.0)
        inner = power * (tl.dot(given, tl.trans(values)) - delta[:, None]) * (1.0 - turned * turned)
        gradient = tl.dot(inner.to(keys.dtype), keys, gradient)
    tl.store(out + of_row, (gradient * scale).to(out.dtype.element_ty))


@family(combine(8, BLOCK_M=(64, 128), BLOCK_N=(32, 64), num_warps=(4, 8), num_stages=(1, 2, 3)))
def unseen_query_gradient(config: Config) -> Launch:
    """Gradient by the queries of causal attention with capped scores, 32 heads of 128, 4,096 tokens, bfloat16."""
    heads, length = config.get("heads", 32), config.get("length", 4096)
    tensors = (normal(heads, length, 128, dtype=_BRAIN) for _ in range(4))
    sums, deltas = normal(heads, length) + 10.0, normal(heads, length)
    arguments = *tensors, sums, deltas, empty(heads, length, 128, dtype=_BRAIN), length, 0.0884, 30.0
    return launch(_query_gradient, (length // config["BLOCK_M"], heads), *arguments, config=config, WIDTH=128)


@triton.jit
def _prefix_attention(
    query, key, value, old_keys, old_values, slots, starts, prefixes, out, heads, key_heads, scale,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    request, head = tl.program_id(2), tl.program_id(1)
    first = tl.load(starts + request)
    length = tl.load(starts + request + 1) - first
    begin = tl.program_id(0) * BLOCK_M
    if begin >= length:
        return
    from_slot = tl.load(prefixes + request)
    seen = tl.load(prefixes + request + 1) - from_slot
    key_head = head // (heads // key_heads)
    row = begin + tl.arange(0, BLOCK_M)
    column = tl.arange(0, WIDTH)
    of_query = ((first + row[:, None]) * heads + head) * WIDTH + column[None, :]
    left = tl.load(query + of_query, row[:, None] < length, other=0.0)
    peak = tl.full([BLOCK_M], -1e30, tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    mixed = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    for start in range(0, seen, BLOCK_N):
        place = start + tl.arange(0, BLOCK_N)
        slot = tl.load(slots + from_slot + place, place < seen, other=0).to(tl.int64)
        of_key = (slot * key_heads + key_head) * WIDTH
        keys = tl.load(old_keys + of_key[None, :] + column[:, None], place[None, :] < seen, other=0.0)
        score = tl.where(place[None, :] < seen, tl.dot(left, keys) * scale, -1e30)
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        values = tl.load(old_values + of_key[:, None] + column[None, :], place[:, None] < seen, other=0.0)
        total = total * factor + tl.sum(power, 1)
        mixed = tl.dot(power.to(values.dtype), values, mixed * factor[:, None])
        peak = above
    for start in range(0, tl.minimum(begin + BLOCK_M, length), BLOCK_N):
        place = start + tl.arange(0, BLOCK_N)
        of_key = ((first + place) * key_heads + key_head) * WIDTH
        keys = tl.load(key + of_key[None, :] + column[:, None], place[None, :] < length, other=0.0)
        score = tl.where(row[:, None] >= place[None, :], tl.dot(left, keys) * scale, -1e30)
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        values = tl.load(value + of_key[:, None] + column[None, :], place[:, None] < length, other=0.0)
        total = total * factor + tl.sum(power, 1)
        mixed = tl.dot(power.to(values.dtype), values, mixed * factor[:, None])
        peak = above
    tl.store(out + of_query, (mixed / total[:, None]).to(out.dtype.element_ty), row[:, None] < length)


@family(combine(8, BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64), num_warps=(4, 8), num_stages=(1, 2, 3)))
def unseen_prefix_attention(config: Config) -> Launch:
    """32 requests extended by 30 to 250 tokens each: attention to 500 to 4,000 cached ones at listed slots, bfloat16.

    32 heads of 128, 8 of keys.
    """
    drawn = random.Random(35)
    requests, heads, key_heads = config.get("requests", 32), config.get("heads", 32), config.get("key_heads", 8)
    shortest, longest = config.get("shortest", 500), config.get("longest", 4000)
    starts, prefixes, most = [0], [0], 0
    for _ in range(requests):
        length = drawn.randrange(30, 251)
        most = max(most, length)
        starts.append(starts[-1] + length)
        prefixes.append(prefixes[-1] + drawn.randrange(shortest, longest + 1))
    order = list(range(prefixes[-1]))
    drawn.shuffle(order)
    query, out = (normal(starts[-1], heads, 128, dtype=_BRAIN) for _ in range(2))
    key, value = (normal(starts[-1], key_heads, 128, dtype=_BRAIN) for _ in range(2))
    old_keys, old_values = (normal(prefixes[-1], key_heads, 128, dtype=_BRAIN) for _ in range(2))
    tables = [torch.tensor(each, device="cuda", dtype=torch.int32) for each in (order, starts, prefixes)]
    arguments = query, key, value, old_keys, old_values, *tables, out, heads, key_heads, 0.1275
    grid = triton.cdiv(most, config["BLOCK_M"]), heads, requests
    return launch(_prefix_attention, grid, *arguments, config=config, WIDTH=128)


@triton.jit
def _pair_bias(
    query, key, value, gate, bias, hidden, out, length, scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    line, head = tl.program_id(2), tl.program_id(1)
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = head * WIDTH + tl.arange(0, WIDTH)
    of_row = (line * length + row[:, None]) * (HEADS * WIDTH) + column[None, :]
    left = tl.load(query + of_row)
    peak = tl.full([BLOCK_M], -1e30, tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    mixed = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    for start in range(0, length, BLOCK_N):
        place = start + tl.arange(0, BLOCK_N)
        of_key = (line * length + place[:, None]) * (HEADS * WIDTH) + column[None, :]
        score = tl.dot(left, tl.trans(tl.load(key + of_key))) * scale
        score += tl.load(bias + (head * length + row[:, None]) * length + place[None, :]).to(tl.float32)
        score += tl.load(hidden + line * length + place)[None, :]
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp(score - above[:, None])
        factor = tl.exp(peak - above)
        total = total * factor + tl.sum(power, 1)
        values = tl.load(value + of_key)
        mixed = tl.dot(power.to(values.dtype), values, mixed * factor[:, None])
        peak = above
    mixed = mixed / total[:, None] * tl.sigmoid(tl.load(gate + of_row).to(tl.float32))
    tl.store(out + of_row, mixed.to(out.dtype.element_ty))


@family(combine(8, BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64, 128), num_warps=(2, 4, 8), num_stages=(1, 2, 3)))
def unseen_pair_bias(config: Config) -> Launch:
    """Gated attention with a bias of each pair of 384 places, which 128 lines share, 8 heads of 32, bfloat16."""
    lines, length, heads = config.get("lines", 128), config.get("length", 384), 8
    query, key, value, gate, out = (normal(lines, length, heads * 32, dtype=_BRAIN) for _ in range(5))
    hidden = indices(2, lines, length).to(torch.float32) * -1e4
    arguments = query, key, value, gate, normal(heads, length, length, dtype=_BRAIN), hidden, out, length, 0.1768
    grid = length // config["BLOCK_M"], heads, lines
    return launch(_pair_bias, grid, *arguments, config=config, HEADS=heads, WIDTH=32)
