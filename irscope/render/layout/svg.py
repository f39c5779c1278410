"""Draws figures of layouts as one SVG: panels whose labels are readable, real text, no script, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from irscope.render.canvas import LEAST, LETTER, Canvas, Rect, shades, style_in, wrapped
from irscope.render.layout.figure import Figure, Run

_AXIS_ROOM = 46
HEAD = 16
_GAP = 8
_DETAIL = 0.85
_SIZES = (13.0, 11.0, 9.0)
"""The sizes of labels, in pixels, the best first."""
_MAX_CELL = 56.0
_MAX_HEIGHT = 760.0
"""Pixels; a picture that is higher has smaller labels, down to the least size."""

_How = Literal["below", "beside"]


@dataclass(frozen=True, slots=True)
class _Lettering:
    size: float
    how: _How
    """Where the second part of a label stands."""


@dataclass(frozen=True, slots=True)
class _Panel:
    row: int
    column: int
    rows: int
    columns: int
    x: float
    y: float
    cell: float
    line: float

    def box(self, figure: Figure, run: Run) -> tuple[float, float, float, float]:
        w, h = (1, run.length) if figure.vertical else (run.length, 1)
        x, y = self.x + (run.column - self.column) * self.cell, self.y + (run.row - self.row) * self.line
        return x, y, w * self.cell, h * self.line

    def holds(self, run: Run) -> bool:
        down, right = run.row - self.row, run.column - self.column
        return 0 <= down < self.rows and 0 <= right < self.columns


@dataclass(frozen=True, slots=True)
class _Geometry:
    rows: int
    columns: int
    down: int
    """Panels below one another: the columns of the plane go on in them."""
    across: int
    """Panels beside one another: the rows of the plane go on in them."""
    cell: float
    line: float
    letterings: tuple[_Lettering, ...]

    @property
    def height(self) -> float:
        return self.down * (HEAD + self.rows * self.line + _GAP)

    def panels(self, left: float, top: float) -> list[_Panel]:
        found: list[_Panel] = []
        for below, beside in product(range(self.down), range(self.across)):
            x = left + beside * (self.columns * self.cell + _AXIS_ROOM)
            y = top + below * (HEAD + self.rows * self.line + _GAP) + HEAD
            row, column = beside * self.rows, below * self.columns
            found.append(_Panel(row, column, self.rows, self.columns, x, y, self.cell, self.line))
        return found


def _geometry_of(figures: Sequence[Figure], room: float) -> _Geometry:
    ways: list[tuple[_How, ...]] = list(product(("below", "beside"), repeat=len(figures)))
    best = None
    for size in _SIZES:
        best = min((_geometry(figures, how, size, room) for how in ways), key=lambda geometry: geometry.height)
        if best.height <= _MAX_HEIGHT:
            return best
    assert best is not None
    return best


def _geometry(figures: Sequence[Figure], how: Sequence[_How], size: float, room: float) -> _Geometry:
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
        and 2 * across * (columns * cell + _AXIS_ROOM) - _AXIS_ROOM <= room
        and _may_cut(figures, rows, down=True)
    ):
        rows, across = rows // 2, across * 2
    cell = max(min((room - (across - 1) * _AXIS_ROOM) / across / columns, _MAX_CELL), min(cell, room / columns))
    high = max(_usual_length(figure) if figure.vertical else 1 for figure in figures)
    line = max(line, min(_preferred(rows * down), _MAX_CELL / high))
    letterings = tuple(
        _Lettering(_size(figure, way, cell, line), way) for figure, way in zip(figures, how, strict=True)
    )
    return _Geometry(rows, columns, down, across, cell, line, letterings)


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
    label = max((len(run.label) for run in figure.runs), default=1)
    detail = max((len(run.detail) for run in figure.runs), default=0)
    if not detail:
        return label * LETTER + 0.7, 1.45
    if how == "beside":
        return (label + 1 + detail) * LETTER + 0.7, 1.45
    return max(label, _DETAIL * detail) * LETTER + 0.7, 2.4


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


_WIDTH = 1280
"""Pixels: a slide's width."""
_MARGIN = 28
_FACT = 12.5
_LEAST = 7.5


def render_svg(figures: Sequence[Figure], theme: str | None = None, *, beside: bool = False) -> str:
    """One SVG of figures, below one another.

    `beside`: those of one size stand beside one another, at one scale, in an SVG that is half as wide again.
    """
    canvas = Canvas(theme, _WIDTH * 3 // 2 if beside else _WIDTH)
    top = float(_MARGIN)
    for group in [figures] if beside and figures else [[figure] for figure in figures]:
        top += _figures(canvas, group, top, int(canvas.width - _MARGIN) // len(group)) + _MARGIN
    canvas.height = round(top)
    counts = {max(figure.colors, 1) for figure in figures}
    style = style_in(canvas.theme, lambda theme: _palettes(counts, theme.is_dark))
    return canvas.svg("; ".join(figure.title for figure in figures), style, "on")


def _palettes(counts: set[int], is_dark: bool) -> str:
    return "".join(
        f".f{count}-{index}{{fill:{shade.fill}}}.x{count}-{index}{{fill:{shade.text}}}"
        for count in sorted(counts)
        for index, shade in enumerate(shades(count, is_dark))
    )


def _figures(canvas: Canvas, figures: Sequence[Figure], top: float, width: int) -> float:
    lefts = [_MARGIN + place * width for place in range(len(figures))]
    below = max(_head(canvas, *own, top, width - _MARGIN) for own in zip(figures, lefts, strict=True))
    if any(figure.missing for figure in figures):
        return below - top
    geometry = _geometry_of(figures, width - _MARGIN - _AXIS_ROOM)
    for figure, lettering, left in zip(figures, geometry.letterings, lefts, strict=True):
        _grid(canvas, figure, geometry, lettering, left + _AXIS_ROOM, below + 26)
    return below + 26 + geometry.height - top


def _head(canvas: Canvas, figure: Figure, left: int, top: float, width: int) -> float:
    canvas.text(left, top + 16, figure.title, size=19, bold=True)
    area = Rect(left, top + 19.5, width, 0)
    for fact in figure.facts:
        area = area._replace(top=canvas.paragraph(area, fact, look="m", size=_FACT))
    if figure.missing:
        return canvas.paragraph(area._replace(top=area.top + 4), f"no picture: {figure.missing}", size=_FACT)
    count = max(figure.colors, 1)
    rows = [(f"f{count}-{index}", text) for index, text in figure.legend]
    _, y = canvas.legend(left, area.top + 23, rows, left + width, look="t")
    notes = " · ".join(filter(None, (figure.cell_text, figure.detail_text, figure.mark_text)))
    for line in wrapped(notes, width, LEAST):
        y += 20
        canvas.text(left, y, line, look="m", size=LEAST)
    return y


def _grid(canvas: Canvas, figure: Figure, geometry: _Geometry, lettering: _Lettering, left: float, top: float) -> None:
    panels = geometry.panels(left, top)
    canvas.text(left, top - 4, f"{figure.column_axis} →", look="m", size=LEAST)
    if figure.row_axis:
        middle = panels[0].y + panels[0].rows * panels[0].line / 2
        canvas.text(left - 36, middle, f"← {figure.row_axis}", look="m", size=LEAST, anchor="middle", angle=-90)
    for panel in panels:
        own = [(run, Rect(*panel.box(figure, run))) for run in figure.runs if panel.holds(run)]
        _ticks(canvas, panel, figure)
        with canvas.group('class="cell"'):
            for run, box in own:
                canvas.rect(box, "way" if run.empty else _look("f", figure, run))
        for run, box in own:
            _label(canvas, figure, run, box, lettering)
        if figure.mark_text:
            for run, box in own:
                if run.marked:
                    # In two colours: one of them stands out from any filling.
                    inner = Rect(box.left + 1, box.top + 1, box.width - 2, box.height - 2)
                    canvas.rect(inner, "around")
                    canvas.rect(inner, "frame")
        size = panel.columns * panel.cell + 1, panel.rows * panel.line + 1
        canvas.rect(Rect(panel.x - 0.5, panel.y - 0.5, *size), "axis")


def _look(kind: str, figure: Figure, run: Run) -> str:
    count = max(figure.colors, 1)
    return f"{kind}{count}-{run.color % count}"


def _label(canvas: Canvas, figure: Figure, run: Run, box: Rect, lettering: _Lettering) -> None:
    how, size = _fitting(run, box.width, box.height, lettering)
    if not size:
        return
    color = "t" if run.empty else _look("x", figure, run)
    middle = box.left + box.width / 2
    first = box.top + box.height / 2 + (-size * 0.12 if how == "below" else size * 0.36)
    detail = run.detail if how == "beside" else ""
    canvas.text(middle, first, run.label, look=f"l {color}", size=size, anchor="middle", behind=detail)
    if how == "below":
        canvas.text(middle, first + size * 1.05, run.detail, look=f"d {color}", size=size * _DETAIL, anchor="middle")


def _fitting(run: Run, w: float, h: float, lettering: _Lettering) -> tuple[str, float]:
    """How the label of a run is set, and its size: a run that a mark has cut is smaller than others; 0 if none fits."""
    if run.marked:
        w, h = w - 6, h - 6
    sizes = {
        "below": min(w / (max(len(run.label), _DETAIL * len(run.detail)) * LETTER + 0.2), h / 2.1),
        "beside": min(w / ((len(run.label) + 1 + len(run.detail)) * LETTER + 0.2), h / 1.1),
        "alone": min(w / (len(run.label) * LETTER + 0.2), h / 1.1),
    }
    ways = sorted(("below", "beside"), key=lambda way: (-min(sizes[way], lettering.size), way != lettering.how))
    for how in [*ways, "alone"] if run.detail else ["alone"]:
        size = min(sizes[how], lettering.size)
        if size >= min(_LEAST, lettering.size):
            return how, size
    return "alone", 0


def _ticks(canvas: Canvas, panel: _Panel, figure: Figure) -> None:
    for column in range(0, panel.columns, step_of(panel.columns, panel.cell, 30)):
        canvas.text(panel.x + column * panel.cell + 2, panel.y - 5, str(panel.column + column), look="m", size=LEAST)
    if figure.row_axis:
        for index in range(0, panel.rows, step_of(panel.rows, panel.line, 14)):
            y = panel.y + index * panel.line + min(panel.line / 2 + 4, 15)
            canvas.text(panel.x - 8, y, str(panel.row + index), look="m", size=LEAST, anchor="end")


def step_of(count: int, size: float, least: float) -> int:
    step = 1
    while step * size < least and step < count:
        step *= 2
    return step
