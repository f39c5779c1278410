"""An MLIR module that can be edited: operations, blocks and values, of which any printed form can be made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from irscope.ir.mlir.operations import OperationKind, operation_info

__all__ = ["Block", "Op", "Program"]


@dataclass(slots=True)
class Op:
    """An operation. Values are numbers, whose types the program knows."""

    key: int
    """The same in every copy of the program."""
    name: str
    results: list[int] = field(default_factory=list[int])
    operands: list[int] = field(default_factory=list[int])
    successors: list[int] = field(default_factory=list[int])
    """The keys of the blocks it may branch to."""
    properties: dict[str, str] = field(default_factory=dict[str, str])
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    """The attributes that are no properties, which most operations can do without. A unit attribute is empty."""
    regions: list[list[Block]] = field(default_factory=list[list["Block"]])
    location: str = ""
    """The text within `loc(…)`."""

    @property
    def kind(self) -> OperationKind | None:
        """What it is; None for an operation that the table does not know."""
        info = operation_info(self.name)
        return info.kind if info is not None else None

    @property
    def is_function(self) -> bool:
        """Whether it is a function with a body."""
        return self.kind == "function" and bool(self.regions) and bool(self.regions[0])

    @property
    def blocks(self) -> Iterator[Block]:
        """The blocks of its regions, without those nested in them."""
        return (block for region in self.regions for block in region)

    def walk(self) -> Iterator[Op]:
        """This operation and all nested ones, in preorder."""
        yield self
        for block in self.blocks:
            for operation in block.operations:
                yield from operation.walk()

    def copy(self) -> Op:
        """A copy with all that is nested in it."""
        regions = [[block.copy() for block in region] for region in self.regions]
        return Op(
            self.key, self.name, [*self.results], [*self.operands], [*self.successors], {**self.properties},
            {**self.attributes}, regions, self.location,
        )  # fmt: skip


@dataclass(slots=True)
class Block:
    """A basic block."""

    key: int
    arguments: list[int]
    operations: list[Op]

    def copy(self) -> Block:
        """A copy with all operations."""
        return Block(self.key, [*self.arguments], [one.copy() for one in self.operations])


@dataclass(slots=True)
class Program:
    """A module."""

    operations: list[Op]
    """The top-level ones; usually `builtin.module` alone."""
    types: dict[int, str]
    """Value → type, as written: aliases stay."""
    aliases: dict[str, str]
    """Alias with its sign → its definition, in the order of the text."""
    argument_attributes: dict[int, dict[str, str]]
    """Argument of a function → its attributes."""
    next_number: int
    """Greater than every value and key."""

    def copy(self) -> Program:
        """A copy that can be edited on its own."""
        return Program(
            [one.copy() for one in self.operations],
            {**self.types},
            {**self.aliases},
            {value: {**rows} for value, rows in self.argument_attributes.items()},
            self.next_number,
        )

    def walk(self) -> Iterator[Op]:
        """All operations, in preorder."""
        for operation in self.operations:
            yield from operation.walk()

    @property
    def count(self) -> int:
        """The number of operations, the module and its functions included."""
        return sum(1 for _ in self.walk())

    @property
    def functions(self) -> list[Op]:
        """The functions that have a body."""
        return [one for one in self.walk() if one.is_function]

    def new_value(self, kind: str) -> int:
        """A new value of a type."""
        number = self.next_number
        self.next_number += 1
        self.types[number] = kind
        return number

    def new_argument(self, function: Op, kind: str) -> int:
        """A new last argument of a function."""
        value = self.new_value(kind)
        function.regions[0][0].arguments.append(value)
        return value

    def replace_uses(self, found: Callable[[int], int]) -> None:
        """Have every operation use `found(value)` in place of a value."""
        for operation in self.walk():
            operation.operands = [found(value) for value in operation.operands]

    def uses(self) -> dict[int, int]:
        """How often each value that is used is used."""
        counts: dict[int, int] = {}
        for operation in self.walk():
            for value in operation.operands:
                counts[value] = counts.get(value, 0) + 1
        return counts

    def blocks(self) -> Iterator[tuple[Op, Op | None, Block]]:
        """(the operation that a block is in, the function around it, the block), outer blocks first."""
        waiting: list[tuple[Op, Op | None]] = [(one, None) for one in reversed(self.operations)]
        while waiting:
            operation, function = waiting.pop()
            around = operation if operation.is_function else function
            for block in operation.blocks:
                yield operation, around, block
                waiting.extend((one, around) for one in reversed(block.operations) if one.regions)


def resolved(table: dict[int, int], value: int) -> int:
    """What a value is replaced by, through all replacements."""
    seen: set[int] = set()
    while value in table and value not in seen:
        seen.add(value)
        value = table[value]
    return value
