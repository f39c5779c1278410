"""Loads, stores and atomics of global memory: by pointers, block pointers, tensor descriptors and buffers."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from irscope.errors import NeverEnds
from irscope.ir.mlir.types import Type
from irscope.machine.arithmetic import Arithmetic
from irscope.machine.control import Bindings, Executor, Machine, Step
from irscope.machine.values import Array, Descriptor, Held, MemoryView, dtype_of, take, unsigned

# ── pointers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _places(step: Step, frame: Bindings, pointer: str, dtype: np.dtype[Any]) -> Array:
    """The addresses of elements: pointers, or a pointer and the offsets of a buffer."""
    base = step.array(frame, pointer)
    if not step.group("offsets"):
        return base
    offsets = step.array(frame, "offsets")
    base = base.reshape(base.shape[0], *(1,) * (offsets.ndim - 1))
    # An offset is unsigned, in elements.
    return base + unsigned(offsets).astype(np.int64) * dtype.itemsize


def masked_load(machine: Machine, step: Step, frame: Bindings, pointer: str, dtype: np.dtype[Any]) -> Array:
    """What pointers, a mask and values for where it does not hold say."""
    mask = step.optional(frame, "mask")
    other = step.optional(frame, "falseVal" if step.group("falseVal") else "other")
    if mask is None and other is not None and other.dtype == np.bool_ and dtype != np.bool_:
        # The text does not tell one optional operand from another: its type does.
        mask, other = other, None
    return machine.memory.load(_places(step, frame, pointer, dtype), mask, other, dtype, frame.rows)


def _load(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    pointer = frame.held(step.operands[0])
    if isinstance(pointer, Descriptor):
        checked = step.numbers("boundaryCheck")
        filled = replace(pointer, fills_nan=_fills_nan(step))
        return (_tile(machine, filled, pointer.offsets, frame, checked),)
    return (masked_load(machine, step, frame, "ptr", step.dtype),)


def _fills_nan(step: Step) -> bool:
    return str(step.attribute("padding")) in ("2", "nan", "pad_nan")


def _store(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    pointer, values = frame.held(step.group("ptr")[0]), step.array(frame, "value")
    if isinstance(pointer, Descriptor):
        addresses, mask = _addresses(pointer, pointer.offsets, step.numbers("boundaryCheck"))
        machine.memory.store(addresses, values, mask, frame.rows, pointer.dtype)
    else:
        mask, dtype = step.optional(frame, "mask"), step.dtype_of("value")
        machine.memory.store(_places(step, frame, "ptr", dtype), values, mask, frame.rows, dtype)
    return ()


_COMBINE: dict[str, np.ufunc] = {
    "add": np.add, "fadd": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def _unsigned(function: np.ufunc) -> Callable[[Array, Array], Array]:
    return lambda old, new: function(unsigned(old), unsigned(new)).view(old.dtype)


_COMBINE_UNSIGNED = {"umax": _unsigned(np.maximum), "umin": _unsigned(np.minimum)}


def _exchange(old: Array, new: Array) -> Array:
    return new


def combining(arithmetic: Arithmetic, kind: str, dtype: np.dtype[Any]) -> Callable[..., Array] | None:
    """The function of an atomic operation on elements of a type; None for an unknown one."""
    ufunc = _COMBINE.get(kind)
    if ufunc is not None:
        return arithmetic.atomic(ufunc, dtype)
    return _COMBINE_UNSIGNED.get(kind) or (_exchange if kind == "exch" else None)


def _atomic(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """An atomic operation on elements; returns the old ones."""
    name = "val" if step.group("val") else "value"
    values, mask, dtype = step.array(frame, name), step.optional(frame, "mask"), step.dtype_of(name)
    addresses, kind = _places(step, frame, "ptr", dtype), str(step.attribute("atomic_rmw_op"))
    function = combining(machine.arithmetic, kind, dtype)
    if function is None:
        raise step.not_run(f"irscope does not execute the atomic operation {kind!r}")
    is_used = dtype.kind not in "if" or any(map(machine.is_used, step.results))
    old = machine.memory.update(addresses, [values], mask, function, frame.rows, dtype, is_used=is_used)
    return [old for _ in step.results]


def _exchanged(old: Array, expected: Array, new: Array) -> Array:
    # Bits are compared, not numbers.
    return np.where(unsigned(old) == unsigned(expected), new, old)


def _compare_and_swap(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = [step.array(frame, "cmp"), step.array(frame, "val")]
    dtype = step.dtype_of("val")
    return (machine.memory.update(_places(step, frame, "ptr", dtype), values, None, _exchanged, frame.rows, dtype),)


def _poll(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """A wait for a value: no program that runs at the same time can bring it."""
    expected = step.array(frame, "expected")
    found = machine.memory.load(step.array(frame, "ptr"), None, None, step.dtype_of("expected"), frame.rows) == expected
    if not found.all() and len(step.operands) < 3:
        raise NeverEnds(f"{step.operation.name}, line {step.operation.first_line}: the wait never completes")
    return (found,)


# ── tiles ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _along(values: Array, axis: int, rank: int) -> Array:
    """Numbers by program, or a range, along one axis of a tile."""
    shape = [1] * rank
    if values.ndim > 1:
        shape[axis] = values.shape[1]
    return values.reshape(values.shape[0], *shape)


def _addresses(
    tensor: Descriptor, offsets: Sequence[Array], checked: Sequence[int] | None = None, rows: Array | None = None
) -> tuple[Array, Array | None]:
    """The addresses of a tile's elements, and which lie in the tensor.

    `checked`: the axes along which that is looked at; None for all. `rows`: which rows of the tensor a gather takes.
    """
    rank = len(tensor.block)
    addresses = tensor.base.reshape(-1, *(1,) * rank)
    mask: Array | None = None
    for axis, (size, offset) in enumerate(zip(tensor.block, offsets, strict=True)):
        steps = np.arange(size, dtype=np.int64)[None] if rows is None or axis else rows.astype(np.int64)
        index = _along(offset.astype(np.int64), axis, rank) + _along(steps, axis, rank)
        stride = _along(tensor.strides[axis].astype(np.int64), axis, rank)
        addresses = addresses + index * (stride * tensor.dtype.itemsize)
        if checked is None or axis in checked:
            inside = (index >= 0) & (index < _along(tensor.sizes[axis].astype(np.int64), axis, rank))
            mask = inside if mask is None else mask & inside
    return addresses, mask


def _tile(
    machine: Machine, tensor: Descriptor, offsets: Sequence[Array], frame: Bindings,
    checked: Sequence[int] | None = None, rows: Array | None = None,
) -> Array:  # fmt: skip
    addresses, mask = _addresses(tensor, offsets, checked, rows)
    other = None
    if tensor.fills_nan:
        other = machine.arithmetic.embed(np.full((1,) * addresses.ndim, np.nan).astype(tensor.dtype))
    return machine.memory.load(addresses, mask, other, tensor.dtype, frame.rows)


def load_tile(
    machine: Machine, tensor: Descriptor, offsets: Sequence[Array], frame: Bindings, shape: Sequence[int],
    rows: Array | None = None,
) -> Array:  # fmt: skip
    """A tile of a tensor, in a shape that may leave out leading axes of the size 1; what lies outside is filled."""
    if rows is not None:
        tensor, offsets = _gathered(tensor, offsets, rows)
    values = _tile(machine, tensor, offsets, frame, rows=rows)
    values = np.broadcast_to(values, (values.shape[0], *tensor.block))
    return values.reshape(values.shape[0], *shape)


def _gathered(tensor: Descriptor, offsets: Sequence[Array], rows: Array) -> tuple[Descriptor, Sequence[Array]]:
    return replace(tensor, block=(rows.shape[1], tensor.block[-1])), (np.zeros(1, np.int64), *offsets)


def store_tile(
    machine: Machine, tensor: Descriptor, offsets: Sequence[Array], values: Array, frame: Bindings,
    rows: Array | None = None,
) -> None:  # fmt: skip
    """Write a tile of a tensor; what lies outside is not written."""
    if rows is not None:
        tensor, offsets = _gathered(tensor, offsets, rows)
    addresses, mask = _addresses(tensor, offsets, rows=rows)
    machine.memory.store(addresses, of_rank(values, len(tensor.block)), mask, frame.rows, tensor.dtype)


def of_rank(values: Array, rank: int) -> Array:
    """Tensors with as many axes, behind that of the programs: leading ones of the size 1 are added, or left out."""
    missing = rank + 1 - values.ndim
    if missing < 0:
        return values.reshape(values.shape[0], *values.shape[1 - missing :])
    return values.reshape(values.shape[0], *(1,) * missing, *values.shape[1:])


def _reduce_tile(
    machine: Machine, tensor: Descriptor, offsets: Sequence[Array], values: Array, frame: Bindings, step: Step
) -> None:
    """Combine a tile with a tensor, each element at once."""
    addresses, mask = _addresses(tensor, offsets)
    kind = str(step.attribute("kind"))
    ufunc = _COMBINE.get(kind)
    if ufunc is None:
        raise step.not_run(f"irscope does not execute the reduction {kind!r}")
    ufunc, block = machine.arithmetic.atomic(ufunc, tensor.dtype), of_rank(values, len(tensor.block))
    machine.memory.update(addresses, [block], mask, ufunc, frame.rows, tensor.dtype, is_used=False)


# ── descriptors ───────────────────────────────────────────────────────────────────────────────────────────────────


def _make_descriptor(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return (
        Descriptor(
            step.array(frame, "base"), step.arrays(frame, "shape"), step.arrays(frame, "strides"), step.shape,
            step.dtype, fills_nan=_fills_nan(step),
        ),
    )  # fmt: skip


def _make_block_pointer(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    tile = cast(Type, step.type.element)
    names = ("shape", "strides", "offsets")
    sizes, strides, offsets = (step.arrays(frame, name) for name in names)
    return (Descriptor(step.array(frame, "base"), sizes, strides, tile.shape, dtype_of(tile), offsets),)


def _advance(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    pointer = step.descriptor(frame, "ptr")
    moved = [old + new for old, new in zip(pointer.offsets, step.arrays(frame, "offsets"), strict=True)]
    return (replace(pointer, offsets=tuple(moved)),)


def tile_place(step: Step, frame: Bindings) -> tuple[Descriptor, Sequence[Array], Array | None]:
    """The tensor of an operation by descriptor, where its tile begins, and which rows a gather or a scatter takes."""
    rows = step.optional(frame, "x_offsets")
    names = ("y_offset",) if rows is not None else ("coord", "indices")
    return step.descriptor(frame, "desc"), [one for name in names for one in step.arrays(frame, name)], rows


def load_described(machine: Machine, step: Step, frame: Bindings, shape: Sequence[int]) -> Array:
    tensor, offsets, rows = tile_place(step, frame)
    return load_tile(machine, tensor, offsets, frame, shape, rows)


def _descriptor_load(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return (load_described(machine, step, frame, step.shape),)


def elements_of(machine: Machine, step: Step, frame: Bindings, name: str) -> Array:
    """The elements of an operand in registers or in shared memory."""
    held = frame.held(step.group(name)[0])
    return machine.shared.read(held, frame.rows) if isinstance(held, MemoryView) else cast(Array, held)


def write_described(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """Write a tile of registers or of shared memory, or combine it with what is there."""
    tensor, offsets, rows = tile_place(step, frame)
    values = elements_of(machine, step, frame, "src")
    if step.operation.kind == "atomic":
        _reduce_tile(machine, tensor, offsets, values, frame, step)
    else:
        store_tile(machine, tensor, offsets, values, frame, rows)
    return [np.zeros(1, np.int64)] * len(step.results)


def _scratch(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    size = -(-step.number("nbytes") // 128) * 128
    begin = machine.memory.allocate(size * frame.count)
    return (begin + np.arange(frame.count, dtype=np.int64) * size,)


def _tensormap(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """A tensor map in memory: its sizes and strides have the innermost axis first, the strides are in bytes."""
    sizes = tuple(reversed(step.arrays(frame, "global_dim")))
    strides = tuple(reversed(step.arrays(frame, "global_stride")))
    addresses = np.broadcast_to(step.array(frame, "desc_ptr"), frame.count)
    base = step.array(frame, "global_address")
    for place, address in enumerate(addresses):
        at = np.array([place])
        rows = [tuple(cast(Array, take(one, at)) for one in group) for group in ((base,), sizes, strides)]
        machine.tensormaps[int(address)] = (rows[0][0], rows[1], rows[2])
    return ()


def _described(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    addresses = np.broadcast_to(step.array(frame, "rawDesc"), frame.count)
    if any(int(address) not in machine.tensormaps for address in addresses):
        raise step.not_run("no tensor map was written at that address")
    maps = [machine.tensormaps[int(address)] for address in addresses]
    base = np.concatenate([one[0] for one in maps])
    sizes = tuple(map(np.concatenate, zip(*[one[1] for one in maps], strict=True)))
    strides = tuple(map(np.concatenate, zip(*[one[2] for one in maps], strict=True)))
    dtype = step.dtype
    in_elements = (*[one // dtype.itemsize for one in strides], np.ones(1, np.int64))
    return (Descriptor(base, sizes, in_elements, step.shape, dtype),)


ACCESSES: Mapping[str, Executor] = {
    **dict.fromkeys(("load", "buffer_load", "masked_load"), _load),
    **dict.fromkeys(("store", "buffer_store", "masked_store"), _store),
    **dict.fromkeys(("atomic_rmw", "buffer_atomic_rmw"), _atomic),
    **dict.fromkeys(("atomic_cas", "buffer_atomic_cas"), _compare_and_swap),
    **dict.fromkeys(("descriptor_load", "descriptor_gather"), _descriptor_load),
    **dict.fromkeys(("descriptor_store", "descriptor_scatter", "descriptor_reduce"), write_described),
    "atomic_poll": _poll, "make_tensor_descriptor": _make_descriptor, "make_tensor_ptr": _make_block_pointer,
    "advance": _advance, "global_scratch_alloc": _scratch, "tensormap_create": _tensormap,
    "reinterpret_tensor_descriptor": _described,
}  # fmt: skip
