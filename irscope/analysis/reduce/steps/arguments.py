"""Arguments of functions: those that nothing uses go, and one stands in for others of its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.reduce.program import Op, Program
from irscope.analysis.reduce.steps.step import Edit

__all__ = ["Merged", "Unused"]


@dataclass(frozen=True, slots=True)
class Unused:
    """Leaves out arguments that nothing uses."""

    name: str = "arguments"

    def edits(self, program: Program) -> Sequence[Edit]:
        """The arguments, the last first."""
        used = program.uses()
        return [value for one in program.functions for value in one.regions[0][0].arguments[::-1] if value not in used]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen arguments out."""
        for function in program.functions:
            _drop(program, function, {value for value in function.regions[0][0].arguments if value in chosen})


@dataclass(frozen=True, slots=True)
class Merged:
    """Has the first argument of each type stand in for others of it."""

    name: str = "arguments of one type"

    def edits(self, program: Program) -> Sequence[Edit]:
        """The arguments that an earlier one of their type can stand in for, the last first."""
        found: list[Edit] = []
        for function in program.functions:
            known: set[str] = set()
            for value in function.regions[0][0].arguments:
                if (kind := program.types[value]) in known:
                    found.append(value)
                known.add(kind)
        return found[::-1]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Merge the chosen arguments into the first of their type."""
        table: dict[int, int] = {}
        for function in program.functions:
            first: dict[str, int] = {}
            for value in function.regions[0][0].arguments:
                stand_in = first.setdefault(program.types[value], value)
                if value in chosen:
                    table[value] = stand_in
            _drop(program, function, {value for value in function.regions[0][0].arguments if value in table})
        program.replace_uses(lambda value: table.get(value, value))


def _drop(program: Program, function: Op, gone: set[int]) -> None:
    """Leave arguments of a function out, and what its calls pass for them."""
    if not gone:
        return
    block = function.regions[0][0]
    places = {place for place, value in enumerate(block.arguments) if value in gone}
    block.arguments = [value for value in block.arguments if value not in gone]
    name = "@" + function.properties.get("sym_name", "").strip('"')
    for one in program.walk():
        if one.properties.get("callee") == name:
            one.operands = [value for place, value in enumerate(one.operands) if place not in places]
