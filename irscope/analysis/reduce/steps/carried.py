"""Values that operations carry: of loops, of branches and conditions, and operands that are optional."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.reduce.program import Op, Program, resolved
from irscope.analysis.reduce.steps.step import Edit

__all__ = ["Carried", "Optional", "segments", "with_segments"]

# array<i32: 1, 0, 0>
_SEGMENTS = re.compile(r"array<i32: (?P<sizes>\d+(?:, \d+)*)>$")


@dataclass(frozen=True, slots=True)
class Carried:
    """Leaves out values that loops carry, and results of `scf.if`."""

    name: str = "carried values"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(operation, part, index), the last first."""
        found: list[Edit] = []
        for one in program.walk():
            if one.name in ("scf.for", "scf.if"):
                found += [(one.key, "result", index) for index in range(len(one.results))]
            elif one.name == "scf.while":
                found += [(one.key, "result", index) for index in range(len(one.results))]
                found += [(one.key, "carried", index) for index in range(len(one.operands))]
        return found[::-1]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen values out."""
        table: dict[int, int] = {}
        around = {one.key: function for _, function, block in program.blocks() for one in block.operations}
        for one in list(program.walk()):
            results = {index for index in range(len(one.results)) if (one.key, "result", index) in chosen}
            carried = {index for index in range(len(one.operands)) if (one.key, "carried", index) in chosen}
            if results or carried:
                function = around.get(one.key)
                if one.name == "scf.for":
                    _for(one, results, table)
                elif function is not None and one.name == "scf.if":
                    _if(program, one, results, function, table)
                elif function is not None and one.name == "scf.while":
                    _while(program, one, results, carried, function, table)
        program.replace_uses(lambda value: resolved(table, value))


def _without(rows: list[int], gone: set[int]) -> list[int]:
    return [one for index, one in enumerate(rows) if index not in gone]


def _for(loop: Op, gone: set[int], table: dict[int, int]) -> None:
    block = loop.regions[0][0]
    for index in gone:
        table[block.arguments[1 + index]] = table[loop.results[index]] = loop.operands[3 + index]
    block.arguments = _without(block.arguments, {1 + index for index in gone})
    loop.operands = _without(loop.operands, {3 + index for index in gone})
    loop.results = _without(loop.results, gone)
    end = block.operations[-1]
    end.operands = _without(end.operands, gone)


def _if(program: Program, branch: Op, gone: set[int], function: Op, table: dict[int, int]) -> None:
    for index in gone:
        table[branch.results[index]] = program.new_argument(function, program.types[branch.results[index]])
    branch.results = _without(branch.results, gone)
    for block in branch.blocks:
        block.operations[-1].operands = _without(block.operations[-1].operands, gone)


def _while(
    program: Program, loop: Op, results: set[int], carried: set[int], function: Op, table: dict[int, int]
) -> None:
    (before, *_), (after, *_) = loop.regions
    for index in carried:
        table[before.arguments[index]] = loop.operands[index]
    for index in results:
        for value in (after.arguments[index], loop.results[index]):
            table[value] = program.new_argument(function, program.types[value])
    loop.operands = _without(loop.operands, carried)
    before.arguments = _without(before.arguments, carried)
    after.operations[-1].operands = _without(after.operations[-1].operands, carried)
    loop.results = _without(loop.results, results)
    after.arguments = _without(after.arguments, results)
    condition = before.operations[-1]
    condition.operands = _without(condition.operands, {index + 1 for index in results})


@dataclass(frozen=True, slots=True)
class Optional:
    """Leaves out operands of operations that can have more or fewer of them, such as the mask of a load."""

    name: str = "optional operands"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(operation, group of operands), the last first."""
        found: list[Edit] = []
        for one in program.walk():
            # What a branch passes on is not optional.
            if not one.successors:
                found += [(one.key, group) for group, size in enumerate(segments(one)) if size]
        return found[::-1]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen groups out."""
        for one in program.walk():
            sizes = segments(one)
            gone = [group for group in range(len(sizes)) if (one.key, group) in chosen]
            for group in reversed(gone):
                start = sum(sizes[:group])
                del one.operands[start : start + sizes[group]]
                sizes[group] = 0
            if gone:
                with_segments(one, sizes)


def segments(operation: Op) -> list[int]:
    """How many operands each group of an operation has; empty if there are no groups."""
    match = _SEGMENTS.match(operation.properties.get("operandSegmentSizes", ""))
    return [int(size) for size in match["sizes"].split(", ")] if match else []


def with_segments(operation: Op, sizes: Sequence[int]) -> None:
    """Set how many operands each group of an operation has."""
    operation.properties["operandSegmentSizes"] = f"array<i32: {', '.join(map(str, sizes))}>"
