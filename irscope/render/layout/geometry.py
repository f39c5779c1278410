"""Where the cells of figures go: as many panels as it takes for every label to be readable, alike for all figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from irscope.render.canvas import LETTER
from irscope.render.layout.figure import Figure
from irscope.render.layout.plane import Run

AXIS = 46
"""Pixels for the numbers of the rows."""
HEAD = 16
"""Pixels for the numbers of the columns."""
_GAP = 8
DETAIL = 0.85
"""The size of a label's second line, in that of the first."""
_SIZES = (13.0, 11.0, 9.0)
"""The sizes of labels, in pixels, the best first."""
_MAX_CELL = 56.0
_MAX_HEIGHT = 760.0
"""Pixels; a picture that is higher has smaller labels, down to the least size."""

_How = Literal["below", "beside"]


@dataclass(frozen=True, slots=True)
class Lettering:
    """How the labels of one figure are set, the same for all cells."""

    size: float
    """Pixels."""
    how: _How
    """Where the second part of a label stands."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the plane, and its place in the picture."""

    row: int
    column: int
    rows: int
    columns: int
    x: float
    y: float
    cell: float
    """Pixels of an element, across."""
    line: float
    """Pixels of an element, down."""

    def box(self, figure: Figure, run: Run) -> tuple[float, float, float, float]:
        """x, y, width and height of a run."""
        w, h = (1, run.length) if figure.vertical else (run.length, 1)
        x, y = self.x + (run.column - self.column) * self.cell, self.y + (run.row - self.row) * self.line
        return x, y, w * self.cell, h * self.line

    def holds(self, run: Run) -> bool:
        """Whether a run begins in it."""
        down, right = run.row - self.row, run.column - self.column
        return 0 <= down < self.rows and 0 <= right < self.columns


@dataclass(frozen=True, slots=True)
class Geometry:
    """The panels of figures of one size, in pixels, and the lettering of each figure."""

    rows: int
    """Of a panel, in elements."""
    columns: int
    down: int
    """Panels below one another: the columns of the plane go on in them."""
    across: int
    """Panels beside one another: the rows of the plane go on in them."""
    cell: float
    line: float
    letterings: tuple[Lettering, ...]

    @property
    def height(self) -> float:
        """Pixels of all panels together."""
        return self.down * (HEAD + self.rows * self.line + _GAP)

    def panels(self, left: float, top: float) -> list[Panel]:
        """The panels of one figure, whose first begins at (left, top)."""
        found: list[Panel] = []
        for below, beside in product(range(self.down), range(self.across)):
            x = left + beside * (self.columns * self.cell + AXIS)
            y = top + below * (HEAD + self.rows * self.line + _GAP) + HEAD
            row, column = beside * self.rows, below * self.columns
            found.append(Panel(row, column, self.rows, self.columns, x, y, self.cell, self.line))
        return found


def geometry_of(figures: Sequence[Figure], room: float) -> Geometry:
    """The geometry of figures of one size, `room` pixels wide each, in which every label can be read."""
    ways: list[tuple[_How, ...]] = list(product(("below", "beside"), repeat=len(figures)))
    best = None
    for size in _SIZES:
        best = min((_geometry(figures, how, size, room) for how in ways), key=lambda geometry: geometry.height)
        if best.height <= _MAX_HEIGHT:
            return best
    assert best is not None
    return best


def _geometry(figures: Sequence[Figure], how: Sequence[_How], size: float, room: float) -> Geometry:
    rows, columns = figures[0].rows, figures[0].columns
    needs = [_needed(figure, way, size) for figure, way in zip(figures, how, strict=True)]
    cell = max(need[0] for need in needs)
    line = max(need[1] for need in needs)
    down = across = 1
    while columns * cell > room and _may_cut(figures, columns, down=False):
        columns, down = columns // 2, down * 2
    while (
        down == 1
        and rows > 16
        and 2 * across * (columns * cell + AXIS) - AXIS <= room
        and _may_cut(figures, rows, down=True)
    ):
        rows, across = rows // 2, across * 2
    cell = max(min((room - (across - 1) * AXIS) / across / columns, _MAX_CELL), min(cell, room / columns))
    high = max(_usual_length(figure) if figure.vertical else 1 for figure in figures)
    line = max(line, min(_preferred(rows * down), _MAX_CELL / high))
    letterings = tuple(Lettering(_size(figure, way, cell, line), way) for figure, way in zip(figures, how, strict=True))
    return Geometry(rows, columns, down, across, cell, line, letterings)


def _needed(figure: Figure, how: _How, size: float) -> tuple[float, float]:
    """Pixels of an element, across and down, for labels of a size."""
    wide, high = (extent * size for extent in _extent(figure, how))
    length = _usual_length(figure)
    return (wide, high / length) if figure.vertical else (wide / length, high)


def _size(figure: Figure, how: _How, cell: float, line: float) -> float:
    wide, high = _extent(figure, how)
    length = _usual_length(figure)
    w, h = (cell, line * length) if figure.vertical else (cell * length, line)
    return min(_SIZES[0], w / wide, h / high)


def _extent(figure: Figure, how: _How) -> tuple[float, float]:
    """Width and height of a label, in its size."""
    label = max((len(run.label) for run in figure.runs), default=1)
    detail = max((len(run.detail) for run in figure.runs), default=0)
    if not detail:
        return label * LETTER + 0.7, 1.45
    if how == "beside":
        return (label + 1 + detail) * LETTER + 0.7, 1.45
    return max(label, DETAIL * detail) * LETTER + 0.7, 2.4


def _usual_length(figure: Figure) -> int:
    # Runs that a mark has cut are shorter than the rest, and have a label only if it fits.
    lengths = sorted(run.length for run in figure.runs)
    return lengths[len(lengths) // 4] if lengths else 1


def _may_cut(figures: Sequence[Figure], size: int, *, down: bool) -> bool:
    """Whether the rows (or columns) can be cut in halves, and no run with them."""
    half = size // 2
    if size % 2 or size < 2:
        return False
    return all(
        run.length <= half and (run.row if down else run.column) % half + run.length <= half
        for figure in figures
        if figure.vertical == down
        for run in figure.runs
    )


def _preferred(count: int) -> float:
    """The height of so many rows, where the labels do not need more."""
    for rows, height in ((8, 38.0), (16, 33.0), (32, 24.0), (64, 15.0)):
        if count <= rows:
            return height
    return max(900 / count, 4.0)
