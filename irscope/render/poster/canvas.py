"""The canvas of a picture: text that is cut to its room, boxes, and panels; in pixels, by default of 1280×720."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from html import escape
from typing import Literal

from irscope.render.layout.colors import shades
from irscope.render.layout.labels import Rect
from irscope.render.text.tables import display_width, shorten, visible
from irscope.render.theme import MONOSPACE, SANS, Theme

__all__ = ["HEIGHT", "LEAST", "WIDTH", "Canvas", "style_of", "width_of", "wrapped"]

WIDTH, HEIGHT = 1280, 720
LEAST = 11.0
"""The size of the smallest text."""
TILES = 8
"""Colours of tiles: the next one has the first again."""
_LETTER = 0.603
"""The width of a letter of the monospaced font, in its size."""
_BOLD = {" ": 0.36, **dict.fromkeys("ijlrtf.,:;'()[]|!I-", 0.48), **dict.fromkeys("mwMW%@", 1.04)}
_BOLD_OTHERS, _BOLD_WIDE = 0.69, 0.77
"""The widths of bold letters of the proportional font, in its size, at most; those of capitals."""


class Canvas:
    """Elements of SVG, in the order of drawing."""

    def __init__(self, theme: Theme, width: float = WIDTH, height: float = HEIGHT) -> None:
        self.theme = theme
        self.width, self.height = width, height
        self.parts: list[str] = []

    @contextmanager
    def node(self, name: str) -> Generator[None, None, None]:
        """What is drawn in the block is one thing, with a name that a pointer shows."""
        self.parts.append(f'<g class="node"><title>{_escaped(visible(name))}</title>')
        yield
        self.parts.append("</g>")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        look: str = "t",
        size: float = 12.0,
        anchor: Literal["start", "middle", "end"] = "start",
        room: float | None = None,
        bold: bool = False,
    ) -> float:
        """Write a line, cut to its room; returns its width. `look`: the classes of its colour."""
        shown = visible(text)
        if room is not None and width_of(shown, size, bold=bold) > room:
            shown = shorten(shown, max(int(room / (width_of(shown, size, bold=bold) / display_width(shown))), 1))
        if not shown:
            return 0.0
        place = f'x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}"'
        turned = f' text-anchor="{anchor}"' if anchor != "start" else ""
        kind = f"{look} b" if bold else look
        self.parts.append(f'<text class="{kind}" {place}{turned}>{_escaped(shown)}</text>')
        return width_of(shown, size, bold=bold)

    def rect(self, area: Rect, look: str, *, radius: float = 0.0, tip: str = "") -> None:
        """Draw a rectangle."""
        rounded = f' rx="{_n(radius)}"' if radius else ""
        size = f'x="{_n(area.left)}" y="{_n(area.top)}" width="{_n(max(area.width, 0.5))}" height="{_n(area.height)}"'
        inner = f"><title>{_escaped(visible(tip))}</title></rect>" if tip else "/>"
        self.parts.append(f'<rect class="{look}" {size}{rounded}{inner}')

    def path(self, path: str, look: str) -> None:
        """Draw a path."""
        self.parts.append(f'<path class="{look}" d="{path}"/>')

    def panel(self, area: Rect, title: str, note: str = "") -> Rect:
        """Draw a panel with its title, and a note beside it; returns the room within."""
        self.rect(area, "panel", radius=8)
        used = self.text(area.left + 14, area.top + 22, title, look="t", size=14, bold=True)
        if note:
            room = area.width - 28 - used - 16
            self.text(area.right - 14, area.top + 22, note, look="m", size=LEAST, anchor="end", room=room)
        return Rect(area.left + 14, area.top + 34, area.width - 28, area.height - 46)

    def svg(self, title: str) -> str:
        """The whole picture."""
        wide, high = _n(self.width), _n(self.height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
            f'role="img"><title>{_escaped(visible(title))}</title><style>{style_of(self.theme)}</style>{_DEFINED}'
            f'<rect class="page" width="{wide}" height="{high}"/>{"".join(self.parts)}</svg>\n'
        )


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """The pixels that a line takes at most, estimated by its letters: no font is read."""
    if not bold:
        return display_width(text) * size * _LETTER
    return size * sum(_BOLD.get(one, _BOLD_WIDE if one.isupper() else _BOLD_OTHERS) for one in text)


def wrapped(text: str, room: float, size: float, lines: int) -> list[str]:
    """A text in at most so many lines of a room; the last is cut."""
    columns = max(int(room / (size * _LETTER)), 8)
    found: list[str] = []
    words = visible(text).split(" ")
    while words and len(found) < lines:
        line = words.pop(0)
        while words and display_width(line) + 1 + display_width(words[0]) <= columns:
            line = f"{line} {words.pop(0)}"
        found.append(line)
    if words:
        found[-1] = f"{found[-1]} {' '.join(words)}"
    return [shorten(line, columns) for line in found]


_DEFINED = (
    '<defs><pattern id="way" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="wayground" width="6" height="6"/><line class="wayline" y2="6" stroke-width="2.5"/></pattern></defs>'
)


def style_of(theme: Theme) -> str:
    """The rules of CSS that give a poster its colours."""
    tiles = "".join(
        f".f{index}{{fill:{shade.fill}}}.x{index}{{fill:{shade.text}}}.s{index}{{stroke:{shade.fill}}}"
        for index, shade in enumerate(shades(TILES, theme.is_dark))
    )
    return (
        f"text{{font-family:{MONOSPACE}}}.b{{font-family:{SANS};font-weight:600}}"
        f".page{{fill:{theme.page}}}.panel{{fill:{theme.panel};stroke:{theme.line}}}.t{{fill:{theme.text}}}"
        f".m{{fill:{theme.muted}}}.a{{fill:{theme.accent}}}.bad{{fill:{theme.bad}}}.warn{{fill:{theme.warn}}}"
        f".on{{fill:{theme.panel}}}.soft{{fill:{theme.line}}}.bar{{fill:{theme.accent}}}"
        f".line{{stroke:{theme.line};fill:none}}.axis{{stroke:{theme.muted};fill:none}}"
        f".edge{{stroke:{theme.text};fill:none;stroke-width:1.5}}"
        f".off{{fill:none;stroke:{theme.muted};stroke-dasharray:3 2}}"
        f".limit{{stroke:{theme.bad};fill:none;stroke-width:1.5;stroke-dasharray:5 3}}"
        f".curve{{fill:{theme.accent};fill-opacity:.28;stroke:{theme.accent};stroke-width:1.2}}"
        f".cell{{stroke:{theme.panel};stroke-width:1}}.wayground{{fill:{theme.panel}}}.wayline{{stroke:{theme.muted}}}"
        f".way{{fill:url(#way);stroke:{theme.muted};stroke-width:.75}}.band{{fill:{theme.page}}}{tiles}"
    )


def _escaped(text: str) -> str:
    """A text of a capture as XML may hold it."""
    return escape(text.replace("\ufffe", "�").replace("\uffff", "�"))


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
