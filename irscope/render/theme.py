"""The looks of exported pictures: the fonts, and the colours on a light page, a dark one, and on paper."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from irscope.errors import UsageError, did_you_mean

__all__ = ["MONOSPACE", "SANS", "THEMES", "Theme", "sized", "theme_named", "themed"]

_ThemeName = Literal["light", "dark", "print"]
THEMES: tuple[_ThemeName, ...] = get_args(_ThemeName)

MONOSPACE = 'ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace'
"""For what is written in code: generic in the end, so that it works where none of these is installed."""
SANS = 'system-ui,"DejaVu Sans",sans-serif'

# <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 720" width="1280" height="720"
# <svg width="960pt" height="1094pt"
_SIZE = re.compile(r'width="(?P<width>[\d.]{1,12})(?:pt)?" height="(?P<height>[\d.]{1,12})(?:pt)?"')
_DARK = "@media(prefers-color-scheme:dark){"


@dataclass(frozen=True, slots=True)
class Theme:
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
        """Whether its grounds are dark."""
        return self.name == "dark"


_NAMED = {
    one.name: one
    for one in (
        Theme("light", "#f3f5f8", "#ffffff", "#d4d9e1", "#16181d", "#565c66", "#0072b2", "#b3261e", "#8a5300"),
        Theme("dark", "#101216", "#191c22", "#383e49", "#eceef2", "#a9b0bc", "#56b4e9", "#ff8a80", "#ffc266"),
        Theme("print", "#ffffff", "#ffffff", "#8c929c", "#000000", "#3f444c", "#1f1f1f", "#7a0c06", "#5e3a00"),
    )
}


def theme_named(name: str) -> Theme:
    """A theme; raises UsageError for a name that is none."""
    if (found := next((one for one in _NAMED.values() if one.name == name), None)) is None:
        raise UsageError(f"--theme {name!r} is no theme.{did_you_mean(name, THEMES)}")
    return found


def themed(svg: str, name: str | None) -> str:
    """A picture whose style follows the reader's system, in one theme; None leaves it so.

    Its rules for dark pages are taken out, or for the dark theme in force everywhere. Print is light.
    """
    if name is None:
        return svg
    is_dark = theme_named(name).is_dark
    compact = svg.replace("@media (prefers-color-scheme: dark) {", _DARK)
    while (start := compact.find(_DARK)) >= 0:
        end = _closing(compact, start + len(_DARK))
        inner = compact[start + len(_DARK) : end] if is_dark else ""
        compact = f"{compact[:start]}{inner}{compact[end + 1 :]}"
    return compact


def sized(svg: str, width: int | None) -> str:
    """A picture as wide as asked for, in pixels: all of it grows alike, texts too. None leaves it as it is."""
    if width is None or (found := _SIZE.search(svg)) is None:
        return svg
    height = float(found["height"]) * width / float(found["width"])
    return f'{svg[: found.start()]}width="{width}" height="{height:.0f}"{svg[found.end() :]}'


def _closing(text: str, start: int) -> int:
    """The brace that ends a block that begins at `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return at
    return len(text)
