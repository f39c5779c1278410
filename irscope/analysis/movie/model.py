"""The nouns of a movie: frames, counts, operations added and removed, and the main values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["loaded", "first operand", "second operand", "result", "stored"]
"""What a value is to its operation: of a load; of a dot, either operand and the result; of a store."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The operations of a text, all and of some kinds; in the dialects of LLVM the kinds are those of instructions."""

    operations: int = 0
    conversions: int = 0
    """`ttg.convert_layout`."""
    accesses: int = 0
    """Loads from global memory and stores to it, copies to shared memory among them."""
    dots: int = 0
    """Of tiles; in the dialects of LLVM matrix instructions."""
    syncs: int = 0


COUNTERS: tuple[tuple[str, str], ...] = (
    ("operations", "operations"),
    ("conversions", "layout conversions"),
    ("accesses", "loads and stores"),
    ("dots", "dots"),
    ("syncs", "barriers and waits"),
)
"""(field of `Counts`, what readers call it)."""


@dataclass(frozen=True, slots=True)
class MovieChange:
    """Operations of one name and one line of Python that a pass made or removed."""

    operation: str
    """`ttg.convert_layout`."""
    place: str
    """`/home/jo/kernel.py:23`; or an empty string."""
    made: int
    removed: int
    is_certain: bool = True
    """Whether it is known which were made and removed; their difference always is."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The type of a tensor or of a piece of memory."""

    shape: tuple[int, ...]
    element: str
    """`f16`."""
    encoding: str = ""
    """The text of its layout, without aliases; empty where it has none yet."""
    alias: str = ""
    """As the text names its layout: `#blocked1`; empty where it writes it out."""
    covered: tuple[int, ...] = ()
    """The shape that the layout covers: of a part of memory, one buffer of its whole allocation."""


@dataclass(frozen=True, slots=True)
class Held:
    """A main value in one frame."""

    state: Literal["there", "several", "unclear", "not yet", "gone"]
    """`several`: several operations stand for its one; `unclear`: it is one of several that cannot be told apart;
    `not yet`: no earlier operation is known to be its; `gone`: no later one is."""
    operations: tuple[str, ...] = ()
    """The names of the operations that it is read off."""
    lines: tuple[int, ...] = ()
    """Theirs in the text after the pass, 1-based."""
    tiles: tuple[Tile, ...] = ()
    """Its type; several where these operations differ. Empty where it is not there, or has no shape."""
    is_new: bool = False
    """Whether this pass changed its layout or type."""


@dataclass(frozen=True, slots=True)
class MainValue:
    """A value that the movie follows."""

    role: Role
    name: str
    """Its variable in Python, as the compiler keeps it; empty where it does not."""
    operation: str
    """The operation that it is chosen by: `tt.dot`."""
    place: str
    """The line of Python of that operation, `/home/jo/kernel.py:23`; or an empty string."""

    @property
    def title(self) -> str:
        """`dot operand A: a`, `loaded: b`, `stored`."""
        what = {"first operand": "dot operand A", "second operand": "dot operand B", "result": "dot result"}
        told = what.get(self.role, self.role)
        return f"{told}: {self.name}" if self.name else told


@dataclass(frozen=True, slots=True)
class MovieFrame:
    """The kernel after one pass, or several whose texts between were not kept; or before the first."""

    passes: tuple[str, ...]
    """The labels, `ttgir:coalesce#1`; empty for the text that the first pass found."""
    stage: str
    name: str
    """`coalesce`; of several passes the last."""
    counts: Counts
    held: tuple[Held, ...]
    """One for each main value."""
    changes: tuple[MovieChange, ...] = ()
    """Operations added and removed, the most frequent first; without those of `net`."""
    net: tuple[tuple[str, int], ...] = ()
    """(operation, change of its count) of what is not followed one by one: the dialects of LLVM."""
    families: tuple[tuple[str, int], ...] = ()
    """In the dialects of LLVM: (family, instructions of it in the code of one thread); before them empty."""

    @property
    def made(self) -> int:
        """Operations added; of those that are not followed, the net change."""
        return sum(one.made for one in self.changes) + sum(max(change, 0) for _, change in self.net)

    @property
    def removed(self) -> int:
        """Operations removed; of those that are not followed, the net change."""
        return sum(one.removed for one in self.changes) - sum(min(change, 0) for _, change in self.net)

    @property
    def net_changes(self) -> tuple[MovieChange, ...]:
        """The operations that are not followed one by one, the largest change first."""
        order = sorted(self.net, key=lambda pair: -abs(pair[1]))
        return tuple(MovieChange(name, "", max(change, 0), max(-change, 0)) for name, change in order)


@dataclass(frozen=True, slots=True)
class Movie:
    """A kernel over the passes that changed it."""

    values: tuple[MainValue, ...]
    frames: tuple[MovieFrame, ...]
    """The first one is the text before any pass, the others one for each pass that changed it."""
    chosen_after: str
    """The pass in whose text the values were chosen; empty for the text before the first."""
    not_kept: tuple[str, ...] = ()
    """The labels of passes that may have changed it, whose text the capture does not hold."""
