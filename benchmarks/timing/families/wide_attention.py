"""Wide: attention and linear attention, one problem in each family and the configurations of a tuner.

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
_LOG2_E = 1.4426950408889634


@triton.jit
def _attend(
    q, k_desc, v_desc, highest, weight, total, row, base, key_column, first, stop, scale,
    BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    for start in range(first, stop, BLOCK_N):
        k = k_desc.load([base + start, key_column])
        score = tl.dot(q, k.T) * scale
        if MASKED:
            score = tl.where(row[:, None] >= (start + tl.arange(0, BLOCK_N))[None, :], score, float("-inf"))
        new = tl.maximum(highest, tl.max(score, 1))
        power = tl.exp2(score - new[:, None])
        shrink = tl.exp2(highest - new)
        v = v_desc.load([base + start, key_column])
        total = tl.dot(power.to(v.dtype), v, total * shrink[:, None])
        weight = weight * shrink + tl.sum(power, 1)
        highest = new
    return highest, weight, total


@triton.jit
def _descriptor_attention(
    q_ptr, k_ptr, v_ptr, out_ptr, sum_ptr, batch, length, scale,
    HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, LAST_FIRST: tl.constexpr,
):  # fmt: skip
    tokens = batch * length
    q_desc = tl.make_tensor_descriptor(q_ptr, [tokens, HEADS * DIM], [HEADS * DIM, 1], [BLOCK_M, DIM])
    k_desc = tl.make_tensor_descriptor(k_ptr, [tokens, KEY_HEADS * DIM], [KEY_HEADS * DIM, 1], [BLOCK_N, DIM])
    v_desc = tl.make_tensor_descriptor(v_ptr, [tokens, KEY_HEADS * DIM], [KEY_HEADS * DIM, 1], [BLOCK_N, DIM])
    out_desc = tl.make_tensor_descriptor(out_ptr, [tokens, HEADS * DIM], [HEADS * DIM, 1], [BLOCK_M, DIM])
    block, head = tl.program_id(0), tl.program_id(1)
    if LAST_FIRST:
        block = tl.num_programs(0) - 1 - block
    base, key_column = tl.program_id(2) * length, head // (HEADS // KEY_HEADS) * DIM
    row = block * BLOCK_M + tl.arange(0, BLOCK_M)
    q = q_desc.load([base + block * BLOCK_M, head * DIM])
    highest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, DIM), tl.float32)
    whole = block * BLOCK_M // BLOCK_N * BLOCK_N
    highest, weight, total = _attend(
        q, k_desc, v_desc, highest, weight, total, row, base, key_column, 0, whole, scale, BLOCK_N, False
    )  # fmt: skip
    stop = (block + 1) * BLOCK_M
    highest, weight, total = _attend(
        q, k_desc, v_desc, highest, weight, total, row, base, key_column, whole, stop, scale, BLOCK_N, True
    )  # fmt: skip
    out_desc.store([base + block * BLOCK_M, head * DIM], (total / weight[:, None]).to(out_ptr.dtype.element_ty))
    tl.store(sum_ptr + (tl.program_id(2) * HEADS + head) * length + row, highest + tl.log2(weight))


@family(
    combine(
        BLOCK_M=(64, 128),
        BLOCK_N=(32, 64, 128),
        LAST_FIRST=(0, 1),
        num_warps=(4, 8),
        num_stages=(1, 2, 3),
    )
)
def wide_descriptor_attention(config: Config) -> Launch:
    """Causal attention of 28 heads of 128, 4 of keys, 2 × 3,072 tokens, bfloat16, tiles by TMA descriptors."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    batch, length, dim = config.get("batch", 2), config.get("length", 3072), 128
    heads, key_heads = config.get("heads", 28), config.get("key_heads", 4)
    q, out = (normal(batch, length, heads, dim, dtype=_BRAIN) for _ in "qo")
    k, v = (normal(batch, length, key_heads, dim, dtype=_BRAIN) for _ in "kv")
    arguments = q, k, v, out, empty(batch, heads, length), batch, length, dim**-0.5 * _LOG2_E
    grid = length // config["BLOCK_M"], heads, batch
    return launch(
        _descriptor_attention, grid, *arguments, config=config, HEADS=heads, KEY_HEADS=key_heads, DIM=dim
    )  # fmt: skip


@triton.jit
def _sink_decode(
    q_ptr, k_ptr, v_ptr, sink_ptr, length_ptr, part_ptr, sum_ptr, most, scale,
    KEY_HEADS: tl.constexpr, GROUP: tl.constexpr, DIM: tl.constexpr, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    key_head, request, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(length_ptr + request)
    share = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_N) * BLOCK_N
    first = split * share
    stop = tl.minimum(first + share, length)
    member, dim = tl.arange(0, 16), tl.arange(0, DIM)
    kept = member < GROUP
    head = key_head * GROUP + member
    query = request * KEY_HEADS * GROUP + head
    q = tl.load(q_ptr + query[:, None] * DIM + dim[None, :], mask=kept[:, None], other=0.0)
    base = (request.to(tl.int64) * KEY_HEADS + key_head) * most * DIM
    # The sink of a head is a score without a value, counted in the first split.
    sink = tl.load(sink_ptr + head, mask=kept, other=0.0) * 1.4426950408889634
    highest = tl.where(split == 0, sink, -1e30)
    weight = tl.where(split == 0, 1.0, 0.0) + tl.zeros((16,), tl.float32)
    total = tl.zeros((16, DIM), tl.float32)
    for start in range(first, stop, BLOCK_N):
        token = start + tl.arange(0, BLOCK_N)
        place = base + token[:, None] * DIM + dim[None, :]
        k = tl.load(k_ptr + place, mask=(token < stop)[:, None], other=0.0)
        score = tl.where((token < stop)[None, :], tl.dot(q, k.T) * scale, float("-inf"))
        new = tl.maximum(highest, tl.max(score, 1))
        power = tl.exp2(score - new[:, None])
        shrink = tl.exp2(highest - new)
        v = tl.load(v_ptr + place, mask=(token < stop)[:, None], other=0.0)
        total = tl.dot(power.to(v.dtype), v, total * shrink[:, None])
        weight = weight * shrink + tl.sum(power, 1)
        highest = new
    out = query * SPLITS + split
    some = tl.where(weight > 0.0, weight, 1.0)
    tl.store(part_ptr + out[:, None] * DIM + dim[None, :], total / some[:, None], mask=kept[:, None])
    tl.store(sum_ptr + out, tl.where(weight > 0.0, highest + tl.log2(some), -1e30), mask=kept)


@family(
    combine(
        SPLITS=(1, 2, 4, 8, 16),
        BLOCK_N=(16, 32, 64, 128),
        num_warps=(1, 2, 4, 8),
        num_stages=(1, 2, 3, 4),
    )
)
def wide_sink_decode(config: Config) -> Launch:
    """One query of 64 heads of 64, 8 of keys, with sinks, 48 requests of 500 to 6,000 tokens, bfloat16, splits."""
    requests, most, dim, key_heads, group = config.get("requests", 48), config.get("most", 6000), 64, 8, 8
    drawn = random.Random(29)
    lengths = [drawn.randint(most // 12, most) for _ in range(requests)]
    heads, splits = key_heads * group, config["SPLITS"]
    caches = [normal(requests, key_heads, most, dim, dtype=_BRAIN) for _ in "kv"]
    arguments = normal(requests, heads, dim, dtype=_BRAIN), *caches, normal(heads)
    outputs = empty(requests, heads, splits, dim), empty(requests, heads, splits)
    lengths = torch.tensor(lengths, device="cuda", dtype=torch.int32)
    grid = key_heads, requests, splits
    return launch(
        _sink_decode, grid, *arguments, lengths, *outputs, most, dim**-0.5 * _LOG2_E,
        config=config, KEY_HEADS=key_heads, GROUP=group, DIM=dim,
    )  # fmt: skip


@triton.jit
def _padded_slope(
    q_ptr, k_ptr, v_ptr, out_ptr, do_ptr, sum_ptr, length_ptr, dq_ptr, delta_ptr, padded, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    pair, first_row = tl.program_id(1), tl.program_id(0) * BLOCK_M
    length = tl.load(length_ptr + pair // HEADS)
    row, dim = first_row + tl.arange(0, BLOCK_M), tl.arange(0, DIM)
    base = pair.to(tl.int64) * padded * DIM
    place = base + row[:, None] * DIM + dim[None, :]
    dq = tl.zeros((BLOCK_M, DIM), tl.float32)
    if first_row < length:
        live = (row < length)[:, None]
        q = tl.load(q_ptr + place, mask=live, other=0.0)
        do = tl.load(do_ptr + place, mask=live, other=0.0)
        out = tl.load(out_ptr + place, mask=live, other=0.0)
        delta = tl.sum(out.to(tl.float32) * do.to(tl.float32), 1)
        tl.store(delta_ptr + pair * padded + row, delta, mask=row < length)
        logarithm = tl.load(sum_ptr + pair * padded + row, mask=row < length, other=0.0)
        for start in range(0, length, BLOCK_N):
            token = start + tl.arange(0, BLOCK_N)
            key_place = base + token[:, None] * DIM + dim[None, :]
            k = tl.load(k_ptr + key_place, mask=(token < length)[:, None], other=0.0)
            v = tl.load(v_ptr + key_place, mask=(token < length)[:, None], other=0.0)
            power = tl.exp2(tl.dot(q, k.T) * (scale * 1.4426950408889634) - logarithm[:, None])
            power = tl.where((token < length)[None, :], power, 0.0)
            slope = power * (tl.dot(do, v.T) - delta[:, None])
            dq = tl.dot(slope.to(k.dtype), k, dq)
    dq = tl.where((row < length)[:, None], dq * scale, 0.0)
    tl.store(dq_ptr + place, dq.to(dq_ptr.dtype.element_ty))


@family(
    combine(
        BLOCK_M=(32, 64, 128),
        BLOCK_N=(32, 64, 128),
        num_warps=(4, 8),
        num_stages=(1, 2, 3),
    )
)
def wide_padded_slope(config: Config) -> Launch:
    """Gradient by the queries, 64 texts of 100 to 512 tokens padded to 512, 16 heads of 64, float16 (BERT)."""
    texts, padded, heads, dim = config.get("texts", 64), config.get("padded", 512), config.get("heads", 16), 64
    drawn = random.Random(17)
    lengths = torch.tensor([drawn.randint(padded // 5, padded) for _ in range(texts)], dtype=torch.int32)
    tensors = [normal(texts, heads, padded, dim, dtype=_HALF) for _ in range(5)]
    # Sums about as large as those of such scores; the gradients are linear in what follows from them.
    given, dq = (normal(texts, heads, padded) + 9.0, lengths.to("cuda")), empty(texts, heads, padded, dim, dtype=_HALF)
    arguments = *tensors, *given, dq, empty(texts, heads, padded), padded, dim**-0.5
    grid = padded // config["BLOCK_M"], texts * heads
    return launch(_padded_slope, grid, *arguments, config=config, HEADS=heads, DIM=dim)


@triton.jit
def _shifted_windows(
    qkv_ptr, bias_ptr, out_ptr, windows, scale,
    SIDE: tl.constexpr, WINDOW: tl.constexpr, SHIFT: tl.constexpr, HEADS: tl.constexpr, DIM: tl.constexpr,
    WINDOWS: tl.constexpr, HEAD_AXIS: tl.constexpr,
):  # fmt: skip
    head, group = tl.program_id(HEAD_AXIS), tl.program_id(1 - HEAD_AXIS)
    place, dim = tl.arange(0, 64), tl.arange(0, DIM)
    live = place < WINDOW * WINDOW
    down, right = place // WINDOW, place % WINDOW
    span: tl.constexpr = 2 * WINDOW - 1
    between = (down[:, None] - down[None, :] + WINDOW - 1) * span + right[:, None] - right[None, :] + WINDOW - 1
    bias = tl.load(bias_ptr + between * HEADS + head, mask=live[:, None] & live[None, :], other=0.0)
    bias = tl.where(live[None, :], bias, float("-inf"))
    across: tl.constexpr = SIDE // WINDOW
    for window in range(group * WINDOWS, tl.minimum((group + 1) * WINDOWS, windows)):
        image, y = window // (across * across), window // across % across * WINDOW + down
        x = window % across * WINDOW + right
        pixel = (image * SIDE + (y + SHIFT) % SIDE) * SIDE + (x + SHIFT) % SIDE
        entry = pixel[:, None] * (3 * HEADS * DIM) + head * DIM + dim[None, :]
        q = tl.load(qkv_ptr + entry, mask=live[:, None], other=0.0)
        k = tl.load(qkv_ptr + entry + HEADS * DIM, mask=live[:, None], other=0.0)
        v = tl.load(qkv_ptr + entry + 2 * HEADS * DIM, mask=live[:, None], other=0.0)
        # Pixels that the shift brought from the other side of the image are apart from those that it did not.
        tall = (y >= SIDE - WINDOW).to(tl.int32) + (y >= SIDE - SHIFT).to(tl.int32)
        wide = (x >= SIDE - WINDOW).to(tl.int32) + (x >= SIDE - SHIFT).to(tl.int32)
        region = tall * 3 + wide
        score = tl.dot(q, k.T) * scale + bias
        score = tl.where(region[:, None] == region[None, :], score, score - 100.0)
        power = tl.exp(score - tl.max(score, 1)[:, None])
        power = power / tl.sum(power, 1)[:, None]
        out = tl.dot(power.to(v.dtype), v)
        out_place = (pixel * HEADS + head)[:, None] * DIM + dim[None, :]
        tl.store(out_ptr + out_place, out.to(out_ptr.dtype.element_ty), mask=live[:, None])


@family(
    combine(
        WINDOWS=(1, 2, 4, 8),
        HEAD_AXIS=(0, 1),
        num_warps=(1, 2, 4, 8),
        num_stages=(1, 2, 3),
    )
)
def wide_shifted_windows(config: Config) -> Launch:
    """Shifted windows of 7 × 7 pixels with a bias by distance, 96 images of 56 × 56, 3 heads of 32, float16 (Swin)."""
    images, side, window, heads, dim = config.get("images", 96), config.get("side", 56), 7, 3, 32
    windows = images * (side // window) ** 2
    arguments = normal(images, side, side, 3, heads, dim, dtype=_HALF), normal((2 * window - 1) ** 2, heads)
    output = empty(images, side, side, heads, dim, dtype=_HALF)
    groups = triton.cdiv(windows, config["WINDOWS"])
    grid = (groups, heads) if config["HEAD_AXIS"] else (heads, groups)
    return launch(
        _shifted_windows, grid, *arguments, output, windows, dim**-0.5,
        config=config, SIDE=side, WINDOW=window, SHIFT=3, HEADS=heads, DIM=dim,
    )  # fmt: skip


@triton.jit
def _gated_states(
    k_ptr, v_ptr, decay_ptr, state_ptr, last_ptr, length,
    HEADS: tl.constexpr, KEYS: tl.constexpr, VALUES: tl.constexpr, CHUNK: tl.constexpr,
    BLOCK_K: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    key = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    value = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    pair, step = tl.program_id(2), tl.arange(0, BLOCK_T)
    first = pair // HEADS * length * HEADS + pair % HEADS
    chunks = length // CHUNK
    entry = key[:, None] * VALUES + value[None, :]
    state = tl.zeros((BLOCK_K, BLOCK_V), tl.float32)
    for chunk in range(chunks):
        chunk_ptr = state_ptr + (pair * chunks + chunk).to(tl.int64) * KEYS * VALUES
        tl.store(chunk_ptr + entry, state.to(state_ptr.dtype.element_ty))
        end = tl.load(decay_ptr + (first + (chunk * CHUNK + CHUNK - 1) * HEADS) * KEYS + key)
        state *= tl.exp2(end)[:, None]
        for part in tl.static_range(CHUNK // BLOCK_T):
            row = first + (chunk * CHUNK + part * BLOCK_T + step) * HEADS
            k_place = row[None, :] * KEYS + key[:, None]
            k = tl.load(k_ptr + k_place)
            rest = tl.exp2(end[:, None] - tl.load(decay_ptr + k_place))
            v = tl.load(v_ptr + row[:, None] * VALUES + value[None, :])
            state = tl.dot((k.to(tl.float32) * rest).to(v.dtype), v, state)
    tl.store(last_ptr + pair * KEYS * VALUES + entry, state)


@family(
    combine(
        BLOCK_K=(32, 64, 128),
        BLOCK_V=(32, 64, 128),
        BLOCK_T=(16, 32, 64),
        num_warps=(2, 4, 8),
        num_stages=(1, 2, 3),
    )
)
def wide_gated_states(config: Config) -> Launch:
    """States before each 64 of 2,048 steps of gated linear attention, 8 × 4 heads of 256 × 512, bfloat16."""
    batch, length, heads = config.get("batch", 8), config.get("length", 2048), config.get("heads", 4)
    keys, values, chunk = config.get("keys", 256), config.get("values", 512), 64
    k, v = (normal(batch, length, heads, width, dtype=_BRAIN) for width in (keys, values))
    # Running sums over each chunk of logarithms to base 2, all below zero.
    decays = -uniform(batch, length, heads, keys) * 4
    states = empty(batch, heads, length // chunk, keys, values, dtype=_BRAIN)
    grid = keys // config["BLOCK_K"], values // config["BLOCK_V"], batch * heads
    return launch(
        _gated_states, grid, k, v, decays, states, empty(batch, heads, keys, values), length,
        config=config, HEADS=heads, KEYS=keys, VALUES=values, CHUNK=chunk,
    )  # fmt: skip
