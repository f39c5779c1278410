"""Review: softmax, a norm's gradient, the largest of rows, elementwise chains, a convolution and an optimiser.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, family, launch, listed

_HALF, _BRAIN, _BYTE_FLOAT = torch.float16, torch.bfloat16, torch.float8_e4m3fn


@triton.jit
def _softmax_rows(
    x_ptr, y_ptr, n_rows, n_cols, stride_x,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, ONCE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    cols = tl.arange(0, BLOCK)
    for first in tl.range(tl.program_id(0) * ROWS, n_rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        rows = first + tl.arange(0, ROWS)
        x_rows, y_rows = x_ptr + rows[:, None] * stride_x, y_ptr + rows[:, None] * n_cols
        live = rows[:, None] < n_rows
        if ONCE:
            mask = live & (cols[None, :] < n_cols)
            x = tl.load(x_rows + cols[None, :], mask=mask, other=float("-inf")).to(tl.float32)
            e = tl.exp(x - tl.max(x, 1)[:, None])
            y = e / tl.sum(e, 1)[:, None]
            tl.store(y_rows + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)
        else:
            peak = tl.full((ROWS,), -1e30, tl.float32)
            norm = tl.zeros((ROWS,), tl.float32)
            for start in range(0, n_cols, BLOCK):
                mask = live & (start + cols[None, :] < n_cols)
                x = tl.load(x_rows + start + cols[None, :], mask=mask, other=float("-inf")).to(tl.float32)
                new_peak = tl.maximum(peak, tl.max(x, 1))
                norm = norm * tl.exp(peak - new_peak) + tl.sum(tl.exp(x - new_peak[:, None]), 1)
                peak = new_peak
            for start in range(0, n_cols, BLOCK):
                mask = live & (start + cols[None, :] < n_cols)
                x = tl.load(x_rows + start + cols[None, :], mask=mask, eviction_policy="evict_first")
                y = tl.exp(x.to(tl.float32) - peak[:, None]) / norm[:, None]
                tl.store(y_rows + start + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


@family(
    listed(
        "ROWS BLOCK ONCE STAGES programs num_warps",
        (1, 8192, 1, 1, 8000, 8),
        (1, 8192, 1, 2, 264, 16),
        (1, 8192, 1, 1, 132, 4),
        (2, 8192, 1, 1, 4000, 16),
        (1, 1024, 0, 1, 8000, 4),
        (4, 512, 0, 1, 528, 2),
        (1, 8192, 1, 1, 1056, 1),
        (16, 128, 0, 1, 500, 8),
    )
)
def review_softmax_rows(config: Config) -> Launch:
    """8,000 rows of 6,000 float16, apart by 6,144: whole rows or in two passes, a program for each or persistent."""
    rows, columns = config.get("rows", 8000), config.get("columns", 6000)
    x, y = normal(rows, columns + 144, dtype=_HALF), empty(rows, columns, dtype=_HALF)
    grid = (min(config["programs"], triton.cdiv(rows, config["ROWS"])),)
    return launch(_softmax_rows, grid, x, y, rows, columns, columns + 144, config=config)


@triton.jit
def _norm_gradient(
    x_ptr, dy_ptr, gain_ptr, mean_ptr, rstd_ptr, dx_ptr, dgain_ptr, dbias_ptr, n_rows, width,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, ATOMIC: tl.constexpr,
):  # fmt: skip
    cols = tl.arange(0, BLOCK)
    inside = cols < width
    gain = tl.load(gain_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    dgain = tl.zeros((BLOCK,), tl.float32)
    dbias = tl.zeros((BLOCK,), tl.float32)
    for first in range(tl.program_id(0) * ROWS, n_rows, tl.num_programs(0) * ROWS):
        rows = first + tl.arange(0, ROWS)
        place = rows[:, None] * width + cols[None, :]
        mask = (rows[:, None] < n_rows) & inside[None, :]
        x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + place, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + rows, mask=rows < n_rows, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=rows < n_rows, other=0.0)
        unit = tl.where(mask, (x - mean[:, None]) * rstd[:, None], 0.0)
        scaled = dy * gain[None, :]
        along = tl.sum(unit * scaled, 1) / width
        average = tl.sum(scaled, 1) / width
        dx = (scaled - unit * along[:, None] - average[:, None]) * rstd[:, None]
        tl.store(dx_ptr + place, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dgain += tl.sum(dy * unit, 0)
        dbias += tl.sum(dy, 0)
    if ATOMIC:
        tl.atomic_add(dgain_ptr + cols, dgain, mask=inside, sem="relaxed")
        tl.atomic_add(dbias_ptr + cols, dbias, mask=inside, sem="relaxed")
    else:
        tl.store(dgain_ptr + tl.program_id(0) * width + cols, dgain, mask=inside)
        tl.store(dbias_ptr + tl.program_id(0) * width + cols, dbias, mask=inside)


@family(
    listed(
        "BLOCK ROWS ATOMIC programs num_warps num_stages",
        (4096, 1, 0, 264, 8, 1),
        (4096, 1, 0, 132, 16, 3),
        (4096, 2, 0, 528, 16, 1),
        (4096, 1, 1, 1056, 4, 2),
        (4096, 4, 0, 132, 4, 1),
        (4096, 1, 1, 9000, 4, 1),
        (4096, 1, 0, 32, 8, 4),
        (4096, 1, 0, 528, 1, 1),
    )
)
def review_norm_gradient(config: Config) -> Launch:
    """Backward of layer norm, 9,000 rows of 3,584 bfloat16: sums for the parameters by program, or added atomically."""
    rows, width = config.get("rows", 9000), config.get("width", 3584)
    programs = min(config["programs"], triton.cdiv(rows, config["ROWS"]))
    tensors = *(normal(rows, width, dtype=_BRAIN) for _ in range(2)), normal(width, dtype=_BRAIN)
    statistics, parts = (normal(rows) / 8, uniform(rows) + 0.5), 1 if config["ATOMIC"] else programs
    outputs = empty(rows, width, dtype=_BRAIN), zeros(parts, width), zeros(parts, width)
    return launch(_norm_gradient, (programs,), *tensors, *statistics, *outputs, rows, width, config=config)


@triton.jit
def _largest_of_rows(
    x_ptr, value_ptr, place_ptr, n_rows,
    N: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = rows < n_rows
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=live[:, None], other=float("-inf"))
    if PACKED:
        # Signed integers in the order of the floats, with the place below: one maximum finds both.
        bits = x.to(tl.int32, bitcast=True)
        ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        keys = (ordered.to(tl.int64) << 32) | (N - 1 - cols)[None, :].to(tl.int64)
        for rank in range(K):
            best = tl.max(keys, 1)
            keys = tl.where(keys == best[:, None], -0x7FFFFFFFFFFFFFFF, keys)
            top = (best >> 32).to(tl.int32)
            value = (top ^ ((top >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
            tl.store(value_ptr + rows * K + rank, value, mask=live)
            tl.store(place_ptr + rows * K + rank, N - 1 - (best & 0xFFFFFFFF).to(tl.int32), mask=live)
    else:
        for rank in range(K):
            value, place = tl.max(x, 1, return_indices=True)
            x = tl.where(cols[None, :] == place[:, None], float("-inf"), x)
            tl.store(value_ptr + rows * K + rank, value, mask=live)
            tl.store(place_ptr + rows * K + rank, place, mask=live)


@family(
    listed(
        "ROWS PACKED num_warps",
        (1, 0, 4),
        (1, 1, 4),
        (1, 0, 1),
        (4, 0, 8),
        (2, 1, 16),
        (1, 1, 1),
        (8, 0, 16),
        (1, 0, 16),
    )
)
def review_largest_of_rows(config: Config) -> Launch:
    """The 6 largest of 2,048 float32 and their places, 20,000 rows, in turn: with the place in the key or not."""
    rows, width, k = config.get("rows", 20000), 2048, 6
    outputs = empty(rows, k), empty(rows, k, dtype=torch.int32)
    grid = (triton.cdiv(rows, config["ROWS"]),)
    return launch(_largest_of_rows, grid, normal(rows, width), *outputs, rows, config=config, N=width, K=k)


@triton.jit
def _swiglu_float8(
    x_ptr, y_ptr, scale_ptr, tokens, width,
    TOKENS: tl.constexpr, GROUPS: tl.constexpr, GROUP: tl.constexpr, FAST_SIGMOID: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(1) * TOKENS + tl.arange(0, TOKENS)
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    inner = tl.arange(0, GROUP)
    column = group[:, None] * GROUP + inner[None, :]
    mask = (token < tokens)[:, None, None] & (column < width)[None, :, :]
    row = x_ptr + token[:, None, None] * (2 * width)
    gate = tl.load(row + column[None, :, :], mask=mask, other=0.0).to(tl.float32)
    up = tl.load(row + width + column[None, :, :], mask=mask, other=0.0).to(tl.float32)
    if FAST_SIGMOID:
        y = gate * up * tl.fdiv(1.0, 1.0 + tl.exp2(gate * -1.4426950408889634))
    else:
        y = gate * tl.sigmoid(gate) * up
    scale = tl.maximum(tl.max(tl.abs(y), 2), 1e-10) / 448.0
    out = (y / scale[:, :, None]).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + token[:, None, None] * width + column[None, :, :], out, mask=mask)
    groups = width // GROUP
    kept = (token < tokens)[:, None] & (group < groups)[None, :]
    tl.store(scale_ptr + token[:, None] * groups + group[None, :], scale, mask=kept)


@family(
    listed(
        "TOKENS GROUPS FAST_SIGMOID num_warps",
        (1, 8, 0, 4),
        (1, 1, 0, 1),
        (4, 4, 1, 4),
        (16, 1, 0, 8),
        (1, 64, 1, 16),
        (1, 16, 1, 1),
        (64, 2, 0, 4),
        (1, 2, 1, 8),
    )
)
def review_swiglu_float8(config: Config) -> Launch:
    """SwiGLU of 6,000 tokens of 2 × 8,192 bfloat16 to float8 with a scale for each 128."""
    tokens, width = config.get("tokens", 6000), config.get("width", 8192)
    arguments = normal(tokens, 2 * width, dtype=_BRAIN), empty(tokens, width, dtype=_BYTE_FLOAT)
    grid = triton.cdiv(width // 128, config["GROUPS"]), triton.cdiv(tokens, config["TOKENS"])
    scales = empty(tokens, width // 128)
    return launch(_swiglu_float8, grid, *arguments, scales, tokens, width, config=config, GROUP=128)


@triton.jit
def _causal_convolution(
    x_ptr, w_ptr, bias_ptr, y_ptr, length, channels,
    TOKENS: tl.constexpr, CHANNELS: tl.constexpr, ROLL: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    first = tl.program_id(1) * TOKENS
    base = tl.program_id(2).to(tl.int64) * length * channels
    x_ptr += base
    y_ptr += base
    bias = tl.load(bias_ptr + channel).to(tl.float32)
    w0 = tl.load(w_ptr + channel * 4).to(tl.float32)
    w1 = tl.load(w_ptr + channel * 4 + 1).to(tl.float32)
    w2 = tl.load(w_ptr + channel * 4 + 2).to(tl.float32)
    w3 = tl.load(w_ptr + channel * 4 + 3).to(tl.float32)
    none = tl.zeros((CHANNELS,), tl.int1)
    if ROLL:
        # The last three tokens stay in registers.
        early = x_ptr + first * channels + channel
        x0 = tl.load(early - 3 * channels, mask=none | (first >= 3), other=0.0).to(tl.float32)
        x1 = tl.load(early - 2 * channels, mask=none | (first >= 2), other=0.0).to(tl.float32)
        x2 = tl.load(early - channels, mask=none | (first >= 1), other=0.0).to(tl.float32)
        for token in range(first, tl.minimum(first + TOKENS, length)):
            x3 = tl.load(x_ptr + token * channels + channel).to(tl.float32)
            y = bias + x0 * w0 + x1 * w1 + x2 * w2 + x3 * w3
            y = y * tl.sigmoid(y)
            tl.store(y_ptr + token * channels + channel, y.to(y_ptr.dtype.element_ty))
            x0, x1, x2 = x1, x2, x3
    else:
        token = first + tl.arange(0, TOKENS)
        place = token[:, None] * channels + channel[None, :]
        live = (token < length)[:, None]
        y = tl.zeros((TOKENS, CHANNELS), tl.float32) + bias[None, :]
        for tap in tl.static_range(4):
            back = 3 - tap
            x = tl.load(x_ptr + place - back * channels, mask=live & (token >= back)[:, None], other=0.0)
            weight = w0 if tap == 0 else (w1 if tap == 1 else (w2 if tap == 2 else w3))
            y += x.to(tl.float32) * weight[None, :]
        y = y * tl.sigmoid(y)
        tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=live)


@family(
    listed(
        "TOKENS CHANNELS ROLL num_warps num_stages",
        (16, 256, 0, 4, 1),
        (32, 64, 0, 4, 1),
        (64, 32, 0, 2, 1),
        (128, 256, 1, 2, 4),
        (16, 1024, 1, 4, 2),
        (512, 128, 1, 4, 3),
        (128, 8, 0, 4, 1),
        (4, 1024, 0, 16, 1),
    )
)
def review_causal_convolution(config: Config) -> Launch:
    """Causal convolution of 4 taps with SiLU, 6 × 3,000 tokens of 4,096 channels last, bfloat16: a tile or a loop."""
    batch, length, channels = config.get("batch", 6), config.get("length", 3000), config.get("channels", 4096)
    tensors = normal(batch, length, channels, dtype=_BRAIN), normal(channels, 4, dtype=_BRAIN)
    arguments = *tensors, normal(channels, dtype=_BRAIN), empty(batch, length, channels, dtype=_BRAIN), length, channels
    grid = channels // config["CHANNELS"], triton.cdiv(length, config["TOKENS"]), batch
    return launch(_causal_convolution, grid, *arguments, config=config)


@triton.jit
def _adamw(
    weight_ptr, copy_ptr, slope_ptr, first_ptr, second_ptr, n, rate, beta1, beta2, epsilon, decay, correct1, correct2,
    BLOCK: tl.constexpr, STREAM: tl.constexpr,
):  # fmt: skip
    policy: tl.constexpr = "evict_first" if STREAM else ""
    cache: tl.constexpr = ".cs" if STREAM else ""
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        place = start + tl.arange(0, BLOCK)
        mask = place < n
        slope = tl.load(slope_ptr + place, mask=mask, eviction_policy=policy).to(tl.float32)
        weight = tl.load(weight_ptr + place, mask=mask, eviction_policy=policy)
        first = tl.load(first_ptr + place, mask=mask, eviction_policy=policy).to(tl.float32)
        second = tl.load(second_ptr + place, mask=mask, eviction_policy=policy)
        first = first * beta1 + slope * (1.0 - beta1)
        second = second * beta2 + slope * slope * (1.0 - beta2)
        weight = weight * (1.0 - rate * decay)
        weight -= rate * (first * correct1) / (tl.sqrt(second * correct2) + epsilon)
        tl.store(first_ptr + place, first.to(first_ptr.dtype.element_ty), mask=mask, cache_modifier=cache)
        tl.store(second_ptr + place, second, mask=mask, cache_modifier=cache)
        tl.store(weight_ptr + place, weight, mask=mask, cache_modifier=cache)
        tl.store(copy_ptr + place, weight.to(copy_ptr.dtype.element_ty), mask=mask, cache_modifier=cache)


@family(
    listed(
        "BLOCK STREAM programs num_warps num_stages",
        (1024, 0, 0, 4, 1),
        (4096, 1, 0, 8, 1),
        (1024, 1, 1056, 4, 3),
        (2048, 0, 132, 8, 2),
        (128, 0, 0, 4, 1),
        (8192, 0, 264, 16, 4),
        (64, 1, 0, 1, 1),
        (16384, 1, 0, 4, 1),
    )
)
def review_adamw(config: Config) -> Launch:
    """AdamW of 25,000,000 float32 weights with a bfloat16 copy, bfloat16 gradients and first moments."""
    n = config.get("n", 25000000)
    tensors = normal(n), empty(n, dtype=_BRAIN), normal(n, dtype=_BRAIN), normal(n, dtype=_BRAIN), uniform(n)
    blocks = triton.cdiv(n, config["BLOCK"])
    grid = (min(config["programs"] or blocks, blocks),)
    return launch(_adamw, grid, *tensors, n, 1e-3, 0.9, 0.999, 1e-8, 0.01, 1.2, 1.1, config=config)


@triton.jit
def _bias_dropout_add(
    x_ptr, bias_ptr, residual_ptr, y_ptr, n, width, p, seed,
    BLOCK: tl.constexpr, FOUR: tl.constexpr,
):  # fmt: skip
    if FOUR:
        # One call of Philox gives four words: for four quarters of the block.
        QUARTER: tl.constexpr = BLOCK // 4
        lane = tl.arange(0, QUARTER)
        words = tl.rand4x(seed, tl.program_id(0) * QUARTER + lane)
        for quarter in tl.static_range(4):
            place = tl.program_id(0) * BLOCK + quarter * QUARTER + lane
            mask = place < n
            x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
            x += tl.load(bias_ptr + place % width).to(tl.float32)
            kept = tl.where(words[quarter] > p, x / (1.0 - p), 0.0)
            y = kept + tl.load(residual_ptr + place, mask=mask, other=0.0).to(tl.float32)
            tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=mask)
    else:
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = place < n
        x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
        x += tl.load(bias_ptr + place % width).to(tl.float32)
        kept = tl.where(tl.rand(seed, place) > p, x / (1.0 - p), 0.0)
        y = kept + tl.load(residual_ptr + place, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=mask)


@family(
    listed(
        "BLOCK FOUR num_warps",
        (1024, 0, 4),
        (4096, 1, 4),
        (1024, 1, 8),
        (8192, 0, 4),
        (512, 0, 16),
        (64, 0, 1),
        (16384, 1, 16),
        (128, 1, 1),
    )
)
def review_bias_dropout_add(config: Config) -> Launch:
    """Bias, dropout by Philox and a residual, 10,000 × 5,120 bfloat16: a word of four used, or all of them."""
    rows, width = config.get("rows", 10000), config.get("width", 5120)
    x, residual, y = (normal(rows, width, dtype=_BRAIN) for _ in range(3))
    grid = (triton.cdiv(rows * width, config["BLOCK"]),)
    arguments = x, normal(width, dtype=_BRAIN), residual, y, rows * width, width, 0.1, 1234
    return launch(_bias_dropout_add, grid, *arguments, config=config)
