"""The picture of specialised warps: partitions as lanes, and the buffers and barriers between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor

from irscope.analysis.flow.partitions import (
    Action,
    Part,
    WarpChannel,
    WarpEvent,
    WarpPartition,
    WarpRing,
    WarpRingUse,
    WarpSpecialization,
    channels_of,
    events_of,
    most_specialised,
    read_partitions,
)
from irscope.ir.mlir.operations import opcode_of
from irscope.model.capture import Capture
from irscope.render.canvas import LEAST, Canvas, Rect, width_of
from irscope.render.dot.flows import python_lines
from irscope.render.text.tables import counted

_NAMES = {
    "async_tma_copy_global_to_local": "TMA load",
    "async_tma_gather": "TMA gather",
    "async_tma_copy_local_to_global": "TMA store",
    "tc_gen5_mma": "MMA",
    "tc_gen5_mma_scaled": "MMA, scaled",
    "tc_gen5_commit": "commit",
    "tmem_load": "load tmem",
    "tmem_store": "store tmem",
    "tmem_copy": "copy to tmem",
    "local_load": "load shared",
    "local_store": "store shared",
    "warp_group_dot": "wgmma",
    "arrive_barrier": "arrive",
    "wait_barrier": "wait",
    "barrier_expect": "expect",
}


def told(event: WarpEvent, rings: Mapping[int, WarpRing]) -> str:
    """`line 105: ttng.wait_barrier waits %acc_14 (slot 0; phase flips; at first 0)`; `rings` by the line of each."""
    return f"line {event.line}: {event.operation} " + ", ".join(
        " ".join(filter(None, (use.action, rings[line].value, _details(use)))) for line, use in event.touched
    )


def _warps_text(one: WarpPartition) -> str:
    """`4 warps (0–3)`, or without the numbers where the text does not say them."""
    if one.warps is None:
        return "number of warps not known"
    first = one.first_warp
    return counted(one.warps, "warp") + ("" if first is None else f" ({first}–{first + one.warps - 1})")


def _label_of(event: WarpEvent) -> str:
    """What an operation does, in a few letters: `wait phase 0,1…`, `expect 32,768 B`, `TMA load`."""
    name = _NAMES.get(opcode_of(event.operation)) or event.operation.rpartition(".")[2].replace("_", " ")
    uses: Sequence[WarpRingUse] = [use for _, use in event.touched]
    expected = next((use.bytes for use in uses if use.bytes is not None), None)
    if expected is not None:
        return f"{name} {expected:,} B"
    waits = event.waits
    return name if waits is None or not waits.phase else f"{name} phase {_phase(waits)}"


def _phase(use: WarpRingUse) -> str:
    """`0,1…` where it flips from 0."""
    if use.phase != "flips":
        return use.phase
    return "flips" if use.first_phase is None else f"{use.first_phase},{1 - use.first_phase}…"


def _details(use: WarpRingUse) -> str:
    says_first = use.first_phase is not None and use.phase != str(use.first_phase)
    parts = [
        f"slot {use.slot}" if use.slot is not None else "",
        f"phase {use.phase}" if use.phase else "",
        f"at first {use.first_phase}" if says_first else "",
        f"{use.bytes} bytes" if use.bytes is not None else "",
    ]
    known = "; ".join(filter(None, parts))
    return f"({known})" if known else ""


@dataclass(frozen=True, slots=True)
class WarpsPicture:
    svg: str
    lines: Mapping[str, tuple[int, ...]]
    """Name of an operation in it -> its line of the TTGIR, 1-based."""
    note: str


def warps_picture(capture: Capture, theme: str | None = None) -> WarpsPicture | None:
    """The warp specialisation of a capture that hands over most; None for a kernel without one."""
    text = capture.texts.get("ttgir", "")
    found = read_partitions(text)
    if (one := most_specialised(found)) is None:
        return None
    version = capture.environment.triton_version
    place = f"{capture.target} · Triton {version}" if version else str(capture.target)
    note = f"1 of {len(found)} warp specialisations, that of line {one.line}" if len(found) > 1 else ""
    svg = warps_svg(one, (capture.name, place), theme, python_lines(capture, text, "mlir"))
    rings = {ring.line: ring for ring in (*one.buffers, *one.barriers)}
    return WarpsPicture(svg, {told(event, rings): (event.line,) for event in events_of(one)}, note)


_PARTS: Mapping[Part, str] = {
    "before": "before the partitions begin",
    "begin": "in the partitions, before their loops",
    "loop": "one iteration of the loops",
    "end": "in the partitions, after their loops",
    "after": "after the partitions",
}
_LOOKS = (0, 1, 2, 6, 4, 5, 7, 3)
"""Colours of lanes, those whose lines are seen best first."""
_HIGH, _LARGE = 19.0, 12.0
"""Pixels of a row in which texts are larger, and their size."""
_TO_RING: tuple[Action, ...] = ("writes", "arrives", "expects")
_FULL, _EMPTY = "filled", "free"


def warps_svg(
    found: WarpSpecialization,
    title: tuple[str, str],
    theme: str | None = None,
    lines: Mapping[int, str] | None = None,
) -> str:
    """The partitions of a specialisation as one SVG of 1280×720, or larger where there is more to show.

    `title`: what it is of, and what stands on the right. `lines`: line of the TTGIR -> the line of Python, as a text.
    Raises UsageError for a theme that is none.
    """
    grid = grid_of(found)
    return _Picture(found, grid, Canvas(theme, grid.width, grid.height), lines or {}).svg(title)


class _Picture:
    def __init__(self, found: WarpSpecialization, grid: Grid, canvas: Canvas, lines: Mapping[int, str]) -> None:
        self.found, self.grid, self.canvas, self.lines = found, grid, canvas, lines
        names = [one.name for one in found.partitions]
        self.looks = {"": _LOOKS[0], **{name: _LOOKS[place % len(_LOOKS)] for place, name in enumerate(names)}}
        self.rings = {one.line: one for one in (*found.buffers, *found.barriers)}

    def svg(self, title: tuple[str, str]) -> str:
        canvas, grid = self.canvas, self.grid
        canvas.head(title[0], "", title[1])
        warps = sum(one.warps or 0 for one in self.found.partitions)
        channels = sum(card.channel is not None for card in grid.cards)
        line = f" · line {self.lines[self.found.line]}" if self.found.line in self.lines else ""
        counts = [
            counted(len(self.found.partitions), "partition"),
            counted(warps, "warp"),
            counted(channels, "channel"),
            counted(len(self._barriers()), "barrier"),
        ]
        canvas.text(24, 60, f"{' · '.join(counts)}{line}", look="m", room=grid.width - 48)
        self._grounds()
        for ring, x in grid.rings.items():
            self._ring(self.rings[ring], x)
        self._bands()
        for row in grid.rows:
            self._row(row, row.event)
        for card in grid.cards:
            if card.partition is not None:
                self._lane_card(card.area, card.partition)
            else:
                self._channel_card(card)
        self._legend()
        return canvas.svg(f"{title[0]} {title[1]}")

    def _grounds(self) -> None:
        for card in self.grid.cards:
            if card.partition is not None:
                top = card.area.bottom
                self.canvas.rect(Rect(card.area.left, top, card.area.width, self.grid.bottom + 8 - top), "panel")

    def _bands(self) -> None:
        for row in self.grid.rows:
            if not row.is_first:
                continue
            left, right = 24.0, self.grid.width - 24
            self.canvas.rect(Rect(left, row.top - _BAND + 3, right - left, _BAND - 6), "soft", radius=3)
            text = _PARTS[row.part]
            if row.part == "loop":
                text += f", time runs downwards{self._loops()}"
            self.canvas.text(left + 8, row.top - _BAND + 15, text, size=LEAST, room=right - left - 16)

    def _loops(self) -> str:
        loops = dict.fromkeys(
            tuple(self.lines.get(line, "") for line in row.event.loops)
            for row in self.grid.rows
            if row.part == "loop" and row.event.loops
        )
        outer = list(dict.fromkeys(one[0] for one in loops if one[0]))
        inner = list(dict.fromkeys(line for one in loops for line in one[1:] if line))
        text = f" · {_lines(outer)}" if outer else ""
        return f"{text} · with a bar: in the inner loop of {_lines(inner)}" if inner else text

    def _lane_card(self, area: Rect, one: WarpPartition) -> None:
        canvas, look = self.canvas, self.looks[one.name]
        canvas.rect(area, "panel", radius=6)
        canvas.rect(Rect(area.left, area.top, area.width, 22), f"f{look}", radius=6)
        canvas.text(area.left + 10, area.top + 16, one.name, look=f"x{look}", size=13, bold=True, room=area.width - 16)
        registers = f"{one.registers} registers per thread" if one.registers is not None else "registers: no request"
        for place, text in enumerate((_warps_text(one), registers)):
            canvas.text(area.left + 10, area.top + 38 + 14 * place, text, size=LEAST, room=area.width - 16)
        if not any(row.event.partition == one.name for row in self.grid.rows):
            for place, (name, count) in enumerate(one.operations[: int(_ALONE / 15) - 2]):
                text = f"{name} ×{count}"
                canvas.text(area.left + 10, area.bottom + 20 + 15 * place, text, look="m", size=LEAST,
                            room=area.width - 16)  # fmt: skip

    def _channel_card(self, card: _Card) -> None:
        canvas, area, channel = self.canvas, card.area, card.channel
        if channel is None:
            return
        canvas.rect(area, "panel", radius=6)
        y = area.top + 16
        for ring in channel.buffers:
            canvas.text(area.left + 8, y, ring.value, size=LEAST, bold=False, room=area.width - 16)
            y += 14
            canvas.text(area.left + 8, y, f"{ring.slots}× {ring.what}", look="m", size=LEAST, room=area.width - 16)
            y += 14
        for ring in channel.barriers:
            look = "bad" if self._is_in_vain(ring) else "t"
            self._mark(area.left + 13, y - 4, self._state(ring))
            several = f" ×{ring.slots}" if ring.slots > 1 else ""
            count = "" if ring.what == "1" else f" /{ring.what}"
            canvas.text(area.left + 22, y, f"{ring.value}{several}{count}", look=look, size=LEAST, room=area.width - 28)
            y += 14

    def _mark(self, x: float, y: float, state: str) -> None:
        """The sign of a barrier: a disc where its waits need data, a ring where they need room, else a dashed one."""
        self.canvas.disc(x, y, 4, {_FULL: "t", _EMPTY: "edge"}.get(state, "off"))

    def _state(self, ring: WarpRing) -> str:
        """What the waits of partitions for a barrier wait for, as far as their first phases tell."""
        first = {use.first_phase for use in ring.by("waits") if use.partition and use.first_phase is not None}
        return _FULL if first == {0} else _EMPTY if first == {1} else ""

    def _ring(self, ring: WarpRing, x: float) -> None:
        """A ring's line, and on it who hands over to whom."""
        canvas, grid = self.canvas, self.grid
        top, bottom = grid.cards[0].area.bottom + 2, grid.bottom + 4
        canvas.path(f"M{x:.1f} {top:.1f}V{bottom:.1f}", "line")
        if self._is_barrier(ring):
            self._mark(x, top + 5, self._state(ring))
        else:
            canvas.rect(Rect(x - 4, top + 1, 8, 8), "t")
        from_before, begin, is_taken = True, (top + 10, -1), True
        for row in grid.rows:
            use = next((use for line, use in row.event.touched if line == ring.line), None)
            if use is None or use.action == "expects":
                continue
            y = row.top + grid.row / 2
            if use.action in ("arrives", "writes"):
                from_before, begin, is_taken = False, (y, self.looks[use.partition]), False
                continue
            if from_before:
                canvas.path(f"M{x:.1f} {begin[0]:.1f}V{y:.1f}", "off")
            else:
                wide = 3 if self._is_barrier(ring) else 7
                canvas.rect(Rect(x - wide / 2, begin[0], wide, y - begin[0]), f"f{begin[1]}")
            is_taken = True
        if not is_taken:
            # What is handed over to the next iteration.
            canvas.path(f"M{x:.1f} {begin[0]:.1f}V{bottom:.1f}", "off")
            canvas.path(f"M{x - 3:.1f} {bottom - 4:.1f}h6l-3 6Z", "m")

    def _row(self, row: Row, event: WarpEvent) -> None:
        canvas, grid = self.canvas, self.grid
        area = grid.lanes[event.partition]
        look = self.looks[event.partition]
        depth = max(len(event.loops) - 1, 0)
        box = Rect(area.left + 6 + 5 * depth, row.top + 1, area.width - 12 - 5 * depth, grid.row - 3)
        middle = row.top + grid.row / 2
        with canvas.group('class="node"', told(event, self.rings)):
            for line, use in event.touched:
                if (x := grid.rings.get(line)) is not None:
                    self._link(use, x, box, middle - 0.5, look)
            for level in range(depth):
                canvas.rect(Rect(area.left + 5 + 5 * level, row.top, 3, grid.row), f"f{look}")
            waits = event.waits
            if waits is not None:
                canvas.rect(box, "band", radius=4)
                outline = f"M{box.left:.1f} {box.top:.1f}h{box.width:.1f}v{box.height:.1f}h{-box.width:.1f}Z"
                canvas.path(outline, "off" if waits.first_phase == 1 else f"edge s{look}")
            else:
                canvas.rect(box, f"f{look}", radius=4)
            ink = "t" if waits is not None else f"x{look}"
            python = self.lines.get(event.line, "")
            size = LEAST if grid.row < _HIGH else _LARGE
            used = width_of(f":{python}", size) if python else 0.0
            y = middle + 3.5
            canvas.text(box.left + 7, y, _label_of(event), look=ink, size=size, room=box.width - 15 - used)
            if python:
                look = "m" if waits is not None else ink
                canvas.text(box.right - 6, y, f":{python}", look=look, size=size, anchor="end")

    def _link(self, use: WarpRingUse, x: float, box: Rect, y: float, look: int) -> None:
        """A line between an operation and a ring, with a point where it leads."""
        canvas = self.canvas
        is_right = x > box.right
        start = box.right if is_right else box.left
        canvas.path(f"M{start:.1f} {y:.1f}H{x:.1f}", f"line s{look}")
        toward = 1 if is_right == (use.action in _TO_RING) else -1
        tip = x - toward * 3 if use.action in _TO_RING else start
        canvas.path(f"M{tip:.1f} {y:.1f}l{-7 * toward:.1f} -4v8Z", f"f{look}")
        if use.action in ("arrives", "waits"):
            canvas.disc(x, y, 3.5, f"f{look}")
        elif use.action == "expects":
            canvas.disc(x, y, 3.5, f"line s{look}")
        else:
            canvas.rect(Rect(x - 4, y - 4, 8, 8), f"f{look}")

    def _barriers(self) -> list[WarpRing]:
        return [ring for ring in self.found.barriers if ring.line in self.grid.rings]

    def _is_barrier(self, ring: WarpRing) -> bool:
        return any(ring is one for one in self.found.barriers)

    def _is_in_vain(self, ring: WarpRing) -> bool:
        return self.found.is_traced and bool(ring.by("waits")) and not ring.by("arrives")

    def _legend(self) -> None:
        canvas, grid = self.canvas, self.grid
        y = grid.height - 34
        x = 24.0
        items = (
            ("square", "buffer: written, read"),
            ("full", "barrier: a wait for data"),
            ("empty", "barrier: a wait for a free slot; the first one passes"),
            ("off", "from before, or to the next iteration"),
        )
        barriers = self._barriers()
        if any(not self._state(ring) for ring in barriers):
            items = (*items, ("unknown", "barrier: not known which"))
        if not grid.rings:
            canvas.text(x, grid.height - 16, "The partitions share no buffer and no barrier.", look="m")
            return
        for kind, text in items:
            if kind == "square":
                canvas.rect(Rect(x + 2, y - 8, 8, 8), "t")
            elif kind == "off":
                canvas.path(f"M{x - 6:.1f} {y - 4:.1f}h18", "off")
            else:
                self._mark(x + 6, y - 4, {"full": _FULL, "empty": _EMPTY}.get(kind, ""))
            x += 18 + canvas.text(x + 18, y, text, look="m", size=LEAST) + 20
        vain = [ring.value for ring in barriers if self._is_in_vain(ring)]
        text = "×3: slots; /2: arrivals per phase, if not one; phase 0,1…: alternates each time around the ring"
        if vain:
            canvas.text(24, y + 18, f"Nothing in this text arrives at {', '.join(vain)}.", look="bad", size=12)
        else:
            canvas.text(24, y + 18, text, look="m", size=LEAST)
        if grid.left_out:
            more = f"{grid.left_out} more operations are not drawn"
            canvas.text(grid.width - 24, y + 18, more, look="warn", size=LEAST, anchor="end")


def _lines(numbers: Sequence[str]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


_BAND = 22.0
_ALONE = 212.0
_LEAST_WIDTH, _LEAST_HEIGHT = 1280.0, 720.0
_MARGIN = 24.0
_GAP = 10.0
_RING = 30.0
_LEAST_CARD = 112.0
_LANE = 182.0
_TOP, _BELOW = 74.0, 58.0
_CARD_LINE = 14.0
_MOST_ROW, _LEAST_ROW = 30.0, 16.0
_MOST_DRAWN = 160


@dataclass(frozen=True, slots=True)
class _Card:
    """A lane, or the rings of a channel, with the room for what it is called."""

    area: Rect
    partition: WarpPartition | None
    channel: WarpChannel | None


@dataclass(frozen=True, slots=True)
class Row:
    top: float
    part: Part
    event: WarpEvent
    is_first: bool
    """Whether a title stands above it."""


@dataclass(frozen=True, slots=True)
class Grid:
    width: float
    height: float
    cards: tuple[_Card, ...]
    rings: Mapping[int, float]
    """Line of the allocation -> the x of its line."""
    rows: tuple[Row, ...]
    row: float
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
        return max((one.top + self.row for one in self.rows), default=self.cards[0].area.bottom + _ALONE)


def grid_of(found: WarpSpecialization) -> Grid:
    channels = channels_of(found)
    events = events_of(found)
    order = _order(found, channels)
    widths = [_LANE if isinstance(one, WarpPartition) else _width(one) for one in order]
    lines = max((len(one.barriers) + 2 * len(one.buffers) for one in channels), default=3)
    card = max(lines, 4) * _CARD_LINE + 12
    shown = events[:_MOST_DRAWN]
    bands = len({one.part for one in shown}) * _BAND
    levels = _levels(shown, order)
    count = max(levels, default=-1) + 1
    wide = sum(widths) + _GAP * (len(order) - 1) + 2 * _MARGIN
    high = _TOP + card + 8 + bands + _LEAST_ROW * count + _BELOW
    height, width = max(_LEAST_HEIGHT, high, wide * 9 / 16), _LEAST_WIDTH
    if not shown:
        height = _TOP + card + _ALONE + _BELOW
    width = max(width, wide, height * 16 / 9)
    lanes = sum(isinstance(one, WarpPartition) for one in order)
    widths = [
        one + (min((width - wide) / lanes, 90.0) if isinstance(item, WarpPartition) else 0)
        for item, one in zip(order, widths, strict=True)
    ]
    gap = _GAP + min(max(width - 2 * _MARGIN - sum(widths) - _GAP * (len(order) - 1), 0) / max(len(order) - 1, 1), 60)
    cards: list[_Card] = []
    rings: dict[int, float] = {}
    x = (width - sum(widths) - gap * (len(order) - 1)) / 2
    for item, own in zip(order, widths, strict=True):
        area = Rect(x, _TOP, own, card)
        if isinstance(item, WarpPartition):
            cards.append(_Card(area, item, None))
        else:
            cards.append(_Card(area, None, item))
            step = own / len(item.rings)
            rings |= {one.line: x + step * (at + 0.5) for at, one in enumerate(item.rings)}
        x += own + gap
    row = min(max((height - _TOP - card - 8 - bands - _BELOW) / max(count, 1), _LEAST_ROW), _MOST_ROW)
    rows: list[Row] = []
    top, last = _TOP + card + 8, ""
    for level, own in zip(levels, shown, strict=True):
        is_first = own.part != last
        top, last = top + (_BAND if is_first else 0), own.part
        rows.append(Row(top + level * row, own.part, own, is_first))
    return Grid(width, height, tuple(cards), rings, tuple(rows), row, len(events) - len(rows))


def _order(found: WarpSpecialization, channels: Sequence[WarpChannel]) -> list[WarpPartition | WarpChannel]:
    """Lanes in the order of the text, each channel behind the lane in the middle of those that use it."""
    names = [one.name for one in found.partitions]
    behind: dict[int, list[WarpChannel]] = {}
    for channel in channels:
        places = [names.index(use.partition) for ring in channel.rings for use in ring.uses if use.partition in names]
        middle = floor((min(places) + max(places)) / 2) if places else 0
        behind.setdefault(min(middle, max(len(names) - 2, 0)), []).append(channel)
    return [item for place, one in enumerate(found.partitions) for item in (one, *behind.get(place, ()))]


def _levels(shown: Sequence[WarpEvent], order: Sequence[WarpPartition | WarpChannel]) -> list[int]:
    """The row of each operation: below those of its partition and rings, beside others if its lines meet none."""
    places = {one.name: place for place, one in enumerate(order) if isinstance(one, WarpPartition)}
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
    for event in shown:
        if event.part != part:
            begin, part = len(taken), event.part
        touched = [(line, rings[line]) for line, _ in event.touched if line in rings]
        own = [places.get(event.partition, 0), *(place for _, place in touched)]
        crossed = set(range(min(own), max(own) + 1))
        keys = [(event.partition or "default", 0), *(("", line) for line, _ in touched)]
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
