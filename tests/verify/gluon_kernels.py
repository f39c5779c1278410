"""Faults that kernels of Gluon have with shared memory, each next to the same kernel without it; for Hopper."""

from __future__ import annotations

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@gluon.jit
def store_to_buffer(x_ptr, buffer, ready, BLOCK: gl.constexpr, layout: gl.constexpr):
    buffer.store(gl.load(x_ptr + gl.arange(0, BLOCK, layout)))
    mbarrier.arrive(ready, count=1)


@gluon.jit
def load_from_buffer(y_ptr, buffer, ready, BLOCK: gl.constexpr, layout: gl.constexpr, WAITS: gl.constexpr):
    if WAITS:
        mbarrier.wait(ready, 0)
    gl.store(y_ptr + gl.arange(0, BLOCK, layout), buffer.load(layout))


@gluon.jit
def between_partitions(x_ptr, y_ptr, BLOCK: gl.constexpr, WAITS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    buffer = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    gl.warp_specialize(
        [
            (load_from_buffer, (y_ptr, buffer, ready, BLOCK, layout, WAITS)),
            (store_to_buffer, (x_ptr, buffer, ready, BLOCK, layout)),
        ],
        [4],
        [24],
    )


@gluon.jit
def loads_without_barrier(x_ptr, y_ptr, BLOCK: gl.constexpr):
    between_partitions(x_ptr, y_ptr, BLOCK, False)


@gluon.jit
def loads_after_barrier(x_ptr, y_ptr, BLOCK: gl.constexpr):
    between_partitions(x_ptr, y_ptr, BLOCK, True)


@gluon.jit
def copied_tiles(desc, y_ptr, tiles, M: gl.constexpr, N: gl.constexpr, FLIPS: gl.constexpr, FIRST: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    buffer = gl.allocate_shared_memory(desc.dtype, [M, N], desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    rows, columns = gl.arange(0, M, gl.SliceLayout(1, layout)), gl.arange(0, N, gl.SliceLayout(0, layout))
    for tile in range(tiles):
        mbarrier.expect(full, desc.block_type.nbytes)
        tma.async_load(desc, [tile * M, 0], full, buffer)
        mbarrier.wait(full, (tile * FLIPS + FIRST) & 1)
        gl.store(y_ptr + (tile * M + rows[:, None]) * N + columns[None, :], buffer.load(layout))


@gluon.jit
def phase_flips(desc, y_ptr, tiles, M: gl.constexpr, N: gl.constexpr):
    copied_tiles(desc, y_ptr, tiles, M, N, 1, 0)


@gluon.jit
def phase_stays(desc, y_ptr, tiles, M: gl.constexpr, N: gl.constexpr):
    copied_tiles(desc, y_ptr, tiles, M, N, 0, 0)


@gluon.jit
def phase_begins_with_one(desc, y_ptr, tiles, M: gl.constexpr, N: gl.constexpr):
    copied_tiles(desc, y_ptr, tiles, M, N, 1, 1)


@gluon.jit
def arrives_and_waits(x_ptr, y_ptr, BLOCK: gl.constexpr, ARRIVALS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    offsets = gl.arange(0, BLOCK, layout)
    x = gl.load(x_ptr + offsets)
    mbarrier.arrive(ready, count=1)
    mbarrier.wait(ready, 0)
    if ARRIVALS == 2:
        mbarrier.arrive(ready, count=1)
    mbarrier.wait(ready, 1)
    gl.store(y_ptr + offsets, x)


@gluon.jit
def waits_for_the_next_phase(x_ptr, y_ptr, BLOCK: gl.constexpr):
    arrives_and_waits(x_ptr, y_ptr, BLOCK, 1)


@gluon.jit
def waits_for_each_phase(x_ptr, y_ptr, BLOCK: gl.constexpr):
    arrives_and_waits(x_ptr, y_ptr, BLOCK, 2)


def main() -> None:
    x, y = torch.randn(128, device="cuda"), torch.zeros(128, device="cuda")
    loads_without_barrier[(1,)](x, y, 128)
    loads_after_barrier[(1,)](x, y, 128)
    waits_for_the_next_phase[(1,)](x, y, 128)
    waits_for_each_phase[(1,)](x, y, 128)
    a = torch.randn(256, 64, device="cuda", dtype=torch.float16)
    out = torch.zeros(256, 64, device="cuda", dtype=torch.float16)
    desc = TensorDescriptor.from_tensor(a, [64, 64], gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16))
    for kernel in (phase_flips, phase_stays, phase_begins_with_one):
        kernel[(1,)](desc, out, 4, 64, 64)


if __name__ == "__main__":
    main()
