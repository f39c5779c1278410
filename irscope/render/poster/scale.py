"""The axis of time of a loop: its turns side by side, those in the middle left out where there is no room for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.in_flight.model import BEFORE, InFlight, Step

__all__ = ["Column", "Scale", "scale_of"]

_CELL = 15.5
"""Pixels of a step, at least."""
_WIDEST, _WIDEST_ALONE = 48.0, 118.0
"""At most; in a kernel without a loop."""
_GAP = 26.0
"""Pixels for turns that are left out."""
_SHARED = ("copy", "load", "write", "read")
"""Kinds whose steps stand at one place if they follow one another on different lanes."""


@dataclass(frozen=True, slots=True)
class Column:
    """A turn, or what is before or behind the loop."""

    turn: int
    left: float
    width: float
    places: dict[int, int]
    """Step that is drawn -> its place in the column, from 0."""
    marks: dict[int, int]
    """The same of all steps whose place is known."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where each step that is shown stands."""

    columns: tuple[Column, ...]
    cell: float
    gap: float | None
    """The left edge of the room for turns that are left out; None if there are none."""
    right: float

    def left(self, step: int) -> float | None:
        """The left edge of a step; None if it is left out."""
        for column in self.columns:
            if step in column.places:
                return column.left + column.places[step] * self.cell
        return None

    def near(self, step: int) -> float:
        """The left edge of a step, or of what comes next and is shown; the right end behind all."""
        own = next((column for column in self.columns if step in column.marks), None)
        if own is not None:
            return own.left + own.marks[step] * self.cell
        later = [
            column.left + place * self.cell
            for column in self.columns
            for number, place in column.places.items()
            if number >= step
        ]
        return min(later, default=self.right)


def scale_of(flight: InFlight, lanes: Sequence[int], left: float, room: float) -> Scale:
    """The scale of a loop: as many turns as there is room for, the first and the last ones.

    `lanes`: the lane of each step; a step with a lane below 0 is not drawn.
    """
    turns: dict[int, list[int]] = {}
    for number, step in enumerate(flight.steps):
        if lanes[number] >= 0 or flight.partitions:
            turns.setdefault(step.turn, []).append(number)
    place = _side_by_side if flight.partitions else _places
    marks = {turn: place(flight.steps, steps, lanes) for turn, steps in turns.items()}
    places = {turn: {one: at for one, at in own.items() if lanes[one] >= 0} for turn, own in marks.items()}
    places = {turn: own for turn, own in places.items() if own}
    turns = {turn: turns[turn] for turn in places}
    chosen, cut = _chosen(sorted(turns), places, room, with_end=flight.turns is not None or not flight.line)
    cells = sum(_width(places[turn]) for turn in chosen)
    cell = min((room - (_GAP if cut else 0)) / max(cells, 1), _WIDEST if flight.line else _WIDEST_ALONE)
    columns: list[Column] = []
    gap = None
    x = left
    for at, turn in enumerate(chosen):
        if at and cut and turn > chosen[at - 1] + 1 and chosen[at - 1] >= 0:
            gap = x
            x += _GAP
        width = _width(places[turn]) * cell
        columns.append(Column(turn, x, width, places[turn], marks[turn]))
        x += width
    if cut and gap is None:
        gap, x = x, x + _GAP
    return Scale(tuple(columns), cell, gap, x)


def _places(steps: Sequence[Step], numbers: Sequence[int], lanes: Sequence[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    place = -1
    taken: set[int] = set()
    kind = ""
    for number in numbers:
        step = steps[number]
        if place < 0 or step.kind != kind or kind not in _SHARED or lanes[number] in taken:
            place, taken, kind = place + 1, set[int](), step.kind
        taken.add(lanes[number])
        found[number] = place
    return found


def _side_by_side(steps: Sequence[Step], numbers: Sequence[int], lanes: Sequence[int]) -> dict[int, int]:
    """Of partitions: each in its own order, and a wait behind what it waits for."""
    found: dict[int, int] = {}
    free: dict[str, int] = {}
    """Partition -> its next place."""
    last: dict[str, list[int]] = {}
    """Partition -> its steps at its last place."""
    for number in numbers:
        step = steps[number]
        name = step.partition
        if step.kind == "wait" and step.after is not None and step.after in found:
            free[name] = max(free.get(name, 0), found[step.after] + 1)
        beside = last.get(name, [])
        if lanes[number] < 0:
            found[number] = free.get(name, 0)
            last[name] = []
            continue
        is_beside = step.kind in _SHARED and {steps[one].kind for one in beside} == {step.kind}
        if is_beside and lanes[number] not in {lanes[one] for one in beside}:
            found[number] = found[beside[0]]
            beside.append(number)
            continue
        found[number] = free.get(name, 0)
        free[name], last[name] = found[number] + 1, [number]
    return found


def _width(places: dict[int, int]) -> int:
    return max(places.values(), default=-1) + 1


def _chosen(
    turns: list[int], places: dict[int, dict[int, int]], room: float, *, with_end: bool
) -> tuple[list[int], bool]:
    """The turns that are shown, and whether some are left out: in the middle, or those at an end that is not known."""

    def needed(chosen: Sequence[int]) -> float:
        return sum(_width(places[turn]) for turn in chosen) * _CELL

    if with_end and needed(turns) <= room:
        return turns, False
    before = [turn for turn in turns if turn == BEFORE]
    inner = [turn for turn in turns if turn != BEFORE]
    tail = inner[-2:] if with_end else []
    head = inner[: len(inner) - len(tail)]
    while len(head) > 1 and needed([*before, *head, *tail]) + _GAP > room:
        head.pop()
    return [*before, *head, *tail], True
