"""The nouns of locations: the frame, the chain of calls, and which line of a text has which chain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

MAX_FRAMES = 64
"""The frames a chain keeps, counted from the innermost: a text made to be hostile could ask for any number."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One place in a Python file."""

    file: str
    line: int
    """1-based."""
    column: int
    """1-based; 0 where the text names none, as SASS never does."""
    function: str = ""
    """The function it stands in, where the text says so truthfully."""
    name: str = ""
    """The name of a `loc("name"(...))`: the Python name of an SSA value, as a rule."""

    def __str__(self) -> str:
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column}"


Chain = tuple[Frame, ...]
"""The frames of one operation, innermost first; empty where it has no location.

A fused location of MLIR is the first member's chain, then the frames that only its other members have.
"""


@dataclass(frozen=True)
class TextLocations:
    """Where each line of a text comes from."""

    chains: tuple[Chain, ...] = ()
    """The distinct chains."""
    by_line: tuple[int, ...] = ()
    """For each text line (index 0 is line 1): an index into `chains`, or -1 where the line has no location.

    Of an operation that spans several lines all its own lines have its chain: the one that opens a region, those
    between two regions, and the closing one; the lines inside the regions belong to the operations there.
    """

    def chain_at(self, line: int) -> Chain:
        """The chain of a text line, 1-based; empty where it has none or where there is no such line."""
        if not 1 <= line <= len(self.by_line) or self.by_line[line - 1] < 0:
            return ()
        return self.chains[self.by_line[line - 1]]

    @cached_property
    def lines_of_chain(self) -> tuple[tuple[int, ...], ...]:
        """For each chain, the text lines that have it, 1-based."""
        lines: list[list[int]] = [[] for _ in self.chains]
        for number, index in enumerate(self.by_line, 1):
            if index >= 0:
                lines[index].append(number)
        return tuple(tuple(numbers) for numbers in lines)


class ChainTable:
    """Numbers the distinct chains in the order they first occur."""

    def __init__(self) -> None:
        self._index: dict[Chain, int] = {}

    def add(self, chain: Chain) -> int:
        """The index of a chain, which is new or known; -1 for the empty one."""
        if not chain:
            return -1
        return self._index.setdefault(chain, len(self._index))

    def locations(self, by_line: Iterable[int]) -> TextLocations:
        """The finished value, with only those chains that some line has."""
        lines = tuple(by_line)
        used = set(lines)
        chains = [(old, chain) for old, chain in enumerate(self._index) if old in used]
        if len(chains) == len(self._index):
            return TextLocations(tuple(self._index), lines)
        number = {old: new for new, (old, _) in enumerate(chains)} | {-1: -1}
        return TextLocations(tuple(chain for _, chain in chains), tuple(number[old] for old in lines))


def cut(frames: Iterable[Frame]) -> Chain:
    """The chain of some frames: those with a line, no more than `MAX_FRAMES`, innermost first."""
    return tuple(frame for frame in frames if frame.line > 0)[:MAX_FRAMES]


def text_lines(text: str) -> list[str]:
    """The lines of a text without their ends; only a line feed ends a line, as every compiler counts them."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def count(digits: str) -> int:
    """The number that some digits write; 0 where there are so many that it can be no line."""
    return int(digits) if len(digits) < 10 else 0
