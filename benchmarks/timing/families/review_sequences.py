"""Review: attention, recurrences and caches along sequences, with one problem in each family where that is possible.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import random

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform
from benchmarks.timing.family import Config, Launch, family, launch, listed

_HALF, _BRAIN, _BYTE_FLOAT = torch.float16, torch.bfloat16, torch.float8_e4m3fn
_LOG2_E = 1.4426950408889634


@triton.jit
def _flash_step(
    q, k_ptrs, v_ptrs, peak, norm, acc, offs_m, start_n, length, scale,
    BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    offs_n = start_n + tl.arange(0, BLOCK_N)
    k = tl.load(k_ptrs, mask=offs_n[None, :] < length, other=0.0) if MASKED else tl.load(k_ptrs)
    logits = tl.dot(q, k)
    if MASKED:
        logits = tl.where(offs_m[:, None] >= offs_n[None, :], logits, -1e9)
    new_peak = tl.maximum(peak, tl.max(logits, 1) * scale)
    p = tl.exp2(logits * scale - new_peak[:, None])
    fade = tl.exp2(peak - new_peak)
    v = tl.load(v_ptrs, mask=offs_n[:, None] < length, other=0.0) if MASKED else tl.load(v_ptrs)
    acc = tl.dot(p.to(v.dtype), v, acc * fade[:, None])
    return new_peak, norm * fade + tl.sum(p, 1), acc


@triton.jit
def _flash_grouped(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, length, heads, kv_heads, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, TWO_LOOPS: tl.constexpr,
    HEAVY_FIRST: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    block = tl.program_id(0)
    if HEAVY_FIRST:
        block = tl.num_programs(0) - 1 - block
    kv_head = head // (heads // kv_heads)
    offs_m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    offs_n = tl.arange(0, BLOCK_N)
    stride_q, stride_k = heads * D, kv_heads * D
    q_places = offs_m[:, None] * stride_q + head * D + offs_d[None, :]
    q = tl.load(q_ptr + q_places, mask=offs_m[:, None] < length, other=0.0)
    k_ptrs = k_ptr + kv_head * D + offs_n[None, :] * stride_k + offs_d[:, None]
    v_ptrs = v_ptr + kv_head * D + offs_n[:, None] * stride_k + offs_d[None, :]
    peak = tl.full((BLOCK_M,), -1e9, tl.float32)
    norm = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    stop = tl.minimum((block + 1) * BLOCK_M, length) if CAUSAL else length
    whole = 0
    if TWO_LOOPS:
        whole = (block * BLOCK_M if CAUSAL else length) // BLOCK_N * BLOCK_N
        for start_n in range(0, whole, BLOCK_N):
            peak, norm, acc = _flash_step(
                q, k_ptrs, v_ptrs, peak, norm, acc, offs_m, start_n, length, scale, BLOCK_N, False
            )  # fmt: skip
            k_ptrs += BLOCK_N * stride_k
            v_ptrs += BLOCK_N * stride_k
    # Without a causal mask only the rest is masked: rows beyond all keys see every key of it.
    last_row = offs_m if CAUSAL else offs_m * 0 + length - 1
    for start_n in range(whole, stop, BLOCK_N):
        peak, norm, acc = _flash_step(
            q, k_ptrs, v_ptrs, peak, norm, acc, last_row, start_n, length, scale, BLOCK_N, True
        )  # fmt: skip
        k_ptrs += BLOCK_N * stride_k
        v_ptrs += BLOCK_N * stride_k
    out = (acc / norm[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + q_places, out, mask=offs_m[:, None] < length)
    tl.store(lse_ptr + head * length + offs_m, peak + tl.log2(norm), mask=offs_m < length)


_FLASH = "BLOCK_M BLOCK_N TWO_LOOPS HEAVY_FIRST num_warps num_stages"


def _flash_launch(config: Config, length: int, heads: int, kv_heads: int, width: int, causal: int) -> Launch:
    q, out = (normal(length, heads, width, dtype=_BRAIN) for _ in "qo")
    k, v = (normal(length, kv_heads, width, dtype=_BRAIN) for _ in "kv")
    arguments = q, k, v, out, empty(heads, length), length, heads, kv_heads, width**-0.5 * _LOG2_E
    grid = triton.cdiv(length, config["BLOCK_M"]), heads
    return launch(_flash_grouped, grid, *arguments, config=config, D=width, CAUSAL=causal)


@family(
    listed(
        _FLASH,
        (128, 64, 1, 1, 8, 3),
        (128, 128, 1, 0, 8, 2),
        (128, 64, 0, 0, 4, 2),
        (64, 64, 1, 1, 4, 3),
        (64, 128, 0, 1, 4, 3),
        (64, 32, 1, 0, 8, 2),
        (32, 64, 0, 1, 2, 1),
        (16, 32, 0, 0, 1, 2),
    )
)
def review_flash_causal(config: Config) -> Launch:
    """Causal attention of 32 heads of 128, 8 of keys, packed by tokens, 4,000 tokens, bfloat16, in one loop or two."""
    heads, kv_heads = config.get("heads", 32), config.get("kv_heads", 8)
    return _flash_launch(config, config.get("length", 4000), heads, kv_heads, 128, 1)


@family(
    listed(
        _FLASH,
        (128, 128, 1, 0, 8, 3),
        (128, 64, 1, 0, 4, 3),
        (256, 64, 1, 0, 8, 2),
        (64, 128, 0, 0, 4, 2),
        (64, 64, 1, 0, 4, 5),
        (128, 32, 0, 0, 16, 2),
        (32, 64, 0, 0, 4, 3),
        (16, 64, 0, 0, 4, 1),
    )
)
def review_flash_full(config: Config) -> Launch:
    """Attention to all of 4,250 tokens of an image, 24 heads of 64, as many of keys, bfloat16, in one loop or two."""
    heads = config.get("heads", 24)
    return _flash_launch(config, config.get("length", 4250), heads, heads, 64, 0)


@triton.jit
def _decode_split(
    q_ptr, k_ptr, v_ptr, part_ptr, lse_ptr, length, scale,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr,
    HEAD_AXIS: tl.constexpr,
):  # fmt: skip
    pair, split = tl.program_id(HEAD_AXIS), tl.program_id(1 - HEAD_AXIS)
    batch, kv_head = pair // KV_HEADS, pair % KV_HEADS
    offs_g, offs_d, offs_n = tl.arange(0, 16), tl.arange(0, D), tl.arange(0, BLOCK_N)
    query = pair * GROUP + offs_g
    q = tl.load(q_ptr + query[:, None] * D + offs_d[None, :], mask=offs_g[:, None] < GROUP, other=0.0)
    share = length // SPLITS
    base = (batch.to(tl.int64) * length + split * share) * KV_HEADS * D + kv_head * D
    peak = tl.full((16,), float("-inf"), tl.float32)
    norm = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for start in range(0, share, BLOCK_N):
        rows = (start + offs_n) * (KV_HEADS * D)
        k = tl.load(k_ptr + base + rows[:, None] + offs_d[None, :])
        logits = tl.dot(q, tl.trans(k)) * scale
        new_peak = tl.maximum(peak, tl.max(logits, 1))
        p = tl.exp2(logits - new_peak[:, None])
        fade = tl.exp2(peak - new_peak)
        v = tl.load(v_ptr + base + rows[:, None] + offs_d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * fade[:, None])
        norm = norm * fade + tl.sum(p, 1)
        peak = new_peak
    place = query * SPLITS + split
    tl.store(part_ptr + place[:, None] * D + offs_d[None, :], acc / norm[:, None], mask=offs_g[:, None] < GROUP)
    tl.store(lse_ptr + place, peak + tl.log2(norm), mask=offs_g < GROUP)


@family(
    listed(
        "SPLITS BLOCK_N HEAD_AXIS num_warps num_stages",
        (8, 64, 0, 4, 3),
        (16, 128, 0, 4, 2),
        (4, 64, 1, 4, 4),
        (2, 128, 0, 8, 3),
        (32, 32, 1, 2, 3),
        (64, 128, 1, 16, 1),
        (1, 64, 0, 4, 2),
        (16, 16, 0, 1, 1),
    )
)
def review_decode_split(config: Config) -> Launch:
    """One query of 40 heads of 128, 8 of keys, for 6 sequences of 16,384 tokens, float16, in splits of the keys."""
    batch, length, kv_heads, group, width = config.get("batch", 6), config.get("length", 16384), 8, 5, 128
    splits = config["SPLITS"]
    caches = [normal(batch, length, kv_heads, width, dtype=_HALF) for _ in "kv"]
    heads = batch * kv_heads * group
    outputs = empty(heads, splits, width), empty(heads, splits)
    arguments = normal(heads, width, dtype=_HALF), *caches, *outputs, length, width**-0.5 * _LOG2_E
    grid = (batch * kv_heads, splits) if config["HEAD_AXIS"] == 0 else (splits, batch * kv_heads)
    return launch(_decode_split, grid, *arguments, config=config, KV_HEADS=kv_heads, GROUP=group, D=width)


@triton.jit
def _paged_bytes(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, o_ptr, most_pages, k_scale, v_scale,
    HEADS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, BLOCK_N: tl.constexpr, HEADS_FAST: tl.constexpr,
):  # fmt: skip
    if HEADS_FAST:
        head, sequence = tl.program_id(0), tl.program_id(1)
    else:
        sequence, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths_ptr + sequence)
    offs_d, offs_n = tl.arange(0, D), tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + (sequence * HEADS + head) * D + offs_d).to(tl.float32) * k_scale
    peak, norm = -1e30, 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, length, BLOCK_N):
        token = start + offs_n
        live = token < length
        page = tl.load(table_ptr + sequence * most_pages + token // PAGE, mask=live, other=0).to(tl.int64)
        place = (page * HEADS + head) * PAGE * D + (token % PAGE) * D
        k = tl.load(k_ptr + place[:, None] + offs_d[None, :], mask=live[:, None], other=0.0).to(tl.float32)
        logits = tl.where(live, tl.sum(k * q[None, :], 1), float("-inf"))
        new_peak = tl.maximum(peak, tl.max(logits, 0))
        p = tl.exp2(logits - new_peak)
        fade = tl.exp2(peak - new_peak)
        v = tl.load(v_ptr + place[:, None] + offs_d[None, :], mask=live[:, None], other=0.0).to(tl.float32)
        acc = acc * fade + tl.sum(p[:, None] * v, 0)
        norm = norm * fade + tl.sum(p, 0)
        peak = new_peak
    out = acc * (v_scale / norm)
    tl.store(o_ptr + (sequence * HEADS + head) * D + offs_d, out.to(o_ptr.dtype.element_ty))


@family(
    listed(
        "PAGE BLOCK_N HEADS_FAST num_warps num_stages",
        (16, 64, 1, 4, 3),
        (16, 128, 0, 8, 2),
        (32, 32, 1, 2, 4),
        (64, 64, 0, 1, 2),
        (16, 16, 0, 4, 1),
        (128, 256, 1, 8, 1),
        (16, 8, 1, 1, 3),
        (32, 128, 0, 16, 5),
    )
)
def review_paged_bytes(config: Config) -> Launch:
    """One query for each of 40 requests of 300 to 4,000 tokens and 16 heads of 128, a float8 cache in random pages."""
    sequences, longest, heads, width = config.get("sequences", 40), config.get("longest", 4000), 16, 128
    drawn = random.Random(11)
    lengths = torch.tensor([drawn.randint(longest // 13, longest) for _ in range(sequences)], dtype=torch.int32)
    most_pages = triton.cdiv(longest, config["PAGE"])
    pages = sequences * most_pages
    caches = [normal(pages, heads, config["PAGE"], width, dtype=_BYTE_FLOAT) for _ in "kv"]
    query, table = normal(sequences, heads, width, dtype=_BRAIN), indices(pages, sequences, most_pages)
    output, scales = empty(sequences, heads, width, dtype=_BRAIN), (width**-0.5 * _LOG2_E, 0.75)
    arguments = query, *caches, table, lengths.to("cuda"), output, most_pages, *scales
    grid = (heads, sequences) if config["HEADS_FAST"] else (sequences, heads)
    return launch(_paged_bytes, grid, *arguments, config=config, HEADS=heads, D=width)


@triton.jit
def _window_softcap(
    q_ptr, k_ptr, v_ptr, o_ptr, length, window, scale, cap,
    GROUP: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, MASK_ALL: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    first_row = tl.program_id(1) * BLOCK_M
    offs_m, offs_d = first_row + tl.arange(0, BLOCK_M), tl.arange(0, D)
    q_place = (head * length + offs_m)[:, None] * D + offs_d[None, :]
    q = tl.load(q_ptr + q_place)
    k_ptr += (head // GROUP) * length * D
    v_ptr += (head // GROUP) * length * D
    peak = tl.full((BLOCK_M,), -1e9, tl.float32)
    norm = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    first = tl.maximum(first_row - window + 1, 0) // BLOCK_N * BLOCK_N
    for start in range(first, first_row + BLOCK_M, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + offs_n[None, :] * D + offs_d[:, None])
        # The hyperbolic tangent, by a sigmoid.
        logits = tl.dot(q, k) * (scale / cap)
        logits = (2.0 * tl.sigmoid(2.0 * logits) - 1.0) * (cap * 1.4426950408889634)
        inside = (start + BLOCK_N <= first_row) & (start + window > first_row + BLOCK_M - 1)
        if MASK_ALL or not inside:
            gap = offs_m[:, None] - offs_n[None, :]
            logits = tl.where((gap >= 0) & (gap < window), logits, -1e9)
        new_peak = tl.maximum(peak, tl.max(logits, 1))
        p = tl.exp2(logits - new_peak[:, None])
        fade = tl.exp2(peak - new_peak)
        v = tl.load(v_ptr + offs_n[:, None] * D + offs_d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * fade[:, None])
        norm = norm * fade + tl.sum(p, 1)
        peak = new_peak
    tl.store(o_ptr + q_place, (acc / norm[:, None]).to(o_ptr.dtype.element_ty))


@family(
    listed(
        "BLOCK_M BLOCK_N MASK_ALL num_warps num_stages",
        (128, 64, 0, 4, 3),
        (128, 64, 1, 8, 3),
        (64, 64, 1, 4, 2),
        (64, 128, 0, 8, 2),
        (256, 32, 1, 8, 4),
        (64, 16, 1, 4, 4),
        (32, 128, 0, 2, 1),
        (16, 64, 1, 1, 2),
    )
)
def review_window_softcap(config: Config) -> Launch:
    """Attention in a window of 1,024 with a soft cap by tanh, 16 heads of 128, 8 of keys, 12,288 tokens, bfloat16."""
    length, heads, window, width = config.get("length", 12288), config.get("heads", 16), config.get("window", 1024), 128
    q, out = (normal(heads, length, width, dtype=_BRAIN) for _ in "qo")
    k, v = (normal(heads // 2, length, width, dtype=_BRAIN) for _ in "kv")
    grid = heads, length // config["BLOCK_M"]
    arguments = q, k, v, out, length, window, width**-0.5, 5.0
    return launch(_window_softcap, grid, *arguments, config=config, GROUP=2, D=width)


@triton.jit
def _retention(
    q_ptr, k_ptr, v_ptr, decay_ptr, o_ptr, length,
    HEADS: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, CHUNK: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(1).to(tl.int64)
    log_decay = tl.load(decay_ptr + pair % HEADS)
    offs_t, offs_k = tl.arange(0, CHUNK), tl.arange(0, DK)
    offs_v = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    gap = offs_t[:, None] - offs_t[None, :]
    within = tl.where(gap >= 0, tl.exp2(gap * log_decay), 0.0)
    rise = tl.exp2((offs_t + 1) * log_decay)
    fall = tl.exp2((CHUNK - 1 - offs_t) * log_decay)
    whole = tl.exp2(CHUNK * log_decay)
    k_place = (pair * length + offs_t[:, None]) * DK + offs_k[None, :]
    v_place = (pair * length + offs_t[:, None]) * DV + offs_v[None, :]
    state = tl.zeros((DK, BLOCK_V), tl.float32)
    for _ in range(0, length, CHUNK):
        q, k, v = tl.load(q_ptr + k_place), tl.load(k_ptr + k_place), tl.load(v_ptr + v_place)
        inner = tl.dot(q, tl.trans(k)) * within
        out = tl.dot(q, state.to(q.dtype)) * rise[:, None]
        out = tl.dot(inner.to(v.dtype), v, out)
        faded = (v * fall[:, None]).to(v.dtype)
        state = tl.dot(tl.trans(k), faded, state * whole)
        tl.store(o_ptr + v_place, out.to(o_ptr.dtype.element_ty))
        k_place += CHUNK * DK
        v_place += CHUNK * DV


@family(
    listed(
        "CHUNK BLOCK_V num_warps num_stages",
        (64, 64, 4, 2),
        (64, 128, 8, 1),
        (128, 64, 8, 2),
        (32, 64, 4, 3),
        (64, 32, 4, 3),
        (16, 128, 4, 2),
        (128, 16, 4, 1),
        (32, 16, 1, 2),
    )
)
def review_retention(config: Config) -> Launch:
    """Linear attention with a decay for each head, 4 × 16 heads of 128, 4,096 tokens in chunks, bfloat16."""
    pairs, length, heads, width = config.get("pairs", 64), config.get("length", 4096), 16, 128
    tensors = [normal(pairs, length, width, dtype=_BRAIN) / 8 for _ in "qkv"]
    decays = -uniform(heads) * 0.05
    grid = width // config["BLOCK_V"], pairs
    output = empty(pairs, length, width, dtype=_BRAIN)
    return launch(_retention, grid, *tensors, decays, output, length, config=config, HEADS=heads, DK=width, DV=width)


@triton.jit
def _compose(decay, value, later_decay, later_value):
    return decay * later_decay, value * later_decay + later_value


@triton.jit
def _mamba_scan(
    x_ptr, step_ptr, a_ptr, b_ptr, c_ptr, y_ptr, length, channels,
    STATES: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(1)
    offs_d = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    offs_s, offs_t = tl.arange(0, STATES), tl.arange(0, BLOCK_T)
    rate = tl.load(a_ptr + offs_d[:, None] * STATES + offs_s[None, :]) * 1.4426950408889634
    state = tl.zeros((BLOCK_D, STATES), tl.float32)
    last = (offs_t == BLOCK_T - 1)[:, None, None]
    for start in range(0, length, BLOCK_T):
        time = batch * length + start + offs_t
        place = time[:, None] * channels + offs_d[None, :]
        x = tl.load(x_ptr + place).to(tl.float32)
        step = tl.load(step_ptr + place).to(tl.float32)
        b = tl.load(b_ptr + time[:, None] * STATES + offs_s[None, :]).to(tl.float32)
        c = tl.load(c_ptr + time[:, None] * STATES + offs_s[None, :]).to(tl.float32)
        decay = tl.exp2(step[:, :, None] * rate[None, :, :])
        value = (step * x)[:, :, None] * b[:, None, :]
        if BLOCK_T > 1:
            decay, value = tl.associative_scan((decay, value), 0, _compose)
        value += decay * state[None, :, :]
        state = tl.sum(tl.where(last, value, 0.0), 0) if BLOCK_T > 1 else tl.reshape(value, (BLOCK_D, STATES))
        y = tl.sum(value * c[:, None, :], 2)
        tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty))


@family(
    listed(
        "BLOCK_T BLOCK_D num_warps num_stages",
        (1, 16, 1, 4),
        (1, 64, 4, 3),
        (1, 8, 4, 1),
        (16, 8, 4, 2),
        (8, 16, 2, 3),
        (64, 4, 4, 2),
        (32, 8, 8, 1),
        (4, 32, 1, 2),
    )
)
def review_mamba_scan(config: Config) -> Launch:
    """Selective scan of 2 × 1,024 steps, 3,072 channels of 16 states, bfloat16: step by step or scans of some steps."""
    batch, length, channels, states = (
        config.get("batch", 2),
        config.get("length", 1024),
        config.get("channels", 3072),
        16,
    )
    x, step = normal(batch, length, channels, dtype=_BRAIN), uniform(batch, length, channels, dtype=_BRAIN) / 8
    mixed = [normal(batch, length, states, dtype=_BRAIN) for _ in "bc"]
    arguments = x, step, -uniform(channels, states) * 4, *mixed, empty(batch, length, channels, dtype=_BRAIN)
    grid = channels // config["BLOCK_D"], batch
    return launch(_mamba_scan, grid, *arguments, length, channels, config=config, STATES=states)


@triton.jit
def _fill_cache(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_ptr, tokens,
    HEADS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, TOKENS: tl.constexpr, BLOCK: tl.constexpr,
    TOKEN_LAST: tl.constexpr,
):  # fmt: skip
    PACK: tl.constexpr = 8
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    live = token < tokens
    slot = tl.load(slot_ptr + token, mask=live, other=-1)
    live = live & (slot >= 0)
    page, row = (slot // PAGE).to(tl.int64), slot % PAGE
    for start in range(tl.program_id(1) * BLOCK, HEADS * D, tl.num_programs(1) * BLOCK):
        inner = start + tl.arange(0, BLOCK)
        head, dim = inner // D, inner % D
        if TOKEN_LAST:
            source = inner[:, None] + token[None, :] * (HEADS * D)
            paged, rowed, headed, dimmed = page[None, :], row[None, :], head[:, None], dim[:, None]
            mask = live[None, :]
        else:
            source = token[:, None] * (HEADS * D) + inner[None, :]
            paged, rowed, headed, dimmed = page[:, None], row[:, None], head[None, :], dim[None, :]
            mask = live[:, None]
        base = (paged * HEADS + headed) * D * PAGE
        key = tl.load(key_ptr + source, mask=mask)
        tl.store(key_cache_ptr + base + (dimmed // PACK * PAGE + rowed) * PACK + dimmed % PACK, key, mask=mask)
        value = tl.load(value_ptr + source, mask=mask)
        tl.store(value_cache_ptr + base + dimmed * PAGE + rowed, value, mask=mask)


@family(
    listed(
        "TOKENS BLOCK TOKEN_LAST parts num_warps",
        (1, 1024, 0, 1, 4),
        (16, 128, 1, 8, 4),
        (16, 64, 0, 4, 8),
        (1, 128, 0, 8, 1),
        (32, 32, 1, 32, 1),
        (64, 128, 1, 1, 8),
        (8, 512, 0, 2, 16),
        (4, 1024, 1, 1, 4),
    )
)
def review_fill_cache(config: Config) -> Launch:
    """Keys and values of 12,000 tokens, 8 heads of 128 bfloat16, to pages of 16: dimensions in eights, and by token."""
    tokens, heads, width, page = config.get("tokens", 12000), 8, 128, 16
    pages = triton.cdiv(tokens, page) * 2
    order = list(range(pages))
    random.Random(5).shuffle(order)
    slots = [order[token // page] * page + token % page for token in range(tokens)]
    tensors = [normal(tokens, heads, width, dtype=_BRAIN) for _ in "kv"]
    caches = [empty(pages, heads, width // 8, page, 8, dtype=_BRAIN), empty(pages, heads, width, page, dtype=_BRAIN)]
    arguments = *tensors, *caches, torch.tensor(slots, device="cuda", dtype=torch.int32), tokens
    grid = triton.cdiv(tokens, config["TOKENS"]), config["parts"]
    return launch(_fill_cache, grid, *arguments, config=config, HEADS=heads, D=width, PAGE=page)
