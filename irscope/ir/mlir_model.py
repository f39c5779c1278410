"""What a printed MLIR module is made of: operations, blocks, regions and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from irscope.ir.alias_table import AliasTable

# "%cst = arith.constant 1 : i32" has its types behind the last " : " that stands outside of brackets.
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|->|[()\[\]{}<>]| : ')

# tt.func public @matmul(      "tt.func"() <{sym_name = "matmul", sym_visibility = "public"}> ({
_PUBLIC = re.compile(r'func public @|sym_visibility = "public"')


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value: a result of an operation, or an argument of a block."""

    name: str = field(compare=False)
    """As a use of it is written: `%0`, `%acc_69#1`. Regions side by side use one name for several values."""
    number: int
    """Its own in the module, whatever it is called; the results of one operation `%0:2` share it."""
    index: int = 0
    """Which result of `%0:2`, 0-based."""


@dataclass(frozen=True, slots=True)
class Block:
    """Operations in a row."""

    label: str
    """`^bb0`; empty where the block has none."""
    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]
    header: str = ""
    """The line that names its arguments: that of its label, or the one that opens the region."""


@dataclass(frozen=True, slots=True)
class Region:
    """The blocks between two braces."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, whether irscope knows its dialect or not."""

    name: str
    """`tt.load`; empty where the text could not be read at all."""
    results: tuple[Value, ...]
    operands: tuple[Value, ...]
    """In the order they are written, those handed to successors included."""
    successors: tuple[str, ...]
    """Labels of the blocks it may go to."""
    carried: tuple[tuple[Value, Value], ...]
    """(argument, first value) of each loop-carried value of `scf.for` and `scf.while`."""
    regions: tuple[Region, ...]
    location: str
    """What stands within `loc(…)`; empty where nothing does."""
    first_line: int
    """1-based."""
    last_line: int
    """1-based; that of the closing brace, where it has regions."""
    text: str
    """Its first line (all its lines, where it has no region and takes several), without indentation and location."""
    closing: str = ""
    """The line that ends the last of its regions: `}) {axis = 1 : i32} : (i32) -> i32`; empty where it has none."""

    @property
    def dialect(self) -> str:
        """`tt` of `tt.load`; empty where the name has none."""
        return self.name.rpartition(".")[0].partition(".")[0]

    @property
    def attributes(self) -> str:
        """Its attribute dictionary, properties included, as written; empty where it has none."""
        found: list[str] = []
        depth = start = 0
        for match in _BRACKETS.finditer(self.text):
            if match[0] == "{" and match.end() < len(self.text):
                start = start if depth else match.start()
                depth += 1
            elif match[0] == "}" and depth:
                depth -= 1
                if not depth and not _within_type(self.text, start):
                    found.append(self.text[start : match.end()])
        return " ".join(found)

    @property
    def types(self) -> str:
        """What stands behind the last colon: the types of its operands and results; empty where nothing does."""
        depth, start = 0, -1
        text = self.closing if " : " in self.closing else self.text
        for match in _BRACKETS.finditer(text):
            part = match[0]
            if part in ("(", "[", "{", "<"):
                depth += 1
            elif part in (")", "]", "}", ">"):
                # The line that closes a region begins with its brackets.
                depth = max(depth - 1, 0)
            elif part == " : " and not depth:
                start = match.end()
        return text[start:].removesuffix("{").rstrip() if start >= 0 else ""

    def walk(self) -> Iterator[Operation]:
        """This operation and all within it, each before what it holds."""
        # A list instead of recursion: hostile text may nest as deep as it likes.
        waiting: list[Operation] = [self]
        while waiting:
            operation = waiting.pop()
            yield operation
            for region in reversed(operation.regions):
                for block in reversed(region.blocks):
                    waiting.extend(reversed(block.operations))


def _within_type(text: str, start: int) -> bool:
    # "#ttg.blocked<{…}>" is an attribute of a type; " <{axis = 0}>" are the operation's own properties.
    return text[start - 1 : start] == "<" and text[start - 2 : start - 1] not in (" ", "")


@dataclass(frozen=True, slots=True)
class MlirModule:
    """A printed module."""

    aliases: Mapping[str, str]
    """Alias with its sign -> the text it stands for: `#blocked` -> `#ttg.blocked<…>`, `#loc3` -> `loc(…)`."""
    operations: tuple[Operation, ...]
    """Those at the top; as a rule, `module` alone."""
    _definitions: Mapping[int, Operation] = field(repr=False)
    _uses: Mapping[int, list[Operation]] = field(repr=False)
    _table: AliasTable = field(repr=False, compare=False)

    @classmethod
    def of(cls, aliases: Mapping[str, str], operations: tuple[Operation, ...]) -> MlirModule:
        """The module of some operations, with who defines and who reads each value."""
        definitions: dict[int, Operation] = {}
        uses: dict[int, list[Operation]] = {}
        module = cls(aliases, operations, definitions, uses, AliasTable(aliases, _ALIAS))
        for operation in module.walk():
            for value in operation.results:
                definitions[value.number] = operation
            for region in operation.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        definitions[argument.number] = operation
            for number in {value.number for value in operation.operands}:
                uses.setdefault(number, []).append(operation)
        return module

    @property
    def kernel(self) -> Operation | None:
        """The function that is launched: the public one, else the first; None where there is no function."""
        functions = [one for one in self.walk() if one.name in ("tt.func", "llvm.func") and one.regions]
        return next((one for one in functions if _PUBLIC.search(one.text)), functions[0] if functions else None)

    def walk(self) -> Iterator[Operation]:
        """All operations, each before what it holds."""
        for operation in self.operations:
            yield from operation.walk()

    def definition(self, value: Value) -> Operation | None:
        """The operation that a value is a result of, or whose block it is an argument of; None where none is."""
        return self._definitions.get(value.number)

    def uses(self, value: Value) -> tuple[Operation, ...]:
        """The operations that read a value, in the order of the text."""
        return tuple(operation for operation in self._uses.get(value.number, ()) if value in operation.operands)

    def resolve(self, text: str) -> str:
        """A text with its attribute and type aliases replaced by what they stand for."""
        return self._table.expand(text)


# #blocked1, but neither #ttg.blocked<…> nor #loc3
_ALIAS = re.compile(r"[#!](?!loc\d*\b)[A-Za-z_$][\w$]*(?![\w$.<])")
