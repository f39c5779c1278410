"""The arithmetic of an operation of the TTGIR: the floating-point operations of one execution, and their unit.

What counts: a dot 2·M·N·K; `addf`, `subf`, `mulf`, `divf`, `remf`, the maxima and minima 1 for each element, `fma` 2; a
function of `math` 1; a reduction or a scan its combination once less than it has elements. Each element counts once,
however many threads hold it, and whether or not a mask drops the result afterwards: masked-off lanes compute too. What
does not count: integers, comparisons, choices, conversions, changes of sign.

On the special-function unit are those functions of float32 that become one of its instructions at least (ex2, rsqrt,
sqrt): others, such as sin or erf, Triton takes from the device library, which computes them with FMAs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from irscope.device.parts import Unit
from irscope.ir.mlir.encoding import read_encoding
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.types import LayoutType, read_types
from irscope.memory.addresses.kinds import Kind, kind_of, kinds_of_results

__all__ = ["Work", "computing_operations", "not_counted", "work_of"]

_PER_ELEMENT = ("addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf")
_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt", "cbrt",
    "erf", "powf", "atan", "atan2", "sinh", "cosh",
)  # fmt: skip
_COMBINING = ("tt.reduce", "tt.scan")
_SPECIAL = ("math.exp", "math.exp2", "math.sqrt", "math.rsqrt", "tt.precise_sqrt")
_DOTS = ("tt.dot", "ttng.warp_group_dot", "ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled", "tt.dot_scaled")
_ALSO = {"math.fma": 2, "tt.precise_divf": 1, "tt.precise_sqrt": 1, "tt.clampf": 2}
# f32   bf16   f8E4M3FN
_FLOATS = re.compile(r"b?f\d")
# inputPrecision = tf32      inputPrecision = 0 : i32
_PRECISION = re.compile(r"inputPrecision = (\w+)")
_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
"""In the order of Triton's numbers for them (TritonAttrDefs.td, InputPrecisionAttr)."""
# lhs = e4m3 rhs = e2m1
_SCALED = re.compile(r"\b(?:lhs|rhs) = (\w+)")
_SCALED_TYPES = {"e4m3": "f8", "e5m2": "f8", "e2m3": "f6", "e3m2": "f6", "e2m1": "f4", "bf16": "bf16", "fp16": "f16"}
_PACKED = 2
"""Elements of e2m1 in a byte."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one execution of an operation computes."""

    unit: Unit
    flops: int
    """Each element once."""


def computing_operations(module: MlirModule) -> Iterator[Operation]:
    """Every operation but those that combine within a reduction or a scan, which these count themselves."""
    waiting = [*reversed(module.operations)]
    while waiting:
        operation = waiting.pop()
        yield operation
        if operation.name not in _COMBINING:
            waiting.extend(reversed(operation.children))


def work_of(module: MlirModule, operation: Operation) -> list[Work]:
    """What one execution computes; empty for an operation without floating-point arithmetic."""
    if operation.name in _DOTS:
        return _dot(module, operation)
    if operation.name in _COMBINING:
        return _combined(operation)
    found = _elementwise(operation, kinds_of_results(operation)[0] if operation.results else Kind((), ""))
    return [found] if found is not None else []


def not_counted(module: MlirModule) -> dict[str, list[int]]:
    """Operations whose arithmetic cannot be seen → their lines."""
    found: dict[str, list[int]] = {}
    for one in module.walk():
        if (name := _unseen(one)) is not None:
            found.setdefault(name, []).append(one.first_line)
    return found


def _unseen(operation: Operation) -> str | None:
    if operation.name == "tt.extern_elementwise":
        match = re.search(r'symbol = "([\w.]{1,100})"', operation.text)
        return f"calls of {match[1]}" if match else "calls of device functions"
    if operation.name == "tt.elementwise_inline_asm":
        return "inline assembly"
    if operation.name == "tt.atomic_rmw" and " fadd" in operation.text:
        return "additions of atomics, which the L2 cache makes"
    if operation.name in ("tt.map_elementwise", "ttg.warp_specialize_custom"):
        return operation.name
    return None


def _elementwise(operation: Operation, kind: Kind) -> Work | None:
    dialect, _, name = operation.name.partition(".")
    each = _ALSO.get(operation.name, 0)
    if (dialect == "arith" and name in _PER_ELEMENT) or (dialect == "math" and name in _FUNCTIONS):
        each = 1
    if not each or not _FLOATS.match(kind.element):
        return None
    unit = "special" if operation.name in _SPECIAL and kind.element == "f32" else "vector"
    return Work(Unit(unit, kind.element), each * prod(kind.shape))


def _combined(operation: Operation) -> list[Work]:
    """A reduction or a scan: its combination, once less along the axis than there are elements."""
    operands = read_types(operation.closing or operation.text)[:1]
    match = re.search(r"axis = (\d{1,2})", f"{operation.text} {operation.closing}")
    if not operands or match is None or int(match[1]) >= len(operands[0].shape):
        return []
    shape = operands[0].shape
    times = prod(shape) // shape[int(match[1])] * (shape[int(match[1])] - 1)
    each = [work for one in operation.children for work in [_elementwise(one, _scalar_kind(one))] if work is not None]
    return [Work(work.unit, times * work.flops) for work in each]


def _scalar_kind(operation: Operation) -> Kind:
    return kinds_of_results(operation)[0] if operation.results else kind_of("")


def _dot(module: MlirModule, operation: Operation) -> list[Work]:
    kinds = read_types(operation.types)
    tensors = [kind for kind in kinds if kind.element != "i1"]
    if len(tensors) < 3:
        return []
    left, right = tensors[0], tensors[1]
    scaled = _SCALED.findall(operation.text)
    out = tensors[2] if "tc_gen5" in operation.name else tensors[-1]
    inner = left.shape[-1] * (_PACKED if scaled[:1] == ["e2m1"] and left.element == "i8" else 1)
    flops = 2 * prod(out.shape) * inner
    dtype = _scaled_type(scaled) if scaled else _dot_type(module, operation, left, right, out)
    on_cores = "tc_gen5" in operation.name or _is_matrix(module, out)
    return [Work(Unit("matrix" if on_cores else "vector", dtype), flops)]


def _scaled_type(types: list[str]) -> str:
    """The wider one: the cores run at its rate."""
    names = [_SCALED_TYPES.get(one, one) for one in types]
    return max(names, key=lambda name: int("".join(filter(str.isdigit, name)) or 0))


def _is_matrix(module: MlirModule, out: LayoutType) -> bool:
    """Whether a dot's result has the layout of tensor or matrix cores."""
    name = read_encoding(module.resolve(out.encoding)).name
    return any(word in name for word in ("mma", "mfma", "wmma"))


def _dot_type(module: MlirModule, operation: Operation, left: LayoutType, right: LayoutType, out: LayoutType) -> str:
    wider: Callable[[LayoutType], int] = lambda kind: kind.element_bits  # noqa: E731
    element = max((left, right), key=wider).element
    if element.startswith("f8"):
        element = "f8"
    if element == "f32" and ("tc_gen5" in operation.name or _is_matrix(module, out)):
        match = _PRECISION.search(operation.text)
        written = match[1] if match else "ieee"
        precision = _PRECISIONS[int(written)] if written.isdigit() and int(written) < 5 else written
        # NVIDIA's tensor cores have no float32: what runs on them is rounded to TF32.
        is_amd = "amd" in module.resolve(out.encoding)
        element = "f32" if is_amd and precision == "ieee" else "tf32"
    return f"{element} into f16" if out.element == "f16" and element in ("f16", "f8") else element
