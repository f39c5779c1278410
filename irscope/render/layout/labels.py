"""Finds room for the labels of boxes: within its box or beside it, and never across another box, label or line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from irscope.render.canvas import LEAST, Rect, width_of

__all__ = ["Label", "placed_labels"]

_LINE = 14.0
"""Pixels of a line."""
_PADDING = 7.0
_GAP = 4.0


class Label(NamedTuple):
    """A label with its place."""

    box: int
    """The number of its box, from 0."""
    lines: tuple[str, ...]
    area: Rect
    inside: bool

    def baseline(self, line: int) -> float:
        """The pixel on which a line stands."""
        return self.area.top + 10 + _LINE * line


def placed_labels(
    boxes: Sequence[Rect], texts: Sequence[Sequence[tuple[str, ...]]], frame: Rect, lines: Iterable[Rect]
) -> list[Label]:
    """The labels for which there is room, the largest boxes' first.

    Args:
        boxes: what they are for.
        texts: for each box its label in lines, in forms from the longest to the shortest.
        frame: no label leaves it.
        lines: what no label may meet either.
    """
    order = sorted(range(len(boxes)), key=lambda index: -boxes[index].width * boxes[index].height)
    fixed = list(lines)
    found: dict[int, Label] = {}
    # First room for every shortest form, then longer ones where that leaves the others theirs.
    for shortest in (True, False):
        for box in order:
            others = [*fixed, *(one for index, one in enumerate(boxes) if index != box)]
            others += [label.area for index, label in found.items() if index != box]
            forms = texts[box][-1:] if shortest else texts[box][:-1]
            label = next(_free_places(box, boxes[box], forms, frame, others), None)
            if label is not None:
                found[box] = label
    return [found[box] for box in order if box in found]


def _free_places(
    box: int, area: Rect, forms: Sequence[tuple[str, ...]], frame: Rect, others: Sequence[Rect]
) -> Iterator[Label]:
    """The places for a box's label, the best first: within the box in any form, then beside it."""
    sizes = [(form, max(width_of(line, LEAST) for line in form), _LINE * len(form) - 2) for form in forms]
    for form, width, height in sizes:
        for place in _inside(area, width, height, others):
            if area.holds(place) and not any(place.widened().meets(one) for one in others):
                yield Label(box, form, place, True)
    for form, width, height in sizes:
        for place in _beside(area, width, height, frame):
            if frame.holds(place) and not any(place.widened().meets(one) for one in (*others, area)):
                yield Label(box, form, place, False)


def _inside(area: Rect, width: float, height: float, others: Sequence[Rect]) -> Iterator[Rect]:
    """At the left edge of a box, or behind what crosses it there."""
    top = area.top + (area.height - height) / 2
    yield Rect(area.left + _PADDING, top, width, height)
    for one in others:
        if one.meets(area):
            yield Rect(one.right + _PADDING, top, width, height)
    # A number fits where there is no room for a margin.
    yield Rect(area.left + (area.width - width) / 2, top, width, height)


def _beside(area: Rect, width: float, height: float, frame: Rect) -> Iterator[Rect]:
    """To the right and the left of a box, at the height of its middle and its edges; and above it."""
    for left in (area.right + _GAP, area.left - _GAP - width):
        for top in (area.top + (area.height - height) / 2, area.top, area.bottom - height):
            yield Rect(left, min(max(top, frame.top), frame.bottom - height), width, height)
    yield Rect(area.left, area.top - _GAP - height, width, height)
