"""The poster and the movie of a report's capture, coloured by the page's style."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

from irscope.analysis.findings.model import Finding
from irscope.analysis.movie.follow import Followed
from irscope.analysis.movie.make import movie_of
from irscope.analysis.movie.model import Change, Frame, Held
from irscope.errors import DAMAGE
from irscope.memory.access import Cost
from irscope.model.capture import Capture
from irscope.render.canvas import style_of
from irscope.render.movie.scene import Drawn, draw_tile, state_text, title_of_tile
from irscope.render.poster.poster import poster_svg
from irscope.render.theme import theme_named

__all__ = ["movie_text", "packed_poster", "poster_style", "without_style"]

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


_MOST_ROWS = 24
"""Of a frame; `irscope movie --json` has all."""


def movie_text(capture: Capture, followed: Followed) -> str:
    """The movie of a capture for the page, as JSON with a line for each of its rows: captures have many in common.

    `values`: (title, line of Python) of each main value. `frames`: each with `passes`, the places of its first and its
    last pass, `counts`, `came` as (operations made, removed, whether there are those of LLVM), `rows` as
    (operation, line of Python, made, removed, and `~` if it is not known which or `net` if they are not followed), the
    number of `more` of them, and `held`, for each value (number of its tile or -1, the tile's title, what is known of
    it, whether it is unclear, whether the pass changed it). `tiles`: the pictures.

    Args:
        capture: what it is of; maps of layouts that it does not hold are computed from their texts where these tell.
        followed: its operations.

    Empty for a damaged capture.
    """
    try:
        movie = movie_of(capture, followed)
    except DAMAGE:
        # The texts come from the capture's file, which may say anything.
        return ""
    places = {one.label: place for place, one in enumerate(capture.passes())}
    answers = {(row.encoding, row.shape): row.answer for row in capture.layouts}
    tiles: dict[Drawn, int] = {}

    def held(one: Held) -> list[Any]:
        if not one.tiles:
            return [-1, "", state_text(one), one.state == "unclear", one.is_new]
        drawn = draw_tile(one.tiles[0], answers, capture.target)
        number = tiles.setdefault(drawn, len(tiles))
        return [number, title_of_tile(one.tiles[0]), state_text(one), one.state == "unclear", one.is_new]

    def packed(frame: Frame) -> dict[str, Any]:
        rows = [[*_row(one), "net"] for one in frame.net_changes]
        rows += [_row(one) if one.is_certain else [*_row(one), "~"] for one in frame.changes]
        return {
            "passes": [places[label] for label in (*frame.passes[:1], *frame.passes[-1:])],
            "counts": [*asdict(frame.counts).values()],
            "came": [frame.made, frame.removed, int(bool(frame.net))],
            "rows": rows[:_MOST_ROWS],
            "more": max(len(rows) - _MOST_ROWS, 0),
            "held": [held(one) for one in frame.held],
        }

    return _lines(
        {
            "values": [[value.title, value.place] for value in movie.values],
            "frames": [packed(frame) for frame in movie.frames],
            "tiles": [asdict(drawn) | {"title": drawn.title} for drawn in tiles],
        }
    )


def _row(one: Change) -> list[Any]:
    return [one.operation, one.place, one.made, one.removed]


def _lines(value: Any) -> str:
    """A value as JSON, what its lists hold on lines of their own."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return f"{{{','.join(f'{json.dumps(name)}:{_lines(own)}' for name, own in items)}}}"
    if isinstance(value, list) and any(isinstance(one, (list, dict)) for one in cast("list[Any]", value)):
        return "[\n" + ",\n".join(map(_lines, cast("list[Any]", value))) + "\n]"
    return json.dumps(value, separators=(",", ":"))
