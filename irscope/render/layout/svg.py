"""Draws figures of layouts as one SVG: real text, no script, light and dark, fit for a slide and for paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from irscope.render.layout.colors import shades
from irscope.render.layout.figure import Figure
from irscope.render.layout.plane import Run

_WIDTH = 1280
"""Pixels: a slide's width."""
_MARGIN = 28
_AXIS = 46
_MAX_CELL = 56
_CHARACTER = 0.6
"""The width of a character of the figures' font, in its size."""

_STYLE = """
.bg{fill:#fff}.t{fill:#16181d}.m{fill:#565c66}.g{stroke:#fff;stroke-width:1}.k{stroke:#16181d;stroke-width:1}
.v{fill:none;stroke:#16181d;stroke-width:2}.frame{fill:none;stroke:#565c66}
text{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
.h{font:600 19px system-ui,"DejaVu Sans",sans-serif}.p{font-size:12.5px}.a{font-size:11px}
.l,.d{text-anchor:middle}.d{opacity:.72}
"""
_DARK = (
    ".bg{fill:#14161b}.t{fill:#eceef2}.m{fill:#a4abb8}.g{stroke:#14161b}.k{stroke:#eceef2}.v{stroke:#eceef2}"
    ".frame{stroke:#a4abb8}"
)


def render_svg(figures: Sequence[Figure], width: int = _WIDTH) -> str:
    """One SVG with the figures below one another, `width` pixels wide."""
    parts: list[str] = []
    top = _MARGIN
    used: dict[int, None] = {}
    for figure in figures:
        text, height = _figure(figure, top, width)
        used[max(figure.colors, 1)] = None
        parts.append(text)
        top += height + _MARGIN
    height = round(top)
    title = escape("; ".join(figure.title for figure in figures))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img">'
        f"<title>{title}</title><style>{_STYLE}{_palettes(used)}</style>"
        f'<rect class="bg" width="{width}" height="{height}"/>{"".join(parts)}</svg>\n'
    )


def _palettes(counts: dict[int, None]) -> str:
    rules: list[str] = []
    for dark in (False, True):
        own = "".join(
            f".f{count}-{index}{{fill:{shade.fill}}}.x{count}-{index}{{fill:{shade.text}}}"
            for count in counts
            for index, shade in enumerate(shades(count, dark))
        )
        rules.append(f"@media(prefers-color-scheme:dark){{{_DARK}{own}}}" if dark else own)
    return "".join(rules)


def _figure(figure: Figure, top: float, width: int) -> tuple[str, float]:
    """The figure's elements, and how high it is."""
    left = _MARGIN
    y = top + 16
    parts = [f'<text class="t h" x="{left}" y="{_n(y)}">{escape(figure.title)}</text>']
    for fact in figure.facts:
        for line in _wrapped(fact, int((width - 2 * _MARGIN) / (12.5 * _CHARACTER))):
            y += 18
            parts.append(f'<text class="m p" x="{left}" y="{_n(y)}">{escape(line)}</text>')
    if figure.missing:
        y += 22
        parts.append(f'<text class="t p" x="{left}" y="{_n(y)}">no picture: {escape(figure.missing)}</text>')
        return "".join(parts), y - top
    legend, y = _legend(figure, left, y + 26, width)
    parts.append(legend)
    y += 26
    grid, height = _grid(figure, left + _AXIS, y, width - 2 * _MARGIN - _AXIS)
    parts.append(grid)
    return "".join(parts), y + height - top


def _legend(figure: Figure, left: float, y: float, width: int) -> tuple[str, float]:
    parts: list[str] = []
    x = float(left)
    count = max(figure.colors, 1)
    for index, text in figure.legend:
        room = 24 + len(text) * 11 * _CHARACTER + 12
        if x + room > width - _MARGIN:
            x, y = float(left), y + 20
        parts.append(f'<rect class="f{count}-{index} k" x="{_n(x)}" y="{_n(y - 11)}" width="16" height="14" rx="2"/>')
        parts.append(f'<text class="t a" x="{_n(x + 22)}" y="{_n(y)}">{escape(text)}</text>')
        x += room
    notes = [text for text in (figure.cell_text, figure.detail_text) if text]
    if figure.mark_text:
        notes.append(figure.mark_text)
    y += 20
    parts.append(f'<text class="m a" x="{left}" y="{_n(y)}">{escape(" · ".join(notes))}</text>')
    return "".join(parts), y


@dataclass(frozen=True, slots=True)
class _Panel:
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


def _panels(figure: Figure, left: float, top: float, room: float) -> tuple[list[_Panel], float]:
    """The plane in panels that fit: a tall one in several columns, a long line in several lines; and the height."""
    longest = max((run.length for run in figure.runs), default=1)
    label = max((len(run.label) for run in figure.runs), default=1) * 7.5 + 8
    rows, columns = figure.rows, figure.columns
    tall = longest if figure.vertical else 1
    across = 1
    while rows > 32 and rows // 2 >= tall and room >= 2 * across * (columns * label / longest + _AXIS):
        rows, across = rows // 2, across * 2
    down = 1
    wide = 1 if figure.vertical else longest
    while rows <= 2 and columns // 2 >= max(wide, 8) and room / columns * wide < label:
        columns, down = columns // 2, down * 2
    line = _row_height(rows)
    cell = min((room - (across - 1) * _AXIS) / across / max(columns, 1), _MAX_CELL)
    panels: list[_Panel] = []
    y = top
    for below in range(down):
        for beside in range(across):
            x = left + beside * (columns * cell + _AXIS)
            panels.append(_Panel(beside * rows, below * columns, rows, columns, x, y + 16, cell, line))
        y += 16 + rows * line + 8
    return panels, y - top


def _grid(figure: Figure, left: float, top: float, room: float) -> tuple[str, float]:
    panels, height = _panels(figure, left, top, room)
    how = _lettering(figure, [panels[0].box(figure, run) for run in figure.runs])
    parts = [f'<text class="m a" x="{_n(left)}" y="{_n(top - 4)}">{escape(figure.column_axis)} →</text>']
    if figure.row_axis:
        middle = panels[0].y + panels[0].rows * panels[0].line / 2
        place = f'x="{_n(left - 36)}" y="{_n(middle)}" transform="rotate(-90 {_n(left - 36)} {_n(middle)})"'
        parts.append(f'<text class="m a" {place} text-anchor="middle">← {escape(figure.row_axis)}</text>')
    for panel in panels:
        own = [
            run
            for run in figure.runs
            if panel.row <= run.row < panel.row + panel.rows
            and panel.column <= run.column < panel.column + panel.columns
        ]
        parts.append(_ticks(panel, bool(figure.row_axis)))
        parts.append(f'<g class="g">{"".join(_rect(figure, run, *panel.box(figure, run)) for run in own)}</g>')
        parts.append("".join(_label(figure, run, *panel.box(figure, run), how) for run in own))
        if figure.mark_text:
            parts.append("".join(_frame(*panel.box(figure, run)) for run in own if run.marked))
        size = f'width="{_n(panel.columns * panel.cell + 1)}" height="{_n(panel.rows * panel.line + 1)}"'
        parts.append(f'<rect class="frame" x="{_n(panel.x - 0.5)}" y="{_n(panel.y - 0.5)}" {size}/>')
    return "".join(parts), height


def _row_height(count: int) -> float:
    for rows, height in ((8, 38.0), (16, 33.0), (32, 24.0), (64, 15.0)):
        if count <= rows:
            return height
    return max(900 / count, 4.0)


def _rect(figure: Figure, run: Run, x: float, y: float, w: float, h: float) -> str:
    shade = f"f{max(figure.colors, 1)}-{run.color % max(figure.colors, 1)}"
    return f'<rect class="{shade}" x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}"/>'


@dataclass(frozen=True, slots=True)
class _Lettering:
    """How the labels of one figure are set, the same for all cells."""

    size: float
    """Pixels; 0 if no label fits."""
    detail: Literal["below", "beside", "none"]


def _lettering(figure: Figure, boxes: Sequence[tuple[float, float, float, float]]) -> _Lettering:
    label = max((len(run.label) for run in figure.runs), default=1) * _CHARACTER
    detail = max((len(run.detail) for run in figure.runs), default=0) * _CHARACTER
    # Runs that a mark has cut are narrower than the rest, and have a label only if it fits.
    w = sorted(box[2] for box in boxes)[len(boxes) // 4]
    h = sorted(box[3] for box in boxes)[len(boxes) // 4]
    size = min(13.0, w / (label + 0.5), h * 0.7)
    if size < 5.5:
        return _Lettering(0, "none")
    if detail and size >= 8.5 and h >= 2.35 * size and w >= (0.8 * detail + 0.4) * size:
        return _Lettering(size, "below")
    both = min(12.0, w / (label + detail + 1.4), h * 0.7)
    return _Lettering(both, "beside") if detail and both >= 8.5 else _Lettering(size, "none")


def _label(figure: Figure, run: Run, x: float, y: float, w: float, h: float, how: _Lettering) -> str:
    size = how.size
    if not size or w < (len(run.label) * _CHARACTER + 0.2) * size:
        return ""
    color = f"x{max(figure.colors, 1)}-{run.color % max(figure.colors, 1)}"
    middle, label = x + w / 2, escape(run.label)
    if how.detail == "beside":
        label = f'{label} <tspan opacity=".72">{escape(run.detail)}</tspan>'
    first = y + h / 2 + (-size * 0.12 if how.detail == "below" else size * 0.36)
    text = f'<text class="l {color}" x="{_n(middle)}" y="{_n(first)}" font-size="{_n(size)}">{label}</text>'
    if how.detail == "below":
        second = first + size * 1.05
        place = f'x="{_n(middle)}" y="{_n(second)}" font-size="{_n(size * 0.8)}"'
        text += f'<text class="d {color}" {place}>{escape(run.detail)}</text>'
    return text


def _frame(x: float, y: float, w: float, h: float) -> str:
    return f'<rect class="v" x="{_n(x + 1.5)}" y="{_n(y + 1.5)}" width="{_n(w - 3)}" height="{_n(h - 3)}"/>'


def _ticks(panel: _Panel, with_rows: bool) -> str:
    parts: list[str] = []
    for column in range(0, panel.columns, _step(panel.columns, panel.cell, 30)):
        place = f'x="{_n(panel.x + column * panel.cell + 2)}" y="{_n(panel.y - 5)}"'
        parts.append(f'<text class="m a" {place}>{panel.column + column}</text>')
    if with_rows:
        for index in range(0, panel.rows, _step(panel.rows, panel.line, 14)):
            y = panel.y + index * panel.line + min(panel.line / 2 + 4, 15)
            place = f'x="{_n(panel.x - 8)}" y="{_n(y)}" text-anchor="end"'
            parts.append(f'<text class="m a" {place}>{panel.row + index}</text>')
    return "".join(parts)


def _step(count: int, size: float, least: float) -> int:
    step = 1
    while step * size < least and step < count:
        step *= 2
    return step


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
