"""The lines of text of a poster with the boxes that they take, as estimated from their letters."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from irscope.render.canvas import HEIGHT, WIDTH, Rect, width_of

_SVG = "{http://www.w3.org/2000/svg}"
_ASCENT, _DESCENT = 0.74, 0.22
"""Of a letter with an ascender and one with a descender, in the size; the fonts' own boxes have room for accents."""


@dataclass(frozen=True)
class Text:
    """A line of text."""

    text: str
    size: float
    look: str
    area: Rect


def texts_of(svg: str) -> list[Text]:
    """The lines of a poster."""
    found: list[Text] = []
    for element in ElementTree.fromstring(svg).iter(f"{_SVG}text"):
        text, size, look = element.text or "", float(element.get("font-size", "0")), element.get("class", "")
        width = width_of(text, size, bold=" b" in look)
        anchor = {"middle": 0.5, "end": 1.0}.get(element.get("text-anchor", ""), 0.0)
        left = float(element.get("x", "0")) - anchor * width
        top = float(element.get("y", "0")) - _ASCENT * size
        found.append(Text(text, size, look, Rect(left, top, width, (_ASCENT + _DESCENT) * size)))
    return found


def _holds(page: Rect, area: Rect) -> bool:
    across = page.left <= area.left and area.right <= page.right
    return across and page.top <= area.top and area.bottom <= page.bottom


def wrong_boxes(texts: Sequence[Text], page: Rect | None = None) -> list[str]:
    """Pairs of lines that meet, and lines that leave the page."""
    page = page or Rect(0, 0, WIDTH, HEIGHT)
    found = [f"{one.text!r} leaves the page" for one in texts if not _holds(page, one.area)]
    return found + [
        f"{one.text!r} and {other.text!r} meet" for one, other in combinations(texts, 2) if one.area.meets(other.area)
    ]
