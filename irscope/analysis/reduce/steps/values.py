"""Operations, arguments and carried values that go, and what stands in for the values that they gave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.analysis.reduce.program import Block, Op, Program, resolved
from irscope.analysis.reduce.steps.step import Edit

StandIn = Literal["argument", "operand", "constant"]
"""A new argument of the function; an operand of the operation of the same type; a constant. The latter two fall back to
the first where there is none."""

# i32   f16   bf16   f8E4M3FN   index
_NUMBER = re.compile(r"(?:i\d+|index|(?P<float>b?f\d+\w*|tf32))$")
# tensor<128x64xf16, #blocked>
_TENSOR = re.compile(r"tensor<(?:\d+x)*(?P<element>[a-z]\w*)(?:, .*)?>$", re.DOTALL)


def constant(program: Program, kind: str) -> Op | None:
    """A constant 0 of a type of numbers, or of tensors of them; None for another type."""
    element = kind if (tensor := _TENSOR.match(kind)) is None else tensor["element"]
    if (number := _NUMBER.match(element)) is None:
        return None
    zero = "0.000000e+00" if number["float"] else "false" if element == "i1" else "0"
    value = f"dense<{zero}> : {kind}" if tensor else zero if element == "i1" else f"{zero} : {kind}"
    result = program.new_value(kind)
    program.next_number += 1
    return Op(program.next_number - 1, "arith.constant", [result], properties={"value": value})


class Replacements:
    """Values that are replaced, in one edit of a program."""

    def __init__(self, program: Program, stand_in: StandIn) -> None:
        self.program = program
        self.stand_in = stand_in
        self.table: dict[int, int] = {}

    def replace(self, operation: Op, used: dict[int, int], function: Op | None) -> list[Op]:
        """Have other values stand in for the results of an operation that goes; returns constants to put in its place.

        `used`: the values that are used yet, and how often.
        """
        made: list[Op] = []
        for result in operation.results:
            if used.get(result):
                self.table[result] = self._stand_in_of(result, operation, function, made)
        return made

    def _stand_in_of(self, value: int, operation: Op, function: Op | None, made: list[Op]) -> int:
        kind = self.program.types[value]
        if self.stand_in == "operand":
            same = (one for one in operation.operands if self.program.types[one] == kind)
            if (found := next(same, None)) is not None:
                return found
        if self.stand_in == "constant" and (stand_in := constant(self.program, kind)) is not None:
            made.append(stand_in)
            return stand_in.results[0]
        if function is None:
            return value
        return self.program.new_argument(function, kind)

    def finish(self) -> None:
        """Replace all uses."""
        if self.table:
            self.program.replace_uses(lambda value: resolved(self.table, value))


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
