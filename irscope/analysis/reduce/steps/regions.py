"""Regions that take the place of their operation: one turn of a loop, one side of an `if`; and loops of one turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.reduce.program import Op, Program, resolved
from irscope.analysis.reduce.steps.replacements import constant
from irscope.analysis.reduce.steps.step import Edit

__all__ = ["Regions", "Turns"]


@dataclass(frozen=True, slots=True)
class Regions:
    """Puts the operations of a region in the place of the operation around it."""

    name: str = "regions"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(operation, region): outer ones first."""
        found: list[Edit] = []
        for operation in program.walk():
            if operation.name in ("scf.for", "scf.while", "scf.execute_region"):
                found.append((operation.key, 0))
            elif operation.name == "scf.if":
                found += [(operation.key, number) for number, region in enumerate(operation.regions) if region]
        return found

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Open the chosen regions."""
        table: dict[int, int] = {}
        for _, _, block in program.blocks():
            block.operations = _opened(block.operations, chosen, table)
        program.replace_uses(lambda value: resolved(table, value))


def _opened(operations: list[Op], chosen: frozenset[Edit], table: dict[int, int]) -> list[Op]:
    rows: list[Op] = []
    for operation in operations:
        number = next((number for number in (0, 1) if (operation.key, number) in chosen), None)
        inner = None if number is None else _inlined(operation, number, table)
        # What is nested in it may be chosen too.
        rows += [operation] if inner is None else _opened(inner, chosen, table)
    return rows


def _inlined(operation: Op, number: int, table: dict[int, int]) -> list[Op] | None:
    """The operations of a region; None if it has several blocks. What stands in for its values goes into the table."""
    region = operation.regions[number]
    if len(region) != 1:
        return None
    block = region[0]
    if operation.name == "scf.while":
        return _one_turn(operation, table)
    if operation.name == "scf.for":
        table.update(zip(block.arguments, [operation.operands[0], *operation.operands[3:]], strict=False))
    *rows, last = block.operations
    table.update(zip(operation.results, last.operands, strict=False))
    return rows


def _one_turn(operation: Op, table: dict[int, int]) -> list[Op] | None:
    """The condition of a while loop and its body, once each."""
    if [len(region) for region in operation.regions] != [1, 1]:
        return None
    (before,), (after,) = operation.regions
    *first, condition = before.operations
    *second, _ = after.operations
    table.update(zip(before.arguments, operation.operands, strict=False))
    table.update(zip(after.arguments, condition.operands[1:], strict=False))
    table.update(zip(operation.results, condition.operands[1:], strict=False))
    return [*first, *second]


@dataclass(frozen=True, slots=True)
class Turns:
    """Gives loops constant bounds, with which they make one turn."""

    name: str = "loop bounds"

    def edits(self, program: Program) -> Sequence[Edit]:
        """The loops whose bounds are no constants 0, 1 and 1."""
        made = {value: one for one in program.walk() for value in one.results}
        return [
            one.key
            for one in program.walk()
            if one.name == "scf.for" and [_constant(made.get(value)) for value in one.operands[:3]] != ["0", "1", "1"]
        ]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Make the chosen loops turn once."""
        for _, _, block in program.blocks():
            rows: list[Op] = []
            for operation in block.operations:
                if operation.key in chosen:
                    rows += _bounds(program, operation)
                rows.append(operation)
            block.operations = rows


def _constant(operation: Op | None) -> str:
    if operation is None or operation.name != "arith.constant":
        return ""
    return operation.properties.get("value", "").partition(" : ")[0]


def _bounds(program: Program, loop: Op) -> list[Op]:
    kind = program.types[loop.operands[0]]
    zero, one = constant(program, kind), constant(program, kind)
    if zero is None or one is None:
        return []
    one.properties["value"] = f"1 : {kind}"
    loop.operands[:3] = [zero.results[0], one.results[0], one.results[0]]
    return [zero, one]
