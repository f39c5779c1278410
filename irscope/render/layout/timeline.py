"""Draws a kernel's memory over time as SVG: offset upwards, program order to the right, one box for each buffer."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from irscope.memory.allocation import Allocation, Buffer, covered
from irscope.render.pages.assets import read_asset
from irscope.render.text.memory import headline, owner_text, peak_line, place_text, size_text
from irscope.render.text.tables import shorten

_WIDTH = 1280
_LEFT = 104
"""Pixels for the offsets."""
_RIGHT = 28
_HEIGHT = 360
"""Pixels of the whole of a memory, up to its total or limit."""
_STRIP = 56
"""Pixels of the curve of what is held."""
_LETTER = 6.7
"""Pixels of a character."""
_LEAST = 4.0
"""Pixels that a box has at least, either way."""
_ROW = 17
"""Pixels of a line of the key."""
_COLORS = 8


def timeline_svg(title: str, allocations: Sequence[Allocation], *, styled: bool = True) -> str:
    """One SVG with a panel for each memory; `styled`: with its own style sheet, for a file that stands alone."""
    parts: list[str] = []
    y = 40.0
    for allocation in allocations:
        panel = _Panel(allocation, y)
        parts.append(panel.draw(title))
        y = panel.bottom + 44
    style = f"<style>{read_asset('memory.css')}</style>" if styled else ""
    size = f'viewBox="0 0 {_WIDTH} {y:.0f}" width="{_WIDTH}" height="{y:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mem" {size} role="img"><title>{escape(title)}</title>{style}'
        f'<rect class="mem-bg" width="{_WIDTH}" height="{y:.0f}"/>{"".join(parts)}</svg>\n'
    )


class _Panel:
    """One memory: its boxes, the axis of Python lines, the curve of what is held, and the key to the boxes."""

    def __init__(self, allocation: Allocation, top: float) -> None:
        self.memory = allocation
        self.top = top
        # Before the first buffer and after the last nothing is held: the axis begins and ends near them.
        start = min((one.start for one in allocation.buffers), default=0)
        end = max((one.end for one in allocation.buffers), default=1)
        margin = max((end - start) // 40, 1)
        self.first, self.last = max(start - margin, 0), min(end + margin, len(allocation.steps))
        over = allocation.limit is not None and allocation.total > allocation.limit
        self.extent = max(allocation.total, 1) * (1.04 if over else 1.0)
        self.base = top + 80 + _HEIGHT
        self.floor = self.base + 46 + _STRIP
        rows = -(-len(allocation.buffers) // 2)
        self.bottom = self.floor + 22 + rows * _ROW

    def x(self, step: float) -> float:
        """The pixel at which an operation begins."""
        return _LEFT + (step - self.first) / max(self.last - self.first, 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, offset: float) -> float:
        """The pixel of an offset."""
        return self.base - offset / self.extent * _HEIGHT

    def draw(self, title: str) -> str:
        """Its elements."""
        memory = self.memory
        parts = [
            f'<text class="mem-t mem-h" x="28" y="{self.top:.1f}">{escape(title)} · {memory.space} memory</text>',
            f'<text class="mem-m mem-p" x="28" y="{self.top + 20:.1f}">{escape(headline(memory))} · '
            f"{escape(peak_line(memory))}</text>",
            *self._offsets(),
            *(self._loop(start, end) for start, end in memory.loops if end > self.first and start < self.last),
            *(self._box(index, one) for index, one in enumerate(memory.buffers)),
            self._limit(),
            self._peak(),
            *self._labels(),
            *self._lines(),
            self._held(),
            *(self._key(index, one) for index, one in enumerate(memory.buffers)),
        ]
        return "".join(parts)

    def _loop(self, start: int, end: int) -> str:
        left, right = self.x(max(start, self.first)), self.x(min(end, self.last))
        top = self.base - _HEIGHT - 20
        path = f"M{left:.1f} {top + 5:.1f}V{top:.1f}H{right:.1f}V{top + 5:.1f}"
        label = f'<text class="mem-m" text-anchor="middle" x="{(left + right) / 2:.1f}" y="{top - 4:.1f}">loop</text>'
        return f'<path class="mem-frame" d="{path}"/>{label if right - left > 30 else ""}'

    def _offsets(self) -> list[str]:
        """The axis of offsets: a line at the lower edge of each buffer, and at the total."""
        marks = sorted({0, self.memory.total, *(one.offset for one in self.memory.buffers)}, reverse=True)
        middle = self.base - _HEIGHT / 2
        parts = [
            f'<text class="mem-m" text-anchor="middle" x="36" y="{middle:.1f}" transform="rotate(-90 36 {middle:.1f})">'
            f"offset, {self.memory.unit} →</text>"
        ]
        free = -1e9
        for offset in marks:
            y = self.y(offset)
            if y - free >= 12 and (offset == 0 or self.base - y >= 12):
                free = y
                parts.append(
                    f'<line class="mem-g" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                    f'<text class="mem-m" text-anchor="end" x="{_LEFT - 8}" y="{y + 4:.1f}">{offset}</text>'
                )
        return parts

    def _area(self, one: Buffer) -> tuple[float, float, float, float]:
        """Left, top, width and height of a buffer's box."""
        left, right = self.x(max(one.start, self.first)), self.x(min(one.end, self.last))
        bottom, top = self.y(one.offset), self.y(one.stop)
        width, height = max(right - left, _LEAST), max(bottom - top, _LEAST)
        return min(left, _WIDTH - _RIGHT - width), bottom - height, width, height

    def _box(self, index: int, one: Buffer) -> str:
        left, top, width, height = self._area(one)
        return (
            f'<g><title>{escape(self._told(one))}</title><rect class="mem-f{index % _COLORS} mem-k" x="{left:.1f}" '
            f'y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"/></g>'
        )

    def _told(self, one: Buffer) -> str:
        size = f"{size_text(one)} {self.memory.unit} at {one.offset}"
        return " · ".join(filter(None, [owner_text(one), place_text(one.place), size, one.owner]))

    def _labels(self) -> list[str]:
        """In each box its number in the key and what it is, as far as that fits; beside a small one its number."""
        peak = self.x(self.memory.peak + 0.5)
        taken: list[tuple[float, float]] = []
        parts: list[str] = []
        for index, one in enumerate(self.memory.buffers):
            left, top, width, height = self._area(one)
            number = str(index + 1)
            lines = [f"{number}  {owner_text(one)}", f"{size_text(one)} {self.memory.unit}, {place_text(one.place)}"]
            room = max(map(len, lines)) * _LETTER + 14
            if left < peak < left + room and peak + room <= left + width:
                # No text across the line of the peak.
                left, width = peak, left + width - peak
            lines = [text for text in lines if len(text) * _LETTER + 14 <= width][: int(height // 15)]
            inside = lines[:1] == [f"{number}  {owner_text(one)}"]
            if not inside:
                lines = [number]
            x, y = left + 7, top + height / 2 + 4 - 7 * (len(lines) - 1)
            if not inside and (width < len(number) * _LETTER + 8 or height < 14):
                x, y = left, top - 4
            if any(abs(x - other) < 16 and abs(y - line) < 11 for other, line in taken):
                continue
            taken.append((x, y))
            shade = f"mem-x{index % _COLORS}" if y > top else "mem-t"
            parts += [
                f'<text class="{shade}" x="{x:.1f}" y="{y + 14 * row:.1f}">{escape(line)}</text>'
                for row, line in enumerate(lines)
            ]
        return parts

    def _limit(self) -> str:
        limit = self.memory.limit
        if limit is None or limit >= self.memory.total:
            return ""
        y = self.y(limit)
        return (
            f'<line class="mem-over" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="mem-wrong" text-anchor="end" x="{_LEFT - 8}" y="{y + 4:.1f}">limit {limit}</text>'
        )

    def _peak(self) -> str:
        x, top = self.x(self.memory.peak + 0.5), self.base - _HEIGHT - 38
        return (
            f'<line class="mem-peak" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{self.floor:.1f}"/>'
            f'<text class="mem-t" text-anchor="end" x="{x - 5:.1f}" y="{top + 8:.1f}">peak</text>'
        )

    def _lines(self) -> list[str]:
        """The axis of time: the Python line of each stretch of operations, where there is room."""
        parts: list[str] = []
        free, before = -1e9, ""
        for step in self.memory.steps[self.first : self.last]:
            if step.place == before or not step.place:
                continue
            before, x = step.place, self.x(step.number)
            label = step.place.rpartition(":")[2]
            if x < free:
                continue
            free = x + len(label) * _LETTER + 8
            parts.append(
                f'<line class="mem-g" x1="{x:.1f}" x2="{x:.1f}" y1="{self.base:.1f}" y2="{self.base + 5:.1f}"/>'
                f'<text class="mem-m" x="{x:.1f}" y="{self.base + 17:.1f}">{label}</text>'
            )
        parts.append(f'<text class="mem-m" text-anchor="end" x="{_LEFT - 8}" y="{self.base + 17:.1f}">Python</text>')
        return parts

    def _held(self) -> str:
        """What is held over time, as an area below the axis."""
        base = self.floor
        points = [f"{self.x(self.first):.1f},{base:.1f}"]
        for step in range(self.first, self.last):
            y = base - covered(self.memory.live_at(step)) / self.extent * _STRIP
            points += [f"{self.x(step):.1f},{y:.1f}", f"{self.x(step + 1):.1f},{y:.1f}"]
        points.append(f"{self.x(self.last):.1f},{base:.1f}")
        return (
            f'<polygon class="mem-held" points="{" ".join(points)}"/>'
            f'<text class="mem-m" text-anchor="end" x="{_LEFT - 8}" y="{base - 2:.1f}">held</text>'
            f'<line class="mem-g" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{base:.1f}" y2="{base:.1f}"/>'
        )

    def _key(self, index: int, one: Buffer) -> str:
        rows = -(-len(self.memory.buffers) // 2)
        x, y = 28 + index // rows * (_WIDTH - 56) / 2, self.floor + 28 + index % rows * _ROW
        text = shorten(f"{index + 1:2}  {self._told(one)}", int((_WIDTH - 56) / 2 / _LETTER) - 5)
        return (
            f'<rect class="mem-f{index % _COLORS} mem-k" x="{x:.1f}" y="{y - 10:.1f}" width="14" height="12"/>'
            f'<text class="mem-t" x="{x + 20:.1f}" y="{y:.1f}" xml:space="preserve">{escape(text)}</text>'
        )
