"""Conditions of a mask from which Triton's axis analysis derives no runs of equal elements.

Source: CmpOpAxisInfoVisitor in lib/Analysis/AxisInfo.cpp, 3.6 to 3.9: a contiguous left side gives runs under `<` and
`>=`, a contiguous right side under `>` and `<=`; of all else the other side must be uniform.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from irscope.ir.mlir.model import MlirModule, Operation, Value

_Form = Literal["uniform", "contiguous", "other"]
_JOINED = ("arith.andi", "arith.ori")
_SAME = ("convert_layout", "arith.extsi", "arith.extui", "arith.trunci")
_DEEPEST = 24


def unread_condition(module: MlirModule, mask: Value) -> tuple[Operation, bool] | None:
    """(the comparison of a mask that gives no runs, whether `<` in place of `<=` would give them); None without one."""
    for compared in _conditions(module, mask, 0):
        if compared.name != "arith.cmpi":
            return compared, False
        kind = compared.operand_types[0]
        axis = len(kind.shape) - 1
        left, right = (_form(module, value, axis, 0) for value in compared.operands)
        predicate = str(compared.attribute("predicate"))
        if (left, right) == ("contiguous", "uniform"):
            if predicate.endswith(("le", "gt")):
                return compared, True
        elif (left, right) == ("uniform", "contiguous"):
            if predicate.endswith(("lt", "ge")):
                return compared, False
        elif (left, right) != ("uniform", "uniform"):
            return compared, False
    return None


def _conditions(module: MlirModule, value: Value, depth: int) -> Iterator[Operation]:
    made = module.maker_of(value)
    if made is None or depth > _DEEPEST:
        return
    if made.name in _JOINED or made.opcode in ("broadcast", "expand_dims", "convert_layout"):
        for operand in made.operands:
            yield from _conditions(module, operand, depth + 1)
    elif made.opcode not in ("splat", "arith.constant"):
        yield made


def _form(module: MlirModule, value: Value, axis: int, depth: int) -> _Form:
    """How a value goes along an axis of its tensor."""
    made = module.maker_of(value)
    shape = module.type_of(value).shape
    if not shape or axis >= len(shape) or shape[axis] == 1:
        return "uniform"
    if made is None or depth > _DEEPEST:
        return "other"
    if made.opcode in ("splat", "arith.constant"):
        return "uniform"
    if made.opcode == "make_range":
        return "contiguous"
    if made.opcode in _SAME or made.opcode == "broadcast":
        return _form(module, made.operands[0], axis, depth + 1)
    if made.opcode == "expand_dims":
        inserted = made.attribute("axis")
        lower = isinstance(inserted, int) and inserted < axis
        return _form(module, made.operands[0], axis - lower, depth + 1)
    forms = [_form(module, operand, axis, depth + 1) for operand in made.operands]
    if set(forms) == {"uniform"}:
        return "uniform"
    is_sum = made.name == "arith.addi" or (made.name == "arith.subi" and forms[1] == "uniform")
    return "contiguous" if is_sum and sorted(forms) == ["contiguous", "uniform"] else "other"
