"""The graphs of a report's capture: those of `irscope graph`, as pictures that `dot` placed, else in the DOT language.

A picture is a text of the report, SVG with one element a line; what the page needs no more is left out of it: tooltips,
fonts, and fractions of a point.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

from irscope.errors import DAMAGE, IrscopeError
from irscope.model.capture import Capture
from irscope.render.dot.graph import Drawing, render_svgs
from irscope.render.dot.stages import StageGraph, loops_graph, passes_graph, stage_graph
from irscope.render.report.pictures import without_style
from irscope.render.warps.picture import warps_picture

__all__ = ["packed_graphs"]

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
    """The graphs of a capture, and whether the page has to place one.

    Args:
        capture: what they are of.
        add_text: stores a text under the place it stands in, and gives its number.
        placed: whether `dot` places them now.

    A graph has `of`: a stage, `passes`, `loops` or `warps`; `text`, the number of its picture, or of its source with
    `dot` true; and `lines`, for each node (first line, last line) again and again, of the stage or of the TTGIR.
    """
    found: list[tuple[str, Drawing, dict[str, list[int]]]] = []
    for of, make in _graphs(capture):
        try:
            graph = make()
        except DAMAGE:
            # The text comes from the capture's file, which may say anything.
            continue
        if graph is not None:
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
    try:
        warps = warps_picture(capture)
    except DAMAGE:
        warps = None
    if warps is not None:
        lines = {name: _runs(own) for name, own in warps.lines.items()}
        text = add_text(without_style(warps.svg), "graph warps")
        rows.append({"of": "warps", "text": text, "dot": False, "lines": lines})
    return rows, unplaced


def _graphs(capture: Capture) -> Iterator[tuple[str, Callable[[], StageGraph | None]]]:
    """(what it is of, how to draw it)."""

    def alone(drawing: Drawing | None) -> StageGraph | None:
        return StageGraph(drawing, {}) if drawing is not None else None

    yield "passes", lambda: alone(passes_graph(capture))
    for stage in capture.stages:
        if stage not in _LEFT_OUT:
            yield stage, partial(stage_graph, capture, stage)
    yield "loops", lambda: alone(loops_graph(capture))


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
