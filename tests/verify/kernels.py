"""Kernels that do what no kernel may, each with a twin that is right: a script to record."""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def copy_to_n(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x, mask=offsets < n)


@triton.jit
def copy_past_n(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets <= n)  # reads x[n]
    tl.store(y_ptr + offsets, x, mask=offsets < n)


@triton.jit
def copy_before_zero(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets - 1))


@triton.jit
def copy_shifted(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets - 1, mask=offsets > 0, other=0.0))


@triton.jit
def far_beyond(x_ptr, y_ptr, BLOCK: tl.constexpr):
    # Far enough to be inside of another tensor.
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets * 16))


@triton.jit
def described(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target.store([tl.program_id(0) * BLOCK, 0], source.load([tl.program_id(0) * BLOCK, 0]))


@triton.jit
def described_too_large(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M + 8, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target.store([tl.program_id(0) * BLOCK, 0], source.load([tl.program_id(0) * BLOCK, 0]))


@triton.jit
def described_tiles_overlap(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target.store([tl.program_id(0) * (BLOCK // 2), 0], source.load([tl.program_id(0) * BLOCK, 0]))


@triton.jit
def described_from_column_four(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target.store([tl.program_id(0) * BLOCK, 0], source.load([tl.program_id(0) * BLOCK, 4]))


@triton.jit
def described_from_column_five(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target.store([tl.program_id(0) * BLOCK, 0], source.load([tl.program_id(0) * BLOCK, 5]))


@triton.jit
def described_by_host(source, target, BLOCK: tl.constexpr):
    target.store([tl.program_id(0) * BLOCK, 0], source.load([tl.program_id(0) * BLOCK, 0]))


@triton.jit
def described_by_host_overlap(source, target, BLOCK: tl.constexpr):
    target.store([tl.program_id(0) * (BLOCK // 2), 0], source.load([tl.program_id(0) * BLOCK, 0]))


@triton.jit
def tiles_overlap(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x + tl.program_id(0), mask=offsets < n)


@triton.jit
def tiles_overlap_with_equal_values(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x, mask=offsets < n)


@triton.jit
def tiles_overlap_with_some_equal_values(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    own = tl.where(offsets % 64 > 32, tl.program_id(0), 0)  # the first element of a tile is the same
    tl.store(y_ptr + offsets, x + own, mask=offsets < n)


@triton.jit
def shifted_into(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x + 1, mask=offsets < n)


@triton.jit
def added_in_place(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x + 1, mask=offsets < n)


@triton.jit
def looked_up(x_ptr, table_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(table_ptr + tl.load(x_ptr + offsets).to(tl.int32)))


@triton.jit
def looked_up_by_signed(x_ptr, table_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(table_ptr + tl.load(x_ptr + offsets).to(tl.int32)))


@triton.jit
def clamped(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    # What comes of a float may wrap: the bounds hold all the same.
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = (offsets * scale).to(tl.int32) - 1
    tl.store(y_ptr + offsets, tl.load(x_ptr + tl.maximum(0, tl.minimum(n - 1, place))))


@triton.jit
def clamped_above(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = (offsets * scale).to(tl.int32) - 1
    tl.store(y_ptr + offsets, tl.load(x_ptr + tl.minimum(n - 1, place)))


@triton.jit
def searched_in_place(x_ptr, table_ptr, BLOCK: tl.constexpr):
    # All elements begin at one place of the table.
    offsets = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[None, :]
    x = tl.load(x_ptr + offsets)
    place = tl.full((1, BLOCK), 7, tl.int32)
    for _ in range(3):
        place += tl.where(x > tl.load(table_ptr + place), 1, -1)
    tl.store(x_ptr + offsets, place)


@triton.jit
def split_k_plain(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets)
    tl.store(y_ptr + offsets, tl.load(y_ptr + offsets) + x)


@triton.jit
def split_k_atomic(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + offsets, tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets))


@triton.jit
def split_k_lock(x_ptr, y_ptr, lock_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(y_ptr + offsets, tl.load(y_ptr + offsets) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def split_k_relaxed_lock(x_ptr, y_ptr, lock_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets)
    while tl.atomic_cas(lock_ptr, 0, 1, sem="relaxed") == 1:
        pass
    tl.store(y_ptr + offsets, tl.load(y_ptr + offsets) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="relaxed")


@triton.jit
def split_k_lock_by_half(x_ptr, y_ptr, lock_ptr, SEM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets)
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire") == 1:
        pass
    tl.store(y_ptr + offsets, tl.load(y_ptr + offsets) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem=SEM)


@triton.jit
def split_k_lock_acquires(x_ptr, y_ptr, lock_ptr, BLOCK: tl.constexpr):
    split_k_lock_by_half(x_ptr, y_ptr, lock_ptr, "acquire", BLOCK)  # and releases nothing


@triton.jit
def split_k_lock_releases(x_ptr, y_ptr, lock_ptr, BLOCK: tl.constexpr):
    split_k_lock_by_half(x_ptr, y_ptr, lock_ptr, "release", BLOCK)


@triton.jit
def carries_when_flagged(x_ptr, sum_ptr, flag_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    before = 0.0
    if program > 0:
        while tl.atomic_add(flag_ptr + program - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(sum_ptr + program - 1)
    tl.store(sum_ptr + program, before + tl.sum(tl.load(x_ptr + program * BLOCK + tl.arange(0, BLOCK))))
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + program, 1, sem="release")


@triton.jit
def carries_when_flag_is_seen(x_ptr, sum_ptr, flag_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    before = 0.0
    if program > 0:
        while tl.load(flag_ptr + program - 1, volatile=True) == 0:  # acquires nothing
            pass
        before = tl.load(sum_ptr + program - 1)
    tl.store(sum_ptr + program, before + tl.sum(tl.load(x_ptr + program * BLOCK + tl.arange(0, BLOCK))))
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + program, 1, sem="release")


@triton.jit
def meets_the_others(count_ptr, y_ptr, PROGRAMS: tl.constexpr):
    tl.atomic_add(count_ptr, 1)
    while tl.atomic_add(count_ptr, 0) < PROGRAMS:
        pass
    tl.store(y_ptr + tl.program_id(0), 1.0)


@triton.jit
def waits_for_one_more(count_ptr, y_ptr, PROGRAMS: tl.constexpr):
    tl.atomic_add(count_ptr, 1)
    while tl.atomic_add(count_ptr, 0) <= PROGRAMS:
        pass
    tl.store(y_ptr + tl.program_id(0), 1.0)


@triton.jit
def asserts_indices(x_ptr, y_ptr, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.device_assert(x < LIMIT)
    tl.store(y_ptr + offsets, 1.0)


@triton.jit
def asserts_fewer_indices(x_ptr, y_ptr, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    asserts_indices(x_ptr, y_ptr, LIMIT, BLOCK)


@triton.jit
def fills_described(y_desc, BLOCK: tl.constexpr):
    y_desc.store([tl.program_id(0) * BLOCK, 0], tl.full((BLOCK, BLOCK), 1.0, tl.float32))


@triton.jit
def fills_described_too_wide(y_desc, BLOCK: tl.constexpr):
    y_desc.store([tl.program_id(0) * BLOCK, 0], tl.full((BLOCK, BLOCK), 1.0, tl.float32))


@triton.jit
def last_program_sums(x_ptr, partial_ptr, count_ptr, y_ptr, BLOCK: tl.constexpr, COUNT: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(partial_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + offsets)))
    if tl.atomic_add(count_ptr, 1) == COUNT - 1:
        tl.store(y_ptr, tl.sum(tl.load(partial_ptr + tl.arange(0, COUNT))))


@triton.jit
def first_program_sums(x_ptr, partial_ptr, count_ptr, y_ptr, BLOCK: tl.constexpr, COUNT: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(partial_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + offsets)))
    if tl.atomic_add(count_ptr, 1) == 0:
        tl.store(y_ptr, tl.sum(tl.load(partial_ptr + tl.arange(0, COUNT))))


@triton.jit
def reversed_read_back(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(y_ptr + offsets))
    tl.store(y_ptr + offsets, tl.load(x_ptr + BLOCK - 1 - offsets))


@triton.jit
def reversed_read_back_after_barrier(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(y_ptr + offsets))
    tl.debug_barrier()
    tl.store(y_ptr + offsets, tl.load(x_ptr + BLOCK - 1 - offsets))


@triton.jit
def reversed_read_back_of_each(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets, own = tl.arange(0, BLOCK), tl.program_id(0) * BLOCK
    tl.store(x_ptr + own + offsets, tl.load(y_ptr + own + offsets))
    if tl.program_id(0) == 0:
        tl.debug_barrier()
    tl.store(y_ptr + own + offsets, tl.load(x_ptr + own + BLOCK - 1 - offsets))


@triton.jit
def _reversed_behind_sums(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    # The loop's sums have barriers, and the launch says whether the loop runs at all.
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(y_ptr + offsets))
    total = 0.0
    for tile in range(n):
        total += tl.sum(tl.load(y_ptr + tile * BLOCK + offsets))
    return total


@triton.jit
def reversed_behind_three_sums(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = _reversed_behind_sums(x_ptr, y_ptr, n, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + BLOCK - 1 - offsets) + total)


@triton.jit
def reversed_behind_no_sums(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = _reversed_behind_sums(x_ptr, y_ptr, n, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + BLOCK - 1 - offsets) + total)


@triton.jit
def marked_behind_sums(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = _reversed_behind_sums(x_ptr, y_ptr, n, BLOCK)
    tl.store(x_ptr + 3, total)
    tl.store(y_ptr + offsets, tl.load(x_ptr + BLOCK - 1 - offsets))


@triton.jit
def scalar_update_behind_sums(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.load(x_ptr)
    for tile in range(n):
        total += tl.sum(tl.load(y_ptr + tile * BLOCK + offsets))
    tl.store(x_ptr, total)
    tl.store(y_ptr + offsets, total)


@triton.jit
def same_thread_read_back(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(y_ptr + offsets))
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets) + 1)


@triton.jit
def scalar_update(x_ptr, y_ptr, BLOCK: tl.constexpr):
    # One thread stores: what the others read is used by nobody.
    mean = tl.load(x_ptr)
    tl.store(x_ptr, mean * 0.5)
    tl.store(y_ptr + tl.arange(0, BLOCK), 1.0)


@triton.jit
def scalar_read_back(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr, 2.0)
    scale = tl.load(x_ptr)
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(y_ptr + offsets) * scale)


@triton.jit
def recurrence_pipelined(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for i in tl.range(0, n, num_stages=3):
        x = tl.load(x_ptr + i * BLOCK + offsets)
        tl.store(x_ptr + (i + 1) * BLOCK + offsets, x + 1)


@triton.jit
def recurrence(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for i in tl.range(0, n, num_stages=1):
        x = tl.load(x_ptr + i * BLOCK + offsets)
        tl.store(x_ptr + (i + 1) * BLOCK + offsets, x + 1)


@gluon.jit
def other_layout_read_back(x_ptr, y_ptr, M: gl.constexpr, N: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([1, 1], [4, 8], [2, 2], [1, 0])
    tall: gl.constexpr = gl.BlockedLayout([1, 1], [4, 8], [4, 1], [1, 0])
    rows, columns = gl.arange(0, M, gl.SliceLayout(1, wide)), gl.arange(0, N, gl.SliceLayout(0, wide))
    gl.store(x_ptr + rows[:, None] * N + columns[None, :], gl.load(y_ptr + rows[:, None] * N + columns[None, :]))
    rows, columns = gl.arange(0, M, gl.SliceLayout(1, tall)), gl.arange(0, N, gl.SliceLayout(0, tall))
    gl.store(y_ptr + rows[:, None] * N + columns[None, :], gl.load(x_ptr + rows[:, None] * N + columns[None, :]))


@gluon.jit
def stores_again_by_another_layout(x_ptr, y_ptr, M: gl.constexpr, N: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([1, 1], [4, 8], [2, 2], [1, 0])
    tall: gl.constexpr = gl.BlockedLayout([1, 1], [4, 8], [4, 1], [1, 0])
    rows, columns = gl.arange(0, M, gl.SliceLayout(1, wide)), gl.arange(0, N, gl.SliceLayout(0, wide))
    gl.store(x_ptr + rows[:, None] * N + columns[None, :], gl.load(y_ptr + rows[:, None] * N + columns[None, :]))
    rows, columns = gl.arange(0, M, gl.SliceLayout(1, tall)), gl.arange(0, N, gl.SliceLayout(0, tall))
    gl.store(x_ptr + rows[:, None] * N + columns[None, :], gl.load(y_ptr + rows[:, None] * N + columns[None, :]) + 1)


@gluon.jit
def barrier_without_arrival(x_ptr, y_ptr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    barrier = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(barrier, count=1)
    offsets = gl.arange(0, BLOCK, layout)
    x = gl.load(x_ptr + offsets)
    mbarrier.wait(barrier, 0)
    gl.store(y_ptr + offsets, x)


@gluon.jit
def barrier_with_arrival(x_ptr, y_ptr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    barrier = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(barrier, count=1)
    offsets = gl.arange(0, BLOCK, layout)
    x = gl.load(x_ptr + offsets)
    mbarrier.arrive(barrier, count=1)
    mbarrier.wait(barrier, 0)
    gl.store(y_ptr + offsets, x)


@triton.jit
def gathered(x_ptr, index_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + tl.load(index_ptr + offsets)))


@triton.jit
def adds_to_unwritten(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(y_ptr + offsets) + tl.load(x_ptr + offsets))


@triton.jit
def counts_by_scope_of_cta(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + offsets, tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets), scope="cta")


@triton.jit
def counts_in_unwritten(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.atomic_add(y_ptr, tl.sum(tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))))


@triton.jit
def adds_to_zeros(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(y_ptr + offsets) + tl.load(x_ptr + offsets))


@triton.jit
def reads_what_it_wrote(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))
    tl.store(x_ptr + offsets, tl.load(y_ptr + offsets) + 1)


@triton.jit
def selects_of_unwritten(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.where(offsets < n, tl.load(y_ptr + offsets), 0.0)
    tl.store(x_ptr + offsets, y)


@triton.jit
def wraps_at_32_bits(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    # 32 bits hold no product: it becomes negative.
    row = tl.program_id(0) * 3 * stride
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + row + offsets))


@triton.jit
def rows_at_32_bits(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(y_ptr + row * BLOCK + columns, tl.load(x_ptr + row * stride + columns))


@triton.jit
def rows_at_64_bits(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    tl.store(y_ptr + row * BLOCK + columns, tl.load(x_ptr + row * stride + columns))


@triton.jit
def uses_64_bits(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * 3).to(tl.int64) * stride
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + tl.program_id(0) * BLOCK + offsets, tl.load(x_ptr + row + offsets))


@triton.jit
def advances_two_pointers(x_ptr, y_ptr, out_ptr, tiles, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x_ptrs, y_ptrs = x_ptr + offsets, y_ptr + offsets
    total = tl.zeros((BLOCK,), tl.float32)
    for tile in range(tiles + 1):
        total += tl.load(x_ptrs) * tl.load(y_ptrs, mask=tile < tiles)
        x_ptrs += BLOCK
        y_ptrs += BLOCK
    tl.store(out_ptr + offsets, total)


@triton.jit
def ends_in_the_next_row(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + offsets, mask=offsets < n)
    tl.store(y_ptr + tl.program_id(0) * n + offsets, x, mask=offsets <= n)


@triton.jit
def gathered_past_n(x_ptr, index_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.load(index_ptr + offsets, mask=offsets < n))
    tl.store(y_ptr + offsets, x, mask=offsets <= n)


@triton.jit
def gathered_by_a_copy(x_ptr, index_ptr, copy_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(copy_ptr + offsets, tl.load(index_ptr + offsets))
    tl.debug_barrier()
    tl.store(y_ptr + offsets, tl.load(x_ptr + tl.load(copy_ptr + offsets)))


@triton.jit
def counted(index_ptr, count_ptr, BLOCK: tl.constexpr):
    counts = count_ptr + tl.load(index_ptr + tl.arange(0, BLOCK))
    tl.store(counts, tl.load(counts) + 1)


@triton.jit
def keeps_positive(x_ptr, y_ptr, total_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, x, mask=(x > 0) & (offsets < n))
    tl.atomic_max(total_ptr, tl.max(x))
    if tl.sum(x) > 0:
        tl.store(total_ptr + 1 + tl.program_id(0), 1.0)


@triton.jit
def keeps_positive_past_n(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, x, mask=x >= 0)


@triton.jit
def keeps_positive_in_order(x_ptr, y_ptr, flag_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets)
    if tl.sum(x) > 0:
        tl.atomic_add(flag_ptr, 1)
    tl.store(y_ptr + offsets, x)


@triton.jit
def reads_where_it_is_positive(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, x, mask=x > 0)
    tl.store(x_ptr + offsets, tl.load(y_ptr + offsets))


@triton.jit
def publishes_tiles(x_ptr, tile_ptr, flag_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    if tl.program_id(0) == 1:
        tl.store(tile_ptr + offsets, tl.load(x_ptr + offsets))
        tl.atomic_xchg(flag_ptr, 1)
    else:
        while tl.atomic_cas(flag_ptr, 1, 1) != 1:
            pass
        tl.store(y_ptr + offsets, tl.load(tile_ptr + offsets))


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, device="cuda")


def numbers(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32, device="cuda")


def main() -> None:
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    copy_to_n[(4,)](floats(1000), floats(1000), 1000, BLOCK=256)
    copy_past_n[(4,)](floats(1000), floats(1000), 1000, BLOCK=256)
    copy_before_zero[(4,)](floats(512), floats(512), BLOCK=128)
    copy_shifted[(4,)](floats(512), floats(512), BLOCK=128)
    far_beyond[(4,)](floats(512), floats(8192), BLOCK=128)
    described[(4,)](floats(60, 16), floats(60, 16), 60, 16, BLOCK=16)
    described_too_large[(4,)](floats(60, 16), floats(60, 16), 60, 16, BLOCK=16)
    described_tiles_overlap[(4,)](floats(60, 16), floats(60, 16), 60, 16, BLOCK=16)
    for kernel in (described_from_column_four, described_from_column_five):
        kernel[(4,)](floats(60, 16), floats(60, 16), 60, 16, BLOCK=16)
    for kernel in (described_by_host, described_by_host_overlap):
        # The last rows of a larger tensor, and a tensor whose last tile is cut off.
        tensors = floats(90, 16)[30:], floats(60, 16)
        kernel[(4,)](*(TensorDescriptor.from_tensor(one, [16, 16]) for one in tensors), BLOCK=16)
    tiles_overlap[(7,)](floats(1000), floats(1000), 1000, BLOCK=256)
    tiles_overlap_with_some_equal_values[(7,)](floats(1000), floats(1000), 1000, BLOCK=256)
    tiles_overlap_with_equal_values[(7,)](floats(1000), floats(1000), 1000, BLOCK=256)
    whole = floats(1000)
    shifted_into[(4,)](whole[:-1], whole[1:], 999, BLOCK=256)
    added_in_place[(4,)](whole, whole, 1000, BLOCK=256)
    looked_up[(4,)](torch.arange(512, device="cuda").to(torch.uint8), floats(256), floats(512), BLOCK=128)
    looked_up_by_signed[(4,)](torch.arange(512, device="cuda").to(torch.int8), floats(256), floats(512), BLOCK=128)
    for clamps in (clamped, clamped_above):
        clamps[(4,)](floats(256), floats(512), 256, 0.5, BLOCK=128)
    indices = torch.arange(512, dtype=torch.int32, device="cuda")
    searched_in_place[(4,)](indices, indices[:16].clone(), BLOCK=128)
    split_k_plain[(4,)](floats(512), floats(128), BLOCK=128)
    split_k_atomic[(4,)](floats(512), floats(128), BLOCK=128)
    split_k_lock[(4,)](floats(512), floats(128), numbers(1), BLOCK=128)
    split_k_relaxed_lock[(4,)](floats(512), floats(128), numbers(1), BLOCK=128)
    for lock in (split_k_lock_acquires, split_k_lock_releases):
        lock[(4,)](floats(512), floats(128), numbers(1), BLOCK=128)
    for carries in (carries_when_flagged, carries_when_flag_is_seen):
        carries[(4,)](floats(512), floats(4), numbers(4), BLOCK=128)
    for waits in (meets_the_others, waits_for_one_more):
        waits[(4,)](numbers(1), floats(4), PROGRAMS=4)
    indices = torch.arange(128, dtype=torch.int32, device="cuda")
    asserts_indices[(1,)](indices, floats(128), LIMIT=128, BLOCK=128, debug=True)
    asserts_fewer_indices[(1,)](indices, floats(128), LIMIT=100, BLOCK=128, debug=True)
    fills_described[(2,)](TensorDescriptor(floats(32, 16), [32, 16], [16, 1], [16, 16]), BLOCK=16)
    fills_described_too_wide[(2,)](TensorDescriptor(floats(32, 16), [32, 16], [32, 1], [16, 16]), BLOCK=16)
    last_program_sums[(4,)](floats(512), floats(4), numbers(1), floats(1), BLOCK=128, COUNT=4)
    first_program_sums[(4,)](floats(512), floats(4), numbers(1), floats(1), BLOCK=128, COUNT=4)
    reversed_read_back[(1,)](floats(512), floats(512), BLOCK=512)
    reversed_read_back_after_barrier[(1,)](floats(512), floats(512), BLOCK=512)
    reversed_read_back_of_each[(4,)](floats(4 * 512), floats(4 * 512), BLOCK=512)
    reversed_behind_three_sums[(1,)](floats(512), floats(3 * 512), 3, BLOCK=512)
    reversed_behind_no_sums[(1,)](floats(512), floats(512), 0, BLOCK=512)
    scalar_update_behind_sums[(1,)](floats(1), floats(3 * 512), 3, BLOCK=512)
    marked_behind_sums[(1,)](floats(512), floats(3 * 512), 3, BLOCK=512)
    counts_by_scope_of_cta[(4,)](floats(512), floats(128), BLOCK=128)
    stores_again_by_another_layout[(1,)](floats(64 * 64), floats(64 * 64), 64, 64)
    same_thread_read_back[(1,)](floats(512), floats(512), BLOCK=512)
    scalar_update[(1,)](floats(1), floats(512), BLOCK=512)
    scalar_read_back[(1,)](floats(1), floats(512), BLOCK=512)
    recurrence_pipelined[(1,)](floats(9 * 512), 8, BLOCK=512)
    recurrence[(1,)](floats(9 * 512), 8, BLOCK=512)
    other_layout_read_back[(1,)](floats(64 * 64), floats(64 * 64), 64, 64)
    barrier_without_arrival[(1,)](floats(128), floats(128), 128)
    barrier_with_arrival[(1,)](floats(128), floats(128), 128)
    adds_to_unwritten[(4,)](floats(512), torch.empty(512, device="cuda"), BLOCK=128)
    counts_in_unwritten[(4,)](floats(512), torch.empty(1, device="cuda"), BLOCK=128)
    adds_to_zeros[(4,)](floats(512), torch.empty(512, device="cuda").zero_(), BLOCK=128)
    reads_what_it_wrote[(4,)](floats(512), torch.empty(512, device="cuda"), BLOCK=128)
    selects_of_unwritten[(4,)](floats(512), torch.empty(512, device="cuda"), 0, BLOCK=128)
    wraps_at_32_bits[(2,)](floats(4096), floats(256), 0x2B000000, BLOCK=128)
    # 5 GiB, of which no element is read on the CPU.
    many = torch.zeros(40000, 1 << 16, dtype=torch.float16, device="cuda")
    for kernel in (rows_at_32_bits, rows_at_64_bits):
        kernel[(40000,)](many, floats(40000, 16), many.stride(0), BLOCK=16)
    uses_64_bits[(1,)](floats(4096), floats(256), 0x2B000000, BLOCK=128)
    advances_two_pointers[(1,)](floats(512), floats(512), floats(128), 4, BLOCK=128)
    ends_in_the_next_row[(4,)](floats(4, 100), floats(4, 100), 100, BLOCK=128)
    indices = torch.randint(0, 512, (128,), device="cuda")
    gathered_past_n[(1,)](floats(512), indices, floats(100), 100, BLOCK=128)
    gathered_by_a_copy[(1,)](floats(512), indices, torch.zeros_like(indices), floats(128), BLOCK=128)
    counted[(1,)](indices, numbers(512), BLOCK=128)
    keeps_positive[(4,)](floats(512), floats(500), floats(5), 500, BLOCK=128)
    keeps_positive_past_n[(4,)](floats(512), floats(500), 500, BLOCK=128)
    keeps_positive_in_order[(2,)](floats(256), floats(128), numbers(1), BLOCK=128)
    reads_where_it_is_positive[(1,)](floats(128), torch.empty(128, device="cuda"), BLOCK=128)
    publishes_tiles[(2,)](floats(128), floats(128), numbers(1), floats(128), BLOCK=128)
    gathered[(1,)](floats(512), torch.randint(0, 512, (128,), device="cuda"), floats(128), BLOCK=128)


if __name__ == "__main__":
    main()
