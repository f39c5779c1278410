"""Colours that every reader can tell apart: the eight of Okabe and Ito, and for more values the scale cividis.

Sources: Okabe and Ito, "Color Universal Design" (2008); Nuñez, Anderton and Renslow, "Optimizing colormaps with
consideration for color vision deficiency", PLOS ONE 13(7), 2018.
"""

from __future__ import annotations

from typing import NamedTuple

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

_WHITE: Rgb = (255, 255, 255)
_BLACK: Rgb = (16, 18, 22)
_INK: Rgb = (0, 0, 0)


class _Shade(NamedTuple):
    """The fill colour of a cell and the colour of its text."""

    fill: str
    text: str


def shades(count: int, dark: bool = False) -> list[_Shade]:
    """One shade for each of `count` values; the contrast of its text is at least 4.5 to 1."""
    return [shade_of(rgb) for rgb in fills(count, dark)]


def fills(count: int, dark: bool = False) -> list[Rgb]:
    """The fill colours of `count` values."""
    if count > 16:
        return [_on_scale(index / (count - 1)) for index in range(count)]
    ground = _BLACK if dark else _WHITE
    near, far = (0.72, 0.42) if dark else (0.62, 0.95)
    return [mix(_EIGHT[index % 8], ground, near if index < 8 else far) for index in range(count)]


def shade_of(fill: Rgb) -> _Shade:
    """A fill colour with the colour of the text on it."""
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
    """A share of a colour on a ground."""
    red, green, blue = (round(a * share + b * (1 - share)) for a, b in zip(color, ground, strict=True))
    return red, green, blue


def hexadecimal(color: Rgb) -> str:
    """`#56b4e9`."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def _on_scale(share: float) -> Rgb:
    at = share * (len(_SCALE) - 1)
    low = min(int(at), len(_SCALE) - 2)
    return mix(_SCALE[low + 1], _SCALE[low], at - low)
