"""Everyday: attention, and kernels of rows: norms, softmax, cross entropy, and a recurrence along a sequence.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal
from benchmarks.timing.family import Config, Launch, family, launch, listed

_HALF, _BRAIN = torch.float16, torch.bfloat16
_LOG2_E = 1.4426950408889634


@triton.jit
def _attend(
    q, k_ptr, v_ptr, highest, weight, total, first, last, length, rows, scale,
    DIM: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    dims = tl.arange(0, DIM)
    for start in range(first, last, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + keys[None, :] * DIM + dims[:, None])
        score = tl.dot(q, k) * scale
        if MASKED:
            score = tl.where(rows[:, None] >= keys[None, :], score, float("-inf"))
        new = tl.maximum(highest, tl.max(score, 1))
        power = tl.math.exp2(score - new[:, None])
        shrink = tl.math.exp2(highest - new)
        weight = weight * shrink + tl.sum(power, 1)
        total = total * shrink[:, None]
        v = tl.load(v_ptr + keys[:, None] * DIM + dims[None, :])
        total = tl.dot(power.to(v.dtype), v, total)
        highest = new
    return highest, weight, total


@triton.jit
def _flash_forward(
    q_ptr, k_ptr, v_ptr, o_ptr, sum_ptr, length, scale,
    DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    tile = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * length * DIM
    rows, dims = tile * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, DIM)
    q = tl.load(q_ptr + base + rows[:, None] * DIM + dims[None, :])
    highest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, DIM), tl.float32)
    k_ptr += base
    v_ptr += base
    whole = tile * BLOCK_M // BLOCK_N * BLOCK_N if CAUSAL else length
    highest, weight, total = _attend(
        q, k_ptr, v_ptr, highest, weight, total, 0, whole, length, rows, scale, DIM, BLOCK_N, False
    )  # fmt: skip
    if CAUSAL:
        last = (tile + 1) * BLOCK_M
        highest, weight, total = _attend(
            q, k_ptr, v_ptr, highest, weight, total, whole, last, length, rows, scale, DIM, BLOCK_N, True
        )  # fmt: skip
    out = total / weight[:, None]
    tl.store(o_ptr + base + rows[:, None] * DIM + dims[None, :], out.to(o_ptr.dtype.element_ty))
    tl.store(sum_ptr + tl.program_id(1) * length + rows, highest + tl.math.log2(weight))


@family(
    listed(
        "dim CAUSAL BLOCK_M BLOCK_N num_warps num_stages",
        (128, 0, 128, 128, 8, 2),
        (128, 1, 128, 64, 8, 3),
        (128, 0, 64, 64, 4, 3),
        (128, 1, 64, 32, 4, 4),
        (64, 0, 128, 128, 8, 3),
        (64, 1, 128, 64, 4, 3),
        (64, 0, 64, 32, 4, 2),
        (64, 1, 32, 64, 2, 1),
    )
)
def everyday_flash_forward(config: Config) -> Launch:
    """Attention, float16: 2,048 queries and keys of 2 × 32 heads of 128 or 64, causal with long rows first, or not."""
    dim, heads, length = config["dim"], config.get("heads", 64), config.get("length", 2048)
    tensors = [normal(heads, length, dim, dtype=_HALF) for _ in range(3)]
    outputs = empty(heads, length, dim, dtype=_HALF), empty(heads, length)
    grid = length // config["BLOCK_M"], heads
    return launch(_flash_forward, grid, *tensors, *outputs, length, dim**-0.5 * _LOG2_E, config=config, DIM=dim)


@triton.jit
def _paged_decode(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, part_ptr, sum_ptr, most_pages, scale,
    KEY_HEADS: tl.constexpr, GROUP: tl.constexpr, DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK_N: tl.constexpr,
    SPLITS: tl.constexpr,
):  # fmt: skip
    sequence, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(length_ptr + sequence)
    share = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_N) * BLOCK_N
    first = split * share
    last = tl.minimum(first + share, length)
    lane, dims = tl.arange(0, 16), tl.arange(0, DIM)
    query = (sequence * KEY_HEADS + head) * GROUP + lane
    q = tl.load(q_ptr + query[:, None] * DIM + dims[None, :], mask=lane[:, None] < GROUP, other=0.0)
    highest = tl.full((16,), -1e30, tl.float32)
    weight = tl.zeros((16,), tl.float32)
    total = tl.zeros((16, DIM), tl.float32)
    for start in range(first, last, BLOCK_N):
        token = start + tl.arange(0, BLOCK_N)
        seen = token < last
        page = tl.load(table_ptr + sequence * most_pages + token // PAGE, mask=seen, other=0).to(tl.int64)
        place = ((page * PAGE + token % PAGE) * KEY_HEADS + head) * DIM
        k = tl.load(k_ptr + place[None, :] + dims[:, None], mask=seen[None, :], other=0.0)
        score = tl.where(seen[None, :], tl.dot(q, k) * scale, float("-inf"))
        new = tl.maximum(highest, tl.max(score, 1))
        power = tl.math.exp2(score - new[:, None])
        shrink = tl.math.exp2(highest - new)
        v = tl.load(v_ptr + place[:, None] + dims[None, :], mask=seen[:, None], other=0.0)
        total = total * shrink[:, None] + tl.dot(power.to(v.dtype), v)
        weight = weight * shrink + tl.sum(power, 1)
        highest = new
    out = query * SPLITS + split
    kept = lane < GROUP
    some = tl.where(weight > 0.0, weight, 1.0)
    tl.store(part_ptr + out[:, None] * DIM + dims[None, :], total / some[:, None], mask=kept[:, None])
    tl.store(sum_ptr + out, tl.where(weight > 0.0, highest + tl.math.log2(some), float("-inf")), mask=kept)


@family(
    listed(
        "PAGE BLOCK_N SPLITS num_warps num_stages",
        (16, 64, 4, 4, 3),
        (16, 32, 8, 4, 2),
        (64, 64, 2, 4, 3),
        (64, 128, 4, 4, 2),
        (16, 128, 8, 8, 3),
        (16, 16, 1, 1, 2),
        (64, 32, 1, 2, 4),
        (16, 64, 16, 4, 1),
    )
)
def everyday_paged_decode(config: Config) -> Launch:
    """One query of 32 heads for each of 32 sequences of 1,000 to 4,096 tokens, 8 key heads of 128 in random pages."""
    sequences, longest, dim, group = config.get("sequences", 32), config.get("longest", 4096), 128, 4
    key_heads, most_pages = config.get("key_heads", 8), triton.cdiv(longest, config["PAGE"])
    pages = sequences * most_pages
    caches = [normal(pages, config["PAGE"], key_heads, dim, dtype=_BRAIN) for _ in range(2)]
    lengths = indices(longest - longest // 4, sequences) + (longest // 4 + 1)
    heads = sequences * key_heads * group, config["SPLITS"]
    query, table = normal(heads[0], dim, dtype=_BRAIN), indices(pages, sequences, most_pages)
    arguments = query, *caches, table, lengths, empty(*heads, dim), empty(*heads), most_pages, dim**-0.5 * _LOG2_E
    grid = sequences, key_heads, config["SPLITS"]
    return launch(_paged_decode, grid, *arguments, config=config, KEY_HEADS=key_heads, GROUP=group, DIM=dim)


@triton.jit
def _attention_dkdv(
    q_ptr, k_ptr, v_ptr, do_ptr, sum_ptr, delta_ptr, dk_ptr, dv_ptr, length, scale,
    DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head, first_key = tl.program_id(1), tl.program_id(0) * BLOCK_N
    base = head * length * DIM
    keys, dims = first_key + tl.arange(0, BLOCK_N), tl.arange(0, DIM)
    kept = base + keys[:, None] * DIM + dims[None, :]
    k, v = tl.load(k_ptr + kept), tl.load(v_ptr + kept)
    dk = tl.zeros((BLOCK_N, DIM), tl.float32)
    dv = tl.zeros((BLOCK_N, DIM), tl.float32)
    start_from = first_key // BLOCK_M * BLOCK_M if CAUSAL else 0
    for start in range(start_from, length, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        place = base + rows[:, None] * DIM + dims[None, :]
        q, do = tl.load(q_ptr + place), tl.load(do_ptr + place)
        logarithm = tl.load(sum_ptr + head * length + rows)
        delta = tl.load(delta_ptr + head * length + rows)
        power = tl.math.exp2(tl.dot(k, tl.trans(q)) * (scale * 1.4426950408889634) - logarithm[None, :])
        if CAUSAL:
            power = tl.where(rows[None, :] >= keys[:, None], power, 0.0)
        dv = tl.dot(power.to(do.dtype), do, dv)
        slope = power * (tl.dot(v, tl.trans(do)) - delta[None, :])
        dk = tl.dot(slope.to(q.dtype), q, dk)
    tl.store(dk_ptr + kept, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + kept, dv.to(dv_ptr.dtype.element_ty))


@family(
    listed(
        "dim CAUSAL BLOCK_M BLOCK_N num_warps num_stages",
        (64, 0, 64, 128, 8, 2),
        (64, 1, 64, 128, 8, 3),
        (64, 0, 32, 128, 4, 3),
        (64, 1, 64, 64, 4, 2),
        (64, 0, 128, 64, 8, 1),
        (64, 1, 32, 32, 2, 3),
        (128, 1, 64, 128, 8, 2),
        (128, 1, 32, 64, 4, 2),
    )
)
def everyday_attention_dkdv(config: Config) -> Launch:
    """Gradients of keys and values, bfloat16: 48 heads of 64 or 128, 2,048 tokens, causal or not."""
    dim, heads, length = config["dim"], config.get("heads", 48), config.get("length", 2048)
    tensors = [normal(heads, length, dim, dtype=_BRAIN) for _ in range(4)]
    # Sums about as large as those of such scores; the gradients are linear in what follows from them.
    sums = normal(heads, length) + 11.0, normal(heads, length), *(empty(heads, length, dim, dtype=_BRAIN) for _ in "kv")
    grid = length // config["BLOCK_N"], heads
    return launch(_attention_dkdv, grid, *tensors, *sums, length, dim**-0.5, config=config, DIM=dim)


@triton.jit
def _rms_residual(
    x_ptr, residual_ptr, gain_ptr, sum_ptr, y_ptr, rows_total, epsilon,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = rows[:, None] < rows_total
    if BLOCK == WIDTH:
        columns = tl.arange(0, BLOCK)
        place = rows[:, None] * WIDTH + columns[None, :]
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        x += tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
        tl.store(sum_ptr + place, x.to(sum_ptr.dtype.element_ty), mask=inside)
        scale = tl.math.rsqrt(tl.sum(x * x, 1) / WIDTH + epsilon)
        y = x * scale[:, None] * tl.load(gain_ptr + columns).to(tl.float32)[None, :]
        tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=inside)
    else:
        squares = tl.zeros((ROWS, BLOCK), tl.float32)
        for start in range(0, WIDTH, BLOCK):
            place = rows[:, None] * WIDTH + (start + tl.arange(0, BLOCK))[None, :]
            x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
            x += tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
            tl.store(sum_ptr + place, x.to(sum_ptr.dtype.element_ty), mask=inside)
            squares += x * x
        scale = tl.math.rsqrt(tl.sum(squares, 1) / WIDTH + epsilon)
        for start in range(0, WIDTH, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            place = rows[:, None] * WIDTH + columns[None, :]
            x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
            x += tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
            y = x * scale[:, None] * tl.load(gain_ptr + columns).to(tl.float32)[None, :]
            tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=inside)


@family(
    listed(
        "ROWS BLOCK num_warps num_stages",
        (1, 4096, 4, 1),
        (1, 4096, 16, 1),
        (4, 4096, 8, 1),
        (8, 4096, 16, 1),
        (1, 1024, 4, 3),
        (2, 512, 1, 2),
        (8, 256, 4, 3),
        (1, 128, 1, 1),
    )
)
def everyday_rms_residual(config: Config) -> Launch:
    """Residual add and RMS norm of 12,000 rows of 4,096, bfloat16, both stored: whole rows at once or in two passes."""
    rows, width = config.get("rows", 12000), 4096
    tensors = normal(rows, width, dtype=_BRAIN), normal(rows, width, dtype=_BRAIN), normal(width, dtype=_BRAIN)
    outputs = empty(rows, width, dtype=_BRAIN), empty(rows, width, dtype=_BRAIN)
    grid = (triton.cdiv(rows, config["ROWS"]),)
    return launch(_rms_residual, grid, *tensors, *outputs, rows, 1e-6, config=config, WIDTH=width)


@triton.jit
def _softmax_passes(
    x_ptr, y_ptr, rows_total, width, stride, ONLINE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    for first in range(tl.program_id(0) * ROWS, rows_total, tl.num_programs(0) * ROWS):
        rows = first + tl.arange(0, ROWS)
        if ONLINE:
            highest = tl.full((ROWS,), -1e30, tl.float32)
            weight = tl.zeros((ROWS,), tl.float32)
            for start in range(0, width, BLOCK):
                columns = start + tl.arange(0, BLOCK)
                inside = (rows[:, None] < rows_total) & (columns[None, :] < width)
                x = tl.load(x_ptr + rows[:, None] * stride + columns[None, :], mask=inside, other=float("-inf"))
                x = x.to(tl.float32)
                new = tl.maximum(highest, tl.max(x, 1))
                weight = weight * tl.exp(highest - new) + tl.sum(tl.exp(x - new[:, None]), 1)
                highest = new
            for start in range(0, width, BLOCK):
                columns = start + tl.arange(0, BLOCK)
                inside = (rows[:, None] < rows_total) & (columns[None, :] < width)
                place = rows[:, None] * stride + columns[None, :]
                x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
                y = tl.exp(x - highest[:, None]) / weight[:, None]
                tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=inside)
        else:
            columns = tl.arange(0, BLOCK)
            inside = (rows[:, None] < rows_total) & (columns[None, :] < width)
            place = rows[:, None] * stride + columns[None, :]
            x = tl.load(x_ptr + place, mask=inside, other=-65504.0).to(tl.float32)
            power = tl.where(inside, tl.exp(x - tl.max(x, 1)[:, None]), 0.0)
            y = power / tl.sum(power, 1)[:, None]
            tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=inside)


@family(
    listed(
        "ONLINE ROWS BLOCK programs gap num_warps num_stages",
        (0, 1, 4096, 0, 0, 4, 1),
        (0, 1, 4096, 0, 1, 8, 1),
        (0, 2, 4096, 1056, 0, 8, 2),
        (0, 4, 4096, 0, 0, 16, 1),
        (1, 1, 1024, 0, 0, 4, 3),
        (1, 4, 512, 528, 0, 4, 2),
        (1, 8, 128, 0, 1, 2, 3),
        (0, 1, 4096, 264, 1, 1, 1),
    )
)
def everyday_softmax_passes(config: Config) -> Launch:
    """Softmax of 20,000 rows of 3,072, float16: at once or in two passes, with rows apart by 3,072 or 3,073."""
    rows, width = config.get("rows", 20000), config.get("width", 3072)
    stride = width + config["gap"]
    tiles = triton.cdiv(rows, config["ROWS"])
    arguments = normal(rows, stride, dtype=_HALF), empty(rows, stride, dtype=_HALF), rows, width, stride
    return launch(_softmax_passes, (min(config["programs"] or tiles, tiles),), *arguments, config=config)


@triton.jit
def _cross_entropy(
    logits_ptr, label_ptr, loss_ptr, words, stride, factor, ignored, GRADIENT: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * stride
    label = tl.load(label_ptr + row)
    highest = -1e30
    weight = 0.0
    for start in range(0, words, BLOCK):
        word = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + word, mask=word < words, other=float("-inf")).to(tl.float32)
        new = tl.maximum(highest, tl.max(x, 0))
        weight = weight * tl.exp(highest - new) + tl.sum(tl.exp(x - new), 0)
        highest = new
    logarithm = highest + tl.log(weight)
    counted = label != ignored
    chosen = tl.load(logits_ptr + label, mask=counted, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(counted, logarithm - chosen, 0.0))
    if GRADIENT:
        tl.debug_barrier()
        scale = tl.where(counted, factor, 0.0)
        for start in range(0, words, BLOCK):
            word = start + tl.arange(0, BLOCK)
            x = tl.load(logits_ptr + word, mask=word < words, other=float("-inf")).to(tl.float32)
            slope = tl.exp(x - logarithm) - tl.where(word == label, 1.0, 0.0)
            tl.store(logits_ptr + word, (slope * scale).to(logits_ptr.dtype.element_ty), mask=word < words)


@family(
    listed(
        "GRADIENT BLOCK num_warps num_stages",
        (1, 4096, 8, 1),
        (1, 16384, 16, 1),
        (1, 1024, 4, 3),
        (1, 32768, 16, 1),
        (0, 2048, 4, 3),
        (0, 8192, 16, 2),
        (0, 512, 1, 2),
        (1, 256, 2, 1),
    )
)
def everyday_cross_entropy(config: Config) -> Launch:
    """Losses of 4,096 tokens among 50,257 words, bfloat16 rows without alignment, and gradients in place or none."""
    tokens, words = config.get("tokens", 4096), config.get("words", 50257)
    labels = indices(words, tokens, dtype=torch.int64)
    labels[::17] = -100
    arguments = normal(tokens, words, dtype=_BRAIN) * 3, labels, empty(tokens), words, words, 1 / tokens, -100
    return launch(_cross_entropy, (tokens,), *arguments, config=config)


@triton.jit
def _after(left_decay, left, right_decay, right):
    return left_decay * right_decay, right_decay * left + right


@triton.jit
def _recurrence(
    x_ptr, gate_ptr, h_ptr, last_ptr, length, width, CHUNK: tl.constexpr, BLOCK: tl.constexpr, SCAN: tl.constexpr
):
    channels = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1) * length * width
    state = tl.zeros((BLOCK,), tl.float32)
    if SCAN:
        steps = tl.arange(0, CHUNK)
        for start in range(0, length, CHUNK):
            place = base + (start + steps)[:, None] * width + channels[None, :]
            x = tl.load(x_ptr + place).to(tl.float32)
            decay = tl.sigmoid(tl.load(gate_ptr + place).to(tl.float32))
            through, inner = tl.associative_scan((decay, (1.0 - decay) * x), 0, _after)
            h = through * state[None, :] + inner
            tl.store(h_ptr + place, h.to(h_ptr.dtype.element_ty))
            state = tl.sum(tl.where((steps == CHUNK - 1)[:, None], h, 0.0), 0)
    else:
        for time in tl.range(0, length, num_stages=CHUNK):
            place = base + time * width + channels
            x = tl.load(x_ptr + place).to(tl.float32)
            decay = tl.sigmoid(tl.load(gate_ptr + place).to(tl.float32))
            state = decay * state + (1.0 - decay) * x
            tl.store(h_ptr + place, state.to(h_ptr.dtype.element_ty))
    tl.store(last_ptr + tl.program_id(1) * width + channels, state)


@family(
    listed(
        "SCAN CHUNK BLOCK num_warps",
        (1, 64, 64, 4),
        (1, 128, 32, 4),
        (1, 32, 32, 1),
        (1, 16, 128, 8),
        (1, 256, 16, 8),
        (0, 4, 64, 1),
        (0, 1, 128, 2),
        (0, 3, 256, 4),
    )
)
def everyday_recurrence(config: Config) -> Launch:
    """A gated linear recurrence over 1,024 steps of 12 × 2,560 channels, bfloat16: scans of chunks or step by step."""
    batch, length, width = config.get("batch", 12), config.get("length", 1024), config.get("width", 2560)
    tensors = [normal(batch, length, width, dtype=_BRAIN) for _ in range(2)]
    arguments = *tensors, empty(batch, length, width, dtype=_BRAIN), empty(batch, width), length, width
    return launch(_recurrence, (width // config["BLOCK"], batch), *arguments, config=config)
