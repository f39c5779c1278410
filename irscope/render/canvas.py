"""The canvas of every picture: shapes, text that is measured and cut to its room, colours, and SVG.

Colours that every reader can tell apart: the eight of Okabe and Ito, and for more values the scale cividis. Sources:
Okabe and Ito, "Color Universal Design" (2008); Nuñez, Anderton and Renslow, "Optimizing colormaps with consideration
for color vision deficiency", PLOS ONE 13(7), 2018.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from math import inf
from typing import Any, Literal, NamedTuple, get_args

from irscope.errors import MissingTool, UsageError, did_you_mean, installing
from irscope.render.text.tables import display_width, shorten, visible
from irscope.render.text.tables import wrapped as wrapped_columns

WIDTH, HEIGHT = 1280, 720
LEAST = 11.0
LETTER = 0.603
"""The width of a letter of the monospaced font, in its size."""
TILES = 8
"""Colours of tiles: the next one has the first again."""
_BOLD = {" ": 0.36, **dict.fromkeys("ijlrtf.,:;'()[]|!I-", 0.48), **dict.fromkeys("mwMW%@", 1.04)}
_BOLD_OTHERS, _BOLD_WIDE = 0.69, 0.77
"""The widths of bold letters of the proportional font, in its size, at most; those of capitals."""


class Rect(NamedTuple):
    """A rectangle, in pixels from the upper left."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def meets(self, other: Rect) -> bool:
        """Whether the two have a point in common that is not on an edge."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


# ── colours ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Rgb = tuple[int, int, int]

_EIGHT: tuple[Rgb, ...] = (
    (86, 180, 233), (230, 159, 0), (0, 158, 115), (240, 228, 66),
    (0, 114, 178), (213, 94, 0), (204, 121, 167), (150, 150, 150),
)  # fmt: skip
_SCALE: tuple[Rgb, ...] = (
    (0, 32, 76),
    (53, 66, 108),
    (102, 105, 112),
    (148, 142, 119),
    (199, 180, 100),
    (255, 234, 70),
)

_LINES = (
    ("#0b6cab", "#9e4906", "#047759", "#975c7e", "#8a6d00", "#565c66"),
    ("#6db7e8", "#e59b61", "#61c3a8", "#dfacc8", "#e0c050", "#bebebe"),
)
"""The colours of lines and their labels, on light and on dark pages: more contrast than those of tiles."""

_WHITE: Rgb = (255, 255, 255)
_BLACK: Rgb = (16, 18, 22)
_INK: Rgb = (0, 0, 0)


class _Shade(NamedTuple):
    fill: str
    text: str


def shades(count: int, dark: bool = False) -> list[_Shade]:
    """One shade for each of `count` values; the contrast of its text is at least 4.5 to 1."""
    return [shade_of(rgb) for rgb in fills(count, dark)]


def fills(count: int, dark: bool = False) -> list[Rgb]:
    if count > 16:
        return [_on_scale(index / (count - 1)) for index in range(count)]
    ground = _BLACK if dark else _WHITE
    near, far = (0.72, 0.42) if dark else (0.62, 0.95)
    return [mix(_EIGHT[index % 8], ground, near if index < 8 else far) for index in range(count)]


def shade_of(fill: Rgb) -> _Shade:
    return _Shade(hexadecimal(fill), hexadecimal(ink_of(fill)))


def ink_of(fill: Rgb) -> Rgb:
    """Black or white, whichever has more contrast on a colour."""
    light = luminance(fill)
    return _INK if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else _WHITE


def luminance(color: Rgb) -> float:
    """Relative luminance, 0 to 1. Source: WCAG 2.2, "relative luminance"."""
    parts = [part / 255 for part in color]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def mix(color: Rgb, ground: Rgb, share: float) -> Rgb:
    red, green, blue = (round(a * share + b * (1 - share)) for a, b in zip(color, ground, strict=True))
    return red, green, blue


def hexadecimal(color: Rgb) -> str:
    """`#56b4e9`."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def _on_scale(share: float) -> Rgb:
    at = share * (len(_SCALE) - 1)
    low = min(int(at), len(_SCALE) - 2)
    return mix(_SCALE[low + 1], _SCALE[low], at - low)


# ── elements ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_Anchor = Literal["start", "middle", "end"]


class Canvas:
    """The elements of a picture in the order of drawing; what they look like is named by the classes of `style_of`."""

    def __init__(self, theme: str | None, width: float = WIDTH, height: float = HEIGHT) -> None:
        """Begin a picture in a theme; None follows the reader's system. Raises UsageError for one that is none."""
        self.parts: list[str] = []
        self.theme = theme_named(theme) if theme else None
        self.width, self.height = width, height
        self._labels: list[Rect] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        look: str = "t",
        size: float = 12.0,
        anchor: _Anchor = "start",
        room: float | None = None,
        bold: bool = False,
        angle: float | None = None,
        behind: str = "",
    ) -> float:
        """Write a line of text, cut to `room` and turned by `angle` degrees around its place; returns its width."""
        shown = visible(text)
        if room is not None and width_of(shown, size, bold=bold) > room:
            shown = shorten(shown, max(int(room / (width_of(shown, size, bold=bold) / display_width(shown))), 1))
        if not shown:
            return 0.0
        place = f'x="{number(x)}" y="{number(y)}" font-size="{number(size)}"'
        if anchor != "start":
            place += f' text-anchor="{anchor}"'
        if angle is not None:
            place += f' transform="rotate({number(angle)} {number(x)} {number(y)})"'
        more = f' <tspan opacity=".85">{_escaped(visible(behind))}</tspan>' if behind else ""
        self.parts.append(f'<text class="{look}{" b" if bold else ""}" {place}>{_escaped(shown)}{more}</text>')
        return width_of(shown, size, bold=bold)

    def paragraph(
        self, area: Rect, text: str, *, look: str = "t", size: float = LEAST, lines: int | None = None
    ) -> float:
        """Write a text in lines as wide as an area, from its top on; returns where they end."""
        step = size + (3 if size < 12 else 5)
        rows = wrapped(text, area.width, size, lines)
        for number, line in enumerate(rows, 1):
            self.text(area.left, area.top + number * step - 3, line, look=look, size=size)
        return area.top + len(rows) * step

    def within(self, area: Rect, text: str, look: str) -> None:
        """Write a line of text in the middle of an area, if there is room for it."""
        if width_of(text, LEAST) <= area.width:
            self.text(
                area.left + area.width / 2, area.top + area.height / 2 + 4, text, look=look, size=LEAST, anchor="middle"
            )

    def label(
        self, x: float, y: float, text: str, look: str, *, anchor: _Anchor = "start", size: float = LEAST
    ) -> None:
        """Write a line of text over what is drawn, on the nearest line downwards that is free (`keep_clear`)."""
        wide = width_of(text, size)
        area = Rect(x - wide if anchor == "end" else x, y - size, wide, size + 3)
        while any(area.meets(other) for other in self._labels):
            area = area._replace(top=area.top + 2)
        self._labels.append(area)
        self.rect(area, "on")
        self.text(x, area.top + size, text, look=look, size=size, anchor=anchor)

    def keep_clear(self, area: Rect) -> None:
        """Let no label stand in an area, as none stands on another one."""
        self._labels.append(area)

    def rect(self, area: Rect, look: str, *, radius: float = 0.0, tip: str = "") -> None:
        """Draw a rectangle; `tip`: what a pointer shows of it."""
        rounded = f' rx="{number(radius)}"' if radius else ""
        place = f'x="{number(area.left)}" y="{number(area.top)}"'
        size = f'width="{number(max(area.width, 0.5))}" height="{number(area.height)}"'
        inner = f">{_title(tip)}</rect>" if tip else "/>"
        self.parts.append(f'<rect class="{look}" {place} {size}{rounded}{inner}')

    def line(self, x1: float, y1: float, x2: float, y2: float, look: str) -> None:
        self.path(f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}", look)

    def path(self, path: str, look: str, *, tip: str = "") -> None:
        inner = f">{_title(tip)}</path>" if tip else "/>"
        self.parts.append(f'<path class="{look}" d="{path}"{inner}')

    def disc(self, x: float, y: float, radius: float, look: str, *, tip: str = "") -> None:
        wide = number(2 * radius)
        arc = f"a{number(radius)} {number(radius)} 0 1 0"
        self.path(f"M{number(x - radius)} {number(y)}{arc} {wide} 0{arc} -{wide} 0", look, tip=tip)

    def legend(
        self, left: float, y: float, rows: Iterable[tuple[str, str]], right: float = inf, *, look: str = "m"
    ) -> tuple[float, float]:
        """Draw (look, meaning) with a sample each, in lines up to `right`; returns where the next one would stand."""
        x = left
        for sample, meaning in rows:
            if x > left and x + 22 + width_of(meaning, LEAST) > right:
                x, y = left, y + 20
            if sample in ("edge", "off", "flight"):
                self.path(f"M{x:.1f} {y - 4:.1f}h16", sample)
            else:
                self.rect(Rect(x, y - 10, 16, 12), f"{sample} rim", radius=2)
            x += 22 + self.text(x + 22, y, meaning, look=look, size=LEAST) + 16
        return x, y

    def bars(
        self,
        area: Rect,
        rows: Sequence[tuple[str, float, str, str]],
        left: float,
        step: float,
        size: float = LEAST,
        whole: float = 0,
    ) -> None:
        """Draw a bar for each (name, value, its text, what stands behind it), from `left` pixels within an area on.

        `whole`: the least value of a bar that takes all the room.
        """
        longest = max([whole, *(value for _, value, _, _ in rows)]) or 1
        room = area.width - left - max((width_of(text + note, size) for _, _, text, note in rows), default=0) - 14
        for number, (name, value, text, note) in enumerate(rows):
            y = area.top + number * step
            base = y + step / 2 + 4
            self.text(area.left + left - 8, base, name, size=size, anchor="end", room=left - 8)
            bar = Rect(area.left + left, y + 3, room * value / longest, step - 6)
            self.rect(bar, "bar", radius=2)
            used = self.text(bar.right + 6, base, text, look="m", size=size)
            self.text(bar.right + 14 + used, base, note, look="a", size=size)

    @contextmanager
    def group(self, attributes: str, tip: str = "") -> Generator[None, None, None]:
        """What is drawn in the block is one thing; `tip`: what a pointer shows of it."""
        self.parts.append(f"<g {attributes}>" + (_title(tip) if tip else ""))
        yield
        self.parts.append("</g>")

    def panel(self, area: Rect, title: str, note: str = "") -> Rect:
        """Draw a panel with its title, and a note beside it; returns the room within."""
        self.rect(area, "panel", radius=8)
        used = self.text(area.left + 14, area.top + 22, title, look="t", size=14, bold=True)
        if note:
            room = area.width - 28 - used - 16
            self.text(area.right - 14, area.top + 22, note, look="m", size=LEAST, anchor="end", room=room)
        return Rect(area.left + 14, area.top + 34, area.width - 28, area.height - 46)

    def head(self, title: str, place: str, right: str) -> None:
        """Write what the picture is of: its title, a place beside it, and what stands on the right."""
        end = self.text(self.width - 24, 40, right, size=14, anchor="end", room=330)
        used = self.text(24, 40, title, size=24, bold=True, room=self.width - end - 80)
        self.text(24 + used + 14, 40, place, look="m", size=13, room=self.width - end - used - 76)

    def svg(self, title: str, style: str = "", ground: str = "page") -> str:
        """The whole picture; `style`: more rules of CSS; `ground`: the class of what is behind it all."""
        wide, high = number(self.width), number(self.height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
            f'role="img">{_title(title)}<style>{style_of(self.theme)}{style}</style>{_DEFINED}'
            f'<rect class="{ground}" width="{wide}" height="{high}"/>{"".join(self.parts)}</svg>\n'
        )


def _title(text: str) -> str:
    return f"<title>{_escaped(visible(text))}</title>"


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """The pixels that a line takes at most, estimated by its letters: no font is read."""
    if not bold:
        return display_width(text) * size * LETTER
    return size * sum(_BOLD.get(one, _BOLD_WIDE if one.isupper() else _BOLD_OTHERS) for one in text)


def wrapped(text: str, room: float, size: float, lines: int | None = None) -> list[str]:
    """A text in lines of a room; in at most so many, the last of which is cut."""
    columns = max(int(room / (size * LETTER)), 8)
    found = wrapped_columns(visible(text), columns)
    if lines is not None:
        found = [*found[: lines - 1], " ".join(found[lines - 1 :])] if len(found) > lines else found
    return [shorten(line, columns) for line in found]


_DEFINED = (
    '<defs><pattern id="way" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="wayground" width="6" height="6"/><line class="wayline" y2="6" stroke-width="2.5"/></pattern></defs>'
)


def style_of(theme: _Theme | None) -> str:
    """The rules of CSS that give a picture its colours; without a theme they follow the reader's system."""
    return style_in(theme, _style)


def style_in(theme: _Theme | None, rules: Callable[[_Theme], str]) -> str:
    """Rules of CSS in a theme; without one those of the light theme, and where the reader's system is dark the dark."""
    if theme is not None:
        return rules(theme)
    return f"{rules(_NAMED['light'])}@media(prefers-color-scheme:dark){{{rules(_NAMED['dark'])}}}"


def _style(theme: _Theme) -> str:
    tiles = "".join(
        f".f{index}{{fill:{shade.fill}}}.x{index}{{fill:{shade.text}}}.s{index}{{stroke:{shade.fill}}}"
        for index, shade in enumerate(shades(TILES, theme.is_dark))
    )
    lines = "".join(
        f".c{index}{{stroke:{color}}}.k{index}{{fill:{color}}}" for index, color in enumerate(_LINES[theme.is_dark])
    )
    return (
        f"text{{font-family:{_MONOSPACE}}}.b{{font-family:{_SANS};font-weight:600}}"
        f".page{{fill:{theme.page}}}.panel{{fill:{theme.panel};stroke:{theme.line}}}.t{{fill:{theme.text}}}"
        f".m{{fill:{theme.muted}}}.a{{fill:{theme.accent}}}.bad{{fill:{theme.bad}}}.warn{{fill:{theme.warn}}}"
        f".on{{fill:{theme.panel}}}.soft{{fill:{theme.line}}}.bar{{fill:{theme.accent}}}"
        f".line{{stroke:{theme.line};fill:none}}.axis{{stroke:{theme.muted};fill:none}}"
        f".edge{{stroke:{theme.text};fill:none;stroke-width:1.5}}"
        f".flight{{stroke:{theme.line};fill:none;stroke-width:4}}"
        f".off{{fill:none;stroke:{theme.muted};stroke-dasharray:3 2}}"
        f".limit{{stroke:{theme.bad};fill:none;stroke-width:1.5;stroke-dasharray:5 3}}"
        f".curve{{fill:{theme.accent};fill-opacity:.28;stroke:{theme.accent};stroke-width:1.2}}"
        f".cell{{stroke:{theme.panel};stroke-width:1}}.wayground{{fill:{theme.panel}}}.wayline{{stroke:{theme.muted}}}"
        f".way{{fill:url(#way);stroke:{theme.muted};stroke-width:.75}}.band{{fill:{theme.page}}}"
        f".rim{{stroke:{theme.text};stroke-width:.75}}.grid{{stroke:{theme.muted};stroke-opacity:.25;fill:none}}"
        f".mark{{stroke:{theme.text};fill:none;stroke-width:1.5;stroke-dasharray:5 4}}"
        f".roof{{fill:none;stroke-width:2}}.peak{{stroke:{theme.text}}}.measured{{stroke-dasharray:6 4}}"
        f".drop{{stroke-dasharray:2 3}}.frame{{fill:none;stroke-width:2;stroke:{theme.text}}}"
        f".around{{fill:none;stroke-width:4;stroke:{theme.panel}}}.d{{opacity:.85}}"
        f".held{{fill:{theme.text};fill-opacity:.62}}.made{{fill:{theme.accent}}}.gone{{fill:{theme.bad}}}"
        f".now{{fill:none;stroke:{theme.text};stroke-width:1.5}}"
        f".fresh{{fill:none;stroke:{theme.accent};stroke-width:2.5}}{tiles}{lines}"
    )


def _escaped(text: str) -> str:
    return escape(text.replace("\ufffe", "�").replace("\uffff", "�"))


def number(value: float) -> str:
    """A number of pixels as SVG has it."""
    return f"{value:.1f}".removesuffix(".0")


def render_png(svg: str, zoom: float = 2.0) -> bytes:
    """The picture as PNG, with `zoom` pixels per pixel of the SVG; raises MissingTool without resvg-py."""
    try:
        resvg: Any = importlib.import_module("resvg_py")
    except ImportError as error:
        raise MissingTool(
            f"PNG needs the package resvg-py: {installing('png')}. --format svg needs nothing."
        ) from error
    # Other versions return a list of integers.
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=zoom))


_ThemeName = Literal["light", "dark", "print"]
THEMES: tuple[_ThemeName, ...] = get_args(_ThemeName)

_MONOSPACE = 'ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace'
"""For what is written in code: generic in the end, so that it works where none of these is installed."""
_SANS = 'system-ui,"DejaVu Sans",sans-serif'

# <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 720" width="1280" height="720"
# <svg width="960pt" height="1094pt"
_SIZE = re.compile(r'width="(?P<width>[\d.]{1,12})(?:pt)?" height="(?P<height>[\d.]{1,12})(?:pt)?"')


@dataclass(frozen=True, slots=True)
class _Theme:
    """The colours of one look. Text on its grounds has a contrast of at least 4.5 to 1."""

    name: _ThemeName
    page: str
    panel: str
    """The ground of a panel."""
    line: str
    text: str
    muted: str
    accent: str
    """A curve or a bar that stands for no kind of thing."""
    bad: str
    warn: str

    @property
    def is_dark(self) -> bool:
        return self.name == "dark"


_NAMED = {
    one.name: one
    for one in (
        _Theme("light", "#f3f5f8", "#ffffff", "#d4d9e1", "#16181d", "#565c66", "#0072b2", "#b3261e", "#8a5300"),
        _Theme("dark", "#101216", "#191c22", "#383e49", "#eceef2", "#a9b0bc", "#56b4e9", "#ff8a80", "#ffc266"),
        _Theme("print", "#ffffff", "#ffffff", "#8c929c", "#000000", "#3f444c", "#1f1f1f", "#7a0c06", "#5e3a00"),
    )
}


def theme_named(name: str) -> _Theme:
    """A theme; raises UsageError for a name that is none."""
    if (found := next((one for one in _NAMED.values() if one.name == name), None)) is None:
        raise UsageError(f"--theme {name!r} is not a theme.{did_you_mean(name, THEMES)}")
    return found


def sized(svg: str, width: int | None) -> str:
    """A picture as wide as asked for, in pixels: all of it grows alike, texts too. None leaves it as it is."""
    if width is None or (found := _SIZE.search(svg)) is None:
        return svg
    height = float(found["height"]) * width / float(found["width"])
    return f'{svg[: found.start()]}width="{width}" height="{height:.0f}"{svg[found.end() :]}'
