"""Runs a capture: its IR at a stage or after a pass, with the arguments of its launch."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from irscope.errors import NotRun, UsageError, did_you_mean
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.arithmetic import Arithmetic
from irscope.machine.control import Observer
from irscope.machine.launch import NO_LIMITS, Given, HostDescriptor, Pointer, RunLimits, check_memory, run
from irscope.machine.values import Array, narrow_float
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument

StageOfRun = Literal["ttir", "ttgir"]
_PLAIN = (
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool",
)  # fmt: skip
_SHORT = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "i1": "bool",
}  # fmt: skip
"""Names of types as Triton writes them, which tensors that are not torch's may have."""


UNREAD = object()
"""In place of the elements of a tensor that the run does not look at: its memory is read-only, and takes none."""


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The arguments of a run, in memory of its own."""

    given: tuple[Given, ...]
    tensors: Mapping[str, Array]
    """Name → its elements: a view of the storage, which the run writes into."""
    made_up: tuple[str, ...]
    """The tensors whose elements were drawn at random, since neither the caller nor the capture holds them."""


def text_at(capture: Capture, stage: StageOfRun = "ttir", at: str = "") -> str:
    """The IR of a stage, or after the last pass of a name (`ttgir:pipeline`, `pipeline#2`); raises UsageError."""
    if not at:
        return capture.text(stage)
    named = [one for one in capture.passes() if _is_named(at, one.label, one.name, one.argument)]
    texts = [text for one in named if (text := capture.text_after(one)) is not None]
    if not texts:
        known = {one.name for one in capture.passes()}
        raise UsageError(f"no IR is recorded after the pass {at!r}.{did_you_mean(at, known, or_all=False)}")
    return texts[-1]


def _is_named(at: str, label: str, *names: str) -> bool:
    wanted = at.replace("-", "_")
    known = [label, label.partition(":")[2], *names]
    return any(
        wanted == one.replace("-", "_") for one in (*known, *(f"{label.partition(':')[0]}:{own}" for own in names))
    )


def captured_inputs(
    capture: Capture, values: Mapping[str, Any] | None = None, seed: int = 0, limits: RunLimits = NO_LIMITS
) -> Inputs:
    """The arguments of a capture's launch, or `values`, name → the elements of a tensor or a number.

    `seed`: of the elements that nobody knows: floats of a standard normal distribution, integers of the range that the
    capture states, or 0 and 1. Raises UsageError without a record, for a name that is no argument, and for elements of
    another shape; NotRun for tensors that are too large.
    """
    record = capture.launch.record
    if record is None:
        raise UsageError(f"{capture.name} was compiled without a launch, so its arguments are unknown.")
    given = dict(values or {})
    names = [one.path for one in record.arguments]
    for name in given:
        if name not in names:
            raise UsageError(f"{capture.name} has no argument {name!r}.{did_you_mean(name, names)}")
    needed = sum(max(one.storage_bytes or 0, prod(one.shape)) for one in record.arguments)
    check_memory(needed, limits)
    random = np.random.default_rng(seed)
    constants = {name for name, kind in capture.launch.signature if kind == "constexpr"}
    rows: list[Given] = []
    tensors: dict[str, Array] = {}
    made_up: list[str] = []
    storages: dict[str, NDArray[np.uint8]] = {}
    for one in record.arguments:
        if one.path in constants:
            continue
        if one.kind == "scalar":
            rows.append(_scalar(one, given))
            continue
        shared = storages.get(one.shares)
        elements = given.get(one.path)
        pointer, tensor = _storage(one, shared, is_read=elements is not UNREAD)
        storages[one.path] = pointer.storage
        if elements is None:
            elements = _recorded(one, one.data)
        # Of a storage whose elements were recorded with another argument, what stands there is this one's too.
        is_known = elements is None and pointer.storage is shared and one.shares not in made_up
        if elements is None and not is_known:
            elements = _drawn(one, tensor.shape, random)
            made_up.append(one.path)
        if not is_known and elements is not UNREAD and tensor.flags.writeable:
            elements = np.asarray(elements)
            if elements.shape != tensor.shape:
                raise UsageError(f"{one.path} has the shape {[*tensor.shape]} in this launch, not {[*elements.shape]}.")
            tensor[...] = elements.astype(tensor.dtype, copy=False)
        tensors[one.path] = tensor
        rows.append(pointer if one.kind == "tensor" else HostDescriptor(pointer, one.shape, one.strides))
    return Inputs(tuple(rows), tensors, tuple(made_up))


def _scalar(one: Argument, given: Mapping[str, Any]) -> int | float | bool:
    value = given.get(one.path, one.value)
    if value is None:
        raise UsageError(f"the capture does not hold the value of {one.path}: give one.")
    return float(value) if isinstance(value, str) else value


def _dtype(one: Argument) -> np.dtype[Any]:
    name = _SHORT.get(one.dtype, one.dtype)
    if name in _PLAIN:
        return np.dtype(name)
    if not name.startswith(("bfloat", "float")):
        raise NotRun(f"{one.path} has elements of {one.dtype}, which irscope does not compute")
    return narrow_float(name)


def _storage(one: Argument, shared: NDArray[np.uint8] | None, *, is_read: bool) -> tuple[Pointer, Array]:
    """The memory of a tensor, and the tensor in it: as large as the launch's was, all bits set; or `shared`.

    A descriptor may state more than its storage holds: the tensor is then all elements of that.
    """
    dtype = _dtype(one)
    reach = sum((size - 1) * stride for size, stride in zip(one.shape, one.strides, strict=True))
    first = (one.storage_offset or 0) * dtype.itemsize
    stated = first + (reach + 1) * dtype.itemsize if prod(one.shape) else first
    is_beyond = one.kind == "descriptor" and one.storage_bytes is not None and one.storage_bytes < stated
    size = one.storage_bytes or 0 if is_beyond else max(one.storage_bytes or 0, stated)
    if shared is not None and shared.size >= size:
        storage = shared
    elif not is_read:
        storage = np.broadcast_to(np.uint8(0), size)
    else:
        storage = np.empty(-(-size // 8) or 1, np.int64).view(np.uint8)[:size]
        contiguous = tuple(prod(one.shape[place + 1 :]) for place in range(len(one.shape)))
        if contiguous != one.strides or size != prod(one.shape) * dtype.itemsize:
            # What is no element of the tensor.
            storage[...] = 0xFF
    if not storage.flags.writeable:
        return Pointer(storage, first, one.path), np.broadcast_to(np.zeros((), dtype), one.shape)
    if is_beyond:
        return Pointer(storage, first, one.path), storage[: size // dtype.itemsize * dtype.itemsize].view(dtype)
    strides = tuple(stride * dtype.itemsize for stride in one.strides)
    tensor = np.ndarray(one.shape, dtype, storage, first, strides)
    return Pointer(storage, first, one.path), tensor


def recorded_results(capture: Capture) -> dict[str, Array]:
    """What the recorded launch left in its tensors: those whose data the capture holds, before it and after it."""
    record = capture.launch.record
    tensors = [one for one in record.arguments if one.kind != "scalar"] if record is not None else []
    found = {one.path: _recorded(one, one.result or one.data) for one in tensors if one.data}
    return {path: elements for path, elements in found.items() if elements is not None}


def _recorded(one: Argument, data: str) -> Array | None:
    if not data:
        return None
    dtype = _dtype(one)
    try:
        packed = zlib.decompressobj().decompress(base64.b85decode(data), prod(one.shape) * dtype.itemsize)
        return np.frombuffer(packed, dtype).reshape(one.shape)
    except (ValueError, zlib.error):
        return None


def _drawn(one: Argument, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if one.dtype == "bool":
        return random.integers(0, 2, shape).astype(np.bool_)
    if "int" in one.dtype:
        low, high = (0, 1) if one.least is None or one.greatest is None else (one.least, one.greatest)
        return random.integers(low, high, shape, endpoint=True)
    return random.standard_normal(shape)


def sampled_programs(grid: tuple[int, int, int], most: int | None) -> Sequence[int] | None:
    """At most so many numbers of programs: the corners of a grid, and others spread over it; None for all of them."""
    count = prod(grid)
    if most is None or most >= count:
        return None
    corners = sorted({x + grid[0] * (y + grid[1] * z) for x, y, z in product(*[{0, size - 1} for size in grid])})
    others = [(count - 1) * number // max(most - 1, 1) for number in range(most)]
    others = [one for one in others if one not in corners]
    return sorted([*corners[:most], *others[: max(most - len(corners), 0)]])


def run_text(
    text: str,
    grid: tuple[int, int, int],
    inputs: Inputs,
    *,
    programs: Sequence[int] | None = None,
    observer: Observer | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    lands_late: bool = True,
    arithmetic: Arithmetic | None = None,
    limits: RunLimits = NO_LIMITS,
) -> dict[str, Array]:
    """Run a text's kernel, as `irscope.machine.launch.run` does; returns its tensors, each contiguous."""
    module = parse_mlir(text)
    run(
        module, grid, inputs.given, programs=programs, observer=observer, on_progress=on_progress,
        lands_late=lands_late, arithmetic=arithmetic, limits=limits,
    )  # fmt: skip
    return {name: tensor.copy() for name, tensor in inputs.tensors.items()}


def launched_grid(capture: Capture) -> tuple[int, int, int]:
    """The grid of a capture's launch; raises UsageError where there was none."""
    if capture.launch.grid is None:
        raise UsageError(f"{capture.name} was compiled without a launch, so its grid is unknown.")
    return capture.launch.grid


def run_capture(
    capture: Capture,
    values: Mapping[str, Any] | None = None,
    *,
    stage: StageOfRun = "ttir",
    at: str = "",
    seed: int = 0,
    programs: Sequence[int] | None = None,
    observer: Observer | None = None,
    limits: RunLimits = NO_LIMITS,
) -> dict[str, Array]:
    """Run a capture's kernel on NumPy; returns each tensor argument as the launch leaves it.

    `values` and `seed` as of `captured_inputs`. `at`: a pass, after which the IR is run in place of the stage's last
    one. `programs`: their numbers; all by default. `observer` is called with each operation that was executed. Raises
    NotRun for what the machine does not execute, WrongProgram for what no kernel may do, and UsageError.
    """
    grid = launched_grid(capture)
    inputs = captured_inputs(capture, values, seed, limits)
    return run_text(text_at(capture, stage, at), grid, inputs, programs=programs, observer=observer, limits=limits)
