"""Reads a printed MLIR module: operations, blocks and regions, with the definitions of its values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from irscope.ir.body.reader import Body, read_body
from irscope.ir.body.tokens import HOLE
from irscope.ir.mlir.alias_table import AliasTable, definitions
from irscope.ir.mlir.lines import LineWalk, OpenLines
from irscope.ir.mlir.model import Block, MlirModule, Operation, Region, Value
from irscope.ir.mlir.tokens import trailing_location

__all__ = ["Block", "MlirModule", "Operation", "Region", "Value", "parse_mlir"]

# "%acc_69:9 = "   "%acc#1"
_COUNT = re.compile(r":(\d{1,9})")
_INDEX = re.compile(r"#(\d{1,9})")
# The hole of "iter_args(\1 = \1)" and the one of its value.
_CARRIED = re.compile("\x01 = $")
_MOST_RESULTS = 4096
"""Results of one operation: a count of millions is an attack."""


@dataclass(slots=True)
class _Frame(OpenLines):
    """An operation, or one of its regions, that is still open."""

    arguments: tuple[Value, ...] = ()
    label: str = ""
    header: int = -1
    """Index of the line that opens the block."""
    operations: list[Operation] = field(default_factory=list[Operation])
    blocks: list[Block] = field(default_factory=list[Block])
    regions: list[Region] = field(default_factory=list[Region])


@lru_cache(maxsize=8)
def parse_mlir(text: str) -> MlirModule:
    """Read a printed module, in custom or generic form, of any dialect.

    Never raises: an operation that cannot be read has no name, and unbalanced braces close at the end. The last few
    modules are kept: layouts, locations, source map and graphs read the same texts.
    """
    return _Builder(text, read_body(text, "mlir", frozenset({"locations"}))).build()


class _Builder(LineWalk[_Frame]):
    def __init__(self, text: str, body: Body) -> None:
        super().__init__(body, _Frame([]))
        self.text = text
        self.raw = text.replace("\r", "").split("\n")
        self.values = [Value(name, number) for number, name in enumerate(body.names)]
        self.many: set[int] = set()
        """Values that stand for several results."""
        self.definitions: dict[int, Operation] = {}

    def build(self) -> MlirModule:
        self.walk()
        operations = tuple(operation for block in self.stack[0].blocks for operation in block.operations)
        aliases = definitions(self.text)
        return MlirModule(aliases, operations, self.definitions, AliasTable(aliases))

    def begin_block(self, frame: _Frame, line: int) -> None:
        values = self._values(line)
        frame.label = values[0].name
        frame.arguments = tuple(values[place] for place in self.body.shapes[line].defines[1:])
        frame.header = line

    def opened(self, line: int) -> _Frame:
        _, taken = self._results(line)
        values = self._values(line)
        arguments = tuple(values[place] for place in self.body.shapes[line].defines if place >= taken)
        return _Frame([line], arguments=arguments, header=line)

    def opened_again(self, before: _Frame, line: int) -> _Frame:
        operation = before.operations.pop()
        values = self._values(line)
        arguments = tuple(values[place] for place in self.body.shapes[line].defines)
        own = [*before.last_lines, line]
        return _Frame(own, arguments=arguments, header=line, regions=list(operation.regions))

    def end_block(self, frame: _Frame) -> None:
        if frame.operations or frame.label or frame.arguments:
            header, line = ("", 0) if frame.header < 0 else (self._text(frame.header), self.body.numbers[frame.header])
            frame.blocks.append(Block(frame.label, frame.arguments, tuple(frame.operations), header, line))
        frame.operations, frame.arguments, frame.label, frame.header = [], (), "", -1
        frame.last_lines = []

    def end_region(self, frame: _Frame) -> None:
        self.end_block(frame)
        frame.regions.append(Region(tuple(frame.blocks)))
        frame.blocks = []

    # ── operations ────────────────────────────────────────────────────────────────────────────────────────────

    def _values(self, line: int) -> list[Value]:
        """The values in the holes of a line, each with its result number."""
        template = self.body.shapes[line].template
        known = self.values
        if "#" not in template or not self.many:
            return [known[value] for value in self.body.values[line]]
        found: list[Value] = []
        for value, hole in zip(self.body.values[line], HOLE.finditer(template), strict=False):
            index = _INDEX.match(template, hole.end()) if value in self.many else None
            found.append(known[value] if index is None else self._result(value, int(index[1])))
        return found

    def _result(self, value: int, index: int) -> Value:
        return Value(f"{self.body.names[value]}#{index}", value, index)

    def _results(self, line: int) -> tuple[list[Value], int]:
        """The results, and how many of the line's holes they take."""
        shape = self.body.shapes[line]
        template = shape.template
        if not shape.defines or shape.defines[0] != 0 or template[0] != "\x01":
            return [], 0
        if template.startswith("\x01 = "):
            return [self.values[self.body.values[line][0]]], 1
        results: list[Value] = []
        taken = 0
        for hole in HOLE.finditer(template, 0, template.find(" = ")):
            value = self.body.values[line][taken]
            taken += 1
            count = _COUNT.match(template, hole.end())
            if count is None:
                results.append(self.values[value])
                continue
            self.many.add(value)
            results.extend(self._result(value, index) for index in range(min(int(count[1]), _MOST_RESULTS)))
        return results, taken

    def add(self, lines: list[int], written: int, closed: _Frame | None) -> None:
        regions = tuple(closed.regions) if closed is not None else ()
        first, last = lines[0], lines[-1]
        shape, numbers = self.body.shapes[first], self.body.numbers
        results, taken = self._results(first)
        operands: list[Value] = []
        successors: list[str] = []
        for line in lines[:written]:
            defines = self.body.shapes[line].defines
            for place, value in enumerate(self._values(line)):
                if value.name[0] == "^":
                    successors.append(value.name)
                elif place not in defines:
                    operands.append(value)
        operation = Operation(
            shape.name,
            tuple(results),
            tuple(operands),
            tuple(successors),
            self._carried(first, taken) if len(shape.defines) > taken and " = " in shape.template else (),
            regions,
            trailing_location(self.raw[numbers[last] - 1].strip()) or "",
            tuple([numbers[line] for line in lines]),
            self._text(first) if written == 1 else "\n".join(map(self._text, lines[:written])),
            self._text(last) if last != first and regions else "",
        )
        self.stack[-1].operations.append(operation)
        self.stack[-1].last_lines = lines
        arguments = [one for region in regions for block in region.blocks for one in block.arguments]
        for value in (*results, *arguments):
            self.definitions[value.number] = operation

    def _text(self, line: int) -> str:
        return self.body.lines[line].strip()

    def _carried(self, line: int, taken: int) -> tuple[tuple[Value, Value], ...]:
        shape = self.body.shapes[line]
        values = self._values(line)
        holes = [match.start() for match in HOLE.finditer(shape.template)]
        first = shape.template.find("iter_args(")
        return tuple(
            (values[place], values[place + 1])
            for place in range(taken, len(values) - 1)
            if place in shape.defines
            and (first < 0 or holes[place] > first)
            and _CARRIED.match(shape.template[holes[place] : holes[place + 1]])
        )
