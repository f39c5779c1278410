"""Results as the page shows them: sections of text, each with a table, and what stands behind a click.

The dataclasses are the page's data: `frontend/src/data/results.ts` has the same as types.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Cell", "Results", "Section", "Table", "Tone", "View"]

Tone = Literal["", "better", "worse", "idle", "bad"]
"""How a row or a cell is meant: `idle` changes nothing, `bad` fails or computes something else."""
View = dict[str, str | int]
"""What a click shows, as the page's fragment has it; empty for no link."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell."""

    text: str
    note: str = ""
    """What stands beside it, such as the difference to the first row."""
    tone: Tone = ""
    key: float | str | None = None
    """What the column is sorted by; None for nothing, which comes last."""
    view: View = field(default_factory=dict[str, str | int])


@dataclass(frozen=True, slots=True)
class Table:
    """A table; its first row may be what the others are compared with, and stays the first when it is sorted."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    tones: tuple[Tone, ...]
    """Of the rows."""
    has_baseline: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Results that belong together."""

    title: str
    lines: tuple[str, ...] = ()
    verdict: str = ""
    tone: Tone = ""
    table: Table | None = None
    view: View = field(default_factory=dict[str, str | int])
    """Of the title."""
    details: tuple[tuple[str, str], ...] = ()
    """(summary, text) of what stands behind a click."""


@dataclass(frozen=True, slots=True)
class Results:
    """A view of the page."""

    title: str
    about: tuple[str, ...]
    sections: tuple[Section, ...]
