"""The poster of a report's capture: that of `irscope poster`, one element a line, coloured by the page's style."""

from __future__ import annotations

import re
from collections.abc import Sequence

from irscope.analysis.findings.model import Finding
from irscope.errors import DAMAGE
from irscope.memory.cost import Cost
from irscope.model.capture import Capture
from irscope.render.canvas import style_of
from irscope.render.poster.poster import poster_svg
from irscope.render.theme import theme_named

__all__ = ["packed_poster", "poster_style", "without_style"]

_STYLE = re.compile(r"<style>[^<]*</style>")
# class="t b", and .b{font-weight:600}: prefixed, for the page has looks called `bar` and `line` too.
_CLASSES = re.compile(r'class="([^"]*)"')
_CLASS = re.compile(r"\.(?=[a-z])")
_RULE = re.compile(r"([^{}]+)\{")


def packed_poster(capture: Capture, costs: Sequence[Cost], found: Sequence[Finding]) -> str:
    """The poster of a capture as SVG without a style of its own; an empty string for a damaged capture."""
    try:
        svg = poster_svg(capture, costs=costs, findings=found)
    except DAMAGE:
        # Layouts and texts come from the capture's file, which may say anything.
        return ""
    return without_style(svg)


def without_style(svg: str) -> str:
    """A picture that was drawn on a canvas, for the page's style, whose rules are of what has the class `drawn`."""
    svg = _CLASSES.sub(lambda found: f'class="{_prefixed(found[1])}"', _STYLE.sub("", svg))
    # Lines, for what another capture of the kernel has too is not stored again.
    return svg.replace("><", ">\n<")


def _prefixed(classes: str) -> str:
    # What the page goes by keeps its name.
    return " ".join(one if one == "node" else f"p-{one}" for one in classes.split())


def poster_style() -> str:
    """The rules of CSS for what is drawn on a canvas, in the page: light, dark where the page is, and on paper."""
    dark = _rules("dark")
    system = f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    return (
        f"{_rules('light')}@media screen{{:root[data-theme=dark]{{{dark}}}{system}}}@media print{{{_rules('print')}}}"
    )


def _rules(theme: str) -> str:
    return _RULE.sub(r".drawn \1{", _CLASS.sub(".p-", style_of(theme_named(theme))))
