"""The panels of a poster next to its loop: limits, findings, tiles, buffers, registers, accesses, Python lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from irscope.analysis.findings.model import Finding
from irscope.analysis.movie.model import Tile
from irscope.analysis.resources import MATRIX_FAMILIES
from irscope.analysis.roofline import Roofline
from irscope.analysis.source.annotations import AnnotatedCode
from irscope.device.occupancy import BLOCKS, CUDA_LIMITS, HIP_LIMITS, REGISTERS, SHARED, TENSOR_MEMORY, WARPS
from irscope.ir.locations.model import line_text
from irscope.layout.described import DescribedLayout
from irscope.memory.access import MOST, Cost, GlobalAccess
from irscope.memory.allocation import AllocatedMemory
from irscope.model.capture import Capture
from irscope.render.canvas import LEAST, TILES, Canvas, Rect, width_of, wrapped
from irscope.render.layout.timeline import headline, owner_text, place_text, size_text
from irscope.render.movie.tiles import draw_tile, tile_svg
from irscope.render.poster.facts import Facts
from irscope.render.roofline import floor_line
from irscope.render.text.findings import BAD_BELOW, grouped, told_of
from irscope.render.text.tables import duration_text, percent

_ACCESS = 32.0
_TWO_COLUMNS = 600.0


def rows_of(height: float) -> int:
    """How many accesses a room has space for."""
    return max(int(height // _ACCESS), 0)


def draw_accesses(canvas: Canvas, area: Rect, rows: Sequence[Cost]) -> float:
    """Draw the accesses, those that waste most first, in two columns of a wide area; returns where they end."""
    if not rows:
        return canvas.paragraph(area, "No access to global memory could be read.", look="m", size=12, lines=2)
    columns = 2 if area.width > _TWO_COLUMNS else 1
    most = max(rows_of(area.height), 1) * columns
    if len(rows) > most:
        most = max(rows_of(area.height - 14), 1) * columns
    wide, y = (area.width - 40 * (columns - 1)) / columns, area.top
    for number, row in enumerate(sorted(rows, key=_is_idle)[:most]):
        y = area.top + number // columns * _ACCESS
        _access(canvas, Rect(area.left + number % columns * (wide + 40), area.top, wide, area.height), y, row)
    y += _ACCESS
    if len(rows) > most and y + 13 <= area.bottom + 2:
        canvas.text(area.left, y + 11, f"and {len(rows) - most} more", look="m", size=LEAST)
    return y


def _is_idle(row: Cost) -> bool:
    return row.access is not None and not row.access.launch.executions[1]


def _access(canvas: Canvas, area: Rect, y: float, row: Cost) -> None:
    where = _where(row)
    canvas.text(area.left, y + 12, _what(row), size=LEAST, room=area.width - len(where) * 7 - 6)
    canvas.text(area.right, y + 12, where, look="m", size=LEAST, anchor="end", room=area.width)
    width = _width(row).replace(" bits per thread", "-bit")
    text = ", ".join(filter(None, (width, _units(row).replace("the minimum", "minimum"))))
    canvas.text(area.left, y + 26, text, look="warn" if row.excess else "m", size=LEAST, room=area.width)


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
    return f"{access.bits_per_thread} bits per thread" if access.bits_per_thread else "a tile"


def _units(row: Cost) -> str:
    """`24,576 sectors, the minimum`, `65,536 sectors, 2× the minimum`."""
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


def _against(access: GlobalAccess, units: tuple[int, int], least: tuple[int, int]) -> str:
    if units[0] != units[1] or not least[1]:
        return access.certainty if access.certainty != "exact" else "bounds"
    if units[0] <= least[1]:
        return "the minimum"
    return f"{units[0] / least[1]:.3g}× the minimum"


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]:,}" if span[0] == span[1] else f"{span[0]:,}–{span[1]:,}"


# 49152
_LARGE = re.compile(r"\b\d{4,18}\b")
_SOURCE_LINE = 15
_LARGE_SOURCE = 16.0
_LEAST_SOURCE = 4


def draw_dot_tile(canvas: Canvas, area: Rect, tile: DescribedLayout | None) -> None:
    if tile is None:
        _say(canvas, area, "The capture holds no layouts.")
        return
    row = tile.row
    named = " · ".join(dict.fromkeys((tile.name, tile.encoding.title, tile.shape_text)))
    canvas.text(area.left, area.top + 10, named, look="m", size=LEAST, room=area.width)
    shown = Tile(tile.shape, row.elements[0], row.encoding, row.alias, tile.shape)
    drawn = draw_tile(shown, {(row.encoding, tile.shape): row.answer}, tile.target)
    left, top = area.left + (area.width - drawn.width) / 2, area.top + 36 + (area.height - 76 - drawn.height) / 2
    canvas.text(left + drawn.width / 2, top - 6, drawn.title, look="m", size=LEAST, anchor="middle")
    with canvas.group(f'transform="translate({left:.1f} {top:.1f})"'):
        canvas.parts.append(tile_svg(drawn))
    canvas.paragraph(Rect(area.left, area.bottom - 27, area.width, 0), drawn.caption, look="m", lines=2)


def draw_registers(canvas: Canvas, area: Rect, found: AnnotatedCode | None, facts: Facts) -> None:
    if found is None:
        _say(canvas, area, "Unknown: the capture holds no machine code.")
        return
    allocated = facts.capture.resources.registers
    live = [one.live or 0 for one in found.instructions]
    most = max(*live, allocated or 0, 1)
    left, base, height = area.left + 30, area.bottom - 52, area.height - 66
    width = area.width - 30

    def y(count: float) -> float:
        return base - max(count, 0) / most * height

    thinned = _thinned(live, int(width))
    step = width / len(thinned)
    # One step for each run of instructions with as many live registers.
    ends = [index for index, (one, later) in enumerate(pairwise([*thinned, -1]), 1) if one != later]
    steps = "".join(f"V{round(y(thinned[end - 1]), 1):g}H{round(left + end * step, 1):g}" for end in ends)
    canvas.path(f"M{left:.1f} {base:.1f}{steps}V{base:.1f}z", "curve")
    canvas.path(f"M{left:.1f} {base:.1f}h{width:.1f}", "axis")
    canvas.text(left - 6, base + 4, "0", look="m", size=LEAST, anchor="end")
    peak = max(live)
    at = live.index(peak) / len(live) * width
    if allocated is not None:
        canvas.path(f"M{left:.1f} {y(allocated):.1f}h{width:.1f}", "limit")
        canvas.text(left - 6, y(allocated) + 4, f"{allocated}", look="bad", size=LEAST, anchor="end")
    canvas.path(f"M{left + at:.1f} {y(peak):.1f}V{base:.1f}", "edge")
    _ticks(canvas, Rect(left, base + 6, width, 16), found)
    text = f"peak {peak} at instruction {live.index(peak) + 1} of {len(live)}"
    canvas.text(left, area.bottom - 2, text, size=LEAST, room=width)


def _thinned(values: Sequence[int], most: int) -> list[int]:
    """At most so many values: of neighbours the greatest."""
    if len(values) <= most:
        return list(values)
    edges = [number * len(values) // most for number in range(most + 1)]
    return [max(values[first:last]) for first, last in pairwise(edges) if last > first]


def _ticks(canvas: Canvas, area: Rect, found: AnnotatedCode) -> None:
    x = area.left
    code = list(enumerate(found.instructions))
    for name, at, look in (
        ("spill", [index for index, one in code if one.spill], "bad"),
        ("matrix", [index for index, one in code if one.is_matrix], "f2"),
        ("barrier", [index for index, one in code if one.tick == "barrier"], "m"),
    ):
        if not at:
            continue
        for index in sorted({int(number / len(code) * area.width) for number in at}):
            canvas.rect(Rect(area.left + index, area.top, 1.5, 8), look)
        canvas.rect(Rect(x, area.top + 14, 9, 9), look)
        x += 14 + canvas.text(x + 14, area.top + 23, f"{name} {len(at)}", look="m", size=LEAST) + 14


def draw_source(canvas: Canvas, area: Rect, capture: Capture, wanted: Collection[str], rejected: int = 0) -> None:
    """Draw the kernel's Python: all of it where there is room, else the lines that are wanted, `file:line`.

    `rejected`: the line that the compiler rejects; 0 for none.
    """
    kernel = capture.launch.kernel
    first = kernel.first_line or kernel.line
    lines = list(enumerate(kernel.source.rstrip().split("\n") if kernel.source else [], first))
    room = max(int((area.height - 22) // _SOURCE_LINE), 0)
    shown = [(number, line) for number, line in lines if number >= kernel.line]
    if len(shown) > room:
        shown = [(number, line) for number, line in shown if f"{kernel.file}:{number}" in wanted][:room]
    if len(shown) < _LEAST_SOURCE:
        return
    canvas.text(area.left, area.top + 12, "Python", size=13, bold=True)
    texts = [line.expandtabs(4).replace(" ", "\u00a0") for _, line in shown]
    # A short kernel is read from afar.
    widest = max(width_of(one, 1) for one in texts) or 1
    size = max(min((area.height - 22) / len(shown) - 4, (area.width - 56) / widest, _LARGE_SOURCE), LEAST)
    for at, ((number, _), text) in enumerate(zip(shown, texts, strict=True), 1):
        y = area.top + 15 + at * (size + 4)
        canvas.text(area.left + 3 * size, y, f"{number}", look="m", size=size, anchor="end")
        look = "bad" if number == rejected else "t"
        canvas.text(area.left + 4 * size, y, text, look=look, size=size, room=area.width - 4 * size)


def draw_buffers(canvas: Canvas, area: Rect, allocation: AllocatedMemory) -> float:
    """Draw the buffers of a memory over the program, the largest ones; returns how far down it goes."""
    title = f"{allocation.space.capitalize()} memory over the program"
    canvas.text(area.left, area.top + 12, title, size=13, bold=True)
    canvas.text(area.right, area.top + 12, _grouped(headline(allocation)), look="m", size=LEAST, anchor="end",
                room=area.width - 280)  # fmt: skip
    rows = sorted(allocation.buffers, key=lambda one: (-one.size, one.start))
    most = max(int((area.height - 24) // 22), 1)
    left = area.left + 344
    width = area.right - left
    y = area.top + 22
    scale = width / max(len(allocation.steps), 1)
    shown = sorted(rows[:most], key=lambda one: (one.start, one.offset))
    for number, one in enumerate(shown):
        size = f"{_grouped(size_text(one))} {allocation.unit}"
        canvas.text(area.left, y + 13, owner_text(one), size=LEAST, room=192)
        canvas.text(left - 50, y + 13, size, look="m", size=LEAST, anchor="end", room=96)
        canvas.text(left - 8, y + 13, f":{place_text(one.place).rpartition(':')[2]}" if one.place else "", look="m",
                    size=LEAST, anchor="end", room=40)  # fmt: skip
        canvas.rect(Rect(left, y + 2, width, 14), "band")
        box = Rect(left + one.start * scale, y + 2, max((one.end - one.start) * scale, 3), 14)
        canvas.rect(box, f"f{number % TILES}", radius=2)
        y += 22
    if len(rows) > most:
        canvas.text(area.left, y + 10, f"{len(rows) - most} more", look="m", size=LEAST)
        y += 14
    return y


def _grouped(text: str) -> str:
    return _LARGE.sub(lambda match: f"{int(match[0]):,}", text)


_MOST_CAUSES = 4
_MOST_BLOCKS = 32
_LINE = 14.0


def draw_limits(canvas: Canvas, area: Rect, facts: Facts) -> None:
    """Draw what the kernel takes of a multiprocessor, what that allows, and the occupancy."""
    found = facts.occupancy
    if found is None:
        _say(canvas, area, "The occupancy is not known: " + _unknown_occupancy(facts.capture))
        return
    wide = canvas.text(area.left, area.top + 30, percent(found.fraction), size=30, bold=True)
    x = area.left + max(wide, 96) + 12
    canvas.paragraph(Rect(x, area.top - 5, area.right - x, 0), str(found), lines=4)
    y = area.top + 54
    for cause, allowed in sorted(found.limits, key=lambda row: row[1])[:_MOST_CAUSES]:
        look = "bad" if cause in found.limited_by else "bar"
        canvas.text(area.left, y + 10, _taken(facts.capture, cause), size=LEAST, room=area.width - 72)
        canvas.text(area.right, y + 10, f"{allowed} CTA{'s' * (allowed != 1)}", look="bad" if look == "bad" else "m",
                    size=LEAST, anchor="end")  # fmt: skip
        wide = area.width / _MOST_BLOCKS
        for block in range(min(allowed, _MOST_BLOCKS)):
            canvas.rect(Rect(area.left + block * wide, y + 15, wide - 2, 6), look, radius=1.5)
        y += 26


def _unknown_occupancy(capture: Capture) -> str:
    if capture.failure is not None:
        return f"the compile {capture.failure.verdict}."
    return "the registers are not known, or the limits of the target."


def _taken(capture: Capture, cause: str) -> str:
    """What a kernel takes of what a cause is about, and the most that it may."""
    resources = capture.resources
    limits = (CUDA_LIMITS if capture.target.backend == "cuda" else HIP_LIMITS).get(capture.target.arch)
    if cause == REGISTERS:
        accumulators = f" + {resources.accumulator_registers}" if resources.accumulator_registers else ""
        spilled = f", {resources.spilled_bytes} bytes spilled" if resources.spilled_bytes else " per thread"
        return f"registers: {resources.registers}{accumulators}{spilled}"
    if cause == SHARED:
        limit = f" of {limits.shared_bytes_per_block:,}" if limits is not None else ""
        return f"shared: {resources.shared_bytes or 0:,}{limit} bytes"
    if cause == TENSOR_MEMORY:
        return f"tensor memory: {resources.tensor_memory_columns} columns"
    if cause == WARPS:
        warps = dict(capture.metadata).get("num_warps", capture.launch.option("num_warps"))
        return f"{capture.target.warp}s: {warps} per CTA"
    return "hardware limit" if cause == BLOCKS else cause


def draw_findings(canvas: Canvas, area: Rect, facts: Facts, findings: Sequence[Finding], failure: str) -> None:
    """Draw the worst findings, as many as have room for two lines, and the command that prints the rest."""
    y = area.top
    if failure:
        y = canvas.paragraph(area, failure, look="bad", lines=5) + 4
    groups = [*grouped(findings)]
    if not groups and not failure:
        _say(canvas, area, "No findings.")
        return
    rest = ""
    for number, (finding, *others) in enumerate(groups):
        lines = len(wrapped(told_of(finding), area.width - 12, LEAST))
        room = int((area.bottom - y - 16) // _LINE)
        if room < min(lines, 2):
            rest = f"{len(groups) - number} more"
            break
        look = "bad" if finding.kind.rank < BAD_BELOW else "warn"
        canvas.rect(Rect(area.left, y + 1, 4, 14 + _LINE * min(lines, room)), look, radius=2)
        used = canvas.text(
            area.left + 12, y + 12, f"{finding.code} {finding.kind.name}", look=look, room=area.width - 100
        )
        place = line_text(finding.place)
        if place:
            more = f" and {len(others)} more" if others else ""
            canvas.text(area.right, y + 12, _line_of(place) + more, look="m", size=LEAST, anchor="end",
                        room=area.width - used - 24)  # fmt: skip
        text = Rect(area.left + 12, y + 16, area.width - 12, 0)
        y = canvas.paragraph(text, told_of(finding), lines=room) + 4
        rest = "in full" if room < lines else rest
    if rest:
        command = f"{rest}: irscope why {facts.capture.id[:8]}"
        canvas.text(area.right, area.top - 12, command, look="m", size=LEAST, anchor="end")


def draw_conversions(canvas: Canvas, area: Rect, facts: Facts) -> float:
    """Draw the conversions of layouts, those that cost most first; returns how far down it goes."""
    rows = facts.conversions
    if not rows:
        text = "The TTGIR has none." if "ttgir" in facts.capture.stages else "Not known: the capture holds no TTGIR."
        canvas.text(area.left, area.top + 12, text, look="m", room=area.width)
        return area.top + 20
    y = area.top
    most = max(int((area.height + 4) // 32), 1)
    most = most - 1 if len(rows) > most > 1 else most
    for row in rows[:most]:
        size, moves = row.figures.get("bytes"), row.figures.get("moves", "")
        text = f"{size:,} bytes" if isinstance(size, int) else "bytes not known"
        how = "not moved" if moves == "nothing" else f"across {moves}".replace("warp", facts.capture.target.warp)
        where = f"{'loop · ' if row.loops else ''}{_line_of(row.place)}"
        used = canvas.text(area.left, y + 12, f"{text} {how}", size=LEAST, room=area.width - len(where) * 7 - 6)
        canvas.text(area.right, y + 12, where, look="m", size=LEAST, anchor="end", room=area.width - used - 6)
        canvas.text(area.left, y + 26, " → ".join(row.layouts), look="m", size=LEAST, room=area.width)
        y += 32
    if len(rows) > most:
        canvas.text(area.left, y + 11, f"and {len(rows) - most} more", look="m", size=LEAST)
        y += 14
    return y


def draw_roofline(canvas: Canvas, area: Rect, roofline: Roofline) -> None:
    top = canvas.paragraph(area, floor_line(roofline), lines=2) + 5
    times = sorted(((name, low) for name, (low, high) in roofline.times_s.items() if high > 0), key=lambda row: -row[1])
    rows = [(name, low, duration_text(low), "") for name, low in times[: max(0, int((area.bottom - top) // 17))]]
    canvas.bars(Rect(area.left, top, area.width, area.bottom - top), rows, 106, 17)


def draw_mix(canvas: Canvas, area: Rect, facts: Facts) -> None:
    if not facts.families:
        _say(canvas, area, "The capture holds no assembly.")
        return
    # What multiplies matrices is few instructions, and the first to look for.
    ranked = sorted(facts.families.items(), key=lambda row: (not row[0].startswith(MATRIX_FAMILIES), -row[1]))
    chosen = ranked[: int(area.height // 18)]
    rows = [(name, count, f"{count}", "") for name, count in facts.families.items() if (name, count) in chosen]
    canvas.bars(area, rows, 114, 18)


def _line_of(place: str) -> str:
    return f"line {place.rpartition(':')[2]}" if place else ""


def _say(canvas: Canvas, area: Rect, text: str) -> None:
    canvas.paragraph(area, text, look="m", size=12, lines=4)
