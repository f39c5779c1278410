"""Columns beside machine code: live registers as a bar, marks of spills, dots and barriers, and stalls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, get_args

from irscope.analysis.source.beside import Beside, BesideInstruction, BesideLines
from irscope.ir.locations.model import text_lines
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import StageKind
from irscope.render.text.figures import percent
from irscope.render.text.profile import counters_json, stall_text
from irscope.render.text.tables import display_width, visible
from irscope.render.text.terminal import highlight

__all__ = ["COLUMNS", "TITLES", "BesideColumns", "Column", "beside_json", "render_beside"]

Column = Literal["registers", "marks", "stalls"]
COLUMNS: tuple[Column, ...] = get_args(Column)
TITLES: dict[Column, str] = {"registers": "live", "marks": "marks", "stalls": "stalls"}
_BAR = 8
"""Characters of the bar of the peak."""


class BesideColumns:
    """The chosen columns of a stage's instructions, each as wide as its widest cell."""

    def __init__(self, found: Beside, columns: Sequence[Column]) -> None:
        self.found = found
        self._asked = tuple(columns)
        self.columns: tuple[Column, ...] = tuple(one for one in columns if one != "stalls" or found.stalled is not None)
        self._most = found.peak.live or 0 if found.peak is not None else 0
        cells = {one.line: [self._cell(one, column) for column in self.columns] for one in found.instructions}
        self._widths = [
            max((display_width(row[index]) for row in cells.values()), default=0) for index in range(len(self.columns))
        ]
        self._widths = [max(width, len(TITLES[name])) for width, name in zip(self._widths, self.columns, strict=True)]
        self._cells = cells

    @property
    def head(self) -> str:
        """The titles of the columns."""
        return self._joined([TITLES[column] for column in self.columns])

    def at(self, line: int) -> str:
        """The columns of a line of the text; blanks where it is no instruction."""
        return self._joined(self._cells.get(line) or [""] * len(self.columns))

    def sentence(self) -> str:
        """What the columns are of: the peak, and what the stalls are shares of."""
        found, parts = self.found, list[str]()
        if "registers" in self.columns and (peak := found.peak) is not None:
            given = f" of {found.registers} that a thread has" if found.registers is not None else ""
            parts.append(f"at most {peak.live} live registers{given}, at line {peak.line} ({found.counted_by})")
        if "stalls" in self.columns:
            parts.append(f"stalls: shares of {found.stalled} samples of warps that waited")
        elif "stalls" in self._asked:
            parts.append("stalls were not measured: irscope profile measures them on a GPU")
        return "; ".join([f"{found.stage}: {parts[0]}", *parts[1:]]) if parts else ""

    def _joined(self, cells: Sequence[str]) -> str:
        return "  ".join(
            text + " " * (width - display_width(text)) for text, width in zip(cells, self._widths, strict=True)
        )

    def _cell(self, one: BesideInstruction, column: Column) -> str:
        if column == "registers":
            return "" if one.live is None else f"{one.live:3} {'█' * round(one.live / max(self._most, 1) * _BAR)}"
        if column == "marks":
            return " ".join(filter(None, (one.spill and f"spill {one.spill}", one.tick)))
        return self._stalls(one)

    def _stalls(self, one: BesideInstruction | BesideLines) -> str:
        if one.counters is None or not one.counters.stalled or not self.found.stalled:
            return ""
        return f"{percent(one.counters.stalled / self.found.stalled)} {stall_text(one.counters)}"

    def of_lines(self, lines: Iterable[int]) -> dict[Column, str]:
        """The columns of several instructions together, those of a line of Python; of stalls the share alone."""
        one = self.found.together(lines)
        spills = [f"spill ×{one.spills}"] if one.spills else []
        cells: dict[Column, str] = {
            "registers": "" if one.live is None else str(one.live),
            "marks": ", ".join([*spills, *(f"{name} ×{count}" for name, count in one.ticks)]),
            "stalls": self._stalls(one).partition(" %")[0],
        }
        return {column: cells[column] for column in self.columns}


def render_beside(
    text: str, kind: StageKind, columns: BesideColumns, *, loc: bool = False, only: frozenset[int] | None = None,
    color: bool = False,
) -> str:  # fmt: skip
    """A stage's text with the columns before each line.

    Args:
        text: of the stage.
        kind: its language.
        columns: of this text.
        loc: whether lines that only state a location are shown.
        only: just these lines, 1-based.
        color: whether the text is highlighted.
    """
    return "".join(f"{line.rstrip()}\n" for line in _lines(text, kind, columns, loc, only, color))


def _lines(
    text: str, kind: StageKind, columns: BesideColumns, loc: bool, only: frozenset[int] | None, color: bool
) -> Iterator[str]:
    if sentence := columns.sentence():
        yield sentence
    yield columns.head
    # Without locations it has some of its lines, unchanged.
    kept = iter(text_lines(text if loc else strip_locations(text, kind)))
    expected = next(kept, None)
    for number, line in enumerate(text_lines(text), 1):
        if line != expected:
            continue
        expected = next(kept, None)
        if only is None or number in only:
            shown = line.expandtabs(4)
            yield f"{columns.at(number)}  {highlight(shown, kind) if color else visible(shown)}"


def beside_json(found: Beside) -> dict[str, Any]:
    """As docs/json.md describes it."""
    return {
        "stage": found.stage,
        "registers": found.registers,
        "counted_by": found.counted_by,
        "peak": found.peak and {"line": found.peak.line, "live": found.peak.live},
        "stalled": found.stalled,
        "instructions": [
            {"line": one.line, "live": one.live, "spill": one.spill, "tick": one.tick}
            | {"counters": one.counters and counters_json(one.counters)}
            for one in found.instructions
        ],
    }
