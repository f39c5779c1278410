"""The value objects of locations: frames, chains of calls, and the chain of each line of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_FRAMES = 64
"""The most frames of a chain, counted from the innermost; a hostile text could have any number."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A location in a Python file."""

    file: str
    line: int
    """1-based."""
    column: int
    """1-based; 0 if the text has none, as in SASS."""
    function: str = ""
    """The function around it, if the text names it correctly."""
    name: str = ""
    """The name of a `loc("name"(...))`: usually the Python name of an SSA value."""

    def __str__(self) -> str:
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column}"


Chain = tuple[Frame, ...]
"""The frames of one operation, innermost first; empty if it has no location.

A fused location of MLIR is the chain of its first member, then the frames that only other members have.
"""


@dataclass(frozen=True)
class TextLocations:
    """The chain of each line of a text."""

    chains: tuple[Chain, ...] = ()
    """The distinct chains."""
    by_line: tuple[int, ...] = ()
    """For each text line (index 0 is line 1): an index into `chains`, or -1 if the line has no location.

    All lines of an operation have its chain: those that open, separate and close its regions. Lines within regions
    belong to the operations there.
    """

    def chain_at(self, line: int) -> Chain:
        """The chain of a text line, 1-based; empty if it has none or if there is no such line."""
        if not 1 <= line <= len(self.by_line) or self.by_line[line - 1] < 0:
            return ()
        return self.chains[self.by_line[line - 1]]


class ChainTable:
    """Numbers distinct chains in the order of their first occurrence."""

    def __init__(self) -> None:
        self._index: dict[Chain, int] = {}

    def add(self, chain: Chain) -> int:
        """The index of a chain, added if it is new; -1 for the empty one."""
        if not chain:
            return -1
        return self._index.setdefault(chain, len(self._index))

    def locations(self, by_line: Iterable[int]) -> TextLocations:
        """The finished value, with only the chains in use."""
        lines = tuple(by_line)
        used = set(lines)
        chains = [(old, chain) for old, chain in enumerate(self._index) if old in used]
        if len(chains) == len(self._index):
            return TextLocations(tuple(self._index), lines)
        number = {old: new for new, (old, _) in enumerate(chains)} | {-1: -1}
        return TextLocations(tuple(chain for _, chain in chains), tuple(number[old] for old in lines))


def cut(frames: Iterable[Frame]) -> Chain:
    """The chain of given frames: those with a line, at most `MAX_FRAMES`, innermost first."""
    return tuple(frame for frame in frames if frame.line > 0)[:MAX_FRAMES]


def text_lines(text: str) -> list[str]:
    """The lines of a text without line ends; only a line feed ends a line, as in every compiler."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def count(digits: str) -> int:
    """The value of decimal digits; 0 if there are too many for a line number."""
    return int(digits) if len(digits) < 10 else 0


# ── The user's line of a location: the innermost frame outside of Triton's own library, and its callers ─────────────

Place = tuple[tuple[str, int], ...]
"""(file, 1-based line) of each frame outside of the library, innermost first."""

# …/site-packages/triton/language/standard.py
_LIBRARY = re.compile(r"(?:^|[/\\])triton[/\\](?:language|experimental|runtime|compiler|tools)[/\\]")


def is_library(path: str) -> bool:
    """Whether a file is Triton's own: its lines are attributed to the line that called them."""
    return _LIBRARY.search(path) is not None


def place_of(chain: Chain, kernel_file: str = "") -> Place:
    """The frames of a chain outside of the library; the kernel's own file never counts as library.

    The first one is the user's line, which tables with one line per operation show.
    """
    return tuple((frame.file, frame.line) for frame in chain if frame.file == kernel_file or not is_library(frame.file))


def columns_of(chain: Chain) -> tuple[tuple[str, int, int], ...]:
    """(file, line, column) of each frame, without the names that only some texts have."""
    return tuple([(frame.file, frame.line, frame.column) for frame in chain])


def line_text(place: Place) -> str:
    """The user's line in tables, `file:line`; empty if all frames are the library's."""
    return f"{place[0][0]}:{place[0][1]}" if place else ""


def chain_texts(chain: Chain) -> tuple[str, ...]:
    """Every frame of a chain as `file:line`, the library's included, innermost first."""
    return tuple(f"{frame.file}:{frame.line}" for frame in chain)
