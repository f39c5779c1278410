"""The parts of a printed MLIR module: operations, blocks, regions and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from irscope.ir.mlir.alias_table import AliasTable
from irscope.ir.mlir.tokens import parameters_of, types_of

# tt.func public @matmul(      "tt.func"() <{sym_name = "matmul", sym_visibility = "public"}> ({
_PUBLIC = re.compile(r'func public @|sym_visibility = "public"')


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value: a result of an operation, or an argument of a block."""

    name: str = field(compare=False)
    """As its uses are written: `%0`, `%acc_69#1`. Sibling regions use one name for different values."""
    number: int
    """Unique in the module, unlike the name; the results of one operation `%0:2` share it."""
    index: int = 0
    """Index of the result within `%0:2`, 0-based."""


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block."""

    label: str
    """`^bb0`; empty if the block has none."""
    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]
    header: str = ""
    """The line that names its arguments: its label's, or the one that opens the region."""
    line: int = 0
    """1-based line of the header; 0 if it has none."""


@dataclass(frozen=True, slots=True)
class Region:
    """The blocks between two braces."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of any dialect, known to irscope or not."""

    name: str
    """`tt.load`; empty if the text could not be read."""
    results: tuple[Value, ...]
    operands: tuple[Value, ...]
    """In the order of the text, those passed to successors included."""
    successors: tuple[str, ...]
    """Labels of the blocks it may branch to."""
    carried: tuple[tuple[Value, Value], ...]
    """(argument, first value) of each loop-carried value of `scf.for` and `scf.while`."""
    regions: tuple[Region, ...]
    location: str
    """The text within `loc(…)`; empty if there is none."""
    lines: tuple[int, ...]
    """1-based numbers of its own lines: those that open, separate and close its regions, not the lines within them."""
    text: str
    """Its first line (all its lines if it has no region), without indentation and location."""
    closing: str = ""
    """The line that ends its last region: `}) {axis = 1 : i32} : (i32) -> i32`; empty if it has no region."""

    @property
    def first_line(self) -> int:
        """1-based."""
        return self.lines[0]

    @property
    def types(self) -> str:
        """The types of its operands and results, as written behind the last colon; empty if there are none."""
        return types_of(self.closing if " : " in self.closing else self.text)

    @property
    def parameters(self) -> tuple[tuple[Value, str, str], ...]:
        """(argument, type, attributes) of each parameter of a function in the custom form."""
        blocks = [block for region in self.regions[:1] for block in region.blocks[:1]]
        written = parameters_of(self.text)
        return tuple((one, *written[one.name]) for block in blocks for one in block.arguments if one.name in written)

    @property
    def children(self) -> tuple[Operation, ...]:
        """The operations of its regions, without those nested in them."""
        return tuple(one for region in self.regions for block in region.blocks for one in block.operations)

    def walk(self) -> Iterator[Operation]:
        """This operation and all nested ones, in preorder."""
        # An explicit stack: a hostile text may nest deeper than Python's own stack allows.
        waiting: list[Operation] = [self]
        while waiting:
            operation = waiting.pop()
            yield operation
            waiting.extend(reversed(operation.children))


@dataclass(frozen=True, slots=True)
class MlirModule:
    """A printed module."""

    aliases: Mapping[str, str]
    """Alias with its sign -> its definition: `#blocked` -> `#ttg.blocked<…>`, `#loc3` -> `loc(…)`."""
    operations: tuple[Operation, ...]
    """The top-level ones; usually `module` alone."""
    _definitions: Mapping[int, Operation] = field(repr=False)
    _table: AliasTable = field(repr=False, compare=False)
    kernel: Operation | None = field(init=False, repr=False, compare=False)
    """The function that is launched: the public one, else the first; None if there is no function."""

    def __post_init__(self) -> None:
        functions = [one for one in self.walk() if one.name in ("tt.func", "llvm.func") and one.regions]
        public = (one for one in functions if _PUBLIC.search(one.text))
        object.__setattr__(self, "kernel", next(public, functions[0] if functions else None))

    def walk(self) -> Iterator[Operation]:
        """All operations, in preorder."""
        for operation in self.operations:
            yield from operation.walk()

    def definition(self, value: Value) -> Operation | None:
        """The operation whose result, or whose block's argument, a value is; None if there is none."""
        return self._definitions.get(value.number)

    def resolve(self, text: str) -> str:
        """The text with its attribute and type aliases replaced by their definitions."""
        return self._table.expand(text)
