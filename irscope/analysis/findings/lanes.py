"""IRS105 and IRS206: lanes that compute nothing, or all of them the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from irscope.analysis.findings.loops import LOADS
from irscope.analysis.findings.model import Cause, Finding, Suggestion
from irscope.analysis.findings.studied import Studied, sources_of
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.memory.machine import ACCESSES

_LEAST_MASKED = 0.2
_LANES = 32
_SUMS = (
    "arith.addf", "arith.addi", "arith.mulf", "arith.muli", "arith.maximumf", "arith.maxnumf", "arith.minimumf",
    "arith.minnumf", "arith.maxsi", "arith.minsi", "addptr",
)  # fmt: skip
"""What a loop may combine its iterations by, whose order does not matter."""


def lane_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of a launch that has a prediction: what they cost is for the model to say."""
    yield from _padded(studied)
    yield from _scalar(studied)


def _padded(studied: Studied) -> Iterator[Finding]:
    """The heaviest tile of a kernel without dots, where masks turn off a good part of each access's lanes."""
    if any(one.kind == "dot" for one, _ in studied.operations.values()):
        return
    shares: dict[int, float] = {}
    sizes: dict[int, int] = {}
    for cost in studied.global_costs:
        access, operation = cost.access, studied.operations[cost.line][0]
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


def _scalar(studied: Studied) -> Iterator[Finding]:
    """Loops that load one element in each iteration and combine them: every lane of a CTA does the same."""
    module, warps = studied.module, studied.capture.launch.option("num_warps", 4)
    for loop, _ in studied.operations.values():
        inside = [one for one in loop.walk() if one is not loop]
        loads = [one for one in inside if one.opcode in LOADS]
        if loop.name != "scf.for" or not loads or any(one.kind == "loop" or _is_tile(one) for one in inside):
            continue
        made = {value: one for one in inside for value in one.results}
        pointers = [value for one in inside if one.opcode in ACCESSES and (value := one.operand("ptr")) is not None]
        if any(one.opcode in LOADS for one in sources_of(made, pointers)):
            continue
        if not _is_sum(module, loop):
            continue
        lanes = _LANES * (warps if isinstance(warps, int) else 1)
        names = [f"line {one.first_line}" for one in loads[:2]]
        finding = studied.finding(
            "IRS206",
            loads[0].first_line,
            "a loop over single elements: every lane of the CTA loads and computes the same element",
            f"one element in each iteration, where {lanes} lanes could load one each",
            1 << 5,
            [
                studied.in_ir(f"its loads are of scalars: {', '.join(names)}", loop.first_line),
                Cause(f"a CTA has {lanes} lanes", "launch", "the options of the launch"),
            ],
            [Suggestion("load tl.arange elements in each iteration, and reduce once after the loop")],
            factor=float(lanes),
        )
        yield replace(finding, lines=tuple(one.first_line for one in loop.walk()))


def _is_tile(operation: Operation) -> bool:
    return any(prod(kind.shape) > 1 for kind in operation.result_types if kind.shape)


def _is_sum(module: MlirModule, loop: Operation) -> bool:
    """Whether each value that a loop carries is combined with what an iteration adds, in any order."""
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
