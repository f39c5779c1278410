"""Fresh: products of matrices with something around them that is more than a change of sizes.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations

import random

import torch
import triton
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF, _BRAIN = torch.float16, torch.bfloat16


@triton.jit
def _grouped(
    a, b, out, starts, columns, depth,
    GROUPS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    done = 0
    across = tl.cdiv(columns, BLOCK_N)
    for group in range(GROUPS):
        first = tl.load(starts + group)
        after = tl.load(starts + group + 1)
        tiles = tl.cdiv(after - first, BLOCK_M) * across
        while tile < done + tiles:
            row = first + (tile - done) // across * BLOCK_M + tl.arange(0, BLOCK_M)
            column = (tile - done) % across * BLOCK_N + tl.arange(0, BLOCK_N)
            inner = tl.arange(0, BLOCK_K)
            right = b + group.to(tl.int64) * columns * depth
            sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
            for start in range(0, depth, BLOCK_K):
                of_a = row[:, None] * depth + start + inner[None, :]
                of_b = (start + inner[:, None]) * columns + column[None, :]
                sums = tl.dot(tl.load(a + of_a, row[:, None] < after, other=0.0), tl.load(right + of_b), sums)
            tl.store(
                out + row[:, None] * columns + column[None, :], sums.to(out.dtype.element_ty), row[:, None] < after
            )
            tile += tl.num_programs(0)
        done += tiles


@family(
    combine(
        8,
        BLOCK_M=(64, 128),
        BLOCK_N=(64, 128, 256),
        BLOCK_K=(32, 64),
        programs=(132, 264),
        num_warps=(4, 8),
        num_stages=(2, 3, 4),
    )
)
def fresh_grouped(config: Config) -> Launch:
    """16 bfloat16 products of 10 to 1,000 rows by 2,048 × 2,048 in one launch, by a fixed number of programs."""
    most, columns, depth = config.get("most", 1000), config.get("columns", 2048), config.get("depth", 2048)
    rows = [random.Random(number).randrange(10, most) for number in range(16)]
    starts = [sum(rows[:number]) for number in range(17)]
    a, b = normal(starts[-1], depth, dtype=_BRAIN), normal(16, depth, columns, dtype=_BRAIN)
    places = torch.tensor(starts, device="cuda", dtype=torch.int32)
    arguments = a, b, empty(starts[-1], columns, dtype=_BRAIN), places, columns, depth
    return launch(_grouped, (config["programs"],), *arguments, config=config, GROUPS=16)


@triton.jit
def _stream_k(
    a, b, out, rows, columns, depth,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    steps = tl.cdiv(depth, BLOCK_K)
    across = tl.cdiv(columns, BLOCK_N)
    every = tl.cdiv(rows, BLOCK_M) * across * steps
    share = tl.cdiv(every, tl.num_programs(0))
    place = tl.program_id(0) * share
    last = tl.minimum(place + share, every)
    while place < last:
        tile = place // steps
        until = tl.minimum((tile + 1) * steps, last)
        row = tile // across * BLOCK_M + tl.arange(0, BLOCK_M)
        column = tile % across * BLOCK_N + tl.arange(0, BLOCK_N)
        inner = place % steps * BLOCK_K + tl.arange(0, BLOCK_K)
        left = a + row[:, None] * depth + inner[None, :]
        right = b + inner[:, None] * columns + column[None, :]
        sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for _ in range(place, until):
            sums = tl.dot(tl.load(left), tl.load(right), sums)
            left += BLOCK_K
            right += BLOCK_K * columns
        into = out + row[:, None] * columns + column[None, :]
        if until - place == steps:
            tl.store(into, sums)
        else:
            tl.atomic_add(into, sums, sem="relaxed")
        place = until


@family(
    combine(
        8,
        BLOCK_M=(64, 128),
        BLOCK_N=(64, 128),
        BLOCK_K=(32, 64),
        programs=(132, 264, 396),
        num_warps=(4, 8),
        num_stages=(2, 3),
    )
)
def fresh_stream_k(config: Config) -> Launch:
    """float16 product of 1,536 × 1,792 × 8,192 whose steps are dealt evenly to programs (stream-K)."""
    rows, columns, depth = config.get("rows", 1536), config.get("columns", 1792), config.get("depth", 8192)
    tensors = normal(rows, depth, dtype=_HALF), normal(depth, columns, dtype=_HALF), zeros(rows, columns)
    return launch(_stream_k, (config["programs"],), *tensors, rows, columns, depth, config=config)


@triton.jit
def _gated_experts(
    x, weights, order, experts, out, pairs, width, depth,
    CHOICES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pair = tl.load(order + tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M))
    expert = tl.load(experts + tl.program_id(1)).to(tl.int64)
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    mask = (pair < pairs)[:, None]
    left = x + (pair // CHOICES)[:, None] * depth + inner[None, :]
    right = weights + expert * 2 * width * depth + column[None, :] * depth + inner[:, None]
    gate = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    up = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, depth, BLOCK_K):
        token = tl.load(left + start, mask, other=0.0)
        gate = tl.dot(token, tl.load(right + start), gate)
        up = tl.dot(token, tl.load(right + width * depth + start), up)
    value = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out + pair[:, None] * width + column[None, :], value.to(out.dtype.element_ty), mask)


@family(
    combine(8, BLOCK_M=(16, 32), BLOCK_N=(32, 64, 128), BLOCK_K=(64, 128), num_warps=(2, 4, 8), num_stages=(2, 3, 4))
)
def fresh_gated_experts(config: Config) -> Launch:
    """128 tokens, 8 of 64 experts each, sorted and padded to blocks: SiLU(x g) (x u) of 768 from 2,048, bfloat16."""
    tokens, width, depth = config.get("tokens", 128), config.get("width", 768), config.get("depth", 2048)
    choices, count, block = 8, 64, config["BLOCK_M"]
    drawn = random.Random(35)
    chosen: list[list[int]] = [[] for _ in range(count)]
    for token in range(tokens):
        for choice, expert in enumerate(drawn.sample(range(count), choices)):
            chosen[expert].append(token * choices + choice)
    order, experts = [], []
    for expert, pairs in enumerate(chosen):
        blocks = triton.cdiv(len(pairs), block)
        order += pairs + [tokens * choices] * (blocks * block - len(pairs))
        experts += [expert] * blocks
    places = [torch.tensor(values, device="cuda", dtype=torch.int32) for values in (order, experts)]
    x, weights = normal(tokens, depth, dtype=_BRAIN), normal(count, 2, width, depth, dtype=_BRAIN)
    out = empty(tokens * choices, width, dtype=_BRAIN)
    arguments = x, weights, *places, out, tokens * choices, width, depth
    return launch(
        _gated_experts, (width // config["BLOCK_N"], len(experts)), *arguments, config=config, CHOICES=choices
    )


@triton.jit
def _block_scaled(
    a, b, a_scales, b_scales, out, rows, columns, depth,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, GROUP)
    groups = depth // GROUP
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for group in range(groups):
        left = tl.load(a + row[:, None] * depth + group * GROUP + inner[None, :])
        right = tl.load(b + column[None, :] * depth + group * GROUP + inner[:, None])
        scale = tl.load(a_scales + row * groups + group)
        scale *= tl.load(b_scales + tl.program_id(1) * BLOCK_N // GROUP * groups + group)
        sums += tl.dot(left, right) * scale[:, None]
    tl.store(out + row[:, None] * columns + column[None, :], sums.to(out.dtype.element_ty))


@family(combine(8, BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128), num_warps=(4, 8), num_stages=(2, 3, 4)))
def fresh_block_scaled(config: Config) -> Launch:
    """float8 product of 4,096 × 4,096 × 4,096, scales for 1 × 128 and 128 × 128 elements, in bfloat16."""
    rows, columns, depth = config.get("rows", 4096), config.get("columns", 4096), config.get("depth", 4096)
    a, b = normal(rows, depth, dtype=torch.float8_e4m3fn), normal(columns, depth, dtype=torch.float8_e4m3fn)
    scales = uniform(rows, depth // 128), uniform(columns // 128, depth // 128)
    arguments = a, b, *scales, empty(rows, columns, dtype=_BRAIN), rows, columns, depth
    return launch(
        _block_scaled, (rows // config["BLOCK_M"], columns // config["BLOCK_N"]), *arguments, config=config, GROUP=128
    )


@triton.jit
def _gated_product(
    x, gates, ups, out, columns, depth,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    gate = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    up = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, depth, BLOCK_K):
        left = tl.load(x + row[:, None] * depth + start + inner[None, :])
        places = (start + inner[:, None]) * columns + column[None, :]
        gate = tl.dot(left, tl.load(gates + places), gate)
        up = tl.dot(left, tl.load(ups + places), up)
    value = gate * tl.sigmoid(gate) * up
    tl.store(out + row[:, None] * columns + column[None, :], value.to(out.dtype.element_ty))


@family(combine(8, BLOCK_M=(64, 128), BLOCK_N=(64, 128), BLOCK_K=(32, 64), num_warps=(4, 8), num_stages=(1, 2, 3, 4)))
def fresh_gated_product(config: Config) -> Launch:
    """SiLU(x g) (x u) with two products of 2,048 × 5,632 × 2,048 in one loop, float16."""
    rows, columns, depth = config.get("rows", 2048), config.get("columns", 5632), config.get("depth", 2048)
    weights = [normal(depth, columns, dtype=_HALF) * 0.02 for _ in range(2)]
    arguments = normal(rows, depth, dtype=_HALF), *weights, empty(rows, columns, dtype=_HALF), columns, depth
    return launch(_gated_product, (rows // config["BLOCK_M"], columns // config["BLOCK_N"]), *arguments, config=config)


@triton.jit
def _gram(x, out, n, depth, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    number = tl.program_id(0)
    down = ((tl.sqrt(8.0 * number + 1.0) - 1.0) * 0.5).to(tl.int32)
    down = tl.where(down * (down + 1) // 2 > number, down - 1, down)
    down = tl.where((down + 1) * (down + 2) // 2 <= number, down + 1, down)
    across = number - down * (down + 1) // 2
    row = down * BLOCK + tl.arange(0, BLOCK)
    column = across * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK_K)
    sums = tl.zeros([BLOCK, BLOCK], tl.float32)
    for start in range(0, depth, BLOCK_K):
        left = tl.load(x + row[:, None] * depth + start + inner[None, :])
        right = tl.load(x + column[:, None] * depth + start + inner[None, :])
        sums = tl.dot(left, tl.trans(right), sums)
    value = sums.to(out.dtype.element_ty)
    tl.store(out + row[:, None] * n + column[None, :], value)
    if down != across:
        tl.store(out + column[:, None] * n + row[None, :], tl.trans(value))


@family(combine(8, BLOCK=(32, 64, 128), BLOCK_K=(32, 64, 128), num_warps=(4, 8), num_stages=(2, 3, 4)))
def fresh_gram(config: Config) -> Launch:
    """x xᵀ of 4,096 × 2,048 bfloat16: tiles of the lower triangle, each stored twice."""
    n, depth = config.get("n", 4096), config.get("depth", 2048)
    tiles = n // config["BLOCK"]
    arguments = normal(n, depth, dtype=_BRAIN), empty(n, n, dtype=_BRAIN), n, depth
    return launch(_gram, (tiles * (tiles + 1) // 2,), *arguments, config=config)


@triton.jit
def _product_entropy(
    x, weights, labels, sums, chosen, words, depth,
    SPLITS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, BLOCK_K)
    label = tl.load(labels + row)
    share = words // SPLITS
    first = tl.program_id(1) * share
    peak = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    target = tl.zeros([BLOCK_M], tl.float32)
    for begin in range(first, first + share, BLOCK_N):
        word = begin + tl.arange(0, BLOCK_N)
        logits = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for start in range(0, depth, BLOCK_K):
            left = tl.load(x + row[:, None] * depth + start + inner[None, :])
            right = tl.load(weights + word[None, :] * depth + start + inner[:, None])
            logits = tl.dot(left, right, logits)
        target += tl.sum(tl.where(word[None, :] == label[:, None], logits, 0.0), 1)
        above = tl.maximum(peak, tl.max(logits, 1))
        total = total * tl.exp(peak - above) + tl.sum(tl.exp(logits - above[:, None]), 1)
        peak = above
    tl.store(sums + row * SPLITS + tl.program_id(1), peak + tl.log(total))
    tl.store(chosen + row, target, (label >= first) & (label < first + share))


@family(
    combine(
        8,
        SPLITS=(8, 32),
        BLOCK_M=(64, 128),
        BLOCK_N=(64, 128, 256),
        BLOCK_K=(32, 64),
        num_warps=(4, 8),
        num_stages=(2, 3),
    )
)
def fresh_product_entropy(config: Config) -> Launch:
    """Cross entropy of 1,024 tokens over 32,768 words of 2,048 weights each, without storing logits, bfloat16."""
    tokens, words, depth = config.get("tokens", 1024), config.get("words", 32768), config.get("depth", 2048)
    tensors = normal(tokens, depth, dtype=_BRAIN), normal(words, depth, dtype=_BRAIN) * 0.02, indices(words, tokens)
    outputs = empty(tokens, config["SPLITS"]), empty(tokens)
    grid = tokens // config["BLOCK_M"], config["SPLITS"]
    return launch(_product_entropy, grid, *tensors, *outputs, words, depth, config=config)


@triton.jit
def _pair_features(
    x, out, batch, COUNT: tl.constexpr, PADDED: tl.constexpr, WIDTH: tl.constexpr, SAMPLES: tl.constexpr
):
    number = tl.arange(0, PADDED)
    column = tl.arange(0, WIDTH)
    low = number[:, None] > number[None, :]
    place = number[:, None] * (number[:, None] - 1) // 2 + number[None, :]
    for turn in range(SAMPLES):
        sample = (tl.program_id(0) * SAMPLES + turn).to(tl.int64)
        rows = x + (sample * COUNT + number[:, None]) * WIDTH + column[None, :]
        feature = tl.load(rows, number[:, None] < COUNT, other=0.0)
        pairs = tl.dot(feature, tl.trans(feature)).to(out.dtype.element_ty)
        tl.store(out + sample * (COUNT * (COUNT - 1) // 2) + place, pairs, low & (number[:, None] < COUNT))


@family(combine(8, SAMPLES=(1, 4, 16), num_warps=(1, 2, 4), num_stages=(1, 3)))
def fresh_pair_features(config: Config) -> Launch:
    """Products of all pairs of 27 features of 64 for each of 65,536 samples, lower triangles stored, bfloat16."""
    batch = config.get("batch", 65536)
    tensors = normal(batch, 27, 64, dtype=_BRAIN), empty(batch, 351, dtype=_BRAIN)
    constants = {"COUNT": 27, "PADDED": 32, "WIDTH": 64}
    return launch(_pair_features, (batch // config["SAMPLES"],), *tensors, batch, config=config, **constants)


@triton.jit
def _complex(
    real, imaginary, other_real, other_imaginary, out_real, out_imaginary, columns, depth,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    reals = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    imaginaries = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, depth, BLOCK_K):
        places = row[:, None] * depth + start + inner[None, :]
        others = (start + inner[:, None]) * columns + column[None, :]
        a, b = tl.load(real + places), tl.load(imaginary + places)
        c, d = tl.load(other_real + others), tl.load(other_imaginary + others)
        reals = tl.dot(a, c, reals)
        reals = tl.dot(-b, d, reals)
        imaginaries = tl.dot(a, d, imaginaries)
        imaginaries = tl.dot(b, c, imaginaries)
    into = row[:, None] * columns + column[None, :]
    tl.store(out_real + into, reals)
    tl.store(out_imaginary + into, imaginaries)


@family(combine(8, BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128), BLOCK_K=(32, 64), num_warps=(4, 8), num_stages=(1, 2, 3)))
def fresh_complex(config: Config) -> Launch:
    """Complex product of 2,048 × 2,048 × 2,048: four float16 products in one loop, float32 results."""
    n = config.get("n", 2048)
    arguments = *(normal(n, n, dtype=_HALF) for _ in range(4)), empty(n, n), empty(n, n), n, n
    return launch(_complex, (n // config["BLOCK_M"], n // config["BLOCK_N"]), *arguments, config=config)


@triton.jit
def _adapters(x, weights, chosen, out, depth, RANK: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    rank = tl.arange(0, RANK)
    adapter = tl.load(chosen + token)
    if adapter < 0:
        return
    share = depth // SPLITS
    sums = tl.zeros([RANK, BLOCK], tl.float32)
    for start in range(tl.program_id(1) * share, (tl.program_id(1) + 1) * share, BLOCK):
        place = start + tl.arange(0, BLOCK)
        value = tl.load(x + token.to(tl.int64) * depth + place).to(tl.float32)
        weight = tl.load(weights + (adapter * RANK + rank[:, None]) * depth + place[None, :]).to(tl.float32)
        sums += weight * value[None, :]
    tl.atomic_add(out + token * RANK + rank, tl.sum(sums, 1), sem="relaxed")


@family(combine(8, SPLITS=(1, 2, 8), BLOCK=(128, 256, 512), num_warps=(1, 2, 4, 8), num_stages=(1, 2, 3)))
def fresh_adapters(config: Config) -> Launch:
    """Each of 4,096 tokens of 4,096 down to rank 16 by one of 32 adapters of its own, or none, bfloat16."""
    tokens, depth = config.get("tokens", 4096), config.get("depth", 4096)
    chosen = indices(36, tokens) - 4
    tensors = normal(tokens, depth, dtype=_BRAIN), normal(32, 16, depth, dtype=_BRAIN), chosen, zeros(tokens, 16)
    return launch(_adapters, (tokens, config["SPLITS"]), *tensors, depth, config=config, RANK=16)


@triton.jit
def _signs(SIDE: tl.constexpr):
    number = tl.arange(0, SIDE)
    bits = number[:, None] & number[None, :]
    bits ^= bits >> 4
    bits ^= bits >> 2
    bits ^= bits >> 1
    return 1.0 - 2.0 * (bits & 1).to(tl.float32)


@triton.jit
def _hadamard(x, out, SIDE: tl.constexpr, ROWS: tl.constexpr):
    number = tl.arange(0, SIDE)
    signs = _signs(SIDE).to(x.dtype.element_ty)
    for turn in range(ROWS):
        base = (tl.program_id(0) * ROWS + turn).to(tl.int64) * SIDE * SIDE
        places = base + number[:, None] * SIDE + number[None, :]
        half = tl.dot(signs, tl.load(x + places)) * (1.0 / SIDE)
        value = tl.dot(half.to(x.dtype.element_ty), signs)
        tl.store(out + places, value.to(out.dtype.element_ty))


@family(combine(8, SIDE=(16, 32, 64, 128), ROWS=(1, 4), num_warps=(1, 2, 4, 8)))
def fresh_hadamard(config: Config) -> Launch:
    """Hadamard transform of rows of SIDE × SIDE elements by two products with its signs, 2^26 float16."""
    rows = config.get("rows", (1 << 26) // config["SIDE"] ** 2)
    tensors = normal(rows, config["SIDE"] ** 2, dtype=_HALF), empty(rows, config["SIDE"] ** 2, dtype=_HALF)
    return launch(_hadamard, (rows // config["ROWS"],), *tensors, config=config)
