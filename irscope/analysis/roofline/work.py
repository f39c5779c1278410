"""The arithmetic of an operation of the TTGIR: the floating-point operations of one execution, and their unit.

What counts: a dot 2·M·N·K; `addf`, `subf`, `mulf`, `divf`, `remf`, the maxima and minima 1 for each element, `fma` 2; a
function of `math` 1; a reduction or a scan its combination once less than it has elements. Each element counts once,
however many threads hold it, and whether or not a mask drops the result afterwards: masked-off lanes compute too. What
does not count: integers, comparisons, choices, conversions, changes of sign.

On the special-function unit are those functions of float32 that become one of its instructions at least (ex2, rsqrt,
sqrt): others, such as sin or erf, Triton takes from the device library, which computes them with FMAs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from irscope.device.parts import Unit
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.types import Type

_PER_ELEMENT = ("addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf")
_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt", "cbrt",
    "erf", "powf", "atan", "atan2", "sinh", "cosh",
)  # fmt: skip
_COMBINING = ("reduction", "scan")
_SPECIAL = ("math.exp", "math.exp2", "math.sqrt", "math.rsqrt", "precise_sqrt")
_FLOPS = {
    **{f"arith.{name}": 1 for name in _PER_ELEMENT},
    **{f"math.{name}": 1 for name in _FUNCTIONS},
    "math.fma": 2,
    "precise_divf": 1,
    "approx_divf": 1,
    "precise_sqrt": 1,
    "clampf": 2,
}
"""Of each element, by opcode."""
_IN_TENSOR_MEMORY = ("tc_gen5_mma", "tc_gen5_mma_scaled")
"""Dots whose result goes to their third operand, on tensor cores always."""
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
        if operation.kind not in _COMBINING or operation.opcode == "histogram":
            waiting.extend(reversed(operation.children))


def work_of(module: MlirModule, operation: Operation) -> list[Work]:
    """What one execution computes; empty for an operation without floating-point arithmetic."""
    if operation.kind == "dot":
        return _dot(module, operation)
    if operation.kind in _COMBINING:
        return _combined(operation)
    work = _elementwise(operation)
    return [work] if work is not None else []


def not_counted(module: MlirModule) -> dict[str, list[int]]:
    """Operations whose arithmetic cannot be seen → their lines."""
    found: dict[str, list[int]] = {}
    for one in module.walk():
        if (name := _unseen(one)) is not None:
            found.setdefault(name, []).append(one.first_line)
    return found


def _unseen(operation: Operation) -> str | None:
    if operation.is_unknown:
        return f"{operation.name or 'an operation'}, whose form is unknown"
    if operation.opcode == "extern_elementwise":
        symbol = operation.attribute("symbol")
        return f"calls of {symbol}" if symbol else "calls of device functions"
    if operation.opcode == "elementwise_inline_asm":
        return "inline assembly"
    if operation.opcode == "atomic_rmw" and operation.attribute("atomic_rmw_op") == "fadd":
        return "additions of atomics, which the L2 cache makes"
    return operation.name if operation.opcode == "map_elementwise" else None


def _elementwise(operation: Operation) -> Work | None:
    each = _FLOPS.get(operation.opcode, 0)
    if not each or not operation.results:
        return None
    kind = operation.result_types[0]
    element = kind.element or kind
    if element.form != "float":
        return None
    unit = "special" if operation.opcode in _SPECIAL and element.text == "f32" else "vector"
    return Work(Unit(unit, element.text), each * prod(kind.shape))


def _combined(operation: Operation) -> list[Work]:
    """A reduction or a scan: its combination, once less along the axis than there are elements."""
    axis = operation.attribute("axis")
    shape = operation.operand_types[0].shape if operation.operands else ()
    if not isinstance(axis, int) or axis >= len(shape):
        return []
    times = prod(shape) // shape[axis] * (shape[axis] - 1)
    each = [work for one in operation.children for work in [_elementwise(one)] if work is not None]
    return [Work(work.unit, times * work.flops) for work in each]


def _dot(module: MlirModule, operation: Operation) -> list[Work]:
    is_in_memory = operation.opcode in _IN_TENSOR_MEMORY
    values = [operation.operand(name) for name in ("a", "b", "d" if is_in_memory else "c")]
    kinds = [module.type_of(value) for value in values if value is not None]
    if len(kinds) < 3 or not all(kind.shape and kind.element is not None for kind in kinds):
        return []
    left, right, out = kinds
    formats = [operation.attribute(name) for name in _formats(operation)]
    scaled = [str(one) for one in formats if one is not None]
    inner = left.shape[-1] * (_PACKED if scaled[:1] == ["e2m1"] and str(left.element) == "i8" else 1)
    flops = 2 * prod(out.shape) * inner
    dtype = _scaled_type(scaled) if scaled else _dot_type(module, operation, left, right, out)
    on_cores = is_in_memory or _is_matrix(module, out)
    return [Work(Unit("matrix" if on_cores else "vector", dtype), flops)]


def _formats(operation: Operation) -> tuple[str, ...]:
    """The attributes that name the formats of a scaled dot's operands."""
    if operation.opcode == "dot_scaled":
        return "a_elem_type", "b_elem_type"
    return ("a_type", "b_type") if operation.opcode == "tc_gen5_mma_scaled" else ()


def _scaled_type(types: list[str]) -> str:
    """The wider one: the cores run at its rate."""
    names = [_SCALED_TYPES.get(one, one) for one in types]
    return max(names, key=lambda name: int("".join(filter(str.isdigit, name)) or 0))


def _is_matrix(module: MlirModule, out: Type) -> bool:
    """Whether a dot's result has the layout of tensor or matrix cores."""
    encoding = module.encoding_of(out)
    return encoding is not None and encoding.is_matrix


def _dot_type(module: MlirModule, operation: Operation, left: Type, right: Type, out: Type) -> str:
    wider = left if left.element_bits >= right.element_bits else right
    element, encoding = str(wider.element), module.encoding_of(out)
    if element.startswith("f8"):
        element = "f8"
    if element == "f32" and (operation.opcode in _IN_TENSOR_MEMORY or _is_matrix(module, out)):
        # NVIDIA's tensor cores have no float32: what runs on them is rounded to TF32.
        is_amd = encoding is not None and encoding.kind.startswith("amd")
        element = "f32" if is_amd and operation.attribute("inputPrecision") == "ieee" else "tf32"
    return f"{element} into f16" if str(out.element) == "f16" and element in ("f16", "f8") else element
