"""IRS105, IRS106 and IRS206: lanes that compute nothing, unused values, or all of them the same value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf, prod

from irscope.analysis.findings.loops import LOADS
from irscope.analysis.findings.model import Cause, Finding, Suggestion
from irscope.analysis.findings.studied import Studied, makers
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.ir.reach import all_makers
from irscope.memory.machine import ACCESSES

_LEAST_MASKED = 0.2
_LANES = 32
_SECTOR = 32
"""Bytes."""
_CONVERSIONS = ("arith.extf", "arith.truncf", "fp_to_fp", "convert_layout")
_MOST_DEEP = 24
"""Operations of a mask, and in a row, that are looked at."""
_SUMS = (
    "arith.addf", "arith.addi", "arith.mulf", "arith.muli", "arith.maximumf", "arith.maxnumf", "arith.minimumf",
    "arith.minnumf", "arith.maxsi", "arith.minsi", "addptr",
)  # fmt: skip
"""The operations that combine iterations in any order."""


def lane_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of a launch that has a prediction: the model gives their costs."""
    yield from _padded(studied)
    yield from _discarded(studied)
    yield from _scalar(studied)


def _padded(studied: Studied) -> Iterator[Finding]:
    if any(one.kind == "dot" for one in studied.operations.values()):
        return
    shares: dict[int, float] = {}
    sizes: dict[int, int] = {}
    for cost in studied.global_costs:
        access, operation = cost.access, studied.operations[cost.line]
        shape = next((kind.shape for kind in (*operation.operand_types, *operation.result_types) if kind.shape), ())
        if access is None or not shape or access.certainty == "range" or not access.element_bytes:
            continue
        asked = access.launch.executions[0] * prod(shape) * access.element_bytes
        if asked:
            sizes[cost.line] = prod(shape)
            shares[cost.line] = 1 - access.launch.bytes[0] / asked
    most = max(sizes.values(), default=0)
    tiles = [line for line, size in sizes.items() if size == most]
    if not tiles or (masked := min(shares[line] for line in tiles)) < _LEAST_MASKED:
        return
    line = max(tiles, key=studied.traffic.bytes_at)
    yield studied.finding(
        "IRS105",
        line,
        f"masks turn off {masked:.0%} of the lanes of each tile, and these lanes execute the instructions too",
        f"{masked:.0%} of the instructions of tiles of {most:,} elements",
        1,
        [studied.in_ir(f"{1 - masked:.0%} of the {most:,} elements of its tiles are accessed", at, "evaluated")
         for at in tiles[:2]],
        [Suggestion("a smaller tile in a loop over the row, or flattened tiles, so that fewer lanes are masked off")],
        factor=1 / (1 - masked),
    )  # fmt: skip


def _discarded(studied: Studied) -> Iterator[Finding]:
    """Selections between two loads whose condition is the same for whole sectors, of which one is not needed."""
    module = studied.module
    uses = Counter(value for one in studied.operations.values() for value in one.operands)
    for select in studied.operations.values():
        if select.name != "arith.select" or not select.result_types[0].shape:
            continue
        condition, *sides = select.operands[:3]
        made = [next((one for one in makers(module, side) if one.opcode not in _CONVERSIONS), None) for side in sides]
        loads = [one for one in made if one is not None and one.opcode in LOADS]
        if len(loads) < 2 or loads[0] is loads[1] or any(uses[value] > 1 for one in loads for value in one.results):
            continue
        masks = [value for one in loads if (value := one.operand("mask")) is not None]
        if condition in masks or any(condition in one.results for one in all_makers(module.maker_of, masks)):
            continue
        run = _same_in_a_row(studied, condition)
        if run * min(one.result_types[0].element_bits for one in loads) < 8 * _SECTOR:
            continue
        lines = tuple(one.first_line for one in loads)
        why = f"{run:,.0f} neighbouring elements" if run < inf else "all elements of a row of the tile"
        yield studied.finding(
            "IRS106",
            lines[0],
            "both sides of a tl.where are loaded, and one is discarded",
            "a sector for each one that is needed",
            1 << 5,
            [
                studied.in_ir(f"it selects between the loads of lines {lines[0]} and {lines[1]}", select.first_line),
                studied.in_ir(f"its condition is the same for {why}, and in no mask of theirs", select.first_line),
            ],
            [Suggestion("the condition in the mask of one load, its opposite in that of the other, and their sum")],
            lines=lines,
        )


def _same_in_a_row(studied: Studied, value: Value, depth: int = 0) -> float:
    """How many neighbouring elements of a tensor have one value, as far as that follows from its operations."""
    made = studied.module.maker_of(value)
    if made is None or not made.result_types or not made.result_types[0].shape:
        return inf
    if made.opcode == "broadcast" and made.operand_types[0].shape[-1:] == (1,):
        return inf
    if made.opcode in LOADS:
        cost = studied.global_cost(made.first_line)
        each = cost.access.each if cost is not None and cost.access is not None else None
        return each.bytes[0] / each.distinct_bytes[1] if each is not None and each.distinct_bytes[1] else 1.0
    if made.name == "arith.constant":
        return inf
    if depth > _MOST_DEEP or not made.operands:
        return 1.0
    return min(_same_in_a_row(studied, one, depth + 1) for one in made.operands)


def _scalar(studied: Studied) -> Iterator[Finding]:
    """Loops over single elements, whose iterations can have any order: every lane of a CTA does the same.

    Of nested ones the innermost: the values that a loop within it carries may depend on its order.
    """
    module, warps = studied.module, studied.capture.launch.option("num_warps", 4)
    found: set[int] = set()
    for loop in sorted((one for one in studied.operations.values()), key=lambda one: -one.first_line):
        inside = [one for one in loop.walk() if one is not loop]
        loads = [one for one in inside if one.opcode in LOADS]
        if loop.name != "scf.for" or not loads or any(one.first_line in found or _is_tile(one) for one in inside):
            continue
        made = {value: one for one in inside for value in one.results}
        pointers = [value for one in inside if one.opcode in ACCESSES and (value := one.operand("ptr")) is not None]
        if any(one.opcode in LOADS for one in all_makers(made.get, pointers)):
            continue
        if not _is_sum(module, loop):
            continue
        found.add(loop.first_line)
        lanes = _LANES * (warps if isinstance(warps, int) else 1)
        names = [f"line {one.first_line}" for one in loads[:2]]
        after = ", and one reduction after the loop" if loop.results else ""
        yield studied.finding(
            "IRS206",
            loads[0].first_line,
            "a loop over single elements: every lane of the CTA loads and computes the same element",
            f"one element in each iteration, where {lanes} lanes could load one each",
            1 << 5,
            [
                studied.in_ir(f"its loads are of scalars: {', '.join(names)}", loop.first_line),
                Cause(f"a CTA has {lanes} lanes", "launch", "the options of the launch"),
            ],
            [Suggestion(f"tl.arange elements in each iteration{after}")],
            factor=float(lanes),
            lines=(one.first_line for one in loop.walk()),
        )


def _is_tile(operation: Operation) -> bool:
    return any(prod(kind.shape) > 1 for kind in operation.result_types if kind.shape)


def _is_sum(module: MlirModule, loop: Operation) -> bool:
    """Whether a loop combines each carried value with a value of the iteration, in any order."""
    block = loop.regions[0].blocks[0]
    ends = next((one for one in block.operations if one.name == "scf.yield"), None)
    carried = block.arguments[1:]
    if ends is None or len(ends.operands) != len(carried):
        return not carried
    makers = [module.maker_of(value) for value in ends.operands]
    return all(
        one is not None and (one.name in _SUMS or one.opcode in _SUMS) and argument in one.operands
        for one, argument in zip(makers, carried, strict=True)
    )
