"""The loop of a poster: which copies, waits and dots run in each turn, and the slots of shared memory meanwhile."""

from __future__ import annotations

from irscope.analysis.in_flight.model import BEFORE, InFlight, Ring, Stay
from irscope.render.canvas import LEAST, TILES, Canvas, Rect, width_of
from irscope.render.poster.lanes import key_of, lanes_of, names_of
from irscope.render.poster.scale import Column, Scale, scale_of
from irscope.render.text.figures import short_name

__all__ = ["draw_loop", "title_of"]

_LABELS = 143.0
"""Pixels for the names of the lanes."""
_PARTITIONS = 78.0
"""Pixels for the names of partitions."""
_ROW, _LEAST_ROW = 22.0, 15.0
"""Pixels of a lane, and of a slot; at least."""
_GAP = 3.0
_NOTHING_AHEAD = "the loop: nothing is begun ahead"


def draw_loop(canvas: Canvas, area: Rect, flight: InFlight) -> float:
    """Draw a loop; returns how far down it goes."""
    lanes, of_step, more = lanes_of(flight)
    rings = [ring for ring in flight.rings if _is_drawn(ring)]
    if flight.partitions:
        # What holds most first: there is seldom room for all.
        rings.sort(key=lambda ring: -ring.slots)
    labels = _LABELS + (_PARTITIONS if flight.partitions else 0)
    scale = scale_of(flight, of_step, area.left + labels, area.width - labels)
    y = top = _columns(canvas, area, flight, scale)
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
    names = names_of(flight)
    for ring in rings:
        if y + ring.slots * row + 22 > area.bottom + 6:
            left_out += 1
            continue
        name = names[ring.value]
        y = _ring(canvas, flight, scale, (ring, name), Rect(area.left, y + 4, labels, row)) + 4
    _turn_lines(canvas, scale, top, y - 4)
    if not rings and not more:
        return y
    left = area.left + (labels - _PARTITIONS if flight.partitions else labels)
    return _legend(canvas, Rect(left, y, area.right - left, 18), flight, (left_out, more))


def _partition(
    canvas: Canvas, area: Rect, flight: InFlight, names: list[str], number: int, y: float, row: float
) -> None:
    """The name of a lane's partition beside its first one, its warps beside the second."""
    own = next((one for one in flight.partitions if one.name == names[number]), None)
    at = number - names.index(names[number])
    if at == 0:
        if number:
            canvas.path(f"M{area.left:.1f} {y - _GAP / 2:.1f}H{area.right:.1f}", "line")
        canvas.text(area.left, y + row / 2 + 4, names[number], size=LEAST, room=_PARTITIONS - 6)
    elif at == 1 and own is not None and own.warps is not None:
        text = f"{own.warps} warp{'s' * (own.warps > 1)}"
        canvas.text(area.left, y + row / 2 + 4, text, look="m", size=LEAST, room=_PARTITIONS - 6)


def _is_drawn(ring: Ring) -> bool:
    return len(ring.stays) > 1 and any(stay.read for stay in ring.stays)


def _columns(canvas: Canvas, area: Rect, flight: InFlight, scale: Scale) -> float:
    """The phases and the turns above the lanes; returns where they end."""
    y = area.top
    phases = _phases(flight)
    free = area.left
    """Where the last name ends."""
    for name in dict.fromkeys(phases.values()):
        columns = [one for one in scale.columns if phases[one.turn] == name]
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


def _turn_name(flight: InFlight, column: Column) -> str:
    if not flight.line:
        return ""
    if column.turn == BEFORE:
        return "before" if column.width > 48 else ""
    if flight.turns is not None and column.turn >= flight.turns:
        return "behind" if column.width > 48 else ""
    return f"turn {column.turn}" if column.width > 50 else str(column.turn)


def _phases(flight: InFlight) -> dict[int, str]:
    """Of each turn whether the pipeline fills, is full, or empties."""
    turns = sorted({step.turn for step in flight.steps})
    if not flight.line:
        return dict.fromkeys(turns, "the whole kernel, in its order")
    begun = [step for step in flight.steps if step.kind in ("copy", "load") and step.turn != BEFORE]
    ahead = {key_of(step) for step in flight.steps if step.turn == BEFORE} & {key_of(step) for step in begun}
    last = max((step.turn for step in begun), default=turns[-1])
    before, inside, behind = (
        ("prologue", "steady state", "epilogue") if ahead else ("before it", _NOTHING_AHEAD, "behind it")
    )
    found: dict[int, str] = {}
    for turn in turns:
        own = [step for step in begun if step.turn == turn]
        empties = (flight.turns is not None and turn >= flight.turns) or (bool(own) and all(one.is_off for one in own))
        empties |= bool(flight.partitions) and flight.turns is not None and turn > last
        found[turn] = before if turn == BEFORE else behind if empties else inside
    return found


def _cell(canvas: Canvas, flight: InFlight, scale: Scale, number: int, row: Rect) -> None:
    step = flight.steps[number]
    left = scale.left(number)
    if left is None:
        return
    tip = f"{step.operation} {step.value} {short_name(step.place)}".strip()
    box = Rect(left + 0.5, row.top + 1, row.width - 1, row.height - 2)
    if step.is_off:
        canvas.rect(box, "off", radius=3, tip=f"{tip}: masked off")
        return
    if step.until is not None and step.until > number and step.kind in ("dot", "load"):
        right = scale.near(step.until)
        canvas.rect(
            Rect(box.right, row.top + row.height / 2 - 2, max(right - box.right, 0), 4), "soft", tip=f"{tip}: in flight"
        )
    look = f"f{step.tile % TILES}" if step.tile is not None else "soft"
    canvas.rect(box, f"{look} cell", radius=3, tip=tip)
    if step.tile is not None:
        _number(canvas, box, step.tile)


def _number(canvas: Canvas, box: Rect, tile: int) -> None:
    text = str(tile)
    if len(text) * LEAST * 0.6 <= box.width:
        middle = box.left + box.width / 2
        canvas.text(middle, box.top + box.height / 2 + 4, text, look=f"x{tile % TILES}", size=LEAST, anchor="middle")


def _count(canvas: Canvas, area: Rect, flight: InFlight, scale: Scale, y: float) -> float:
    """How many copies are in flight at the end of each column."""
    canvas.text(area.left, y + 13, "copies in flight", look="m", size=LEAST)
    for column in scale.columns:
        last = max(column.marks)
        text = str(flight.flying(last, "copy"))
        canvas.text(column.left + column.width / 2, y + 13, text, look="t", size=LEAST, anchor="middle")
    return y + 18


def _ring(canvas: Canvas, flight: InFlight, scale: Scale, named: tuple[Ring, str], first: Rect) -> float:
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
    canvas: Canvas, flight: InFlight, scale: Scale, stay: Stay, following: Stay | None, top: float, height: float
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
        _number(canvas, box, stay.tile)
    for step in stay.read:
        left = scale.left(step)
        if left is not None and left < stop:
            canvas.path(f"M{left + 1:.1f} {top + height:.1f}h{scale.cell - 2:.1f}", "edge")


def _turn_lines(canvas: Canvas, scale: Scale, top: float, bottom: float) -> None:
    for column in scale.columns[1:]:
        canvas.path(f"M{column.left:.1f} {top:.1f}V{bottom:.1f}", "line")


def _legend(canvas: Canvas, area: Rect, flight: InFlight, left_out: tuple[int, int]) -> float:
    """What the looks mean, and how many rings and lanes are not drawn."""
    x, y = area.left, area.top
    looks = [("f0", "tile 0 in its slot"), ("edge", "read")] if any(map(_is_drawn, flight.rings)) else []
    if any(step.kind == "copy" for step in flight.steps):
        looks.insert(0, ("way", "on its way into the slot"))
    if any(step.is_off for step in flight.steps):
        looks.append(("off", "masked off"))
    for look, name in looks:
        box = Rect(x, y + 3, 16, 11)
        if look == "edge":
            canvas.path(f"M{x:.1f} {y + 12:.1f}h16", "edge")
        else:
            canvas.rect(box, look)
        x += 22 + canvas.text(x + 22, y + 13, name, look="m", size=LEAST) + 16
    names = (
        f"{count} more {name}{'s' * (count > 1)}"
        for count, name in zip(left_out, ("ring", "lane"), strict=True)
        if count
    )
    canvas.text(x, y + 13, ", ".join(names), look="m", size=LEAST, room=area.right - x)
    return y + 18


def title_of(flight: InFlight) -> tuple[str, str]:
    """The title of the panel, and what it is of."""
    if not flight.line:
        return "The kernel from load to store", _program(flight)
    if flight.partitions:
        return "Partitions, turn by turn", _of_partitions(flight)
    place = short_name(flight.place)
    turns = f"{_times(flight.turns)} in {_program(flight)}" if flight.turns is not None else "turns not known"
    if flight.turns is None and flight.launch_turns is not None:
        turns = f"as if it turned often: in this launch it {_times(flight.launch_turns)}"
    nested = "in the first turn of the loop around it" if flight.is_nested else ""
    several = f"1 of {flight.loops} loops" if flight.loops > 1 else ""
    return "The loop, turn by turn", " · ".join(filter(None, (place, turns, several, nested, flight.note)))


def _of_partitions(flight: InFlight) -> str:
    place = short_name(flight.place)
    turns = f"{_times(flight.turns)} in {_program(flight)}" if flight.turns is not None else "its first turns"
    return " · ".join(filter(None, (place, turns, "each as far as barriers let it", flight.note)))


def _times(turns: int) -> str:
    return {0: "never turns", 1: "turns once", 2: "turns twice"}.get(turns, f"turns {turns} times")


def _program(flight: InFlight) -> str:
    return f"program {','.join(map(str, flight.program))}" if flight.program is not None else "any program"
