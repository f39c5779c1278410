"""The pictures of a report's capture: its graphs, its poster and its movie, coloured by the page's style.

A picture is a text of the report, SVG with one element a line; what the page needs no more is left out of it: tooltips,
fonts, and fractions of a point.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from irscope.analysis.findings.model import Finding
from irscope.analysis.movie.make import FollowedOperations, movie_of
from irscope.analysis.movie.model import Held, MovieChange, MovieFrame
from irscope.errors import IrscopeError, undamaged
from irscope.memory.access import Cost
from irscope.model.capture import Capture
from irscope.render.canvas import style_of, theme_named
from irscope.render.dot.flows import StageGraph, passes_graph, stage_graph
from irscope.render.dot.graph import Drawing, dark_rules, render_svgs
from irscope.render.movie.tiles import Drawn, draw_tile, state_text, title_of_tile
from irscope.render.warps import warps_picture

if TYPE_CHECKING:
    from irscope.timing.predict import Prediction

_STYLE = re.compile(r"<style>[^<]*</style>")
# class="t b", and .b{font-weight:600}: prefixed, for the page has looks called `bar` and `line` too.
_CLASSES = re.compile(r'class="([^"]*)"')
_CLASS = re.compile(r"\.(?=[a-z])")
_RULE = re.compile(r"([^{}]+)\{")


def packed_poster(capture: Capture, costs: Sequence[Cost], found: Sequence[Finding], time: Prediction | None) -> str:
    """The poster of a capture as SVG without a style of its own; an empty string for a damaged capture."""
    # It executes IR, on NumPy, which a page can do without.
    from irscope.render.poster.poster import poster_svg

    return undamaged(lambda: for_page(poster_svg(capture, costs=costs, findings=found, time=time)), "")


def for_page(svg: str) -> str:
    """A picture that was drawn on a canvas, for the page's style, whose rules are of what has the class `drawn`."""
    svg = _CLASSES.sub(lambda found: f'class="{_prefixed(found[1])}"', _STYLE.sub("", svg))
    # Lines, for what another capture of the kernel has too is not stored again.
    return svg.replace("><", ">\n<")


def _prefixed(classes: str) -> str:
    # What the page goes by keeps its name.
    return " ".join(one if one == "node" else f"p-{one}" for one in classes.split())


def poster_style() -> str:
    """The rules of CSS for pictures in the page: light, dark where the page is, and on paper."""
    dark = _rules("dark") + dark_rules(".graph ")
    system = f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    return (
        f"{_rules('light')}@media screen{{:root[data-theme=dark]{{{dark}}}{system}}}@media print{{{_rules('print')}}}"
    )


def _rules(theme: str) -> str:
    return _RULE.sub(r".drawn \1{", _CLASS.sub(".p-", style_of(theme_named(theme))))


_MOST_ROWS = 24
"""Of a frame; `irscope draw movie --json` has all."""


def movie_text(capture: Capture, followed: FollowedOperations) -> str:
    """The movie of a capture for the page, as JSON with a line for each of its rows: captures have many in common.

    `values`: (title, line of Python) of each main value. `frames`: each with `passes`, the places of its first and its
    last pass, `counts`, `came` as (operations made, removed, whether there are those of LLVM), `rows` as
    (operation, line of Python, made, removed, and `~` if it is not known which or `net` if they are not followed), the
    number of `more` of them, and `held`, for each value (number of its tile or -1, the tile's title, what is known of
    it, whether it is unclear, whether the pass changed it). `tiles`: the pictures. Empty for a damaged capture.
    """
    movie = undamaged(lambda: movie_of(capture, followed), None)
    if movie is None:
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

    def packed(frame: MovieFrame) -> dict[str, Any]:
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


def _row(one: MovieChange) -> list[Any]:
    return [one.operation, one.place, one.made, one.removed]


def _lines(value: Any) -> str:
    """A value as JSON, what its lists hold on lines of their own."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return f"{{{','.join(f'{json.dumps(name)}:{_lines(own)}' for name, own in items)}}}"
    if isinstance(value, list) and any(isinstance(one, (list, dict)) for one in cast("list[Any]", value)):
        return "[\n" + ",\n".join(map(_lines, cast("list[Any]", value))) + "\n]"
    return json.dumps(value, separators=(",", ":"))


_SECONDS = 30.0
_LEFT_OUT = ("source",)
"""The stage before it is read has the values of `ttir`."""
# <!-- n2&#45;&gt;n63 -->
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
# <g id="a_node17"><a xlink:title="…">
_TOOLTIP = re.compile(r'<g id="a_[^"]*"><a [^>]*>\n?|</a>\n</g>\n?')
# id="node17", font-family="Helvetica,Arial"
_NEEDLESS = re.compile(r' (?:id|font-family|xmlns(?::\w+)?|width|height)="[^"]*"| stroke="transparent"')
# <polygon fill="#4b5563" points="1551.98,-830.85 1550.31,-823.62"/>
_POLYGON = re.compile(r'<polygon ([^>]*)points="([^"]*)"')
_PATH = re.compile(r' d="([^"]*)"')
_COMMAND = re.compile(r"([MCL])([^MCL]*)")
_PLACES = re.compile(r' (?:x|y|cx|cy|rx|ry)="[^"]*"')
_FRACTION = re.compile(r"-?\d+\.\d+")


def packed_graphs(
    capture: Capture, add_text: Callable[[str, str], int], *, placed: bool
) -> tuple[list[dict[str, Any]], bool]:
    """The graphs of a capture, placed by `dot` where `placed`, and whether the page has to place one.

    A graph has `of`: a stage, `passes` or `warps`; `text`, the number of its picture, or of its source with
    `dot` true; and `lines`, for each node (first line, last line) again and again, of the stage or of the TTGIR.
    """
    found: list[tuple[str, Drawing, dict[str, list[int]]]] = []
    for of, make in _graphs(capture):
        if (graph := undamaged(make, None)) is not None:
            found.append((of, graph.drawing, {name: _runs(own) for name, own in graph.lines.items() if own}))
    pictures = _pictures(tuple(one.source for _, one, _ in found)) if placed else None
    rows = [
        {
            "of": of,
            "text": add_text(drawing.source if pictures is None else pictures[at], f"graph {of}"),
            "dot": pictures is None,
            "lines": lines,
        }
        for at, (of, drawing, lines) in enumerate(found)
    ]
    unplaced = pictures is None and bool(rows)
    if (warps := undamaged(lambda: warps_picture(capture), None)) is not None:
        lines = {name: _runs(own) for name, own in warps.lines.items()}
        text = add_text(for_page(warps.svg), "graph warps")
        rows.append({"of": "warps", "text": text, "dot": False, "lines": lines})
    return rows, unplaced


def _graphs(capture: Capture) -> Iterator[tuple[str, Callable[[], StageGraph | None]]]:
    drawing = passes_graph(capture)
    yield "passes", lambda: StageGraph(drawing, {}) if drawing is not None else None
    for stage in capture.stages:
        if stage not in _LEFT_OUT:
            yield stage, partial(stage_graph, capture, stage)


@lru_cache(maxsize=16)
def _pictures(sources: tuple[str, ...]) -> tuple[str, ...] | None:
    """The graphs, placed; None where `dot` fails or takes too long."""
    try:
        return tuple(map(_compact, render_svgs(sources, _SECONDS)))
    except IrscopeError:
        return None


def _compact(svg: str) -> str:
    svg = _TOOLTIP.sub("", _COMMENT.sub("", svg))
    svg = _POLYGON.sub(lambda match: f'<path {match[1]}d="M{match[2].replace(" ", "L", 1)}"', svg)
    svg = _PATH.sub(lambda match: f' d="{_relative(match[1])}"', svg)
    svg = _PLACES.sub(lambda match: _FRACTION.sub(lambda one: f"{float(one[0]):.0f}", match[0]), svg)
    return _NEEDLESS.sub("", svg)


def _relative(path: str) -> str:
    """A path of dot, such as `M0,0C0,8 4,8 4,4`, with each point relative to where its curve or line begins."""
    parts: list[str] = []
    x = y = 0
    # "M0,0", "C0,8 4,8 4,4"
    for letter, text in _COMMAND.findall(path):
        points = [tuple(round(float(one)) for one in point.split(",")) for point in text.split()]
        step = 3 if letter == "C" else 1
        told: list[str] = []
        for at, (left, top) in enumerate(points, 1):
            told.append(f"{left - x},{top - y}")
            if at % step == 0:
                x, y = left, top
        parts.append(letter.lower() + " ".join(told))
    return "".join(parts)


def _runs(lines: Iterable[int]) -> list[int]:
    """Lines as (first, last) again and again."""
    ordered = sorted(set(lines))
    ends = [one for one, later in pairwise(ordered) if later != one + 1] + ordered[-1:]
    starts = ordered[:1] + [later for one, later in pairwise(ordered) if later != one + 1]
    return [line for pair in zip(starts, ends, strict=True) for line in pair]
