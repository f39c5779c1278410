"""Intervals of a kernel's integers, in a hundredth of the time that evaluating its addresses takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irscope.ir.mlir.model import Operation, Value
from irscope.model.capture import Launch

Bounds = tuple[int, int]
GREATEST = (1 << 31) - 1
"""Of 32 bits."""
_SAME = (
    "splat", "unsplat", "expand_dims", "broadcast", "reshape", "trans", "convert_layout",
    "arith.extsi", "arith.index_cast",
)  # fmt: skip
"""Opcodes of the operations that do not change numbers."""
_UNSIGNED = {
    "arith.extui": "arith.extsi", "arith.index_castui": "arith.index_cast",
    "arith.divui": "arith.divsi", "arith.remui": "arith.remsi",
}  # fmt: skip
"""Of numbers that are not negative they are the signed ones."""
_BITWISE: dict[str, Callable[[int, int], int]] = {
    "arith.xori": int.__xor__, "arith.andi": int.__and__, "arith.ori": int.__or__
}  # fmt: skip
_SUMS = ("arith.addi", "arith.subi", "arith.muli", "arith.shli")
_TRUE, _FALSE, _EITHER = (1, 1), (0, 0), (0, 1)


def may_overflow(kernel: Operation, launch: Launch) -> bool:
    """Whether a sum or product of 32 bits of a TTGIR's kernel may be beyond them in a launch that was recorded.

    A first look, before numpy is imported to evaluate addresses: sums and products without a bound may overflow.
    """
    held = intervals(kernel, launch)

    def fits(one: Operation) -> bool:
        bounds = held.get(one.results[0])
        return bounds is not None and bounds[0] >= -GREATEST - 1 and bounds[1] <= GREATEST

    return any(one.name in _SUMS and is_word(one) and not fits(one) for one in kernel.walk())


def is_word(one: Operation) -> bool:
    return _bits(one) == 32


def _bits(one: Operation) -> int:
    kind = one.result_types[0] if one.results else None
    element = kind.element or kind if kind is not None else None
    return element.bits if element is not None and element.form == "integer" else 0


def intervals(
    kernel: Operation,
    launch: Launch | None,
    known: Mapping[Value, Bounds] | None = None,
    same: Mapping[Value, Value] | None = None,
) -> dict[Value, Bounds | None]:
    """Value → its bounds, None if they are not known.

    `known`: those of some values, whatever makes them. `same`: arguments of blocks with what each of them is at first.
    """
    known, same = known or {}, same or {}
    held: dict[Value, Bounds | None] = {}
    record = launch.record if launch is not None else None
    for value, _, _ in kernel.parameters:
        row = record.argument(value.name.removeprefix("%")) if record is not None else None
        given = row.value if row is not None and row.kind == "scalar" else None
        held[value] = (given, given) if isinstance(given, int) else None
    for one in kernel.walk():
        for region in one.regions if same else ():
            for argument in (argument for block in region.blocks for argument in block.arguments if argument in same):
                held[argument] = held.get(same[argument])
        operands = [held.get(operand) for operand in one.operands]
        if one.name == "scf.for" and len(operands) > 1 and one.regions and one.regions[0].blocks[0].arguments:
            first, last = operands[0], operands[1]
            counted = (first[0], max(first[0], last[1])) if first is not None and last is not None else None
            index = one.regions[0].blocks[0].arguments[0]
            held[index] = held.get(same[index]) if index in same else known.get(index, counted)
        bounds = _of(one, operands, launch)
        held |= {result: known.get(result, bounds) for result in one.results}
    return held


def _of(one: Operation, operands: Sequence[Bounds | None], launch: Launch | None) -> Bounds | None:
    if one.kind == "constant" and one.opcode != "make_range":
        number = one.constant
        return (int(number), int(number)) if isinstance(number, int) else None
    if one.opcode == "make_range":
        start, end = one.attribute("start"), one.attribute("end")
        return (start, end - 1) if isinstance(start, int) and isinstance(end, int) else None
    if one.opcode in ("get_program_id", "get_num_programs") and launch is not None and launch.grid is not None:
        size = launch.grid["xyz".index(str(one.attribute("axis")))]
        return (0, size - 1) if one.opcode == "get_program_id" else (size, size)
    if one.name == "arith.select" and operands[0] in (_TRUE, _FALSE):
        return operands[1 if operands[0] == _TRUE else 2]
    if _bits(one) == 1 and len(operands) == 2:
        return _truth(one, operands[0], operands[1])
    known = [bounds for bounds in operands if bounds is not None]
    if len(known) < len(operands) or not known:
        return None
    name = one.name
    if name in _UNSIGNED:
        name = _UNSIGNED[name] if all(low >= 0 for low, _ in known) else ""
    if name in _SAME or one.opcode in _SAME:
        return known[0]
    return _of_two(name, known[0], known[1]) if len(known) == 2 else None


def _truth(one: Operation, left: Bounds | None, right: Bounds | None) -> Bounds:
    """0 and 1 of a condition: the value of all of its elements, or both."""
    if one.name == "arith.cmpi":
        if left is None or right is None:
            return _EITHER
        predicate = str(one.attribute("predicate"))
        if predicate.endswith(("gt", "ge")):
            left, right = right, left
        if predicate.endswith(("lt", "gt")):
            return _TRUE if left[1] < right[0] else _FALSE if left[0] >= right[1] else _EITHER
        if predicate.endswith(("le", "ge")):
            return _TRUE if left[1] <= right[0] else _FALSE if left[0] > right[1] else _EITHER
        if left[0] == left[1] and right[0] == right[1]:
            return _TRUE if (left == right) == (predicate == "eq") else _FALSE
        return _EITHER
    left, right = left or _EITHER, right or _EITHER
    if one.name == "arith.andi":
        return min(left[0], right[0]), min(left[1], right[1])
    return (max(left[0], right[0]), max(left[1], right[1])) if one.name == "arith.ori" else _EITHER


def _of_two(name: str, one: Bounds, other: Bounds) -> Bounds | None:
    if name == "arith.addi":
        return one[0] + other[0], one[1] + other[1]
    if name == "arith.subi":
        return one[0] - other[1], one[1] - other[0]
    if name == "arith.muli":
        products = [a * b for a in one for b in other]
        return min(products), max(products)
    if name == "arith.shli" and other[0] >= 0 and other[1] < 64:
        shifted = [a << b for a in one for b in other]
        return min(shifted), max(shifted)
    if name == "arith.minsi":
        return min(one[0], other[0]), min(one[1], other[1])
    if name == "arith.maxsi":
        return max(one[0], other[0]), max(one[1], other[1])
    if name == "arith.divsi" and other[0] > 0:
        return (one[0] // other[1] if one[0] >= 0 else one[0]), (one[1] // other[0] if one[1] > 0 else 0)
    if name == "arith.remsi" and other[0] > 0:
        if one[0] == one[1] >= 0 and other[0] == other[1]:
            return one[0] % other[0], one[0] % other[0]
        return (0 if one[0] >= 0 else 1 - other[1]), min(max(one[1], 0), other[1] - 1)
    if name in _BITWISE and one[0] == one[1] and other[0] == other[1]:
        known = _BITWISE[name](one[0], other[0])
        return known, known
    return None
