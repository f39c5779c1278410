"""The poster of a kernel: one SVG of 1280×720."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.analysis.findings.model import Finding
from irscope.analysis.in_flight.model import InFlight
from irscope.analysis.source.map import python_line
from irscope.ir.locations.model import text_lines
from irscope.ir.locations.stages import capture_locations, lines_selected
from irscope.ir.locations.strip import lines_without_locations
from irscope.memory.access import Cost
from irscope.model.capture import Capture, stage_named
from irscope.render.canvas import HEIGHT, LEAST, WIDTH, Canvas, Rect, width_of
from irscope.render.poster.facts import Facts, facts_of, roofline_of_assumed
from irscope.render.poster.loop import draw_loop, title_of
from irscope.render.poster.panels import (
    draw_accesses,
    draw_buffers,
    draw_conversions,
    draw_dot_tile,
    draw_findings,
    draw_limits,
    draw_mix,
    draw_registers,
    draw_roofline,
    draw_source,
    rows_of,
)
from irscope.render.text.failure import failed_line, ir_before_failure, ptx_line
from irscope.render.text.tables import duration_text, short_name
from irscope.timing.predict import Prediction

_EDGE = 24.0
_GAP = 12.0
_MAIN = 872.0
_TOP = 72.0
_LINE = 14.0
_ABOVE = 20
"""Lines of a long kernel that are drawn above the one that the compiler rejects."""
_BELOW = 484.0


def poster_svg(
    capture: Capture,
    theme: str | None = None,
    costs: Sequence[Cost] | None = None,
    findings: Sequence[Finding] | None = None,
    time: Prediction | None = None,
) -> str:
    """The poster of a capture as one SVG, 1280×720 pixels; what is not known is said where it would stand.

    `findings`: those that are not silenced, the worst first. Raises UsageError for a theme that is none.
    """
    facts = facts_of(capture, costs, findings, time)
    canvas = Canvas(theme)
    _head(canvas, capture, facts.time)
    has_accesses = _main(canvas, facts)
    _side(canvas, facts)
    if _has_ir(capture):
        _lower(canvas, facts, has_accesses)
    return canvas.svg(f"{capture.name} on {capture.target}")


def loop_svg(capture: Capture, flight: InFlight, theme: str | None = None) -> str:
    """The loop of a capture as one SVG, at most as high as the poster; raises UsageError for a theme that is none."""
    area = Rect(_EDGE, _TOP, WIDTH - 2 * _EDGE, HEIGHT - 20 - _TOP)
    loop = Canvas(theme)
    height = draw_loop(loop, Canvas(theme).panel(area, ""), flight) + 14 - _TOP
    canvas = Canvas(theme, height=_TOP + height + 20)
    _head(canvas, capture)
    canvas.panel(area._replace(height=height), *title_of(flight))
    canvas.parts += loop.parts
    return canvas.svg(f"{capture.name} on {capture.target}: its loop")


def _head(canvas: Canvas, capture: Capture, time: Prediction | None = None) -> None:
    launch = capture.launch
    draw_head(canvas, capture)
    options = [f"{name}={launch.option(name)}" for name in ("num_warps", "num_stages", "num_ctas")]
    constants = [f"{name}={text}" for name, text in launch.constants if not name.startswith("stride")]
    grid = f"grid {'×'.join(map(str, launch.grid))}" if launch.grid else "not launched"
    predicted = [f"predicted {duration_text(time.seconds)} on {time.part}, bound by {time.bound}"] if time else []
    parts = [*predicted, grid, *options, *([f"plan {capture.plan}"] if str(capture.plan) else []), *constants]
    canvas.text(_EDGE, 60, _fitting(parts, 1060), look="m", room=1060)
    canvas.text(WIDTH - _EDGE, 60, f"irscope {capture.id[:8]}", look="m", size=LEAST, anchor="end")


def draw_head(canvas: Canvas, capture: Capture) -> None:
    kernel = capture.launch.kernel
    place = f"{short_name(kernel.file)}:{kernel.line}" if kernel.file else ""
    right = f"{capture.target} · Triton {capture.environment.triton_version or 'version not known'}"
    canvas.head(capture.name, place, right)


def _fitting(parts: Sequence[str], room: float) -> str:
    """As many parts as there is room for, and how many are left out."""
    for count in range(len(parts), 0, -1):
        rest = [f"{len(parts) - count} more"] if count < len(parts) else []
        text = " · ".join([*parts[:count], *rest])
        if width_of(text, 12) <= room:
            return text
    return parts[0]


def _has_ir(capture: Capture) -> bool:
    return bool(capture.stages or capture.snapshots)


def _main(canvas: Canvas, facts: Facts) -> bool:
    """Draw the loop and memory; returns whether the accesses to global memory are there."""
    area = Rect(_EDGE, _TOP, _MAIN, _BELOW - _GAP - _TOP)
    flight = facts.flight
    if not _has_ir(facts.capture):
        # There is no IR: its place is the kernel's Python.
        file, line = failed_line(facts.capture) or ("", 0)
        near = {f"{file}:{number}" for number in range(max(line - _ABOVE, 1), line + _ABOVE)}
        room = canvas.panel(area._replace(height=HEIGHT - 20 - _TOP), "The kernel", "the compile made no IR")
        draw_source(canvas, room, facts.capture, near, line if file == facts.capture.launch.kernel.file else 0)
        return False
    if flight is None or not flight.steps:
        room = canvas.panel(area, "The kernel over time", "no loop is drawn: " + _why_no_loop(facts))
        y = room.top
    else:
        room = canvas.panel(area, *title_of(flight))
        y = draw_loop(canvas, room, flight) + 12
    memories = [one for one in facts.allocations if one.buffers]
    for memory in memories:
        left = room.bottom - y
        if left >= 70:
            # Buffers in slots are in the picture of the loop already.
            height = min(left, 24 + 22 * len(memory.buffers))
            y = draw_buffers(canvas, Rect(room.left, y, room.width, height), memory) + 12
    left = room.bottom - y
    has_accesses = bool(facts.accesses) and rows_of(left - 24) > 0
    if has_accesses:
        canvas.text(room.left, y + 12, "Global memory", size=13, bold=True)
        y = 12 + draw_accesses(canvas, Rect(room.left, y + 20, room.width, left - 20), facts.accesses)
    drawn = {step.place for step in flight.steps} if flight is not None else set[str]()
    draw_source(canvas, Rect(room.left, y, room.width, room.bottom - y), facts.capture, drawn)
    return has_accesses


def _why_no_loop(facts: Facts) -> str:
    if "ttgir" not in facts.capture.stages:
        return "the capture holds no TTGIR"
    return facts.flight.note if facts.flight is not None and facts.flight.note else "nothing of it could be followed"


def _side(canvas: Canvas, facts: Facts) -> None:
    side = Rect(_EDGE + _MAIN + _GAP, _TOP, WIDTH - 2 * _EDGE - _MAIN - _GAP, 206)
    failure = facts.capture.failure
    if failure is None or failure.kind == "fit":
        draw_limits(canvas, canvas.panel(side, "Limits and occupancy"), facts)
    else:
        room = canvas.panel(side, "Failed compile", failure.where)
        canvas.paragraph(
            room,
            f"The compile {failure.verdict}: {failure.headline}",
            look="bad",
            size=12,
            lines=int(room.height // 17) - 3,
        )
        if (place := failed_line(facts.capture)) is not None:
            canvas.text(room.left, room.bottom - 22, f"{short_name(place[0])}:{place[1]}", look="m", size=12)
            line = python_line(facts.capture, *place).strip()
            canvas.text(room.left, room.bottom - 5, line, size=12, room=room.width)
    top = side.bottom + _GAP
    below = Rect(side.left, top, side.width, _BELOW - _GAP - top)
    told = ""  # The card above has the message of a failed compile.
    if failure is not None and failure.kind == "fit":
        told = f"The compile {failure.verdict}: {failure.headline}"
    found = [one for one in facts.findings if failure is None or one.code != "IRS503"]
    roofline = roofline_of_assumed(facts.capture) if failure is None and not found else None
    if roofline is not None and roofline.floor_s is not None:
        part = roofline.peaks.name if roofline.peaks is not None else ""
        draw_roofline(canvas, canvas.panel(below, "Roofline", part), roofline)
        return
    if not found and not told and failure is not None:
        return
    draw_findings(canvas, canvas.panel(below, "Worst findings"), facts, found, told)


def _ir_before_failure(capture: Capture) -> tuple[list[str], int]:
    """The lines of the IR that the failed pass read, or of ptxas's PTX, and the 0-based one of the error or the last.

    Without locations; no lines of any other compile that has assembly.
    """
    if (at := ptx_line(capture)) is not None:
        return text_lines(capture.text("ptx").rstrip()), at - 1
    text = ir_before_failure(capture)
    if not text or any(stage_named(stage).kind in ("ptx", "amdgcn") for stage in capture.stages):
        return [], 0
    lines = lines_without_locations(text.rstrip(), "mlir")
    file, line = failed_line(capture) or ("", 0)
    found = lines_selected(capture_locations(capture, text, "mlir"), lambda path: path == file, range(line, line + 1))
    shown = [one for one in lines if one is not None]
    return shown, sum(one is not None for one in lines[: min(found, default=len(lines))]) - 1


def _lower(canvas: Canvas, facts: Facts, has_accesses: bool) -> None:
    widths = (264.0, 300.0, 266.0, WIDTH - 2 * _EDGE - 264 - 300 - 266 - 3 * _GAP)
    lefts = [_EDGE + sum(widths[:number]) + number * _GAP for number in range(4)]
    areas = [Rect(left, _BELOW, width, HEIGHT - 20 - _BELOW) for left, width in zip(lefts, widths, strict=True)]
    text, at = _ir_before_failure(facts.capture)
    if text and "ttgir" not in facts.capture.stages:
        _draw_ir(canvas, areas[0]._replace(width=areas[3].right - _EDGE), facts.capture, text, at)
        return
    draw_dot_tile(canvas, canvas.panel(areas[0], "The dot's tile" if facts.of_dot else "The largest tile"), facts.tile)
    if not facts.conversions and facts.accesses and not has_accesses:
        draw_accesses(canvas, canvas.panel(areas[1], "Global memory", "no conversion"), facts.accesses)
        has_accesses, room, end = True, areas[1], areas[1].bottom
    else:
        count = str(len(facts.conversions)) if facts.conversions else ""
        room = canvas.panel(areas[1], "Layout conversions", count)
        end = draw_conversions(canvas, room, facts)
    if not has_accesses and rows_of(room.bottom - end - 26):
        canvas.text(room.left, end + 18, "Global memory", size=14, bold=True)
        draw_accesses(canvas, Rect(room.left, end + 26, room.width, room.bottom - end - 26), facts.accesses)
    if text:
        _draw_ir(canvas, areas[2]._replace(width=areas[3].right - areas[2].left), facts.capture, text, at)
        return
    draw_mix(canvas, canvas.panel(areas[2], "Instructions", facts.assembly), facts)
    stage = facts.registers.stage if facts.registers is not None else ""
    draw_registers(canvas, canvas.panel(areas[3], "Live registers", stage), facts.registers, facts)


def _draw_ir(canvas: Canvas, area: Rect, capture: Capture, text: Sequence[str], at: int) -> None:
    """Draw the IR of a failed compile around a line."""
    rows = int((area.height - 46) // _LINE)
    first = max(0, min(at - rows // 2, len(text) - rows))
    title = "IR before the failed pass" if ptx_line(capture) is None else "PTX that ptxas rejects"
    room = canvas.panel(area, title, f"lines {first + 1} to {min(first + rows, len(text))} of {len(text)}")
    marked = at - first if failed_line(capture) is not None else -1
    for number, line in enumerate(text[first : first + rows]):
        look = "bad" if number == marked else "t"
        shown = line.expandtabs(4).replace(" ", "\u00a0")
        canvas.text(room.left, room.top + (number + 1) * _LINE - 3, shown, look=look, size=LEAST, room=room.width)
