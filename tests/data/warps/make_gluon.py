"""A Gluon kernel: one warp loads tiles by TMA, four store them, and barriers hand the slots over."""

from __future__ import annotations

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@gluon.jit
def store(out_ptr, buffers, full, empty, tiles, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr):
    for tile in range(tiles):
        slot = tile % 2
        mbarrier.wait(full.index(slot), (tile // 2) & 1)
        value = buffers.index(slot).load(layout)
        mbarrier.arrive(empty.index(slot), count=1)
        rows = tile * M + gl.arange(0, M, gl.SliceLayout(1, layout))
        columns = gl.arange(0, N, gl.SliceLayout(0, layout))
        gl.store(out_ptr + rows[:, None] * N + columns[None, :], value + 1)


@gluon.jit
def load(desc, buffers, full, empty, tiles, M: gl.constexpr):
    for tile in range(tiles):
        slot = tile % 2
        mbarrier.wait(empty.index(slot), ((tile // 2) & 1) ^ 1)
        mbarrier.expect(full.index(slot), desc.block_type.nbytes)
        tma.async_load(desc, [tile * M, 0], full.index(slot), buffers.index(slot))


@gluon.jit
def specialized_add(desc, out_ptr, tiles, M: gl.constexpr, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    buffers = gl.allocate_shared_memory(desc.dtype, [2, M, N], desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(2):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=1)
    gl.warp_specialize(
        [(store, (out_ptr, buffers, full, empty, tiles, M, N, layout)), (load, (desc, buffers, full, empty, tiles, M))],
        [1],
        [24],
    )


def main() -> None:
    """Launch it."""
    a = torch.empty(512, 64, device="cuda", dtype=torch.float16)
    out = torch.empty(512, 64, device="cuda", dtype=torch.float16)
    layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    specialized_add[(1,)](TensorDescriptor.from_tensor(a, [64, 64], layout), out, 8, 64, 64, num_warps=4)


main()
