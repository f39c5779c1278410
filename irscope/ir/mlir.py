"""Reads a printed MLIR module: operations, blocks and regions, with the definitions and uses of its values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from irscope.ir.body import Body, read_body
from irscope.ir.mlir_model import Block, MlirModule, Operation, Region, Value
from irscope.ir.tokens import HOLE

__all__ = ["Block", "MlirModule", "Operation", "Region", "Value", "parse_mlir"]

# "#blocked = #ttg.blocked<{…}>"   '#loc3 = loc("x.py":1:2)'
_DEFINITION = re.compile(r"^([#!][A-Za-z_$][\w$]*) = (.*)$", re.MULTILINE)
# "default {"   "partition0(%a: i32) num_warps(4) {"   "case 1 {": more regions of the operation before
_MORE_REGIONS = re.compile(r"(?:default|partition\d+|case -?\d+)\b[^.=]*\{$")
# "} loc(#loc5)"   "… : i32 loc(#loc)"
_LOCATION = re.compile(r" loc\((?P<inner>.*)\)\s*$")
_DEEPEST_LOCATION = 64
# "%acc_69:9 = "   "%acc#1"
_COUNT = re.compile(r":(\d+)")
_INDEX = re.compile(r"#(\d+)")
# The hole of "iter_args(\1 = \1)" and its value's.
_CARRIED = re.compile("\x01 = $")


@dataclass(slots=True)
class _Frame:
    """An operation, or one of its regions, that is still open."""

    opener: int
    """Index of the line that opened it; -1 for the top."""
    arguments: tuple[Value, ...] = ()
    label: str = ""
    header: str = ""
    operations: list[Operation] = field(default_factory=list[Operation])
    openers: list[int] = field(default_factory=list[int])
    """The line each of the operations begins at, as the reader counts."""
    blocks: list[Block] = field(default_factory=list[Block])
    regions: list[Region] = field(default_factory=list[Region])

    def end_block(self) -> None:
        if self.operations or self.label or self.arguments:
            self.blocks.append(Block(self.label, self.arguments, tuple(self.operations), self.header))
        self.operations, self.openers, self.arguments, self.label, self.header = [], [], (), "", ""

    def end_region(self) -> None:
        self.end_block()
        self.regions.append(Region(tuple(self.blocks)))
        self.blocks = []


def parse_mlir(text: str) -> MlirModule:
    """Read a printed module, in custom or generic form, of any dialect.

    Never raises: an operation that it cannot read is one without name, and unbalanced braces close at the end.
    """
    body = read_body(text, "mlir", frozenset({"locations"}))
    return _Builder(text, body).build()


class _Builder:
    def __init__(self, text: str, body: Body) -> None:
        self.text = text
        self.body = body
        self.raw = text.replace("\r", "").split("\n")
        self.many: set[int] = set()
        """Values that stand for several results."""
        self.stack: list[_Frame] = [_Frame(-1)]

    def build(self) -> MlirModule:
        lines = self.body.lines
        line = 0
        while line < len(lines):
            line = self._line(line)
        while len(self.stack) > 1:
            self._close(len(lines) - 1)
        top = self.stack[0]
        top.end_block()
        operations = tuple(operation for block in top.blocks for operation in block.operations)
        aliases = {match[1]: match[2] for match in _DEFINITION.finditer(self.text)}
        return MlirModule.of(aliases, operations)

    def _line(self, line: int) -> int:
        """Take in one line, or several that are one operation; returns the next."""
        shape = self.body.shapes[line]
        frame = self.stack[-1]
        if shape.closes:
            if len(self.stack) == 1:
                return line + 1
            if shape.opens:
                frame.end_region()
            else:
                self._close(line)
            return line + 1
        if shape.name == "^":
            frame.end_block()
            values = self._values(line)
            frame.label = self.body.names[self.body.values[line][0]]
            frame.arguments = tuple(values[place] for place in shape.defines[1:])
            frame.header = self._text(line)
            return line + 1
        if shape.opens:
            if _MORE_REGIONS.match(shape.template) and self._reopen(line):
                return line + 1
            self.stack.append(_Frame(line, arguments=self._entry_arguments(line), header=self._text(line)))
            return line + 1
        last = self._last_line(line)
        self._add(line, last, (), last)
        return last + 1

    def _reopen(self, line: int) -> bool:
        # The operation before takes the region that begins here.
        frame = self.stack[-1]
        if not frame.operations:
            return False
        before, opener = frame.operations.pop(), frame.openers.pop()
        values = self._values(line)
        arguments = tuple(values[place] for place in self.body.shapes[line].defines)
        self.stack.append(_Frame(opener, arguments=arguments, header=self._text(line), regions=list(before.regions)))
        return True

    def _number(self, line: int) -> int:
        return self.body.numbers[line]

    def _last_line(self, line: int) -> int:
        # "cf.switch %0 : i32, [" goes on until "]".
        last = line
        if self.body.shapes[line].template.endswith(("[", "(", ",")):
            depth = 0
            for last in range(line, min(line + 200, len(self.body.lines))):
                template = self.body.shapes[last].template
                depth += sum(map(template.count, "[(")) - sum(map(template.count, "])"))
                if depth <= 0 and not template.endswith(","):
                    return last
            return line
        return last

    def _close(self, line: int) -> None:
        frame = self.stack.pop()
        frame.end_region()
        self._add(frame.opener, frame.opener, tuple(frame.regions), line)

    # ── operations ────────────────────────────────────────────────────────────────────────────────────────────

    def _values(self, line: int) -> list[Value]:
        """The values in the holes of a line, each with its result number."""
        names, template = self.body.names, self.body.shapes[line].template
        values = self.body.values[line]
        if "#" not in template and not self.many:
            return [Value(names[value], value) for value in values]
        found: list[Value] = []
        holes = HOLE.finditer(template)
        for value, hole in zip(values, holes, strict=False):
            index = _INDEX.match(template, hole.end()) if value in self.many else None
            if index is None:
                found.append(Value(names[value], value))
            else:
                found.append(Value(f"{names[value]}#{index[1]}", value, int(index[1])))
        return found

    def _results(self, line: int) -> tuple[tuple[Value, ...], int]:
        """The results, and how many of the line's holes they take."""
        shape, names = self.body.shapes[line], self.body.names
        end = shape.template.find(" = ")
        results: list[Value] = []
        taken = 0
        if not shape.defines or shape.defines[0] != 0 or shape.template[0] != "\x01":
            return (), 0
        for place, hole in enumerate(HOLE.finditer(shape.template, 0, end)):
            value = self.body.values[line][place]
            count = _COUNT.match(shape.template, hole.end())
            taken += 1
            if count is None:
                results.append(Value(names[value], value))
                continue
            self.many.add(value)
            # A count of millions would be no result list but an attack.
            results.extend(Value(f"{names[value]}#{index}", value, index) for index in range(min(int(count[1]), 4096)))
        return tuple(results), taken

    def _entry_arguments(self, line: int) -> tuple[Value, ...]:
        _, taken = self._results(line)
        values = self._values(line)
        return tuple(values[place] for place in self.body.shapes[line].defines if place >= taken)

    def _add(self, line: int, last: int, regions: tuple[Region, ...], end: int) -> None:
        shape = self.body.shapes[line]
        results, taken = self._results(line)
        operands: list[Value] = []
        successors: list[str] = []
        carried: list[tuple[Value, Value]] = []
        for part in range(line, last + 1):
            values = self._values(part)
            defines = self.body.shapes[part].defines
            for place, value in enumerate(values):
                if value.name[0] == "^":
                    successors.append(value.name)
                elif place not in defines:
                    operands.append(value)
        if len(shape.defines) > taken and " = " in shape.template:
            carried = self._carried(line, taken)
        operation = Operation(
            shape.name,
            results,
            tuple(operands),
            tuple(successors),
            tuple(carried),
            regions,
            self._location(end),
            self._number(line),
            self._number(end),
            "\n".join(map(self._text, range(line, last + 1))),
            self._text(end) if regions else "",
        )
        self.stack[-1].operations.append(operation)
        self.stack[-1].openers.append(line)

    def _text(self, line: int) -> str:
        return self.body.lines[line].strip()

    def _carried(self, line: int, taken: int) -> list[tuple[Value, Value]]:
        shape = self.body.shapes[line]
        values = self._values(line)
        holes = [match.start() for match in HOLE.finditer(shape.template)]
        first = shape.template.find("iter_args(")
        carried: list[tuple[Value, Value]] = []
        for place in range(taken, len(values) - 1):
            starts_late = first < 0 or holes[place] > first
            between = shape.template[holes[place] : holes[place + 1]]
            if place in shape.defines and starts_late and _CARRIED.match(between):
                carried.append((values[place], values[place + 1]))
        return carried

    def _location(self, line: int) -> str:
        number = self._number(line) - 1
        raw = self.raw[number] if number < len(self.raw) else ""
        end = len(raw)
        for _ in range(_DEEPEST_LOCATION):
            # The outermost of nested locations begins where the brackets balance.
            start = raw.rfind(" loc(", 0, end)
            match = _LOCATION.match(raw, start) if start >= 0 else None
            if match is None:
                break
            if match["inner"].count("(") == match["inner"].count(")"):
                return match["inner"]
            end = start
        return ""
