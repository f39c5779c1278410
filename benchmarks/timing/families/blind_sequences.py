"""Blind: attention to a tree of drafts, by latent heads, and its gradients; a norm, a loss, routing and a small cache.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN = torch.float16, torch.bfloat16


@triton.jit
def _tree_decode(
    q, k, v, lengths, tree, parts, sums, capacity, scale,
    DRAFTS: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    batch, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads = tl.num_programs(1)
    ROWS: tl.constexpr = DRAFTS * GROUP
    length = tl.load(lengths + batch)
    rows, dims, keys = tl.arange(0, ROWS), tl.arange(0, HEAD_DIM), tl.arange(0, BLOCK_N)
    base = (batch * heads + head).to(tl.int64)
    query = tl.load(q + (base * ROWS + rows[:, None]) * HEAD_DIM + dims[None, :])
    bits = tl.load(tree + batch * DRAFTS + rows // GROUP)
    per_split = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_N) * BLOCK_N
    lo = split * per_split
    hi = tl.minimum(lo + per_split, length)
    m_i = tl.full([ROWS], -1e30, tl.float32)
    l_i = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, HEAD_DIM], tl.float32)
    for start in range(lo, hi, BLOCK_N):
        place = start + keys
        kt = tl.load(k + (base * capacity + place[None, :]) * HEAD_DIM + dims[:, None], mask=place[None, :] < hi)
        qk = tl.dot(query, kt) * scale
        draft = place - (length - DRAFTS)
        visible = (draft < 0)[None, :] | (((bits[:, None] >> tl.maximum(draft, 0)[None, :]) & 1) != 0)
        qk = tl.where(visible & (place < hi)[None, :], qk, -1e30)
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        vt = tl.load(
            v + (base * capacity + place[:, None]) * HEAD_DIM + dims[None, :], mask=place[:, None] < hi, other=0.0
        )
        acc = tl.dot(p.to(vt.dtype), vt, acc * alpha[:, None])
        m_i = m_new
    into = (base * SPLITS + split) * ROWS + rows
    tl.store(parts + into[:, None] * HEAD_DIM + dims[None, :], acc / tl.maximum(l_i, 1e-30)[:, None])
    tl.store(sums + into, m_i + tl.log2(tl.maximum(l_i, 1e-30)))


@family(combine(8, SPLITS=(1, 2, 4, 8, 16), BLOCK_N=(32, 64, 128), num_warps=(4, 8), num_stages=(1, 2, 3)))
def blind_tree_decode(config: Config) -> Launch:
    """16 draft tokens in a tree for 16 requests of 1,000 to 8,000 tokens, 8 key heads of 4 × 128, bfloat16, splits."""
    batch, heads, longest = config.get("batch", 16), config.get("heads", 8), config.get("longest", 8000)
    lengths = (uniform(batch) * (longest * 7 // 8) + longest // 8).to(torch.int32)
    # Each draft sees itself, the first one, and some others before it.
    own = torch.arange(16, device="cuda", dtype=torch.int32)
    tree = (indices(1 << 15, batch, 16) & ((1 << own) - 1)) | (1 << own) | 1
    cache = (normal(batch, heads, longest, 128, dtype=_BRAIN) for _ in range(2))
    shape = batch, heads, config["SPLITS"], 64
    arguments = normal(batch, heads, 64, 128, dtype=_BRAIN), *cache, lengths, tree, empty(*shape, 128), empty(*shape)
    grid = batch, heads, config["SPLITS"]
    scale = 128**-0.5 * 1.4426950408889634
    return launch(
        _tree_decode, grid, *arguments, longest, scale, config=config, DRAFTS=16, GROUP=4, HEAD_DIM=128
    )  # fmt: skip


@triton.jit
def _attention_gradients(
    Q, K, V, DO, LSE, DELTA, DQ, DK, DV, L, sm_scale,
    GROUP: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, LONG_FIRST: tl.constexpr,
):  # fmt: skip
    tile_n = tl.program_id(0) if LONG_FIRST else tl.num_programs(0) - 1 - tl.program_id(0)
    key_head = tl.program_id(1)
    offs_n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    key_place = (key_head * L + offs_n)[:, None] * D + offs_d[None, :]
    k = tl.load(K + key_place)
    v = tl.load(V + key_place)
    dk = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    for head in range(key_head * GROUP, key_head * GROUP + GROUP):
        for start_m in range(tile_n * BLOCK_N // BLOCK_M * BLOCK_M, L, BLOCK_M):
            offs_m = start_m + tl.arange(0, BLOCK_M)
            place = (head * L + offs_m)[:, None] * D + offs_d[None, :]
            q = tl.load(Q + place)
            do = tl.load(DO + place)
            lse = tl.load(LSE + head * L + offs_m)
            delta = tl.load(DELTA + head * L + offs_m)
            qk = tl.dot(q, tl.trans(k)) * (sm_scale * 1.4426950408889634)
            p = tl.where(offs_m[:, None] >= offs_n[None, :], tl.exp2(qk - lse[:, None]), 0.0)
            dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv)
            dp = tl.dot(do, tl.trans(v))
            ds = (p * (dp - delta[:, None]) * sm_scale).to(q.dtype)
            dk = tl.dot(tl.trans(ds), q, dk)
            tl.atomic_add(DQ + place, tl.dot(ds, k), sem="relaxed")
    tl.store(DK + key_place, dk.to(DK.dtype.element_ty))
    tl.store(DV + key_place, dv.to(DV.dtype.element_ty))


@family(
    combine(8, BLOCK_M=(32, 64, 128), BLOCK_N=(32, 64, 128), LONG_FIRST=(0, 1), num_warps=(4, 8), num_stages=(1, 2, 3))
)
def blind_attention_gradients(config: Config) -> Launch:
    """All gradients of causal attention in one pass, 32 heads of 64, 8 of keys, 2,048 tokens, float16 (atomics)."""
    heads, key_heads, length = config.get("heads", 32), config.get("key_heads", 8), config.get("length", 2048)
    q, do = (normal(heads, length, 64, dtype=_HALF) for _ in range(2))
    k, v, dk, dv = (normal(key_heads, length, 64, dtype=_HALF) for _ in range(4))
    lse = uniform(heads, length) + 6
    arguments = q, k, v, do, lse, normal(heads, length), zeros(heads, length, 64), dk, dv, length, 0.125
    grid = length // config["BLOCK_N"], key_heads
    return launch(_attention_gradients, grid, *arguments, config=config, GROUP=heads // key_heads, D=64)


@triton.jit
def _latent_prefill(
    q_ptr, kv_ptr, k_pe_ptr, out_ptr, length, heads, scale,
    NOPE: tl.constexpr, ROPE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_INNER: tl.constexpr,
):  # fmt: skip
    if HEAD_INNER:
        head, tile = tl.program_id(0), tl.num_programs(1) - 1 - tl.program_id(1)
    else:
        tile, head = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1)
    offs_m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_nope, offs_rope = tl.arange(0, NOPE), tl.arange(0, ROPE)
    q_row = (offs_m[:, None] * heads + head) * (NOPE + ROPE)
    q_nope = tl.load(q_ptr + q_row + offs_nope[None, :])
    q_rope = tl.load(q_ptr + q_row + NOPE + offs_rope[None, :])
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, NOPE], dtype=tl.float32)
    for start in tl.range(0, (tile + 1) * BLOCK_M, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        kv_row = (offs_n * heads + head) * (2 * NOPE)
        k_nope = tl.load(kv_ptr + kv_row[None, :] + offs_nope[:, None])
        k_rope = tl.load(k_pe_ptr + offs_n[None, :] * ROPE + offs_rope[:, None])
        s = tl.dot(q_nope, k_nope)
        s = tl.dot(q_rope, k_rope, s) * scale
        s = tl.where(offs_m[:, None] >= offs_n[None, :], s, -float("inf"))
        m_ij = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp2(s - m_ij[:, None])
        alpha = tl.exp2(m_i - m_ij)
        v = tl.load(kv_ptr + kv_row[:, None] + NOPE + offs_nope[None, :])
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_ij
    place = (offs_m[:, None] * heads + head) * NOPE + offs_nope[None, :]
    tl.store(out_ptr + place, (acc / l_i[:, None]).to(out_ptr.dtype.element_ty))


@family(combine(8, BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128), HEAD_INNER=(0, 1), num_warps=(4, 8), num_stages=(1, 2)))
def blind_latent_prefill(config: Config) -> Launch:
    """Causal attention of 16 heads, keys of 128 and 64 that all heads share, values of 128, 4,096 tokens, bfloat16."""
    length, heads = config.get("length", 4096), config.get("heads", 16)
    tensors = normal(length, heads, 192, dtype=_BRAIN), normal(length, heads, 256, dtype=_BRAIN)
    out = empty(length, heads, 128, dtype=_BRAIN)
    arguments = *tensors, normal(length, 64, dtype=_BRAIN), out, length, heads, 192**-0.5 * 1.4426950408889634
    tiles = length // config["BLOCK_M"]
    grid = (heads, tiles) if config["HEAD_INNER"] else (tiles, heads)
    return launch(_latent_prefill, grid, *arguments, config=config, NOPE=128, ROPE=64)


@triton.jit
def chosen_logprob_kernel(
    logits_ptr, stride, tokens_ptr, logprob_ptr, entropy_ptr, inv_temperature, vocab,
    BLOCK: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * stride
    cols = tl.arange(0, BLOCK)
    if LANES:
        # Each lane keeps its own maximum and sums; one reduction at the end.
        m = tl.full([BLOCK], -1e30, tl.float32)
        z = tl.zeros([BLOCK], tl.float32)
        t = tl.zeros([BLOCK], tl.float32)
    else:
        m, z, t = -1e30, 0.0, 0.0
    for start in range(0, vocab, BLOCK):
        inside = start + cols < vocab
        x = tl.load(logits_ptr + start + cols, mask=inside, other=-1e30).to(tl.float32) * inv_temperature
        if LANES:
            m_new = tl.maximum(m, x)
            scale = tl.exp(m - m_new)
            e = tl.where(inside, tl.exp(x - m_new), 0.0)
            z = z * scale + e
            t = t * scale + e * x
        else:
            m_new = tl.maximum(m, tl.max(x, 0))
            scale = tl.exp(m - m_new)
            e = tl.exp(x - m_new)
            z = z * scale + tl.sum(e, 0)
            t = t * scale + tl.sum(tl.where(inside, e * x, 0.0), 0)
        m = m_new
    if LANES:
        peak = tl.max(m, 0)
        scale = tl.exp(m - peak)
        z = tl.sum(z * scale, 0)
        t = tl.sum(t * scale, 0)
        m = peak
    lse = m + tl.log(z)
    token = tl.load(tokens_ptr + row)
    chosen = tl.load(logits_ptr + token).to(tl.float32) * inv_temperature
    tl.store(logprob_ptr + row, chosen - lse)
    tl.store(entropy_ptr + row, lse - t / z)


@family(combine(8, BLOCK=(1024, 2048, 4096, 8192, 16384), LANES=(0, 1), num_warps=(4, 8, 16, 32), num_stages=(1, 3)))
def blind_chosen_words(config: Config) -> Launch:
    """Log probability of the word chosen and the entropy, 2,048 rows of 151,936 bfloat16, as policy gradients need."""
    rows, vocab = config.get("rows", 2048), config.get("vocab", 151936)
    tensors = normal(rows, vocab, dtype=_BRAIN), vocab, indices(vocab, rows, dtype=torch.int64)
    return launch(chosen_logprob_kernel, (rows,), *tensors, empty(rows), empty(rows), 1 / 0.7, vocab, config=config)


@triton.jit
def _group_routing(
    logits, bias, weights, chosen, factor,
    GROUPS: tl.constexpr, WIDTH: tl.constexpr, KEPT_GROUPS: tl.constexpr, KEPT: tl.constexpr,
    SORTED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    EXPERTS: tl.constexpr = GROUPS * WIDTH
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    expert = tl.arange(0, EXPERTS)
    score = tl.sigmoid(tl.load(logits + row[:, None] * EXPERTS + expert[None, :]))
    biased = score + tl.load(bias + expert)[None, :]
    grouped = tl.reshape(biased, [ROWS, GROUPS, WIDTH])
    best, place = tl.max(grouped, 2, return_indices=True)
    rest = tl.where(tl.arange(0, WIDTH)[None, None, :] == place[:, :, None], -1e30, grouped)
    of_group = best + tl.max(rest, 2)
    group = tl.arange(0, GROUPS)
    open_groups = tl.zeros([ROWS, GROUPS], tl.int32)
    for _ in tl.static_range(KEPT_GROUPS):
        top = tl.argmax(of_group, 1)
        hit = group[None, :] == top[:, None]
        open_groups = tl.where(hit, 1, open_groups)
        of_group = tl.where(hit, -1e30, of_group)
    allowed = tl.where(open_groups[:, :, None] != 0, grouped, -1e30)
    allowed = tl.reshape(allowed, [ROWS, EXPERTS])
    slot = tl.arange(0, KEPT)
    if SORTED:
        bits = allowed.to(tl.int32, bitcast=True)
        bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        packed = (bits.to(tl.int64) << 32) | expert[None, :].to(tl.int64)
        index = (tl.topk(packed, KEPT) & 0xFFFFFFFF).to(tl.int32)
    else:
        index = tl.zeros([ROWS, KEPT], tl.int32)
        for number in tl.static_range(KEPT):
            top = tl.argmax(allowed, 1)
            index = tl.where(slot[None, :] == number, top[:, None], index)
            allowed = tl.where(expert[None, :] == top[:, None], -1e30, allowed)
    value = tl.sigmoid(tl.load(logits + row[:, None] * EXPERTS + index))
    value = value / tl.sum(value, 1)[:, None] * factor
    tl.store(weights + row[:, None] * KEPT + slot[None, :], value)
    tl.store(chosen + row[:, None] * KEPT + slot[None, :], index)


@family(combine(8, SORTED=(0, 1), ROWS=(1, 2, 4, 8, 16), num_warps=(1, 2, 4, 8)))
def blind_group_routing(config: Config) -> Launch:
    """8 of 256 experts from the best 4 of 8 groups, with a bias, for 32,768 tokens of float32 scores."""
    tokens = config.get("tokens", 32768)
    tensors = normal(tokens, 256), normal(256) * 0.05, empty(tokens, 8), empty(tokens, 8, dtype=torch.int32)
    constants = {"GROUPS": 8, "WIDTH": 32, "KEPT_GROUPS": 4, "KEPT": 8}
    return launch(_group_routing, (tokens // config["ROWS"],), *tensors, 2.5, config=config, **constants)


@triton.jit
def _dropout_add_norm(
    x, residual, gain, bias, summed, out, means, scales, rows, seed, kept, epsilon,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, FOUR: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, BLOCK)
    inside = column < WIDTH
    g = tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        place = row * WIDTH + column
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        if FOUR:
            # A call of Philox gives four neighbours their numbers.
            quarter = row * (WIDTH // 4) + tl.arange(0, BLOCK // 4)
            r0, r1, r2, r3 = tl.rand4x(seed, quarter)
            drawn = tl.reshape(tl.join(tl.join(r0, r2), tl.join(r1, r3)), [BLOCK])
        else:
            drawn = tl.rand(seed, place)
        value = tl.where(drawn < kept, value / kept, 0.0)
        value += tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
        tl.store(summed + place, value.to(summed.dtype.element_ty), mask=inside)
        mean = tl.sum(value, 0) / WIDTH
        apart = tl.where(inside, value - mean, 0.0)
        scale = 1.0 / tl.sqrt(tl.sum(apart * apart, 0) / WIDTH + epsilon)
        tl.store(means + row, mean)
        tl.store(scales + row, scale)
        tl.store(out + place, (apart * scale * g + b).to(out.dtype.element_ty), mask=inside)


@family(combine(8, FOUR=(0, 1), programs=(132, 264, 528, 8192), num_warps=(2, 4, 8, 16, 32)))
def blind_dropout_add_norm(config: Config) -> Launch:
    """Dropout by Philox, residual and layer norm of 8,192 rows of 5,120 bfloat16, in registers."""
    rows = config.get("rows", 8192)
    x, residual, summed, out = (normal(rows, 5120, dtype=_BRAIN) for _ in range(4))
    arguments = (
        x,
        residual,
        normal(5120, dtype=_BRAIN),
        normal(5120, dtype=_BRAIN),
        summed,
        out,
        empty(rows),
        empty(rows),
    )
    grid = (min(config["programs"], rows),)
    return launch(
        _dropout_add_norm, grid, *arguments, rows, 35, 0.9, 1e-5, config=config, WIDTH=5120, BLOCK=8192
    )  # fmt: skip


@triton.jit
def _cache_four_bits(
    fresh, slots, cache, scales, lows, stride_token, tokens,
    HEADS: tl.constexpr, PAIRS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    # Keys are heads 0 to HEADS - 1, values the next ones.
    token = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    live = token < tokens
    slot = tl.load(slots + token, mask=live, other=0)
    row = token[:, None] * stride_token + head[None, :] * 128
    half = tl.arange(0, 64)
    mask = live[:, None, None]
    if PAIRS:
        both = tl.load(fresh + row[:, :, None] + tl.arange(0, 128)[None, None, :], mask=mask, other=0.0)
        first, second = tl.split(tl.reshape(both, [BLOCK_T, BLOCK_H, 64, 2]))
    else:
        first = tl.load(fresh + row[:, :, None] + half[None, None, :], mask=mask, other=0.0)
        second = tl.load(fresh + row[:, :, None] + 64 + half[None, None, :], mask=mask, other=0.0)
    first, second = first.to(tl.float32), second.to(tl.float32)
    low = tl.min(tl.minimum(first, second), 2)
    high = tl.max(tl.maximum(first, second), 2)
    scale = tl.maximum((high - low) / 15.0, 1e-8)
    first = ((first - low[:, :, None]) / scale[:, :, None] + 0.5).to(tl.uint8)
    second = ((second - low[:, :, None]) / scale[:, :, None] + 0.5).to(tl.uint8)
    into = slot[:, None].to(tl.int64) * (2 * HEADS) + head[None, :]
    tl.store(cache + into[:, :, None] * 64 + half[None, None, :], first | (second << 4), mask=mask)
    tl.store(scales + into, scale.to(tl.float16), mask=live[:, None])
    tl.store(lows + into, low.to(tl.float16), mask=live[:, None])


@family(combine(8, PAIRS=(0, 1), BLOCK_T=(1, 4, 16, 32), BLOCK_H=(1, 4, 16), num_warps=(1, 2, 4, 8)))
def blind_cache_four_bits(config: Config) -> Launch:
    """Keys and values of 30,000 tokens, 2 × 8 heads of 128 bfloat16, to random slots of a cache of 4 bits each."""
    tokens = config.get("tokens", 30000)
    slots = torch.randperm(2 * tokens, device="cuda")[:tokens].to(torch.int32)
    cache = zeros(2 * tokens, 16, 64, dtype=torch.uint8)
    scales, lows = (zeros(2 * tokens, 16, dtype=_HALF) for _ in range(2))
    fresh = normal(tokens, 24, 128, dtype=_BRAIN)[:, 8:]
    arguments = fresh, slots, cache, scales, lows, 24 * 128, tokens
    grid = triton.cdiv(tokens, config["BLOCK_T"]), 16 // config["BLOCK_H"]
    return launch(_cache_four_bits, grid, *arguments, config=config, HEADS=8)
