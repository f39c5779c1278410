"""Branches between blocks: one side of a condition, one block of a function, and what branches pass on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope.analysis.reduce.program import Block, Op, Program, resolved
from irscope.analysis.reduce.steps.carried import segments, with_segments
from irscope.analysis.reduce.steps.step import Edit

__all__ = ["BlockArguments", "Branches", "OneBlock"]

_CONDITIONAL = ("cf.cond_br", "llvm.cond_br")
_RETURNS = ("tt.return", "llvm.return")


@dataclass(frozen=True, slots=True)
class OneBlock:
    """Leaves one block of a function; arguments of the function stand in for what others made."""

    name: str = "blocks"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(function, block), where a function has several."""
        return [
            (one.key, block.key)
            for one in program.functions
            if len(one.regions[0]) > 1 and _end(one) is not None
            for block in one.regions[0]
        ]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the first of the chosen blocks of each function."""
        for function in program.functions:
            region = function.regions[0]
            block = next((one for one in region if (function.key, one.key) in chosen), None)
            end = _end(function)
            if block is None or end is None:
                continue
            known = set(region[0].arguments)
            if block.operations[-1].successors:
                block.operations[-1] = end.copy()
            made = {value for one in block.operations for inner in one.walk() for value in _values_of(inner)}
            table: dict[int, int] = {}
            region[:] = [Block(region[0].key, region[0].arguments, block.operations)]
            for one in block.operations:
                for inner in one.walk():
                    for value in inner.operands:
                        if value not in known and value not in made and value not in table:
                            table[value] = program.new_argument(function, program.types[value])
            program.replace_uses(lambda value, table=table: table.get(value, value))


def _end(function: Op) -> Op | None:
    """An operation that returns nothing, from a function."""
    ends = (block.operations[-1] for block in function.regions[0] if block.operations)
    return next((one for one in ends if one.name in _RETURNS and not one.operands), None)


def _values_of(operation: Op) -> Iterator[int]:
    yield from operation.results
    for block in operation.blocks:
        yield from block.arguments


@dataclass(frozen=True, slots=True)
class Branches:
    """Has conditional branches always go to one side; what is not reached then is left out."""

    name: str = "branches"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(branch, side); a function of several blocks, some of which may not be reached."""
        sides: list[Edit] = [(one.key, side) for one in program.walk() if one.name in _CONDITIONAL for side in (0, 1)]
        return [*sides, *(one.key for one in program.functions if len(one.regions[0]) > 1)]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Have the chosen branches go one way."""
        for one in program.walk():
            side = next((side for side in (0, 1) if (one.key, side) in chosen), None)
            if side is None or one.name not in _CONDITIONAL:
                continue
            start = sum(segments(one)[: side + 1])
            one.operands = one.operands[start : start + segments(one)[side + 1]]
            one.successors = [one.successors[side]]
            one.name = one.name.replace("cond_br", "br")
            one.properties, one.attributes = {}, {}
        for function in program.functions:
            _tidy(program, function)


def _tidy(program: Program, function: Op) -> None:
    """Leave out blocks of a function that are not reached, and join those that follow one another."""
    region = function.regions[0]
    by_key = {block.key: block for block in region}
    reached, waiting = set[int](), [region[0].key]
    while waiting:
        key = waiting.pop()
        if key not in reached and by_key[key].operations:
            reached.add(key)
            waiting += by_key[key].operations[-1].successors
    region[:] = [block for block in region if block.key in reached]
    table: dict[int, int] = {}
    while (joined := _follower(region)) is not None:
        block, follower = joined
        branch = block.operations.pop()
        table.update(zip(follower.arguments, branch.operands, strict=False))
        block.operations += follower.operations
        region.remove(follower)
    program.replace_uses(lambda value: resolved(table, value))


def _follower(region: list[Block]) -> tuple[Block, Block] | None:
    """A block that ends in a branch to another one, to which nothing else branches."""
    counts: dict[int, int] = {}
    for block in region:
        for key in block.operations[-1].successors:
            counts[key] = counts.get(key, 0) + 1
    for block in region:
        end = block.operations[-1]
        if end.name in ("cf.br", "llvm.br") and counts[end.successors[0]] == 1:
            found = next(one for one in region if one.key == end.successors[0])
            if found is not block and found is not region[0]:
                return block, found
    return None


@dataclass(frozen=True, slots=True)
class BlockArguments:
    """Leaves out arguments of blocks, and what branches pass for them; arguments of the function stand in."""

    name: str = "block arguments"

    def edits(self, program: Program) -> Sequence[Edit]:
        """The arguments of all blocks of functions but the first, the last first."""
        return [value for one in program.functions for block in one.regions[0][1:] for value in block.arguments][::-1]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen arguments out."""
        table: dict[int, int] = {}
        for function in program.functions:
            gone: dict[int, set[int]] = {}
            for block in function.regions[0][1:]:
                gone[block.key] = {place for place, value in enumerate(block.arguments) if value in chosen}
                for value in block.arguments:
                    if value in chosen:
                        table[value] = program.new_argument(function, program.types[value])
                block.arguments = [value for value in block.arguments if value not in chosen]
            for block in function.regions[0]:
                if block.operations and block.operations[-1].successors:
                    _drop_passed(block.operations[-1], gone)
        program.replace_uses(lambda value: table.get(value, value))


def _drop_passed(branch: Op, gone: dict[int, set[int]]) -> None:
    sizes = segments(branch) if branch.name in _CONDITIONAL else [0, len(branch.operands)]
    kept = branch.operands[: sizes[0]]
    start = sizes[0]
    for number, key in enumerate(branch.successors, 1):
        passed = branch.operands[start : start + sizes[number]]
        start += sizes[number]
        left = [value for place, value in enumerate(passed) if place not in gone.get(key, ())]
        kept += left
        sizes[number] = len(left)
    branch.operands = kept
    if branch.name in _CONDITIONAL:
        with_segments(branch, sizes)
