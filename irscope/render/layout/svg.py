"""Draws figures of layouts as one SVG: real text, no script, light and dark, fit for a slide and for paper."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.render.canvas import LETTER, Elements, Rect, shades, wrapped
from irscope.render.layout.figure import Figure
from irscope.render.layout.geometry import AXIS, DETAIL, Geometry, Lettering, Panel, geometry_of
from irscope.render.layout.plane import Run

_WIDTH = 1280
"""Pixels: a slide's width."""
_MARGIN = 28
_FACT, _AXIS = 12.5, 11.0
"""The sizes of facts, and of axes and the legend."""
_LEAST = 7.5
"""The size of the smallest label, in pixels."""

_STYLE = """
.bg{fill:#fff}.t{fill:#16181d}.m{fill:#565c66}.g{stroke:#fff;stroke-width:1}.k{stroke:#16181d;stroke-width:1}
.v{fill:none;stroke:#16181d;stroke-width:2}.u{stroke:#fff;stroke-width:4}.frame{fill:none;stroke:#565c66}
text{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
.h{font:600 19px system-ui,"DejaVu Sans",sans-serif}.p{font-size:12.5px}.a{font-size:11px}
.l,.d{text-anchor:middle}.d{opacity:.85}.gap{fill:url(#hatch)}.padding{fill:#16181d}.hatch{stroke:#b9bec8}
"""
_DARK = (
    ".bg{fill:#14161b}.t{fill:#eceef2}.m{fill:#a4abb8}.g{stroke:#14161b}.k{stroke:#eceef2}.v{stroke:#eceef2}.u{stroke:#14161b}"
    ".frame{stroke:#a4abb8}.padding{fill:#eceef2}.hatch{stroke:#454b57}"
)
_HATCHES = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch" y2="6" stroke-width="2"/></pattern></defs>'
)


def render_svg(figures: Sequence[Figure], width: int = _WIDTH, *, beside: bool = False) -> str:
    """One SVG of figures.

    Args:
        figures: what it shows.
        width: in pixels.
        beside: whether the figures stand beside one another, at one scale, in an SVG that is half as wide again; they
            must be of one size. Otherwise they stand below one another.
    """
    width = width * 3 // 2 if beside else width
    drawing = Elements()
    top = float(_MARGIN)
    for group in [figures] if beside and figures else [[figure] for figure in figures]:
        top += _figures(drawing, group, top, (width - _MARGIN) // len(group)) + _MARGIN
    style = _STYLE + _palettes({max(figure.colors, 1) for figure in figures})
    title = "; ".join(figure.title for figure in figures)
    return drawing.document(width, round(top), title, style, "bg", defined=_HATCHES)


def _palettes(counts: set[int]) -> str:
    rules: list[str] = []
    for dark in (False, True):
        own = "".join(
            f".f{count}-{index}{{fill:{shade.fill}}}.x{count}-{index}{{fill:{shade.text}}}"
            for count in sorted(counts)
            for index, shade in enumerate(shades(count, dark))
        )
        rules.append(f"@media(prefers-color-scheme:dark){{{_DARK}{own}}}" if dark else own)
    return "".join(rules)


def _figures(drawing: Elements, figures: Sequence[Figure], top: float, width: int) -> float:
    """Draw figures of one size beside one another, each in `width` pixels; returns how high they are."""
    lefts = [_MARGIN + place * width for place in range(len(figures))]
    below = max(_head(drawing, *own, top, width - _MARGIN) for own in zip(figures, lefts, strict=True))
    if any(figure.missing for figure in figures):
        return below - top
    geometry = geometry_of(figures, width - _MARGIN - AXIS)
    for figure, lettering, left in zip(figures, geometry.letterings, lefts, strict=True):
        _grid(drawing, figure, geometry, lettering, left + AXIS, below + 26)
    return below + 26 + geometry.height - top


def _head(drawing: Elements, figure: Figure, left: int, top: float, width: int) -> float:
    """Draw the title, the facts and the legend; returns where they end."""
    y = top + 16
    drawing.write(left, y, figure.title, "t h")
    for fact in figure.facts:
        for line in wrapped(fact, width, _FACT):
            y += 18
            drawing.write(left, y, line, "m p")
    if figure.missing:
        y += 22
        drawing.write(left, y, f"no picture: {figure.missing}", "t p")
        return y
    return _legend(drawing, figure, left, y + 26, left + width)


def _legend(drawing: Elements, figure: Figure, left: float, y: float, right: int) -> float:
    x = float(left)
    count = max(figure.colors, 1)
    for index, text in figure.legend:
        room = 24 + len(text) * _AXIS * LETTER + 12
        if x + room > right:
            x, y = float(left), y + 20
        drawing.rect(Rect(x, y - 11, 16, 14), f"f{count}-{index} k", radius=2)
        drawing.write(x + 22, y, text, "t a")
        x += room
    notes = [text for text in (figure.cell_text, figure.detail_text) if text]
    if figure.mark_text:
        notes.append(figure.mark_text)
    for line in wrapped(" · ".join(notes), right - left, _AXIS):
        y += 20
        drawing.write(left, y, line, "m a")
    return y


def _grid(drawing: Elements, figure: Figure, geometry: Geometry, lettering: Lettering, left: float, top: float) -> None:
    panels = geometry.panels(left, top)
    drawing.write(left, top - 4, f"{figure.column_axis} →", "m a")
    if figure.row_axis:
        middle = panels[0].y + panels[0].rows * panels[0].line / 2
        drawing.write(left - 36, middle, f"← {figure.row_axis}", "m a", anchor="middle", angle=-90)
    for panel in panels:
        own = [(run, Rect(*panel.box(figure, run))) for run in figure.runs if panel.holds(run)]
        _ticks(drawing, panel, figure)
        with drawing.group('class="g"'):
            for run, box in own:
                drawing.rect(box, "gap" if run.empty else _look("f", figure, run))
        for run, box in own:
            _label(drawing, figure, run, box, lettering)
        if figure.mark_text:
            for run, box in own:
                if run.marked:
                    _frame(drawing, box)
        size = panel.columns * panel.cell + 1, panel.rows * panel.line + 1
        drawing.rect(Rect(panel.x - 0.5, panel.y - 0.5, *size), "frame")


def _look(kind: str, figure: Figure, run: Run) -> str:
    count = max(figure.colors, 1)
    return f"{kind}{count}-{run.color % count}"


def _label(drawing: Elements, figure: Figure, run: Run, box: Rect, lettering: Lettering) -> None:
    how, size = _fitting(run, box.width, box.height, lettering)
    if not size:
        return
    color = "padding" if run.empty else _look("x", figure, run)
    middle = box.left + box.width / 2
    first = box.top + box.height / 2 + (-size * 0.12 if how == "below" else size * 0.36)
    detail = run.detail if how == "beside" else ""
    drawing.write(middle, first, run.label, f"l {color}", size=size, behind=detail)
    if how == "below":
        drawing.write(middle, first + size * 1.05, run.detail, f"d {color}", size=size * DETAIL)


def _fitting(run: Run, w: float, h: float, lettering: Lettering) -> tuple[str, float]:
    """How the label of a run is set, and its size: a run that a mark has cut is smaller than others; 0 if none fits."""
    if run.marked:
        w, h = w - 5, h - 3
    sizes = {
        "below": min(w / (max(len(run.label), DETAIL * len(run.detail)) * LETTER + 0.2), h / 2.1),
        "beside": min(w / ((len(run.label) + 1 + len(run.detail)) * LETTER + 0.2), h / 1.1),
        "alone": min(w / (len(run.label) * LETTER + 0.2), h / 1.1),
    }
    ways = sorted(("below", "beside"), key=lambda way: (-min(sizes[way], lettering.size), way != lettering.how))
    for how in [*ways, "alone"] if run.detail else ["alone"]:
        size = min(sizes[how], lettering.size)
        if size >= min(_LEAST, lettering.size):
            return how, size
    return "alone", 0


def _frame(drawing: Elements, box: Rect) -> None:
    # In two colours: one of them stands out from any filling.
    inner = Rect(box.left + 2, box.top + 2, box.width - 4, box.height - 4)
    drawing.rect(inner, "v u")
    drawing.rect(inner, "v")


def _ticks(drawing: Elements, panel: Panel, figure: Figure) -> None:
    for column in range(0, panel.columns, _step(panel.columns, panel.cell, 30)):
        drawing.write(panel.x + column * panel.cell + 2, panel.y - 5, str(panel.column + column), "m a")
    if figure.row_axis:
        for index in range(0, panel.rows, _step(panel.rows, panel.line, 14)):
            y = panel.y + index * panel.line + min(panel.line / 2 + 4, 15)
            drawing.write(panel.x - 8, y, str(panel.row + index), "m a", anchor="end")


def _step(count: int, size: float, least: float) -> int:
    step = 1
    while step * size < least and step < count:
        step *= 2
    return step
