"""A kernel's memory over time, as text and as SVG: offset upwards, program order to the right, a box per buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from irscope.memory.allocation import AllocatedMemory, Buffer, covered
from irscope.model.capture import Capture, Resources
from irscope.model.plain import picked
from irscope.render.canvas import LEAST, TILES, Canvas, Rect, width_of
from irscope.render.text.tables import short_name, shorten, table

_COLUMNS = 32


def memory_text(
    title: str, allocations: Sequence[AllocatedMemory], *, width: int | None = None, color: bool = False
) -> str:
    """A table for each memory, its buffers in the order of their offsets at the peak first."""
    parts = [_one(title, allocation, width, color) for allocation in allocations]
    return "\n".join(parts)


def headline(allocation: AllocatedMemory) -> str:
    """`98304 of 232448 bytes of shared memory`, and by how much that exceeds the limit."""
    total, limit = allocation.total, allocation.limit
    text = f"{total}{f' of {limit}' if limit is not None else ''} {allocation.unit} of {allocation.space} memory"
    return f"{text}: limit exceeded by {total - limit}" if limit is not None and total > limit else text


def peak_line(allocation: AllocatedMemory) -> str:
    """The peak of the allocation, and the bytes of the total that no buffer has there."""
    step, held = allocation.steps[allocation.peak], allocation.held_at_peak
    where = f" ({place_text(step.place)})" if step.place else ""
    gaps = f"; {allocation.total - held} in gaps" if held < allocation.total else ""
    if gaps and allocation.space == "tensor":
        # Source: "PTX ISA", tcgen05.alloc.
        gaps += " (columns are allocated by powers of two)"
    when = f"{step.operation}{where}, step {step.number} of {len(allocation.steps)}"
    return f"peak: {held} {allocation.unit} allocated at {when}{gaps}"


def owner_text(buffer: Buffer) -> str:
    """What a buffer is, in a few words: `%a 3×128×64×f16`, `scratch 128×128×f16`."""
    if buffer.kind in ("buffer", "barrier"):
        return f"{buffer.value} {buffer.what}" + (" (barriers)" if buffer.kind == "barrier" else "")
    return f"{buffer.kind} {buffer.what}".rstrip() if buffer.kind != "warps" else buffer.what


def place_text(place: str) -> str:
    """`matmul.py:42` of a place."""
    file, _, line = place.rpartition(":")
    return f"{short_name(file)}:{line}" if place else ""


def size_text(buffer: Buffer) -> str:
    """Its size, marked if it is only known to be at most that."""
    return f"{buffer.size}" if buffer.is_exact else f"≤ {buffer.size}"


def _one(title: str, allocation: AllocatedMemory, width: int | None, color: bool) -> str:
    lines = [f"{title}: {headline(allocation)}"]
    if not allocation.buffers:
        return f"{lines[0]}\n"
    lines.append(peak_line(allocation))
    peak = allocation.peak
    rows = [
        [
            one.offset,
            size_text(one),
            "●" if one.is_live(peak) else "",
            owner_text(one),
            one.owner,
            place_text(one.place),
            f"{one.start}–{one.end - 1}",
            _bar(one, len(allocation.steps), peak),
        ]
        for one in sorted(allocation.buffers, key=lambda one: (not one.is_live(peak), one.offset, one.start))
    ]
    head = ["offset", allocation.unit, "at peak", "buffer", "operation", "Python", "steps", "over time"]
    lines.append(table(head, rows, width=width, color=color).rstrip("\n"))
    padded = sum(one.padding for one in allocation.buffers if one.is_live(peak))
    if padded:
        lines.append(f"{padded} of the bytes allocated at the peak are padding inside the layouts.")
    if not all(one.is_exact for one in allocation.buffers):
        lines.append("≤: this Triton does not write the size of scratch: the most that fits there.")
    return "\n".join(lines) + "\n"


def _bar(buffer: Buffer, steps: int, peak: int) -> str:
    scale = _COLUMNS / max(steps, 1)
    first, last = int(buffer.start * scale), max(int((buffer.end - 1) * scale), int(buffer.start * scale))
    cells = ["█" if first <= at <= last else "·" for at in range(_COLUMNS)]
    if buffer.is_live(peak):
        cells[int(peak * scale)] = "▮"
    return "".join(cells)


def memory_json(allocations: Sequence[AllocatedMemory]) -> list[dict[str, Any]]:
    """Memories as plain values: their fields, and what follows from them."""
    return [
        asdict(one)
        | {
            "unit": one.unit,
            "peak": {
                "step": one.peak,
                "held": one.held_at_peak,
                "gaps": one.total - one.held_at_peak,
                "holders": [index for index, held in enumerate(one.buffers) if held.is_live(one.peak)],
            },
        }
        for one in allocations
    ]


_WIDTH = 1280
_LEFT = 104
_RIGHT = 28
_HEIGHT = 360
_STRIP = 56
_LEAST = 4.0
"""Pixels that a box has at least, either way."""
_ROW = 17
_LOOP_ROW = 18


_Attempts = Sequence[tuple[str, Capture | None]]
"""Changes of a launch that does not fit, each with its compile; None where that was refused."""


def attempts_text(tried: _Attempts) -> str:
    if not tried:
        return "Nothing was tried: num_stages is 1 already, and no tl.constexpr of its Python is a tile to halve.\n"
    rows = [[one["change"], one["shared_bytes"], "fits" if one["fits"] else one["problem"]]
            for one in attempts_json(tried)]  # fmt: skip
    return "Tried by compiling:\n" + table(["change", "shared bytes", ""], rows)


def attempts_json(tried: _Attempts) -> list[dict[str, Any]]:
    return [_attempt_json(change, after) for change, after in tried]


def _attempt_json(change: str, after: Capture | None) -> dict[str, Any]:
    failure, resources = (after.failure, after.resources) if after is not None else (None, Resources())
    problem = "" if failure is None else failure.headline if failure.kind == "fit" else failure.why_not_run
    return picked(
        resources, "shared_bytes tensor_memory_columns", change=change, fits=after is not None and failure is None,
        problem=problem if after is not None else "its Python does not compile with that change",
    )  # fmt: skip


def timeline_svg(title: str, allocations: Sequence[AllocatedMemory], theme: str | None = None) -> str:
    """One SVG with a panel for each memory; without a theme it follows the reader's system."""
    canvas = Canvas(theme)
    y = 40.0
    before = 0
    for allocation in allocations:
        panel = _Panel(canvas, allocation, y, before)
        panel.draw(title)
        y = panel.bottom + 44
        before += len(allocation.buffers)
    canvas.height = round(y)
    return canvas.svg(title, ground="on")


class _Panel:
    """One memory: its boxes, the axis of Python lines, the curve of what is held, and the key to the boxes."""

    def __init__(self, canvas: Canvas, allocation: AllocatedMemory, top: float, before: int) -> None:
        self.canvas = canvas
        self.memory = allocation
        self.top = top
        self.before = before
        # Before the first buffer and after the last nothing is held: the axis begins and ends near them.
        start = min((one.start for one in allocation.buffers), default=0)
        end = max((one.end for one in allocation.buffers), default=1)
        margin = max((end - start) // 40, 1)
        self.first, self.last = max(start - margin, 0), min(end + margin, len(allocation.steps))
        over = allocation.limit is not None and allocation.total > allocation.limit
        self.extent = max(allocation.total, 1) * (1.04 if over else 1.0)
        self.loops = [one for one in allocation.loops if one[1] > self.first and one[0] < self.last]
        self.ceiling = top + 56 + _LOOP_ROW * (1 + max(map(self._depth, self.loops), default=-1)) + 8
        self.base = self.ceiling + _HEIGHT
        self.floor = self.base + 46 + _STRIP
        self.key = [f"{number:2}  {self._told(one)}" for number, one in enumerate(allocation.buffers, 1)]
        # In two columns where nothing has to be cut for that.
        self.columns = 1 if any(len(text) > _letters(2) for text in self.key) else 2
        self.rows = -(-len(self.key) // self.columns)
        self.bottom = self.floor + 22 + self.rows * _ROW

    def x(self, step: float) -> float:
        return _LEFT + (step - self.first) / max(self.last - self.first, 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, offset: float) -> float:
        return self.base - offset / self.extent * _HEIGHT

    def draw(self, title: str) -> None:
        memory, canvas = self.memory, self.canvas
        canvas.text(28, self.top, f"{title} · {memory.space} memory", size=19, bold=True)
        canvas.text(28, self.top + 20, f"{headline(memory)} · {peak_line(memory)}", look="m", size=12.5)
        self._offsets()
        for loop in self.loops:
            self._loop(loop)
        for index in self._from_the_largest():
            self._box(index)
        self._limit()
        self._peak()
        self._labels()
        self._lines()
        self._held()
        for index in range(len(self.key)):
            self._key(index)

    def _depth(self, loop: tuple[int, int]) -> int:
        return sum(one != loop and one[0] <= loop[0] and loop[1] <= one[1] for one in self.loops)

    def _loop_area(self, loop: tuple[int, int]) -> Rect:
        left, right = self.x(max(loop[0], self.first)), self.x(min(loop[1], self.last))
        return Rect(left, self.top + 56 + _LOOP_ROW * self._depth(loop), right - left, _LOOP_ROW + 5)

    def _loop(self, loop: tuple[int, int]) -> None:
        area = self._loop_area(loop)
        left, right, top = area.left, area.right, area.bottom - 5
        self.canvas.path(f"M{left:.1f} {top + 5:.1f}V{top:.1f}H{right:.1f}V{top + 5:.1f}", "axis")
        if right - left <= 60:
            return
        middle = (left + right) / 2
        if abs(middle - self._peak_x) < 22:
            middle = self._peak_x + 22
        self.canvas.text(middle, top - 4, "loop", look="m", size=LEAST, anchor="middle")

    def _offsets(self) -> None:
        marks = sorted({0, self.memory.total, *(one.offset for one in self.memory.buffers)}, reverse=True)
        middle = self.base - _HEIGHT / 2
        self.canvas.text(36, middle, f"offset, {self.memory.unit} →", look="m", size=LEAST, anchor="middle", angle=-90)
        free = -1e9
        for offset in marks:
            y = self.y(offset)
            if y - free >= 12 and (offset == 0 or self.base - y >= 12):
                free = y
                self.canvas.line(_LEFT, y, _WIDTH - _RIGHT, y, "grid")
                self.canvas.text(_LEFT - 8, y + 4, str(offset), look="m", size=LEAST, anchor="end")

    def _area(self, one: Buffer) -> Rect:
        """A buffer's box, which never leaves the plot."""
        left, right = self.x(max(one.start, self.first)), self.x(min(one.end, self.last))
        bottom, top = self.y(one.offset), self.y(one.stop)
        width, height = max(right - left, _LEAST), max(bottom - top, _LEAST)
        return Rect(min(left, _WIDTH - _RIGHT - width), max(bottom - height, self.ceiling), width, height)

    def _from_the_largest(self) -> list[int]:
        """The buffers in the order of drawing: one that is too small to scale is not hidden by its neighbours."""
        areas = [self._area(one) for one in self.memory.buffers]
        return sorted(range(len(areas)), key=lambda index: areas[index].height <= _LEAST)

    def _box(self, index: int) -> None:
        one = self.memory.buffers[index]
        with self.canvas.group(f'data-buffer="{self.before + index}"', self._told(one)):
            self.canvas.rect(self._area(one), f"f{index % TILES} rim")

    def _told(self, one: Buffer) -> str:
        size = f"{size_text(one)} {self.memory.unit} at {one.offset}"
        return " · ".join(filter(None, [owner_text(one), place_text(one.place), size, one.owner]))

    def _labels(self) -> None:
        for number, one in enumerate(self.memory.buffers, 1):
            area = self._area(one)
            forms = (f"{number} {owner_text(one)}", str(number)) if area.height >= LEAST else ()
            text = next((form for form in forms if width_of(form, LEAST) + 8 <= area.width), "")
            x, y = area.left + 4, area.top + area.height / 2 + 4
            after = self._peak_x + 6
            if x <= after and self._peak_x <= x + width_of(text, LEAST) <= area.right - (after - x):
                x = after
            self.canvas.text(x, y, text, look=f"x{(number - 1) % TILES}", size=LEAST)

    def _limit(self) -> None:
        limit = self.memory.limit
        if limit is None or limit >= self.memory.total:
            return
        y = self.y(limit)
        self.canvas.line(_LEFT, y, _WIDTH - _RIGHT, y, "limit")
        self.canvas.text(_LEFT - 8, y + 4, f"limit {limit}", look="bad", size=LEAST, anchor="end")

    @property
    def _peak_x(self) -> float:
        return self.x(self.memory.peak + 0.5)

    def _peak(self) -> None:
        x, top = self._peak_x, self.top + 54
        path = f"M{x:.1f} {top:.1f}V{self.base + 5:.1f}M{x:.1f} {self.base + 22:.1f}V{self.floor:.1f}"
        self.canvas.path(path, "mark")
        label = f"peak: {self.memory.held_at_peak} {self.memory.unit}"
        half = width_of(label, LEAST) / 2
        middle = min(max(x, _LEFT + half), _WIDTH - _RIGHT - half)
        self.canvas.text(middle, top - 5, label, size=LEAST, anchor="middle")

    def _lines(self) -> None:
        free, before = -1e9, ""
        for step in self.memory.steps[self.first : self.last]:
            if step.place == before or not step.place:
                continue
            before, x = step.place, self.x(step.number)
            label = step.place.rpartition(":")[2]
            if x < free:
                continue
            free = x + width_of(label, LEAST) + 8
            self.canvas.line(x, self.base, x, self.base + 5, "grid")
            self.canvas.text(x, self.base + 17, label, look="m", size=LEAST)
        self.canvas.text(_LEFT - 8, self.base + 17, "Python", look="m", size=LEAST, anchor="end")

    def _held(self) -> None:
        base = self.floor
        path = f"M{self.x(self.first):.1f} {base:.1f}"
        for step in range(self.first, self.last):
            y = base - covered(self.memory.live_at(step)) / self.extent * _STRIP
            path += f"L{self.x(step):.1f} {y:.1f}H{self.x(step + 1):.1f}"
        self.canvas.path(f"{path}V{base:.1f}Z", "curve")
        self.canvas.text(_LEFT - 8, base - 2, "allocated", look="m", size=LEAST, anchor="end")
        self.canvas.line(_LEFT, base, _WIDTH - _RIGHT, base, "grid")

    def _key(self, index: int) -> None:
        x = 28 + index // self.rows * (_WIDTH - 56) / self.columns
        y = self.floor + 28 + index % self.rows * _ROW
        self.canvas.rect(Rect(x, y - 10, 14, 12), f"f{index % TILES} rim")
        text = shorten(self.key[index], _letters(self.columns)).replace(" ", "\u00a0")
        self.canvas.text(x + 20, y, text, size=LEAST)


def _letters(columns: int) -> int:
    return int(((_WIDTH - 56) / columns - 24) / width_of("0", LEAST))
