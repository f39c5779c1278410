"""Reads a printed MLIR module: operations, blocks and regions, with the definitions of its values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from irscope.ir.columns import read_body
from irscope.ir.mlir.model import Block, MlirModule, Operation, Region, Value
from irscope.ir.mlir.tokens import definitions
from irscope.ir.syntax import HOLE, Shape

# "default {"   "partition0(%a: i32) num_warps(4) {"   "case 1 {": more regions of the operation before
_MORE_REGIONS = re.compile(r"(?:default|partition\d+|case -?\d+)(?: \{$|\(.*\{$)")
# "%acc_69:9 = "   "%acc#1"
_COUNT = re.compile(r":(\d{1,9})")
_INDEX = re.compile(r"#(\d{1,9})")
_MOST_LINES = 200
"""Lines of one operation without regions."""
_MOST_RESULTS = 4096
"""Results of one operation: a count of millions is an attack."""


@lru_cache(maxsize=8)
def parse_mlir(text: str) -> MlirModule:
    """Read a printed module, in custom or generic form, of any dialect.

    Never raises: an operation that cannot be read has no name, and unbalanced braces close at the end. The last few
    modules are kept: layouts, locations, source map and graphs read the same texts.
    """
    return _Builder(text).build()


@dataclass(slots=True)
class _Frame:
    """An operation, or one of its regions, that is still open; lines are indices of the body's."""

    lines: list[int]
    """Its own lines so far; empty for the top."""
    arguments: tuple[Value, ...] = ()
    label: str = ""
    header: int = -1
    """The line that opens the block."""
    operations: list[Operation] = field(default_factory=list[Operation])
    blocks: list[Block] = field(default_factory=list[Block])
    regions: list[Region] = field(default_factory=list[Region])
    last_lines: list[int] = field(default_factory=list[int])
    """Those of the last operation in its open block; empty if there is none."""


class _Builder:
    """Goes through the lines of a body from operation to operation; unbalanced braces close at the end."""

    def __init__(self, text: str) -> None:
        self.body = read_body(text, "mlir", frozenset({"locations"}))
        self.module = MlirModule(text, self.body, definitions(text))
        self.values = [Value(name, number) for number, name in enumerate(self.body.names)]
        self.many: set[int] = set()
        """Values that stand for several results."""
        self.stack = [_Frame([])]

    def build(self) -> MlirModule:
        line, count = 0, len(self.body.lines)
        while line < count:
            line = self._line(line)
        while len(self.stack) > 1:
            self._close(None)
        top = self.stack[0]
        self._end_block(top)
        self.module.close(tuple(operation for block in top.blocks for operation in block.operations))
        return self.module

    def _line(self, line: int) -> int:
        """Read one line, or several that are one operation; returns the next."""
        shape = self.body.shapes[line]
        frame = self.stack[-1]
        if shape.closes:
            if len(self.stack) > 1 and shape.opens:
                self._end_region(frame)
                frame.lines.append(line)
            elif len(self.stack) > 1:
                self._close(line)
            return line + 1
        if shape.name == "^":
            self._end_block(frame)
            values = self._values(line, shape)
            frame.label = values[0].name
            frame.arguments = tuple([values[place] for place in shape.defines[1:]])
            frame.header = line
            return line + 1
        if shape.opens:
            is_more = frame.last_lines and _MORE_REGIONS.match(shape.template)
            self.stack.append(self._opened_again(frame, line) if is_more else self._opened(line, shape))
            return line + 1
        # "cf.switch %0 : i32, [" goes on until "]".
        last = self._last_line(line) if shape.template[-1:] in ("[", "(", ",") else line
        self._add([line] if last == line else [*range(line, last + 1)], last + 1 - line, None)
        return last + 1

    def _last_line(self, line: int) -> int:
        depth = 0
        for last in range(line, min(line + _MOST_LINES, len(self.body.lines))):
            template = self.body.shapes[last].template
            depth += sum(map(template.count, "[(")) - sum(map(template.count, "])"))
            if depth <= 0 and not template.endswith(","):
                return last
        return line

    def _opened(self, line: int, shape: Shape) -> _Frame:
        _, taken = self._results(line, shape)
        values = self._values(line, shape)
        return _Frame([line], tuple([values[place] for place in shape.defines if place >= taken]), header=line)

    def _opened_again(self, before: _Frame, line: int) -> _Frame:
        """The last operation of the open block has another region: it is not complete yet."""
        operation = before.operations.pop()
        shape = self.body.shapes[line]
        values = self._values(line, shape)
        arguments = tuple([values[place] for place in shape.defines])
        return _Frame([*before.last_lines, line], arguments, header=line, regions=list(operation.regions))

    def _end_block(self, frame: _Frame) -> None:
        if frame.operations or frame.label or frame.arguments:
            header, line = (
                ("", 0)
                if frame.header < 0
                else (self.body.lines[frame.header].strip(), self.body.numbers[frame.header])
            )
            frame.blocks.append(Block(frame.label, frame.arguments, tuple(frame.operations), header, line))
        frame.operations, frame.arguments, frame.label, frame.header = [], (), "", -1
        frame.last_lines = []

    def _end_region(self, frame: _Frame) -> None:
        self._end_block(frame)
        frame.regions.append(Region(tuple(frame.blocks)))
        frame.blocks = []

    def _close(self, line: int | None) -> None:
        frame = self.stack.pop()
        self._end_region(frame)
        self._add(frame.lines if line is None else [*frame.lines, line], 1, frame)

    # ── operations ────────────────────────────────────────────────────────────────────────────────────────────

    def _values(self, line: int, shape: Shape) -> list[Value]:
        known = self.values
        if not self.many or "#" not in shape.template:
            return [known[value] for value in self.body.values[line]]
        found: list[Value] = []
        for value, hole in zip(self.body.values[line], HOLE.finditer(shape.template), strict=False):
            index = _INDEX.match(shape.template, hole.end()) if value in self.many else None
            found.append(known[value] if index is None else self._result(value, int(index[1])))
        return found

    def _result(self, value: int, index: int) -> Value:
        return Value(f"{self.body.names[value]}#{index}", value, index)

    def _results(self, line: int, shape: Shape) -> tuple[tuple[Value, ...], int]:
        template = shape.template
        if not shape.defines or shape.defines[0] != 0 or template[0] != "\x01":
            return (), 0
        if template.startswith("\x01 = "):
            return (self.values[self.body.values[line][0]],), 1
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
        return tuple(results), taken

    def _add(self, lines: list[int], written: int, closed: _Frame | None) -> None:
        """An operation is complete: its lines, of which the first `written` hold its operands."""
        first = lines[0]
        shape = self.body.shapes[first]
        results, _ = self._results(first, shape)
        operands: list[Value] = []
        successors: list[str] = []
        for line in lines[:written]:
            here = self.body.shapes[line]
            values = self._values(line, here)
            defines = here.defines
            # Nearly every line: its results stand first, and it has no successor.
            if "\x02" not in here.template and (not defines or defines[-1] == len(defines) - 1):
                operands += values[len(defines) :]
                continue
            for place, value in enumerate(values):
                if value.name[0] == "^":
                    successors.append(value.name)
                elif place not in defines:
                    operands.append(value)
        regions = tuple(closed.regions) if closed is not None else ()
        operation = Operation(
            self.module, shape.name, results, tuple(operands), tuple(successors), regions, lines, written
        )
        frame = self.stack[-1]
        frame.operations.append(operation)
        frame.last_lines = lines
        owners = self.module.owners
        for value in results:
            owners[value.number] = operation
        for region in regions:
            for block in region.blocks:
                for value in block.arguments:
                    owners[value.number] = block
                    self.module.parents[value.number] = operation
