"""Faults that kernels of Gluon have with shared memory, each next to the same kernel without it; for Hopper."""

from __future__ import annotations

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)
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


@gluon.jit
def product_of_stored_tiles(a_ptr, b_ptr, c_ptr, SIZE: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([SIZE, SIZE], gl.float16)
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, SIZE, 16])
    rows, columns = gl.arange(0, SIZE, gl.SliceLayout(1, wide)), gl.arange(0, SIZE, gl.SliceLayout(0, wide))
    places = rows[:, None] * SIZE + columns[None, :]
    a = gl.allocate_shared_memory(gl.float16, [SIZE, SIZE], shared)
    b = gl.allocate_shared_memory(gl.float16, [SIZE, SIZE], shared)
    a.store(gl.load(a_ptr + places))
    b.store(gl.load(b_ptr + places))
    fence_async_shared()
    c = warpgroup_mma(a, b, gl.zeros([SIZE, SIZE], gl.float32, mma), use_acc=False)
    rows, columns = gl.arange(0, SIZE, gl.SliceLayout(1, mma)), gl.arange(0, SIZE, gl.SliceLayout(0, mma))
    gl.store(c_ptr + rows[:, None] * SIZE + columns[None, :], c)


@gluon.jit
def product_of_copied_tiles(
    a_desc, b_desc, c_ptr, K, BUFFERS: gl.constexpr, PENDING: gl.constexpr, LAST: gl.constexpr, WAITS: gl.constexpr
):
    M: gl.constexpr = a_desc.block_type.shape[0]
    N: gl.constexpr = b_desc.block_type.shape[1]
    DEPTH: gl.constexpr = a_desc.block_type.shape[1]
    a = gl.allocate_shared_memory(a_desc.dtype, [BUFFERS, M, DEPTH], a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [BUFFERS, DEPTH, N], b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [BUFFERS, 1], mbarrier.MBarrierLayout())
    for number in gl.static_range(BUFFERS):
        mbarrier.init(full.index(number), count=1)
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, N, 16])
    product = warpgroup_mma_init(gl.zeros([M, N], gl.float32, mma))
    for k in range(0, K, DEPTH):
        step = k // DEPTH
        buffer = step % BUFFERS
        mbarrier.expect(full.index(buffer), a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        tma.async_load(a_desc, [0, k], full.index(buffer), a.index(buffer))
        tma.async_load(b_desc, [k, 0], full.index(buffer), b.index(buffer))
        if WAITS:
            mbarrier.wait(full.index(buffer), step // BUFFERS & 1)
        product = warpgroup_mma(a.index(buffer), b.index(buffer), product, is_async=True)
        product = warpgroup_mma_init(warpgroup_mma_wait(PENDING, deps=(product,)))
    c = warpgroup_mma_wait(LAST, deps=(product,))
    rows, columns = gl.arange(0, M, gl.SliceLayout(1, mma)), gl.arange(0, N, gl.SliceLayout(0, mma))
    gl.store(c_ptr + rows[:, None] * N + columns[None, :], c)


@gluon.jit
def awaits_each_product(a_desc, b_desc, c_ptr, K):
    product_of_copied_tiles(a_desc, b_desc, c_ptr, K, 1, 0, 0, True)


@gluon.jit
def awaits_the_product_before(a_desc, b_desc, c_ptr, K):
    product_of_copied_tiles(a_desc, b_desc, c_ptr, K, 2, 1, 0, True)


@gluon.jit
def copies_over_a_product(a_desc, b_desc, c_ptr, K):
    product_of_copied_tiles(a_desc, b_desc, c_ptr, K, 1, 1, 0, True)


@gluon.jit
def copies_over_the_last_product_but_one(a_desc, b_desc, c_ptr, K):
    product_of_copied_tiles(a_desc, b_desc, c_ptr, K, 2, 2, 0, True)


@gluon.jit
def multiplies_before_the_copies(a_desc, b_desc, c_ptr, K):
    product_of_copied_tiles(a_desc, b_desc, c_ptr, K, 2, 0, 0, False)


@gluon.jit
def stores_before_the_last_product(a_desc, b_desc, c_ptr, K):
    product_of_copied_tiles(a_desc, b_desc, c_ptr, K, 2, 1, 1, True)


@gluon.jit
def stored_tiles(x_ptr, desc, TILES: gl.constexpr, PENDING: gl.constexpr, LAST: gl.constexpr):
    M: gl.constexpr = desc.block_type.shape[0]
    N: gl.constexpr = desc.block_type.shape[1]
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    rows, columns = gl.arange(0, M, gl.SliceLayout(1, layout)), gl.arange(0, N, gl.SliceLayout(0, layout))
    buffer = gl.allocate_shared_memory(desc.dtype, [M, N], desc.layout)
    for tile in gl.static_range(TILES):
        x = gl.load(x_ptr + (tile * M + rows[:, None]) * N + columns[None, :])
        tma.store_wait(PENDING)
        buffer.store(x)
        fence_async_shared()
        tma.async_store(desc, [tile * M, 0], buffer)
    if LAST:
        tma.store_wait(0)


@gluon.jit
def awaits_its_stores(x_ptr, desc):
    stored_tiles(x_ptr, desc, 2, 0, True)


@gluon.jit
def ends_before_its_store(x_ptr, desc):
    stored_tiles(x_ptr, desc, 2, 0, False)


@gluon.jit
def overwrites_what_is_stored(x_ptr, desc):
    stored_tiles(x_ptr, desc, 2, 1, True)


def described(tensor: torch.Tensor) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(tensor, [64, 64], gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16))


def main() -> None:
    x, y = torch.randn(128, device="cuda"), torch.zeros(128, device="cuda")
    loads_without_barrier[(1,)](x, y, 128)
    loads_after_barrier[(1,)](x, y, 128)
    waits_for_the_next_phase[(1,)](x, y, 128)
    waits_for_each_phase[(1,)](x, y, 128)
    a = torch.randn(256, 64, device="cuda", dtype=torch.float16)
    out = torch.zeros(256, 64, device="cuda", dtype=torch.float16)
    for kernel in (phase_flips, phase_stays, phase_begins_with_one):
        kernel[(1,)](described(a), out, 4, 64, 64)
    b, c = torch.randn(64, 256, device="cuda", dtype=torch.float16), torch.zeros(64, 64, device="cuda")
    product_of_stored_tiles[(1,)](a, b, c, 64)
    for kernel in (
        awaits_each_product, awaits_the_product_before, copies_over_a_product, copies_over_the_last_product_but_one,
        multiplies_before_the_copies, stores_before_the_last_product,
    ):  # fmt: skip
        kernel[(1,)](described(b), described(a), c, 256)
    for kernel in (awaits_its_stores, ends_before_its_store, overwrites_what_is_stored):
        kernel[(1,)](a, described(out))


if __name__ == "__main__":
    main()
