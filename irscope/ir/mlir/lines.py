"""Which lines of a printed MLIR module are one operation: those that open, separate and close its regions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from irscope.ir.body.reader import Body, read_body
from irscope.ir.mlir.tokens import trailing_location

__all__ = ["LineWalk", "OpenLines", "located_lines"]

# "default {"   "partition0(%a: i32) num_warps(4) {"   "case 1 {": more regions of the operation before
_MORE_REGIONS = re.compile(r"(?:default|partition\d+|case -?\d+)(?: \{$|\(.*\{$)")
_MOST_LINES = 200
"""Lines of one operation without regions."""


@dataclass(slots=True)
class OpenLines:
    """An operation that is still open; indices are those of a body's lines."""

    lines: list[int]
    """Its own lines so far; empty for the top."""
    last_lines: list[int] = field(default_factory=list[int])
    """Those of the last operation in its open block; empty if there is none."""


_Frame = TypeVar("_Frame", bound=OpenLines)


class LineWalk(Generic[_Frame]):
    """Goes through the lines of a body from operation to operation; unbalanced braces close at the end."""

    def __init__(self, body: Body, top: _Frame) -> None:
        self.body = body
        self.stack: list[_Frame] = [top]

    def begin_block(self, frame: _Frame, line: int) -> None:
        """A line labels a block."""

    def opened(self, line: int) -> _Frame:
        """The frame of an operation whose first region a line opens."""
        raise NotImplementedError

    def opened_again(self, before: _Frame, line: int) -> _Frame:
        """The frame of the last operation of `before`, of which a line opens another region."""
        raise NotImplementedError

    def end_block(self, frame: _Frame) -> None:
        """The open block of a frame ends; later ones may follow."""
        frame.last_lines = []

    def end_region(self, frame: _Frame) -> None:
        """The open region of a frame ends."""
        self.end_block(frame)

    def add(self, lines: list[int], written: int, closed: _Frame | None) -> None:
        """An operation is complete: its lines, of which the first `written` hold its operands.

        `closed`: its frame, if it has regions.
        """
        self.stack[-1].last_lines = lines

    def walk(self) -> None:
        """Go through all lines."""
        line, count = 0, len(self.body.lines)
        while line < count:
            line = self._line(line)
        while len(self.stack) > 1:
            self._close()
        self.end_block(self.stack[0])

    def _line(self, line: int) -> int:
        """Read one line, or several that are one operation; returns the next."""
        shape = self.body.shapes[line]
        frame = self.stack[-1]
        if shape.closes:
            if len(self.stack) > 1 and shape.opens:
                self.end_region(frame)
                frame.lines.append(line)
            elif len(self.stack) > 1:
                self._close(line)
            return line + 1
        if shape.name == "^":
            self.end_block(frame)
            self.begin_block(frame, line)
            return line + 1
        if shape.opens:
            is_more = frame.last_lines and _MORE_REGIONS.match(shape.template)
            self.stack.append(self.opened_again(frame, line) if is_more else self.opened(line))
            return line + 1
        # "cf.switch %0 : i32, [" goes on until "]".
        last = self._last_line(line) if shape.template[-1:] in ("[", "(", ",") else line
        self.add([*range(line, last + 1)], last + 1 - line, None)
        return last + 1

    def _last_line(self, line: int) -> int:
        depth = 0
        for last in range(line, min(line + _MOST_LINES, len(self.body.lines))):
            template = self.body.shapes[last].template
            depth += sum(map(template.count, "[(")) - sum(map(template.count, "])"))
            if depth <= 0 and not template.endswith(","):
                return last
        return line

    def _close(self, line: int | None = None) -> None:
        frame = self.stack.pop()
        self.end_region(frame)
        self.add(frame.lines if line is None else [*frame.lines, line], 1, frame)


class _Located(LineWalk[OpenLines]):
    """Notes the lines and the location of each operation."""

    def __init__(self, text: str) -> None:
        super().__init__(read_body(text, "mlir", frozenset({"locations"})), OpenLines([]))
        self._raw = text.replace("\r", "").split("\n")
        self.found: dict[int, tuple[list[int], str]] = {}
        """By its first line; one that has more regions than it seemed is noted again."""

    def opened(self, line: int) -> OpenLines:
        return OpenLines([line])

    def opened_again(self, before: OpenLines, line: int) -> OpenLines:
        return OpenLines([*before.last_lines, line])

    def add(self, lines: list[int], written: int, closed: OpenLines | None) -> None:
        self.stack[-1].last_lines = lines
        location = trailing_location(self._raw[self.body.numbers[lines[-1]] - 1].strip())
        self.found[lines[0]] = lines, location or ""


def located_lines(text: str) -> Iterator[tuple[list[int], str]]:
    """(the 1-based lines, the text within `loc(…)`) of each operation that has a location, in the order of the text."""
    walk = _Located(text)
    walk.walk()
    numbers = walk.body.numbers
    for _, (lines, location) in sorted(walk.found.items()):
        if location:
            yield [numbers[line] for line in lines], location
