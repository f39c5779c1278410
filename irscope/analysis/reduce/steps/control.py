"""Control flow that goes: loops and conditions that become one of their regions, and branches between blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope.analysis.reduce.program import Block, Op, Program, resolved
from irscope.analysis.reduce.steps.step import Edit
from irscope.analysis.reduce.steps.values import constant, segments, with_segments


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


_CONDITIONAL = ("cf.cond_br", "llvm.cond_br")


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
    return next((one for one in ends if one.kind == "return" and not one.operands), None)


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
