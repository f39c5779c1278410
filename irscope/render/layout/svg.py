"""Draws figures of layouts as one SVG: real text, no script, light and dark, fit for a slide and for paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from irscope.render.layout.colors import shades
from irscope.render.layout.figure import Figure
from irscope.render.layout.geometry import AXIS, CHARACTER, DETAIL, Geometry, Lettering, Panel, geometry_of
from irscope.render.layout.plane import Run

_WIDTH = 1280
"""Pixels: a slide's width."""
_MARGIN = 28
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
    parts: list[str] = []
    top = float(_MARGIN)
    for group in [figures] if beside and figures else [[figure] for figure in figures]:
        text, height = _figures(group, top, (width - _MARGIN) // len(group))
        parts.append(text)
        top += height + _MARGIN
    height = round(top)
    title = escape("; ".join(figure.title for figure in figures))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img">'
        f"<title>{title}</title><style>{_STYLE}{_palettes({max(figure.colors, 1) for figure in figures})}</style>"
        f'{_HATCHES}<rect class="bg" width="{width}" height="{height}"/>{"".join(parts)}</svg>\n'
    )


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


def _figures(figures: Sequence[Figure], top: float, width: int) -> tuple[str, float]:
    """The elements of figures of one size beside one another, each in `width` pixels, and how high they are."""
    heads = [_head(figure, _MARGIN + number * width, top, width - _MARGIN) for number, figure in enumerate(figures)]
    parts = [text for text, _ in heads]
    below = max(y for _, y in heads)
    if any(figure.missing for figure in figures):
        return "".join(parts), below - top
    geometry = geometry_of(figures, width - _MARGIN - AXIS)
    for number, (figure, lettering) in enumerate(zip(figures, geometry.letterings, strict=True)):
        parts.append(_grid(figure, geometry, lettering, _MARGIN + number * width + AXIS, below + 26))
    return "".join(parts), below + 26 + geometry.height - top


def _head(figure: Figure, left: int, top: float, width: int) -> tuple[str, float]:
    """The title, the facts and the legend; and where they end."""
    y = top + 16
    parts = [f'<text class="t h" x="{left}" y="{_n(y)}">{escape(figure.title)}</text>']
    for fact in figure.facts:
        for line in _wrapped(fact, int(width / (12.5 * CHARACTER))):
            y += 18
            parts.append(f'<text class="m p" x="{left}" y="{_n(y)}">{escape(line)}</text>')
    if figure.missing:
        y += 22
        parts.append(f'<text class="t p" x="{left}" y="{_n(y)}">no picture: {escape(figure.missing)}</text>')
        return "".join(parts), y
    legend, y = _legend(figure, left, y + 26, left + width)
    return "".join([*parts, legend]), y


def _legend(figure: Figure, left: float, y: float, right: int) -> tuple[str, float]:
    parts: list[str] = []
    x = float(left)
    count = max(figure.colors, 1)
    for index, text in figure.legend:
        room = 24 + len(text) * 11 * CHARACTER + 12
        if x + room > right:
            x, y = float(left), y + 20
        parts.append(f'<rect class="f{count}-{index} k" x="{_n(x)}" y="{_n(y - 11)}" width="16" height="14" rx="2"/>')
        parts.append(f'<text class="t a" x="{_n(x + 22)}" y="{_n(y)}">{escape(text)}</text>')
        x += room
    notes = [text for text in (figure.cell_text, figure.detail_text) if text]
    if figure.mark_text:
        notes.append(figure.mark_text)
    for line in _wrapped(" · ".join(notes), int((right - left) / (11 * CHARACTER))):
        y += 20
        parts.append(f'<text class="m a" x="{left}" y="{_n(y)}">{escape(line)}</text>')
    return "".join(parts), y


def _grid(figure: Figure, geometry: Geometry, lettering: Lettering, left: float, top: float) -> str:
    panels = geometry.panels(left, top)
    parts = [f'<text class="m a" x="{_n(left)}" y="{_n(top - 4)}">{escape(figure.column_axis)} →</text>']
    if figure.row_axis:
        middle = panels[0].y + panels[0].rows * panels[0].line / 2
        place = f'x="{_n(left - 36)}" y="{_n(middle)}" transform="rotate(-90 {_n(left - 36)} {_n(middle)})"'
        parts.append(f'<text class="m a" {place} text-anchor="middle">← {escape(figure.row_axis)}</text>')
    for panel in panels:
        own = [run for run in figure.runs if panel.holds(run)]
        parts.append(_ticks(panel, figure))
        parts.append(f'<g class="g">{"".join(_rect(figure, run, *panel.box(figure, run)) for run in own)}</g>')
        parts.append("".join(_label(figure, run, *panel.box(figure, run), lettering) for run in own))
        if figure.mark_text:
            parts.append("".join(_frame(*panel.box(figure, run)) for run in own if run.marked))
        size = f'width="{_n(panel.columns * panel.cell + 1)}" height="{_n(panel.rows * panel.line + 1)}"'
        parts.append(f'<rect class="frame" x="{_n(panel.x - 0.5)}" y="{_n(panel.y - 0.5)}" {size}/>')
    return "".join(parts)


def _rect(figure: Figure, run: Run, x: float, y: float, w: float, h: float) -> str:
    shade = "gap" if run.empty else f"f{max(figure.colors, 1)}-{run.color % max(figure.colors, 1)}"
    return f'<rect class="{shade}" x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}"/>'


def _label(figure: Figure, run: Run, x: float, y: float, w: float, h: float, lettering: Lettering) -> str:
    how, size = _fitting(run, w, h, lettering)
    if not size:
        return ""
    label, detail = escape(run.label), escape(run.detail)
    color = "padding" if run.empty else f"x{max(figure.colors, 1)}-{run.color % max(figure.colors, 1)}"
    middle = x + w / 2
    first = y + h / 2 + (-size * 0.12 if how == "below" else size * 0.36)
    if how == "beside":
        label = f'{label} <tspan opacity=".85">{detail}</tspan>'
    text = f'<text class="l {color}" x="{_n(middle)}" y="{_n(first)}" font-size="{_n(size)}">{label}</text>'
    if how == "below":
        place = f'x="{_n(middle)}" y="{_n(first + size * 1.05)}" font-size="{_n(size * DETAIL)}"'
        text += f'<text class="d {color}" {place}>{detail}</text>'
    return text


def _fitting(run: Run, w: float, h: float, lettering: Lettering) -> tuple[str, float]:
    """How the label of a run is set, and its size: a run that a mark has cut is smaller than others; 0 if none fits."""
    if run.marked:
        w, h = w - 5, h - 3
    sizes = {
        "below": min(w / (max(len(run.label), DETAIL * len(run.detail)) * CHARACTER + 0.2), h / 2.1),
        "beside": min(w / ((len(run.label) + 1 + len(run.detail)) * CHARACTER + 0.2), h / 1.1),
        "alone": min(w / (len(run.label) * CHARACTER + 0.2), h / 1.1),
    }
    ways = sorted(("below", "beside"), key=lambda way: (-min(sizes[way], lettering.size), way != lettering.how))
    for how in [*ways, "alone"] if run.detail else ["alone"]:
        size = min(sizes[how], lettering.size)
        if size >= min(_LEAST, lettering.size):
            return how, size
    return "alone", 0


def _frame(x: float, y: float, w: float, h: float) -> str:
    # In two colours: one of them stands out from any filling.
    place = f'x="{_n(x + 2)}" y="{_n(y + 2)}" width="{_n(w - 4)}" height="{_n(h - 4)}"'
    return f'<rect class="v u" {place}/><rect class="v" {place}/>'


def _ticks(panel: Panel, figure: Figure) -> str:
    parts: list[str] = []
    for column in range(0, panel.columns, _step(panel.columns, panel.cell, 30)):
        place = f'x="{_n(panel.x + column * panel.cell + 2)}" y="{_n(panel.y - 5)}"'
        parts.append(f'<text class="m a" {place}>{panel.column + column}</text>')
    if figure.row_axis:
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
