"""The operations of TTGIR: shared and tensor memory, asynchronous copies, mbarriers, matrix units, warp specialisation.

Values do not depend on the layouts of tensors. Matrix instructions are computed when they are issued.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from irscope.errors import NotRun
from irscope.machine.accesses import combining, elements_of, load_described, masked_load, of_rank, write_described
from irscope.machine.control import Bindings, Executor, Machine, Step
from irscope.machine.shared import contiguous, form_of
from irscope.machine.tensors import scaled_product
from irscope.machine.values import Array, Held, MemoryView, dtype_of, full

_TOKEN = np.zeros(1, np.int64)

# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _allocate(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view = machine.shared.allocate(step.type, machine.module, step.operation.results[0].name)
    if step.operands:
        machine.shared.write(view, frame.array(step.operands[0]), frame.rows)
    return (view, *[_TOKEN] * (len(step.results) - 1))


def _local_load(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = machine.shared.read(step.view(frame, "src"), frame.rows)
    return (values.reshape(values.shape[0], *step.shape), *[_TOKEN] * (len(step.results) - 1))


def _local_store(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view = step.view(frame, "dst")
    machine.shared.write(view, of_rank(step.array(frame, "src"), len(view.shape)), frame.rows, _predicate(step, frame))
    return [_TOKEN] * len(step.results)


def _predicate(step: Step, frame: Bindings) -> Array | None:
    """Which programs do it; None for all."""
    found = step.optional(frame, "pred")
    return None if found is None or found.all() else np.broadcast_to(found, frame.count)


def _local_gather(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = machine.shared.read(step.view(frame, "src"), frame.rows)
    indices = full(step.array(frame, "indices"), step.shape, values.shape[0])
    return (np.take_along_axis(values, indices.astype(np.int64), step.number("axis") + 1),)


def _local_scatter(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view = step.view(frame, "dst")
    before = machine.shared.read(view, frame.rows)
    values = step.array(frame, "values")
    indices = full(step.array(frame, "indices"), values.shape[1:], frame.count).astype(np.int64)
    np.put_along_axis(before, indices, np.broadcast_to(values, indices.shape), step.number("axis") + 1)
    machine.shared.write(view, before, frame.rows)
    return ()


def _local_atomic(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """Which of several updates of one element comes first is open: then nothing may use what stood there before."""
    view, values = step.view(frame, "dst"), step.array(frame, "values")
    after = machine.shared.read(view, frame.rows)
    shape = step.operand_types[step.operands.index(step.group("values")[0])].shape
    indices = full(step.array(frame, "indices"), shape, frame.count).astype(np.int64)
    values, mask = full(values, shape, frame.count), step.optional(frame, "mask")
    places: list[Array] = [*np.indices(indices.shape, sparse=True)]
    places[step.number("axis") + 1] = indices
    flat = np.ravel_multi_index(tuple(np.broadcast_arrays(*places)), after.shape)
    chosen = np.broadcast_to(True if mask is None else mask, indices.shape)
    if len(np.unique(flat[chosen])) < chosen.sum() and any(map(machine.is_used, step.results)):
        raise step.not_run("several of its elements update one address, in unspecified order")
    before = after.reshape(-1)[flat]
    combine = combining(machine.arithmetic, str(step.attribute("atomic_rmw_op")), after.dtype)
    if combine is None:
        raise step.not_run("irscope does not execute this atomic operation")
    # One after another: NumPy's own form for repeated places is for plain ufuncs alone.
    whole = after.reshape(-1)
    for place, value in zip(flat[chosen].tolist(), values[chosen], strict=True):
        whole[place : place + 1] = combine(whole[place : place + 1], value.reshape(1))
    machine.shared.write(view, whole.reshape(after.shape), frame.rows)
    return [before for _ in step.results]


# ── views ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _index(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view, place = _strided(step, frame), step.array(frame, "index")
    offset = view.offset + place.astype(np.int64) * view.strides[0]
    return (replace(view, offset=offset, shape=view.shape[1:], strides=view.strides[1:]),)


def _sliced(view: MemoryView, offsets: Sequence[Array | int], shape: tuple[int, ...]) -> MemoryView:
    begin = view.offset
    for offset, stride in zip(offsets, view.strides, strict=True):
        begin = begin + np.asarray(offset, np.int64) * stride
    kept = view.strides[len(view.shape) - len(shape) :]
    return replace(view, offset=begin, shape=shape, strides=kept)


def _strided(step: Step, frame: Bindings) -> MemoryView:
    """The view that an operation takes a part of; raises NotRun if a reshape left it without strides."""
    view = step.view(frame, "src")
    if view.lies_as:
        raise step.not_run("its operand is a reshape of transposed memory")
    return view


def _subslice(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    offsets = step.arrays(frame, "offsets") or step.numbers("offsets")
    return (_sliced(_strided(step, frame), offsets, step.shape),)


def _tensor_subslice(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view = _strided(step, frame)
    # Before Triton 3.9 it is called N.
    column = step.number("offset" if step.attribute("N") is None else "N")
    return (_sliced(view, (*(0,) * (len(view.shape) - 1), column), step.shape),)


def _transposed(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view, order = _strided(step, frame), step.numbers("order")
    shape, strides = (tuple(sizes[axis] for axis in order) for sizes in (view.shape, view.strides))
    return (replace(view, shape=shape, strides=strides),)


def _is_whole(view: MemoryView) -> bool:
    size = view.dtype.itemsize
    if view.lies_as:
        return False
    for length, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if length > 1 and stride != size:
            return False
        size *= length
    return True


def _reshaped(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view = step.view(frame, "src")
    if not _is_whole(view):
        return (replace(view, shape=step.shape, lies_as=view.lies_as or view.shape),)
    return (replace(view, shape=step.shape, strides=contiguous(step.shape, view.dtype.itemsize)),)


def _reinterpreted(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view, dtype = step.view(frame, "src"), dtype_of(step.type)
    strides = contiguous(step.shape, dtype.itemsize)
    if not _is_whole(view):
        if view.lies_as or len(step.shape) != len(view.shape) or view.strides[-1] != view.dtype.itemsize:
            raise step.not_run("the reinterpreted memory has gaps or is transposed")
        # Rows lie as far apart as before.
        strides = (*view.strides[:-1], dtype.itemsize)
    form = form_of(step.type, machine.module)
    return (replace(view, shape=step.shape, strides=strides, dtype=dtype, form=form),)


# ── asynchronous copies ───────────────────────────────────────────────────────────────────────────────────────────


def _begin_copy(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view = step.view(frame, "result" if step.group("result") else "dest")
    values = masked_load(machine, step, frame, "src" if step.group("src") else "ptr", view.dtype)
    machine.shared.copy(view, _spread(values, view), frame.rows)
    return (_TOKEN,)


def _spread(values: Array, view: MemoryView) -> Array:
    shaped = of_rank(values, len(view.shape))
    return np.broadcast_to(shaped, (shaped.shape[0], *view.shape))


def _copy_to_global(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = machine.shared.read(step.view(frame, "src"), frame.rows)
    dtype = step.view(frame, "src").dtype
    machine.memory.store(step.array(frame, "dst"), values, step.optional(frame, "mask"), frame.rows, dtype)
    return [_TOKEN] * len(step.results)


def _copy_to_tensor_memory(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    source, target = step.view(frame, "src"), step.view(frame, "dst")
    if source.shape != target.shape or source.dtype != target.dtype:
        raise step.not_run("it copies tiles of scales, whose order is undocumented")
    machine.shared.write(target, machine.shared.read(source, frame.rows), frame.rows)
    _signal(machine, step, frame, None)
    return [_TOKEN] * len(step.results)


def _commit(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return (np.array([machine.shared.commit(frame.rows)], np.int64),)


def _wait_for_groups(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """Without a number it waits for the groups of its tokens, and those before."""
    if step.operation.attribute_texts.get("num") is not None:
        machine.shared.wait(frame.rows, step.number("num"))
    else:
        machine.shared.wait(frame.rows, 0, [int(frame.array(value).max()) for value in step.operands])
    return [_TOKEN] * len(step.results)


def _begin_tile(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """A copy of a tile of a tensor, which an mbarrier waits for, or a counter."""
    predicate = _predicate(step, frame)
    index = np.arange(frame.count) if predicate is None else np.flatnonzero(predicate)
    part = frame if predicate is None else frame.part(index)
    if step.group("offsets"):
        raise step.not_run("irscope does not execute im2col copies")
    if len(index):
        view = step.view(part, "result")
        barrier = step.view(part, "barrier") if step.group("barrier") else None
        machine.shared.copy(view, load_described(machine, step, part, view.shape), part.rows, barrier)
    return _commit(machine, step, frame) if step.results else ()


def _write_tile(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    results = write_described(machine, step, frame)
    _signal(machine, step, frame, None)
    return results


def _done(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """What it orders or frees is in order already, since the machine does one operation after another."""
    return [_TOKEN] * len(step.results)


# ── mbarriers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _init_barrier(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    machine.shared.init_barrier(step.view(frame, "alloc"), step.number("count", 1), frame.rows)
    return ()


def _arrive(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    count, size = step.number("count", 1), step.number("size", 0)
    clusters = machine.module.option("num-ctas")
    if size and isinstance(clusters, int) and clusters > 1:
        raise NotRun("irscope does not execute mbarriers of a cluster, where each CTA counts its own bytes")
    machine.shared.arrive(step.view(frame, "alloc"), frame.rows, count, size, _predicate(step, frame))
    return [_TOKEN] * len(step.results)


def _arrive_after_copies(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    machine.shared.commit(frame.rows)
    machine.shared.wait(frame.rows, 0)
    machine.shared.arrive(step.view(frame, "barrier"), frame.rows)
    return ()


def _wait_barrier(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    view, mask = step.view(frame, "alloc"), _predicate(step, frame)
    phase = np.broadcast_to(step.array(frame, "phase"), frame.count)
    is_ready = partial(machine.shared.is_ready, view, phase, frame.rows, mask)
    what = partial(machine.shared.describe_wait, view, phase, frame.rows)
    machine.partitions.wait(is_ready, what, step.operation)
    return ()


def _signal(machine: Machine, step: Step, frame: Bindings, predicate: Array | None) -> None:
    wanted = step.group("barrier_preds")
    for place, barrier in enumerate(step.group("barriers") or step.group("barrier")):
        mask = np.broadcast_to(True if predicate is None else predicate, frame.count)
        if place < len(wanted):
            mask = mask & frame.array(wanted[place])
        machine.shared.arrive(cast(MemoryView, frame.held(barrier)), frame.rows, 1, 0, mask)


def _phase(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return (machine.shared.phase(step.view(frame, "alloc"), frame.rows).astype(np.int32),)


def _try_cancel(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """Cluster launch control: no launch is ever cancelled, since the machine runs each program by itself."""
    views = (cast(MemoryView, frame.held(value)) for value in step.operands[:2])
    # The answer has two integers, the barrier is one.
    barrier, view = sorted(views, key=lambda one: one.shape)
    nothing = np.zeros((1,) * (len(view.shape) + 1), view.dtype)
    machine.shared.copy(view, np.broadcast_to(nothing, (1, *view.shape)), frame.rows, barrier)
    return ()


def _nothing_cancelled(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return [np.zeros(1, np.bool_ if kind.bits == 1 else np.int32) for kind in step.types]


def _ballot(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    if step.operand_types[1].shape:
        raise step.not_run("its predicate is a tensor")
    mask, holds = (frame.array(value) for value in step.operands)
    return (np.where(holds, mask, np.zeros(1, mask.dtype)),)


def _commit_matrix(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    _signal(machine, step, frame, _predicate(step, frame))
    return ()


# ── matrix units ──────────────────────────────────────────────────────────────────────────────────────────────────


def _matrices(machine: Machine, step: Step, frame: Bindings) -> tuple[Array, Array]:
    left, right = (elements_of(machine, step, frame, name) for name in ("a", "b"))
    return left, right


def _warp_group_dot(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    left, right = _matrices(machine, step, frame)
    accumulator = step.array(frame, "c")
    used = step.optional(frame, "useC")
    if used is not None and not used.all():
        accumulator = np.where(used.reshape(-1, 1, 1), accumulator, np.zeros(1, accumulator.dtype))
    precision = str(step.attribute("inputPrecision") or "ieee")
    return (machine.arithmetic.product(left, right, accumulator, step.dtype, precision),)


def _accumulated(
    machine: Machine, step: Step, frame: Bindings, product: Callable[[Array, Any], Array]
) -> Sequence[Held]:
    """A matrix instruction that adds to tensor memory; `product`: of an accumulator and its type."""
    view, predicate = step.view(frame, "d"), _predicate(step, frame)
    before = machine.shared.read(view, frame.rows)
    used = step.array(frame, "useD")
    before = np.where(used.reshape(-1, *(1,) * len(view.shape)), before, np.zeros(1, before.dtype))
    machine.shared.write(view, product(before, view.dtype), frame.rows, predicate)
    _signal(machine, step, frame, predicate)
    return [_TOKEN] * len(step.results)


def _tensor_dot(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    left, right = _matrices(machine, step, frame)
    # Its float32 operands are read as TF32.
    multiply = machine.arithmetic.product
    return _accumulated(machine, step, frame, lambda before, dtype: multiply(left, right, before, dtype, "tf32"))


def _tensor_dot_scaled(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    operands = _matrices(machine, step, frame)
    kinds = (str(step.attribute("a_type")), str(step.attribute("b_type")))
    scales = [machine.shared.read(step.view(frame, name), frame.rows) for name in ("a_scale", "b_scale")]
    if any(one.ndim != 3 for one in scales):
        raise step.not_run("its scales lie in tiles of undocumented order")
    pair = (scales[0], scales[1])
    return _accumulated(
        machine,
        step,
        frame,
        lambda before, dtype: scaled_product(machine.arithmetic, operands, kinds, pair, before, dtype),
    )


# ── warp specialisation ───────────────────────────────────────────────────────────────────────────────────────────


def _specialize(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    main, *others = step.operation.regions
    captured = [frame.held(value) for value in step.operands]
    everyone = np.arange(frame.count)
    found: list[Held] = []

    def run_main() -> None:
        found.extend(machine.region(main, frame, ()))

    parts = [partial(machine.region, region, frame.part(everyone), captured) for region in others]
    each = [machine.module.option("num-warps"), *step.operation.partition_warps[1:]]
    lanes = machine.module.option("threads-per-warp")
    width = lanes if isinstance(lanes, int) else 32
    machine.partition_threads = tuple(one * width if isinstance(one, int) else 0 for one in each)
    machine.partitions.run([run_main, *parts])
    return found


def _arrive_named(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """Count the partition's threads at a named barrier; each time that as many came as it waits for, it opens."""
    place, numbers = machine.partitions.number, np.unique(step.array(frame, "bar"))
    threads = machine.partition_threads[place] if place is not None and place < len(machine.partition_threads) else 0
    if not threads or numbers.size != 1:
        raise step.not_run("the threads that arrive at it are unknown")
    programs = len(machine.program_ids[0])
    no_arrivals = (np.zeros(programs, np.int64), np.zeros(programs, np.int64))
    arrived, opened = machine.named_barriers.setdefault(int(numbers[0]), no_arrivals)
    arrived[frame.rows] += threads
    full_rows = frame.rows[arrived[frame.rows] >= step.array(frame, "numThreads")]
    arrived[full_rows] = 0
    opened[full_rows] += 1
    return ()


def _wait_named(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    number = int(step.array(frame, "bar").reshape(-1)[0])
    known = machine.named_barriers.get(number)
    before = np.zeros(frame.count, np.int64) if known is None else known[1][frame.rows].copy()
    _arrive_named(machine, step, frame)
    opened = machine.named_barriers[number][1]
    machine.partitions.wait(
        lambda: bool((opened[frame.rows] > before).all()),
        lambda: f"the wait at named barrier {number} never completes: too few threads arrive", step.operation,
    )  # fmt: skip
    return ()


def _masked(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """A region under a predicate; where that does not hold its results are poison."""
    holds = np.broadcast_to(frame.array(step.operands[0]), frame.count)
    if holds.all():
        return machine.region(step.operation.regions[0], frame, ())
    index = np.flatnonzero(holds)
    if not len(index):
        return [machine.arithmetic.poison(dtype_of(one), len(one.shape)) for one in step.types]
    results = machine.region(step.operation.regions[0], frame.part(index), ())
    found: list[Held] = []
    for kind, value in zip(step.types, results, strict=True):
        undefined = machine.arithmetic.poison(dtype_of(kind), len(kind.shape))
        whole = np.broadcast_to(undefined, (frame.count, *cast(Array, value).shape[1:])).copy()
        whole[index] = value
        found.append(whole)
    return found


def _stage_predicate(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """Whether a stage of a pipelined loop has work in an iteration."""
    induction, start, stop, stride = (frame.array(value) for value in step.operands)
    last, stage = step.number("maxStage"), step.number("stage")
    return ((induction >= start + stage * stride) & (induction < stop - (last - stage) * stride),)


GPU_OPERATIONS: Mapping[str, Executor] = {
    "local_alloc": _allocate, "tmem_alloc": _allocate, "local_load": _local_load, "tmem_load": _local_load,
    "local_load_packed_tranposed": _local_load, "local_store": _local_store, "tmem_store": _local_store,
    "local_gather": _local_gather, "local_scatter": _local_scatter, "memdesc_index": _index,
    "memdesc_subview": _subslice, "memdesc_subslice": _subslice, "tmem_subslice": _tensor_subslice,
    "memdesc_trans": _transposed, "memdesc_reshape": _reshaped, "memdesc_reinterpret": _reinterpreted,
    "async_copy_global_to_local": _begin_copy, "buffer_load_to_local": _begin_copy,
    "async_copy_local_to_global": _copy_to_global, "tmem_copy": _copy_to_tensor_memory,
    "async_commit_group": _commit, "async_wait": _wait_for_groups, "async_tma_copy_global_to_local": _begin_tile,
    "async_tma_gather": _begin_tile, "async_tdm_copy_global_to_local": _begin_tile,
    "async_tma_copy_local_to_global": write_described, "async_tma_scatter": write_described,
    "async_tma_reduce": write_described, "async_tdm_copy_local_to_global": _write_tile,
    "init_barrier": _init_barrier,
    "barrier_expect": _arrive, "arrive_barrier": _arrive, "async_copy_mbarrier_arrive": _arrive_after_copies,
    "arrive_barrier_named": _arrive_named, "wait_barrier_named": _wait_named,
    "wait_barrier": _wait_barrier, "tc_gen5_commit": _commit_matrix, "warp_group_dot": _warp_group_dot,
    "tc_gen5_mma": _tensor_dot, "tc_gen5_mma_scaled": _tensor_dot_scaled, "warp_specialize": _specialize,
    "mask": _masked, "predicate_stage": _stage_predicate, "local_atomic_scatter_rmw": _local_atomic,
    "async_tdm_wait": _wait_for_groups, "async_copy_lds_barrier_arrive": _arrive_after_copies,
    "read_barrier_phase": _phase, "clc_try_cancel": _try_cancel, "vote_ballot_sync": _ballot,
    "clc_load_result": _nothing_cancelled, "clc_read_result": _nothing_cancelled,
    "clc_is_canceled": _nothing_cancelled, "clc_get_program_id": _nothing_cancelled,
    **dict.fromkeys(("local_dealloc", "inval_barrier", "async_tma_store_wait"), _done),
}  # fmt: skip
