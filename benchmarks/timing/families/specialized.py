"""Kernels whose warps are specialised: some copy tiles by TMA, others multiply; by Triton's own pass, and in Gluon."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor

from benchmarks.timing.data import empty, normal
from benchmarks.timing.family import Config, Launch, combine, family, launch

_HALF = torch.float16
_SIZE = 4096


@triton.jit
def _product(a, b, out, size, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    a = tl.make_tensor_descriptor(a, [size, size], [size, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b, [size, size], [size, 1], [BLOCK_K, BLOCK_N])
    out = tl.make_tensor_descriptor(out, [size, size], [size, 1], [BLOCK_M, BLOCK_N])
    down, across = tl.num_programs(0), tl.num_programs(1)
    row, column = tl.swizzle2d(tl.program_id(0), tl.program_id(1), down, across, GROUP)
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(0, size, BLOCK_K, warp_specialize=True):
        sums = tl.dot(a.load([row * BLOCK_M, start]), b.load([start, column * BLOCK_N]), sums)
    out.store([row * BLOCK_M, column * BLOCK_N], sums.to(tl.float16))


def _allocate() -> None:
    """Descriptors that a kernel makes need memory."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))


@family(
    combine(
        16, BLOCK_M=(64, 128), BLOCK_N=(64, 128, 256), BLOCK_K=(32, 64, 128), num_warps=(4,), num_stages=(2, 3, 4, 6)
    )
)
def specialized_product(config: Config) -> Launch:
    """A product of 4096³ in float16, whose loop Triton divides among warps."""
    size = config.get("size", _SIZE)
    a, b, out = normal(size, size, dtype=_HALF), normal(size, size, dtype=_HALF), empty(size, size, dtype=_HALF)
    grid = triton.cdiv(size, config["BLOCK_M"]), triton.cdiv(size, config["BLOCK_N"])
    _allocate()
    return launch(_product, grid, a, b, out, size, config=config, GROUP=8)


@triton.jit
def _attention(
    query, key, value, out, length, scale, WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.num_programs(1) * length
    query = tl.make_tensor_descriptor(query, [rows, WIDTH], [WIDTH, 1], [BLOCK_M, WIDTH])
    key = tl.make_tensor_descriptor(key, [rows, WIDTH], [WIDTH, 1], [BLOCK_N, WIDTH])
    value = tl.make_tensor_descriptor(value, [rows, WIDTH], [WIDTH, 1], [BLOCK_N, WIDTH])
    out = tl.make_tensor_descriptor(out, [rows, WIDTH], [WIDTH, 1], [BLOCK_M, WIDTH])
    base = tl.program_id(1) * length
    first = base + tl.program_id(0) * BLOCK_M
    left = query.load([first, 0])
    peak = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    sums = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    for start in tl.range(0, length, BLOCK_N, warp_specialize=True):
        score = tl.dot(left, key.load([base + start, 0]).T) * scale
        above = tl.maximum(peak, tl.max(score, 1))
        power = tl.exp2(score - above[:, None])
        factor = tl.exp2(peak - above)
        total = total * factor + tl.sum(power, 1)
        sums = tl.dot(power.to(tl.float16), value.load([base + start, 0]), sums * factor[:, None])
        peak = above
    out.store([first, 0], (sums / total[:, None]).to(tl.float16))


@family(combine(12, BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128), WIDTH=(64, 128), num_warps=(4,), num_stages=(2, 3)))
def specialized_attention(config: Config) -> Launch:
    """Attention of 32 heads of 64 or 128, 4,096 tokens, float16, whose loop Triton divides among warps."""
    length, heads, width = config.get("length", 4096), config.get("heads", 32), config["WIDTH"]
    query, key, value, out = (normal(heads * length, width, dtype=_HALF) for _ in range(4))
    grid = triton.cdiv(length, config["BLOCK_M"]), heads
    _allocate()
    return launch(_attention, grid, query, key, value, out, length, 1.44269504 / width**0.5, config=config)


@gluon.jit
def _copies(a, b, row, column, depth, left, right, empties, fulls, DEPTH: gl.constexpr):
    BLOCK_K: gl.constexpr = a.block_shape[1]
    step = 0
    for start in range(0, depth, BLOCK_K):
        slot = step % DEPTH
        mbarrier.wait(empties.index(slot), (step // DEPTH & 1) ^ 1)
        mbarrier.expect(fulls.index(slot), a.block_type.nbytes + b.block_type.nbytes)
        tma.async_copy_global_to_shared(a, [row, start], fulls.index(slot), left.index(slot))
        tma.async_copy_global_to_shared(b, [start, column], fulls.index(slot), right.index(slot))
        step += 1  # noqa: SIM113 - Triton has no enumerate


@gluon.jit
def _multiplies(out, row, column, depth, left, right, empties, fulls, tile, DEPTH: gl.constexpr):
    BLOCK_M: gl.constexpr = out.block_shape[0]
    BLOCK_N: gl.constexpr = out.block_shape[1]
    BLOCK_K: gl.constexpr = left.shape[2]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BLOCK_N, 16])
    sums = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)
    step = 0
    for _ in range(0, depth, BLOCK_K):
        slot = step % DEPTH
        mbarrier.wait(fulls.index(slot), step // DEPTH & 1)
        sums = hopper.warpgroup_mma(left.index(slot), right.index(slot), sums)
        mbarrier.arrive(empties.index(slot), count=1)
        step += 1  # noqa: SIM113 - Triton has no enumerate
    tile.store(sums.to(gl.float16))
    hopper.fence_async_shared()
    tma.async_copy_shared_to_global(out, [row, column], tile)
    tma.store_wait(0)


@gluon.jit
def _gluon_product(a, b, out, depth, DEPTH: gl.constexpr):
    row, column = gl.program_id(0) * out.block_shape[0], gl.program_id(1) * out.block_shape[1]
    left = gl.allocate_shared_memory(gl.float16, [DEPTH] + a.block_shape, a.layout)  # noqa: RUF005
    right = gl.allocate_shared_memory(gl.float16, [DEPTH] + b.block_shape, b.layout)  # noqa: RUF005
    tile = gl.allocate_shared_memory(gl.float16, out.block_shape, out.layout)
    empties = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    fulls = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(DEPTH):
        mbarrier.init(empties.index(slot), count=1)
        mbarrier.init(fulls.index(slot), count=1)
    hopper.fence_async_shared()
    gl.warp_specialize(
        [
            (_multiplies, (out, row, column, depth, left, right, empties, fulls, tile, DEPTH)),
            (_copies, (a, b, row, column, depth, left, right, empties, fulls, DEPTH)),
        ],
        [1],
        [24],
    )


@family(combine(16, BLOCK_M=(64, 128), BLOCK_N=(64, 128, 256), BLOCK_K=(32, 64), num_warps=(4, 8), DEPTH=(2, 3, 4)))
def specialized_gluon(config: Config) -> Launch:
    """A product of 4096³ in float16 in Gluon: one warp copies, the others multiply."""
    size = config.get("size", _SIZE)
    m, n, k = config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]
    a, b, out = normal(size, size, dtype=_HALF), normal(size, size, dtype=_HALF), empty(size, size, dtype=_HALF)
    tiles = []
    for value, shape in ((a, [m, k]), (b, [k, n]), (out, [m, n])):
        layout = gl.NVMMASharedLayout.get_default_for(shape, gl.float16)
        tiles.append(GluonDescriptor.from_tensor(value, shape, layout))
    return launch(_gluon_product, (triton.cdiv(size, m), triton.cdiv(size, n)), *tiles, size, config=config)
