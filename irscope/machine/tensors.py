"""Operations on whole tensors: shapes, reductions, scans, gathers, histograms and dots."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from irscope.ir.mlir.model import Operation
from irscope.machine.arithmetic import Arithmetic
from irscope.machine.control import Bindings, Executor, Machine, Step
from irscope.machine.values import Array, Held, narrow_float, unsigned

# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _make_range(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return (np.arange(step.number("start"), step.number("end"), dtype=step.dtype)[None],)


def _splat(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = frame.array(step.operands[0])
    return (values.reshape(values.shape[0], *(1,) * len(step.shape)),)


def _unsplat(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = frame.array(step.operands[0])
    return (values.reshape(values.shape[0], -1)[:, 0],)


def _expand_dims(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return (np.expand_dims(frame.array(step.operands[0]), step.number("axis") + 1),)


def _same(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """The values are the same: of another layout, of another shape that repeats them, or waited for."""
    return [frame.held(value) for value in step.operands[: len(step.results)]]


def _reshape(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = step.full(frame, 0)
    return (values.reshape(values.shape[0], *step.shape),)


def _transpose(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    order = step.numbers("order")
    return (frame.array(step.operands[0]).transpose(0, *(axis + 1 for axis in order)),)


def _join(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return (np.stack(np.broadcast_arrays(*[frame.array(value) for value in step.operands]), axis=-1),)


def _split(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = frame.array(step.operands[0])
    if values.shape[-1] == 1:
        return (values[..., 0], values[..., 0])
    return (values[..., 0], values[..., 1])


def _concatenate(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    programs = max(frame.array(value).shape[0] for value in step.operands)
    parts = [step.full(frame, place, programs) for place in range(len(step.operands))]
    axes = [axis for axis, size in enumerate(step.shape) if size != parts[0].shape[axis + 1]]
    if len(axes) > 1:
        raise step.not_run("it concatenates along several axes")
    return (np.concatenate(parts, axis=(axes[0] if axes else 0) + 1),)


def _extract_slice(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = step.full(frame, 0)
    spans = [slice(at, at + size) for at, size in zip(step.numbers("static_offsets"), step.shape, strict=True)]
    return (values[(slice(None), *spans)],)


# ── reductions and scans ──────────────────────────────────────────────────────────────────────────────────────────


def _fold_of(step: Step) -> Operation | None:
    """The operation that a combine region consists of; None if it consists of more."""
    operations = step.operation.children
    if len(operations) != 2 or len(operations[0].operands) != 2:
        return None
    block = step.operation.regions[0].blocks[0]
    uses = set(operations[0].operands) == set(block.arguments) and len(block.arguments) == 2
    return operations[0] if uses and operations[1].operands == operations[0].results else None


def _reduce(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """The order of the combinations is open; here it is a tree, or what NumPy's reduction does."""
    axis = step.number("axis") + 1
    operands = [step.full(frame, place) for place in range(len(step.operands))]
    fold = _fold_of(step)
    if fold is not None:
        folded = machine.arithmetic.fold(fold.opcode, operands[0], axis)
        if folded is not None:
            return (folded,)
    while (size := operands[0].shape[axis]) > 1:
        half = size // 2
        if size % 2:
            raise step.not_run("the size of its axis is not a power of two")
        left = [np.take(one, range(half), axis) for one in operands]
        right = [np.take(one, range(half, size), axis) for one in operands]
        operands = _combined(machine, step, frame, left, right)
    return [np.take(one, 0, axis) for one in operands]


def _combined(
    machine: Machine, step: Step, frame: Bindings, left: Sequence[Array], right: Sequence[Array]
) -> list[Array]:
    shape = np.broadcast_shapes(*[one.shape for one in (*left, *right)])
    flat = [np.broadcast_to(one, shape).reshape(-1) for one in (*left, *right)]
    # Each element is a program of its own to the region; those of one program see its values.
    owners = np.repeat(np.arange(shape[0]), int(np.prod(shape[1:])))
    found = machine.region(step.operation.regions[0], frame.part(owners), flat)
    return [np.broadcast_to(cast(Array, one), len(owners)).reshape(shape) for one in found]


def _scan(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    axis, is_reverse = step.number("axis") + 1, bool(step.attribute("reverse"))
    operands = [step.full(frame, place) for place in range(len(step.operands))]
    if is_reverse:
        operands = [np.flip(one, axis) for one in operands]
    distance, size = 1, operands[0].shape[axis]
    while distance < size:
        earlier = [np.take(one, range(size - distance), axis) for one in operands]
        later = [np.take(one, range(distance, size), axis) for one in operands]
        sums = _combined(machine, step, frame, earlier, later)
        heads = [np.take(one, range(distance), axis) for one in operands]
        operands = [np.concatenate(pair, axis=axis) for pair in zip(heads, sums, strict=True)]
        distance *= 2
    return [np.flip(one, axis) if is_reverse else one for one in operands]


def _histogram(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = step.full(frame, 0)
    mask = step.optional(frame, "mask")
    bins = step.shape[0]
    inside = unsigned(values) < bins
    if mask is not None:
        inside = inside & mask
    inside, values = np.broadcast_arrays(inside, values)
    places = values.astype(np.int64) + np.arange(values.shape[0])[:, None] * bins
    counts = np.bincount(places[inside], minlength=values.shape[0] * bins)
    return (counts.reshape(-1, bins).astype(step.dtype),)


def _gather(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    programs = max(frame.array(value).shape[0] for value in step.operands)
    source, indices = (step.full(frame, place, programs) for place in range(2))
    axis = step.number("axis") + 1
    if (unsigned(indices) >= source.shape[axis]).any():
        raise step.not_run("an index is out of bounds")
    # Other axes of the source may be longer than those of the indices.
    spans = [slice(None) if at in (0, axis) else slice(size) for at, size in enumerate(indices.shape)]
    return (np.take_along_axis(source[tuple(spans)], indices.astype(np.int64), axis),)


# ── dots ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _dot(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    programs = max(frame.array(value).shape[0] for value in step.operands[:2])
    left, right = (step.full(frame, place, programs) for place in range(2))
    precision = str(step.attribute("inputPrecision") or "ieee")
    return (machine.arithmetic.product(left, right, frame.array(step.operands[2]), step.dtype, precision),)


_ELEMENTS = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def _unpacked(arithmetic: Arithmetic, values: Array, kind: str, axis: int) -> Array:
    """Elements of a microscaling format as float32; those of four bits lie in pairs along an axis."""
    if kind == "e2m1":
        low, high = _FP4[unsigned(values) & 15], _FP4[unsigned(values) >> 4]
        pairs = np.stack((low, high), axis=axis + 1)
        pairs = pairs.reshape(*values.shape[:axis], values.shape[axis] * 2, *values.shape[axis + 1 :])
        return arithmetic.embed(pairs)
    if kind in _ELEMENTS and values.dtype.itemsize == 1:
        return arithmetic.embed(unsigned(values).view(narrow_float(_ELEMENTS[kind])).astype(np.float32))
    return arithmetic.convert(values, np.dtype(np.float32))


def _factors(arithmetic: Arithmetic, scales: Array) -> Array:
    """Scales as float32: powers of two (e8m0) where they are integers."""
    if scales.dtype.kind != "i":
        return arithmetic.convert(scales, np.dtype(np.float32))
    bits = unsigned(scales)
    powers = np.ldexp(np.float32(1), bits.astype(np.int32) - 127)
    return arithmetic.embed(np.where(bits == 255, np.float32(np.nan), powers).astype(np.float32))


def _scales(arithmetic: Arithmetic, scales: Array, columns: int) -> Array:
    return np.repeat(_factors(arithmetic, scales), columns // scales.shape[-1], axis=-1)


def scaled_product(
    arithmetic: Arithmetic, operands: tuple[Array, Array], kinds: tuple[str, str],
    scales: tuple[Array | None, Array | None], accumulator: Array | None, dtype: np.dtype[Any],
) -> Array:  # fmt: skip
    """A dot whose operands have a scale for every 16 or 32 elements along k: of `left` (m, k), of `right` (n, k)."""
    left = _unpacked(arithmetic, operands[0], kinds[0], operands[0].ndim - 1)
    right = _unpacked(arithmetic, operands[1], kinds[1], operands[1].ndim - 2)
    if scales[0] is not None:
        left = arithmetic.multiply(left, _scales(arithmetic, scales[0], left.shape[-1]))
    if scales[1] is not None:
        factors = _scales(arithmetic, scales[1], right.shape[-2])
        right = arithmetic.multiply(right, np.swapaxes(factors, -1, -2))
    return arithmetic.product(left, right, accumulator, dtype, "ieee")


def _dot_scaled(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    if step.attribute("lhs_k_pack") is False or step.attribute("rhs_k_pack") is False:
        raise step.not_run("its elements are not packed along k")
    names = ("a", "b", "a_scale", "b_scale")
    found: dict[str, Array | None] = {}
    for name in names:
        group = step.group(name)
        found[name] = step.full(frame, step.operands.index(group[0])) if group else None
    kinds = (str(step.attribute("a_elem_type")), str(step.attribute("b_elem_type")))
    operands = (cast(Array, found["a"]), cast(Array, found["b"]))
    scales = (found["a_scale"], found["b_scale"])
    accumulator = step.array(frame, "c")
    return (scaled_product(machine.arithmetic, operands, kinds, scales, accumulator, step.dtype),)


def _upcast(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """Elements of a microscaling format in a wider one, times their scales where it has some."""
    arithmetic, opcode = machine.arithmetic, step.opcode
    kind = "e2m1" if "fp4" in opcode else str(step.attribute("fp_type"))
    axis = len(step.operand_types[0].shape) if opcode == "upcast_mxfp" else step.number("axis", 0) + 1
    values = _unpacked(arithmetic, step.full(frame, 0), kind, axis)
    if len(step.operands) > 1:
        factors = _factors(arithmetic, step.full(frame, 1))
        if opcode == "upcast_mxfp":
            factors = np.repeat(factors, values.shape[-1] // factors.shape[-1], axis=-1)
        values = arithmetic.multiply(values, factors)
    return (arithmetic.convert(values, step.dtype),)


def _add_pointer(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    pointer, offset = (frame.array(value) for value in step.operands)
    # An i1 stands for eight bits in memory.
    element = step.type if step.type.form == "pointer" else step.type.element
    pointee = element.element if element is not None else None
    if pointee is None:
        raise step.not_run("its type does not name the pointed-to type")
    size = max(pointee.bits if pointee.form != "pointer" else 64, 8) // 8
    return (pointer + offset.astype(np.int64) * size,)


TENSORS: Mapping[str, Executor] = {
    "make_range": _make_range, "splat": _splat, "unsplat": _unsplat, "expand_dims": _expand_dims,
    "reshape": _reshape, "trans": _transpose, "join": _join, "split": _split, "cat": _concatenate,
    "concat": _concatenate, "extract_slice": _extract_slice, "reduce": _reduce, "scan": _scan,
    "histogram": _histogram, "gather": _gather, "dot": _dot, "dot_scaled": _dot_scaled, "fp4_to_fp": _upcast,
    "upcast_mxfp": _upcast,
    "scaled_upcast_fp4": _upcast, "scaled_upcast_fp8": _upcast, "addptr": _add_pointer, "int_to_ptr": _same,
    "ptr_to_int": _same,
    **dict.fromkeys(
        (
            "broadcast", "convert_layout", "set_auto_layout", "in_thread_transpose", "warp_group_dot_wait",
            "builtin.unrealized_conversion_cast",
        ),
        _same,
    ),
}  # fmt: skip
