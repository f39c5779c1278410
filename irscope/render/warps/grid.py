"""Where the lanes, the rings and the rows of a picture of partitions stand, in pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor

from irscope.analysis.flow.partitions import Partition, WarpSpecialization
from irscope.analysis.flow.warp_turns import Part, WarpChannel, WarpEvent, channels_of, events_of
from irscope.render.canvas import Rect

__all__ = ["ALONE", "BAND", "Card", "Grid", "Row", "grid_of"]

BAND = 22.0
"""Pixels of the title of a part of the time."""
ALONE = 212.0
"""Pixels below the cards where nothing is handed over."""
_LEAST_WIDTH, _LEAST_HEIGHT = 1280.0, 720.0
_MARGIN = 24.0
_GAP = 10.0
_RING = 30.0
"""Pixels of a ring."""
_LEAST_CARD = 112.0
_LANE = 182.0
"""Pixels of a lane at least."""
_TOP, _BELOW = 74.0, 58.0
"""Pixels above the cards, and below the rows."""
_LINE = 14.0
_ROW, _LEAST_ROW = 30.0, 16.0
_MOST_ROWS = 34
"""With more, what is not in the loops is summed up."""
_MOST_DRAWN = 160


@dataclass(frozen=True, slots=True)
class Card:
    """A lane, or the rings of a channel, with the room for what it is called."""

    area: Rect
    partition: Partition | None
    channel: WarpChannel | None


@dataclass(frozen=True, slots=True)
class Row:
    """An operation, or several of one part that are summed up."""

    top: float
    part: Part
    events: tuple[WarpEvent, ...]
    is_sum: bool
    """Whether it stands for a part of the time, of all partitions."""
    is_first: bool
    """Whether a title stands above it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The whole picture."""

    width: float
    height: float
    cards: tuple[Card, ...]
    rings: Mapping[int, float]
    """Line of the allocation -> the x of its line."""
    rows: tuple[Row, ...]
    row: float
    """Pixels of a row."""
    left_out: int
    """Operations behind the last row."""

    @property
    def lanes(self) -> Mapping[str, Rect]:
        """Name of a partition -> its card; an empty name for the default one, whose warps run what is outside."""
        found = {one.partition.name: one.area for one in self.cards if one.partition is not None}
        return {"": next(iter(found.values())), **found} if found else {}

    @property
    def bottom(self) -> float:
        """Below the last row."""
        return max((one.top + self.row for one in self.rows), default=self.cards[0].area.bottom + ALONE)


def grid_of(found: WarpSpecialization) -> Grid:
    """Place the parts of a specialisation."""
    channels = channels_of(found)
    events = events_of(found)
    order = _order(found, channels)
    widths = [_LANE if isinstance(one, Partition) else _width(one) for one in order]
    lines = max((_lines(one) for one in channels), default=3)
    card = max(lines, 4) * _LINE + 12
    has_sums = len(events) > _MOST_ROWS
    shown = list(_shown(events, has_sums))[:_MOST_DRAWN]
    titled = dict.fromkeys(own[0].part for own in shown if not has_sums or own[0].part == "loop")
    bands = len(titled) * BAND
    levels = _levels(shown, order)
    count = max(levels, default=-1) + 1
    wide = sum(widths) + _GAP * (len(order) - 1) + 2 * _MARGIN
    high = _TOP + card + 8 + bands + _LEAST_ROW * count + _BELOW
    height, width = max(_LEAST_HEIGHT, high, wide * 9 / 16), _LEAST_WIDTH
    if not shown:
        height = _TOP + card + ALONE + _BELOW
    width = max(width, wide, height * 16 / 9)
    lanes = sum(isinstance(one, Partition) for one in order)
    widths = [
        one + (min((width - wide) / lanes, 90.0) if isinstance(item, Partition) else 0)
        for item, one in zip(order, widths, strict=True)
    ]
    gap = _GAP + min(max(width - 2 * _MARGIN - sum(widths) - _GAP * (len(order) - 1), 0) / max(len(order) - 1, 1), 60)
    cards: list[Card] = []
    rings: dict[int, float] = {}
    x = (width - sum(widths) - gap * (len(order) - 1)) / 2
    for item, own in zip(order, widths, strict=True):
        area = Rect(x, _TOP, own, card)
        cards.append(Card(area, item if isinstance(item, Partition) else None, _channel(item)))
        if isinstance(item, WarpChannel):
            step = own / len(item.rings)
            rings |= {one.line: x + step * (at + 0.5) for at, one in enumerate(item.rings)}
        x += own + gap
    row = min(max((height - _TOP - card - 8 - bands - _BELOW) / max(count, 1), _LEAST_ROW), _ROW)
    rows: list[Row] = []
    top, last = _TOP + card + 8, ""
    for level, own in zip(levels, shown, strict=True):
        part = own[0].part
        is_first = part in titled and part != last
        top, last = top + (BAND if is_first else 0), part
        rows.append(Row(top + level * row, part, own, has_sums and part != "loop", is_first))
    left_out = len(events) - sum(len(one.events) for one in rows)
    return Grid(width, height, tuple(cards), rings, tuple(rows), row, left_out)


def _channel(item: Partition | WarpChannel) -> WarpChannel | None:
    return item if isinstance(item, WarpChannel) else None


def _order(found: WarpSpecialization, channels: Sequence[WarpChannel]) -> list[Partition | WarpChannel]:
    """Lanes in the order of the text, each channel behind the lane in the middle of those that use it."""
    names = [one.name for one in found.partitions]
    behind: dict[int, list[WarpChannel]] = {}
    for channel in channels:
        places = [names.index(use.partition) for ring in channel.rings for use in ring.uses if use.partition in names]
        middle = floor((min(places) + max(places)) / 2) if places else 0
        behind.setdefault(min(middle, max(len(names) - 2, 0)), []).append(channel)
    return [item for place, one in enumerate(found.partitions) for item in (one, *behind.get(place, ()))]


def _levels(shown: Sequence[Sequence[WarpEvent]], order: Sequence[Partition | WarpChannel]) -> list[int]:
    """The row of each operation: below those of its partition and rings, beside others if its lines meet none."""
    places = {one.name: place for place, one in enumerate(order) if isinstance(one, Partition)}
    places[""] = min(places.values(), default=0)
    rings = {
        ring.line: place
        for place, one in enumerate(order) if isinstance(one, WarpChannel) for ring in one.rings
    }  # fmt: skip
    taken: list[set[int]] = []
    """Of each row the places of the order that lines cross."""
    below: dict[tuple[str, int], int] = {}
    begin, part = 0, ""
    found: list[int] = []
    for events in shown:
        if events[0].part != part or len(events) > 1:
            begin, part = len(taken), events[0].part
        touched = [(line, rings[line]) for one in events for line, _ in one.touched if line in rings]
        own = [places.get(one.partition, 0) for one in events] + [place for _, place in touched]
        crossed = set(range(min(own), max(own) + 1))
        keys = [(one.partition or "default", 0) for one in events] + [("", line) for line, _ in touched]
        level = max([begin, *(below.get(key, 0) for key in keys)])
        while level < len(taken) and taken[level] & crossed:
            level += 1
        if level == len(taken):
            taken.append(set())
        taken[level] |= crossed
        below |= dict.fromkeys(keys, level + 1)
        found.append(level)
    return found


def _width(channel: WarpChannel) -> float:
    return max(_RING * len(channel.rings), _LEAST_CARD)


def _lines(channel: WarpChannel) -> int:
    return len(channel.barriers) + 2 * len(channel.buffers)


def _shown(events: Sequence[WarpEvent], has_sums: bool) -> Iterator[tuple[WarpEvent, ...]]:
    """The operations of each row: one, or of a part that is summed up all."""
    told: set[Part] = set()
    for event in events:
        if not has_sums or event.part == "loop":
            yield (event,)
        elif event.part not in told:
            told.add(event.part)
            yield tuple(one for one in events if one.part == event.part)
