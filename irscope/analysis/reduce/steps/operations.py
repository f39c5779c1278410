"""Operations and functions that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.reduce.program import Block, Op, Program
from irscope.analysis.reduce.steps.replacements import Replacements, StandIn
from irscope.analysis.reduce.steps.step import Edit

__all__ = ["Functions", "Operations"]


@dataclass(frozen=True, slots=True)
class Operations:
    """Leaves operations out, with all that is nested in them; another value stands in for each result."""

    stand_in: StandIn

    @property
    def name(self) -> str:
        """As a report names it."""
        return {"argument": "operations", "operand": "operations by operands", "constant": "operations by constants"}[
            self.stand_in
        ]

    def edits(self, program: Program) -> Sequence[Edit]:
        """The operations, the last first; terminators and what is replaced by its own kind are not among them."""
        found: list[Edit] = []
        for operation, _, block in program.blocks():
            for one in block.operations:
                if not _ends(one, block, operation) and not self._is_pointless(one, program):
                    found.append(one.key)
        return found[::-1]

    def _is_pointless(self, operation: Op, program: Program) -> bool:
        if self.stand_in == "constant":
            return operation.name == "arith.constant" or not operation.results
        if self.stand_in == "operand":
            kinds = {program.types[value] for value in operation.operands}
            return not any(program.types[value] in kinds for value in operation.results)
        return False

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen operations out."""
        gone: list[tuple[Op, Op | None, Block]] = []
        blocks = list(program.blocks())
        for _, function, block in blocks:
            gone += [(one, function, block) for one in block.operations if one.key in chosen]
        keys = {one.key for one, _, _ in gone}
        inside = {one.key for top, _, _ in gone for one in top.walk()}
        used: dict[int, int] = {}
        for _, _, block in blocks:
            for one in block.operations:
                if one.key not in inside:
                    for value in one.operands:
                        used[value] = used.get(value, 0) + 1
        replacements = Replacements(program, self.stand_in)
        made: dict[int, list[Op]] = {}
        # Users first: what stands in for a value may be a value that goes too.
        for operation, function, _ in reversed(gone):
            made[operation.key] = replacements.replace(operation, used, function)
            for result in operation.results:
                stand_in = replacements.table.get(result)
                if stand_in is not None and stand_in in operation.operands:
                    used[stand_in] = used.get(stand_in, 0) + 1
        for _, _, block in blocks:
            if any(one.key in keys for one in block.operations):
                block.operations = [
                    new for one in block.operations for new in (made[one.key] if one.key in keys else [one])
                ]
        replacements.finish()


def _ends(operation: Op, block: Block, around: Op) -> bool:
    """Whether an operation is the terminator of its block."""
    return operation is block.operations[-1] and around.name not in ("builtin.module", "gpu.module")


@dataclass(frozen=True, slots=True)
class Functions:
    """Leaves functions out; new arguments stand in for the results of their calls."""

    name: str = "functions"

    def edits(self, program: Program) -> Sequence[Edit]:
        """The functions, declarations included, where there are several."""
        every = [one.key for one in program.walk() if "sym_name" in one.properties]
        return every if len(every) > 1 else ()

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen functions out, and their calls."""
        names = {f"@{_bare(one.properties['sym_name'])}" for one in program.walk() if one.key in chosen}
        calls = {one.key for one in program.walk() if one.key in chosen or one.properties.get("callee", "") in names}
        Operations("argument").apply(program, frozenset(calls))


def _bare(text: str) -> str:
    return text.strip('"')
