"""The loop of a poster: the lanes of its operations, the axis of its iterations, and the slots of shared memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.in_flight.model import BEFORE, ExecutedStep, InFlight, Ring, Stay
from irscope.render.canvas import LEAST, TILES, Canvas, Rect, width_of
from irscope.render.text.tables import counted, short_name

_CELL = 15.5
_WIDEST, _WIDEST_ALONE = 48.0, 118.0
"""At most; in a kernel without a loop."""
_LEFT_OUT = 26.0
_SHARED = ("copy", "load", "write", "read")
"""Kinds whose steps stand at one place if they follow one another on different lanes."""


@dataclass(frozen=True, slots=True)
class _Column:
    """An iteration, or what is before or behind the loop."""

    iteration: int
    left: float
    width: float
    places: dict[int, int]
    """Step that is drawn -> its place in the column, from 0."""
    marks: dict[int, int]
    """The same of all steps whose place is known."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where each step that is shown stands."""

    columns: tuple[_Column, ...]
    cell: float
    gap: float | None
    """The left edge of the room for iterations that are left out; None if there are none."""
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


def _scale_of(flight: InFlight, lanes: Sequence[int], left: float, room: float) -> _Scale:
    """The scale of a loop: as many iterations as there is room for, the first and the last ones.

    `lanes`: the lane of each step; a step with a lane below 0 is not drawn.
    """
    iterations: dict[int, list[int]] = {}
    for number, step in enumerate(flight.steps):
        if lanes[number] >= 0 or flight.partitions:
            iterations.setdefault(step.iteration, []).append(number)
    marks = {iteration: _places(flight.steps, steps, lanes) for iteration, steps in iterations.items()}
    places = {iteration: {one: at for one, at in own.items() if lanes[one] >= 0} for iteration, own in marks.items()}
    places = {iteration: own for iteration, own in places.items() if own}
    iterations = {iteration: iterations[iteration] for iteration in places}
    chosen, cut = _chosen(sorted(iterations), places, room, with_end=flight.iterations is not None or not flight.line)
    cells = sum(_width(places[iteration]) for iteration in chosen)
    cell = min((room - (_LEFT_OUT if cut else 0)) / max(cells, 1), _WIDEST if flight.line else _WIDEST_ALONE)
    columns: list[_Column] = []
    gap = None
    x = left
    for at, iteration in enumerate(chosen):
        if at and cut and iteration > chosen[at - 1] + 1 and chosen[at - 1] >= 0:
            gap = x
            x += _LEFT_OUT
        width = _width(places[iteration]) * cell
        columns.append(_Column(iteration, x, width, places[iteration], marks[iteration]))
        x += width
    if cut and gap is None:
        gap, x = x, x + _LEFT_OUT
    return _Scale(tuple(columns), cell, gap, x)


def _places(steps: Sequence[ExecutedStep], numbers: Sequence[int], lanes: Sequence[int]) -> dict[int, int]:
    """Each partition in its own order, a wait behind what it waits for; accesses of one kind together."""
    found: dict[int, int] = {}
    free: dict[str, int] = {}
    last: dict[str, list[int]] = {}
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
    iterations: list[int], places: dict[int, dict[int, int]], room: float, *, with_end: bool
) -> tuple[list[int], bool]:
    """The iterations shown, and whether some are left out: in the middle, or those at an end that is not known."""

    def needed(chosen: Sequence[int]) -> float:
        return sum(_width(places[iteration]) for iteration in chosen) * _CELL

    if with_end and needed(iterations) <= room:
        return iterations, False
    before = [iteration for iteration in iterations if iteration == BEFORE]
    inner = [iteration for iteration in iterations if iteration != BEFORE]
    tail = inner[-2:] if with_end else []
    head = inner[: len(inner) - len(tail)]
    while len(head) > 1 and needed([*before, *head, *tail]) + _LEFT_OUT > room:
        head.pop()
    return [*before, *head, *tail], True


_MOST = 11
_MOST_OF_PARTITIONS = 9
"""Lanes of partitions: what they hand over needs room below."""
# %a_126      %acc_23#0
_NUMBERED = re.compile(r"(?<=\w)_\d+$|#\d+$")
_ORDER = ("load", "copy", "write", "read", "wait", "dot", "reduce", "convert", "tensor", "store", "atomic")
_OTHERS = {
    "wait": "wait",
    "reduce": "reduce",
    "convert": "convert",
    "tensor": "tensor memory",
    "store": "store",
    "atomic": "atomic",
}
_WEIGHTY = ("copy", "dot", "wait", "load", "store", "atomic", "write", "reduce", "tensor", "read", "convert")
"""Kinds of steps, those first that have a lane where there are too many."""
_IN_PARTITIONS = ("copy", "dot", "tensor", "load", "store", "atomic", "write", "read")
"""The same of those that partitions are drawn with."""
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Lane:
    name: str
    line: str
    """`:33`, the line of Python; or an empty string."""
    partition: str = ""


def lanes_of(flight: InFlight) -> tuple[list[_Lane], list[int], int]:
    """The lanes, for each step its lane, or -1 where there is none for it, and how many lanes are left out."""
    keys = _keys(flight)
    rows = list(zip(flight.steps, keys, strict=True))
    # What runs before the loop alone has its place in the code, not in a picture of iterations.
    wanted = {key for step, key in rows if step.iteration != BEFORE or not flight.line} - {("", "wait", "")}
    found = [key for key in dict.fromkeys(keys) if key in wanted]
    if flight.partitions:
        found = [key for key in found if key[1] in _IN_PARTITIONS]
        order = _lanes_of_partitions(found)
    else:
        order = sorted(sorted(found, key=lambda key: _WEIGHTY.index(key[1]))[:_MOST], key=_rank)
    lanes: list[_Lane] = []
    for partition, kind, name in order:
        places = {one.place for one, key in rows if key == (partition, kind, name)}
        what = "tmem" if kind == "tensor" and name else _OTHERS.get(kind, kind)
        shown = f"{what} {name if kind != 'dot' else ''}".strip()
        line = next(iter(places)).rpartition(":")[2]
        lanes.append(_Lane(shown, f":{line}" if line and len(places) == 1 and kind != "wait" else "", partition))
    return lanes, [order.index(key) if key in order else -1 for key in keys], len(found) - len(order)


def _lanes_of_partitions(keys: Sequence[_Key]) -> list[_Key]:
    """Those that hand over most, each partition's together in its order: first what copies, then what multiplies."""

    def rank(key: _Key) -> int:
        return _IN_PARTITIONS.index(key[1])

    drawn = sorted(keys, key=rank)[:_MOST_OF_PARTITIONS]
    first = {name: min(rank(key) for key in drawn if key[0] == name) for name, _, _ in drawn}
    return sorted(drawn, key=lambda key: (first[key[0]], key[0], keys.index(key)))


def _names_of(flight: InFlight) -> dict[str, str]:
    """Name of a ring in the TTGIR -> as it is shown: without its number, unless only that tells it from others."""
    plain = Counter(_plain(ring.value) for ring in flight.rings)
    return {ring.value: ring.value if plain[_plain(ring.value)] > 1 else _plain(ring.value) for ring in flight.rings}


def _plain(value: str) -> str:
    return _NUMBERED.sub("", _NUMBERED.sub("", value))


def _keys(flight: InFlight) -> list[_Key]:
    """The lane of each step: its partition and kind, and what it is about."""
    if flight.partitions:
        names, default = _names_of(flight), flight.partitions[0].name
        return [
            (one.partition or default, one.kind, one.place if one.kind == "dot" else names.get(one.value, ""))
            for one in flight.steps
        ]
    awaited: dict[int, str] = {}
    for step in flight.steps:
        if step.until is not None and step.kind in ("copy", "dot"):
            awaited[flight.steps[step.until].line] = step.kind
    return [
        ("", "wait", f"for {awaited[one.line]}" if one.line in awaited else "") if one.kind == "wait" else _key_of(one)
        for one in flight.steps
    ]


def _rank(key: _Key) -> float:
    # The wait for a dot stands below it.
    return _ORDER.index("dot") + 0.5 if key[1:] == ("wait", "for dot") else _ORDER.index(key[1])


def _key_of(step: ExecutedStep) -> _Key:
    """The lane of a step that does not wait."""
    if step.kind in _OTHERS:
        return "", step.kind, ""
    if step.kind == "dot":
        return "", step.kind, step.place
    return "", step.kind, _plain(step.value)


_LABELS = 143.0
_PARTITIONS = 78.0
_ROW, _LEAST_ROW = 22.0, 15.0
"""Pixels of a lane, and of a slot; at least."""
_GAP = 3.0
_NOTHING_AHEAD = "the loop: no load is issued ahead"


def draw_loop(canvas: Canvas, area: Rect, flight: InFlight) -> float:
    """Draw a loop; returns how far down it goes."""
    lanes, of_step, more = lanes_of(flight)
    rings = [ring for ring in flight.rings if _is_drawn(ring)]
    if flight.partitions:
        # What holds most first: there is seldom room for all.
        rings.sort(key=lambda ring: -ring.slots)
    labels = _LABELS + (_PARTITIONS if flight.partitions else 0)
    scale = _scale_of(flight, of_step, area.left + labels, area.width - labels)
    y = top = _columns(canvas, area, flight, scale)
    first = len(canvas.parts)
    rows = len(lanes) + sum(ring.slots for ring in rings)
    fixed = _GAP * len(lanes) + 18 + 8 * len(rings) + 22
    row = min(max((area.bottom - y - fixed) / max(rows, 1), _LEAST_ROW), _ROW)
    for number, lane in enumerate(lanes):
        if flight.partitions:
            _partition(canvas, area, flight, [one.partition for one in lanes], number, y, row)
        left = area.left + labels - _LABELS
        used = canvas.text(left, y + row / 2 + 4, lane.name, size=LEAST, room=_LABELS - 34)
        canvas.text(left + used + 5, y + row / 2 + 4, lane.line, look="m", size=LEAST, room=_LABELS - used - 9)
        canvas.rect(Rect(area.left + labels, y, scale.right - area.left - labels, row), "band")
        for step, own in enumerate(of_step):
            if own == number:
                _cell(canvas, flight, scale, step, Rect(0, y, scale.cell, row))
        y += row + _GAP
    if any(one.kind == "copy" for one in flight.steps):
        y = _count(canvas, area, flight, scale, y)
    left_out = 0
    names = _names_of(flight)
    for ring in rings:
        if y + ring.slots * row + 22 > area.bottom + 6:
            left_out += 1
            continue
        name = names[ring.value]
        y = _ring(canvas, flight, scale, (ring, name), Rect(area.left, y + 4, labels, row)) + 4
    _iteration_lines(canvas, scale, top, y - 4)
    # Bands lie below lines, and these below what is drawn on both.
    canvas.parts[first:] = sorted(canvas.parts[first:], key=_layer)
    if not rings and not more:
        return y
    left = area.left if flight.partitions else area.left + labels
    return _legend(canvas, Rect(left, y, area.right - left, 18), flight, (left_out, more))


def _partition(
    canvas: Canvas, area: Rect, flight: InFlight, names: list[str], number: int, y: float, row: float
) -> None:
    own = next((one for one in flight.partitions if one.name == names[number]), None)
    at = number - names.index(names[number])
    if at == 0:
        if number:
            canvas.path(f"M{area.left:.1f} {y - _GAP / 2:.1f}H{area.right:.1f}", "line")
        canvas.text(area.left, y + row / 2 + 4, names[number], size=LEAST, room=_PARTITIONS - 6)
    elif at == 1 and own is not None and own.warps is not None:
        canvas.text(area.left, y + row / 2 + 4, counted(own.warps, "warp"), look="m", size=LEAST, room=_PARTITIONS - 6)


def _is_drawn(ring: Ring) -> bool:
    return len(ring.stays) > 1 and any(stay.read for stay in ring.stays)


def _columns(canvas: Canvas, area: Rect, flight: InFlight, scale: _Scale) -> float:
    """The phases and the iterations above the lanes; returns where they end."""
    y = area.top
    phases = _phases(flight)
    free = area.left
    for name in dict.fromkeys(phases.values()):
        columns = [one for one in scale.columns if phases[one.iteration] == name]
        if not columns:
            continue
        left, right = columns[0].left, columns[-1].left + columns[-1].width
        canvas.path(f"M{left + 1:.1f} {y + 19:.1f}V{y + 15:.1f}H{right - 1:.1f}V{y + 19:.1f}", "axis")
        name = name if len(name) * LEAST * 0.61 < max(right - left, 90) else name.partition(":")[0]
        wide = width_of(name, LEAST)
        at = max((left + right - wide) / 2 if right - left > wide else left + 1, free)
        free = min(at, area.right - wide)
        free += canvas.text(free, y + 11, name, size=LEAST, room=area.right - free + 1) + 8
    for column in scale.columns:
        name = _turn_name(flight, column)
        canvas.text(column.left + column.width / 2, y + 33, name, look="m", size=LEAST, anchor="middle",
                    room=column.width - 2)  # fmt: skip
    if scale.gap is not None:
        left = scale.gap
        canvas.text(left + 13, y + 33, "⋯", look="m", size=LEAST, anchor="middle")
    return y + 40


def _turn_name(flight: InFlight, column: _Column) -> str:
    if not flight.line:
        return ""
    if column.iteration == BEFORE:
        return "before" if column.width > 48 else ""
    if flight.iterations is not None and column.iteration >= flight.iterations:
        return "after" if column.width > 48 else ""
    return f"iteration {column.iteration}" if column.width > 78 else str(column.iteration)


def _phases(flight: InFlight) -> dict[int, str]:
    iterations = sorted({step.iteration for step in flight.steps})
    if not flight.line:
        return dict.fromkeys(iterations, "the whole kernel, in its order")
    begun = [step for step in flight.steps if step.kind in ("copy", "load") and step.iteration != BEFORE]
    ahead = {_key_of(step) for step in flight.steps if step.iteration == BEFORE} & {_key_of(step) for step in begun}
    last = max((step.iteration for step in begun), default=iterations[-1])
    before, inside, behind = ("before it", _NOTHING_AHEAD, "after it")
    if ahead:
        before, inside, behind = "prologue", "steady state", "epilogue"
    found: dict[int, str] = {}
    for iteration in iterations:
        own = [step for step in begun if step.iteration == iteration]
        empties = (flight.iterations is not None and iteration >= flight.iterations) or (
            bool(own) and all(one.is_off for one in own)
        )
        empties |= bool(flight.partitions) and flight.iterations is not None and iteration > last
        found[iteration] = before if iteration == BEFORE else behind if empties else inside
    return found


def _cell(canvas: Canvas, flight: InFlight, scale: _Scale, number: int, row: Rect) -> None:
    step = flight.steps[number]
    left = scale.left(number)
    if left is None:
        return
    tip = f"{step.operation} {step.value} {short_name(step.place)}".strip()
    box = Rect(left + 0.5, row.top + 1, row.width - 1, row.height - 2)
    if step.is_off:
        canvas.rect(box, "off", radius=3, tip=f"{tip}: masked off")
        return
    if step.until is not None and _is_in_flight(number, step):
        across = max(scale.near(step.until) - box.right, 0)
        canvas.path(f"M{box.right:.1f} {row.top + row.height / 2:.1f}h{across:.1f}", "flight", tip=f"{tip}: in flight")
    look = f"f{step.tile % TILES}" if step.tile is not None else "soft"
    canvas.rect(box, f"{look} cell", radius=3, tip=tip)
    if step.tile is not None:
        canvas.within(box, str(step.tile), f"x{step.tile % TILES}")


def _is_in_flight(number: int, step: ExecutedStep) -> bool:
    """Whether a line shows how long a step takes: of a copy its slots do."""
    return step.until is not None and step.until > number + 1 and step.kind in ("dot", "load")


def _count(canvas: Canvas, area: Rect, flight: InFlight, scale: _Scale, y: float) -> float:
    canvas.text(area.left, y + 13, "copies in flight", look="m", size=LEAST)
    for column in scale.columns:
        last = max(column.marks)
        text = str(flight.flying(last, "copy"))
        canvas.text(column.left + column.width / 2, y + 13, text, look="t", size=LEAST, anchor="middle")
    return y + 18


def _ring(canvas: Canvas, flight: InFlight, scale: _Scale, named: tuple[Ring, str], first: Rect) -> float:
    """The slots of a ring below one another; returns where they end. `first`: the room of the first one's name."""
    (ring, shown), row = named, first.height
    for slot in range(ring.slots):
        top = first.top + slot * row
        middle = top + row / 2 + 3
        if not slot:
            canvas.text(first.left, middle, shown, size=LEAST, room=first.width - 56)
        if slot == 1:
            canvas.text(first.left, middle, ring.type, look="m", size=LEAST, room=first.width - 56)
        name = f"slot {slot}" if ring.slots > 1 else ring.type
        canvas.text(first.right - 8, middle, name, look="m", size=LEAST, anchor="end", room=first.width - 40)
        canvas.rect(Rect(first.right, top, scale.right - first.right, row - 2), "band")
        own = [stay for stay in ring.stays if stay.slot == slot]
        for stay, following in zip(own, [*own[1:], None], strict=False):
            _stay(canvas, flight, scale, stay, following, top, row - 2)
    return first.top + ring.slots * row


def _stay(
    canvas: Canvas, flight: InFlight, scale: _Scale, stay: Stay, following: Stay | None, top: float, height: float
) -> None:
    """A tile in its slot: on its way, there, and read."""
    end = len(flight.steps)
    free = stay.free if stay.free is not None else (max(stay.read) if stay.read else end)
    begin = scale.near(stay.written)
    landed = scale.near(stay.landed if stay.landed is not None else free)
    stop = scale.near(free)
    stop = max(stop + (scale.cell if scale.left(free) is not None else 0), begin)
    if following is not None:
        stop = min(stop, scale.near(following.written))
    landed = min(max(landed, begin), stop)
    if stop <= begin:
        return
    look = f"f{stay.tile % TILES}"
    tip = f"tile {stay.tile} in slot {stay.slot}"
    if landed > begin:
        canvas.rect(Rect(begin, top, landed - begin, height), "way", tip=f"{tip}: on its way")
        canvas.rect(Rect(begin, top, 4, height), look)
    if stop > landed:
        box = Rect(landed, top, stop - landed, height)
        canvas.rect(box, f"{look} cell", radius=2, tip=f"{tip}: there")
        canvas.within(box, str(stay.tile), f"x{stay.tile % TILES}")
    for step in stay.read:
        left = scale.left(step)
        if left is not None and left < stop:
            canvas.path(f"M{left + 1:.1f} {top + height:.1f}h{scale.cell - 2:.1f}", "edge")


def _layer(part: str) -> int:
    return next((layer for layer, look in enumerate(("band", "line")) if f'class="{look}"' in part), 2)


def _iteration_lines(canvas: Canvas, scale: _Scale, top: float, bottom: float) -> None:
    for column in scale.columns[1:]:
        canvas.path(f"M{column.left:.1f} {top:.1f}V{bottom:.1f}", "line")


def _legend(canvas: Canvas, area: Rect, flight: InFlight, left_out: tuple[int, int]) -> float:
    """What the looks mean, and how many buffers and rows are not drawn."""
    looks = [("f0", "tile in slot"), ("edge", "read")] if any(map(_is_drawn, flight.rings)) else []
    if any(step.kind == "copy" for step in flight.steps):
        looks.insert(0, ("way", "copy in flight"))
    if any(_is_in_flight(number, step) for number, step in enumerate(flight.steps)):
        looks.insert(0, ("flight", "in flight"))
    if any(step.is_off for step in flight.steps):
        looks.append(("off", "masked off"))
    if any(step.tile is None and not step.is_off for step in flight.steps):
        looks.append(("soft", "no tile"))
    x, y = canvas.legend(area.left, area.top + 13, looks)
    names = [counted(count, f"more {name}") for count, name in zip(left_out, ("buffer", "row"), strict=True) if count]
    canvas.text(x, y, ", ".join(names), look="m", size=LEAST, room=area.right - x)
    return area.top + 18


def title_of(flight: InFlight) -> tuple[str, str]:
    if not flight.line:
        return "The kernel from load to store", _program(flight)
    if flight.partitions:
        return "Partitions, iteration by iteration", _of_partitions(flight)
    place = short_name(flight.place)
    iterations = _iterations(flight, "trip count not known")
    if flight.iterations is None and flight.launch_iterations is not None:
        iterations = f"drawn for many iterations; the launch has {flight.launch_iterations}"
    nested = "in the first iteration of the enclosing loop" if flight.is_nested else ""
    several = f"1 of {flight.loops} loops" if flight.loops > 1 else ""
    return "The loop, iteration by iteration", " · ".join(
        filter(None, (place, iterations, several, nested, flight.note))
    )


def _iterations(flight: InFlight, unknown: str) -> str:
    return f"{_times(flight.iterations)} in {_program(flight)}" if flight.iterations is not None else unknown


def _of_partitions(flight: InFlight) -> str:
    place = short_name(flight.place)
    iterations = _iterations(flight, "its first iterations")
    return " · ".join(filter(None, (place, iterations, "each as far as barriers let it", flight.note)))


def _times(iterations: int) -> str:
    return f"{iterations} iteration{'s' * (iterations != 1)}"


def _program(flight: InFlight) -> str:
    return f"program {','.join(map(str, flight.program))}" if flight.program is not None else "any program"
