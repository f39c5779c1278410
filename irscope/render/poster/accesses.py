"""The accesses to global memory of a poster: how wide each is, and its sectors against the least."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.memory.access import MOST, Access
from irscope.memory.cost import Cost
from irscope.render.canvas import LEAST, Canvas, Rect, wrapped

__all__ = ["draw_accesses", "rows_of"]

_NARROW, _WIDE = 32.0, 22.0
_WIDE_FROM = 500.0


def rows_of(width: float, height: float) -> int:
    """How many accesses a room has space for."""
    return max(int(height // (_WIDE if width >= _WIDE_FROM else _NARROW)), 0)


def draw_accesses(canvas: Canvas, area: Rect, rows: Sequence[Cost]) -> None:
    """Draw the accesses, those that waste most first."""
    if not rows:
        for number, line in enumerate(wrapped("No access to global memory could be read.", area.width, 12, 2)):
            canvas.text(area.left, area.top + 14 + 17 * number, line, look="m")
        return
    most = max(rows_of(area.width, area.height), 1)
    if len(rows) > most:
        most = max(rows_of(area.width, area.height - 14), 1)
    y = area.top
    for row in sorted(rows, key=_is_idle)[:most]:
        y += _wide(canvas, area, y, row) if area.width >= _WIDE_FROM else _narrow(canvas, area, y, row)
    if len(rows) > most and y + 13 <= area.bottom + 2:
        canvas.text(area.left, y + 11, f"and {len(rows) - most} more", look="m", size=LEAST)


def _is_idle(row: Cost) -> bool:
    return row.access is not None and not row.access.launch.executions[1]


def _narrow(canvas: Canvas, area: Rect, y: float, row: Cost) -> float:
    where = _where(row)
    canvas.text(area.left, y + 12, _what(row), size=LEAST, room=area.width - len(where) * 7 - 6)
    canvas.text(area.right, y + 12, where, look="m", size=LEAST, anchor="end", room=area.width)
    width = _width(row).replace(" bits a lane", "-bit")
    text = ", ".join(filter(None, (width, _units(row).replace(", the least", ", least").replace("× the", "×"))))
    canvas.text(area.left, y + 26, text, look="warn" if row.excess else "m", size=LEAST, room=area.width)
    return _NARROW


def _wide(canvas: Canvas, area: Rect, y: float, row: Cost) -> float:
    look = "warn" if row.excess else "t"
    for left, room, text, own in (
        (0.0, 230.0, _what(row), "t"),
        (240.0, 100.0, _where(row), "m"),
        (350.0, 130.0, _width(row), "t"),
        (490.0, area.width - 490, _units(row), look),
    ):
        canvas.text(area.left + left, y + 13, text, look=own, size=LEAST, room=room)
    return _WIDE


def _what(row: Cost) -> str:
    """`load x_ptr`, `copy a_ptr by TMA`."""
    if row.access is None:
        return row.operation.rpartition(".")[2]
    how = " by TMA" if "tma" in row.operation or "descriptor" in row.operation else ""
    return f"{row.access.action} {row.access.argument}{how}".replace("  ", " ")


def _where(row: Cost) -> str:
    line = f"line {row.place.rpartition(':')[2]}" if row.place else ""
    return f"loop · {line}" if row.loops and line else line


def _width(row: Cost) -> str:
    access = row.access
    if access is None or not access.launch.executions[1]:
        return ""
    return f"{access.bits_a_lane} bits a lane" if access.bits_a_lane else "a block"


def _units(row: Cost) -> str:
    """`24,576 sectors, the least`, `65,536 sectors, 2× the least`."""
    access = row.access
    if access is None:
        return ""
    if not access.launch.executions[1]:
        return "not executed in this launch"
    shown, each = (access.each, " each time") if access.launch.executions[1] >= MOST else (access.launch, "")
    unit = "sectors" if access.unit_bytes == 32 else "lines"
    if shown.units[1] >= MOST:
        return "sectors not known"
    return f"{_span(shown.units)} {unit}{each}, {_against(access, shown.units, shown.least_units)}"


def _against(access: Access, units: tuple[int, int], least: tuple[int, int]) -> str:
    if units[0] != units[1] or not least[1]:
        return access.certainty if access.certainty != "exact" else "a range"
    if units[0] <= least[1]:
        return "the least"
    return f"{units[0] / least[1]:.3g}× the least"


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]:,}" if span[0] == span[1] else f"{span[0]:,}–{span[1]:,}"
