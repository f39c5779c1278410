"""The panels of a poster beside its loop: limits, findings, conversions, accesses, and the instruction mix."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.analysis.findings.model import Finding
from irscope.analysis.roofline.model import Roofline
from irscope.device.occupancy import CUDA_LIMITS, HIP_LIMITS, REGISTERS, SHARED, TENSOR_MEMORY, WARPS
from irscope.ir.locations.user import line_text
from irscope.memory.access import Cost
from irscope.model.capture import Capture
from irscope.render.canvas import LEAST, Canvas, Rect, wrapped
from irscope.render.poster.facts import WORST, Facts
from irscope.render.roofline import duration_text, floor_line
from irscope.render.text.figures import percent

__all__ = ["draw_conversions", "draw_findings", "draw_limits", "draw_mix", "draw_roofline"]

_MOST_CAUSES = 4
_MOST_BLOCKS = 32
"""Blocks that are drawn: no multiprocessor holds more."""
_FINDING = 45.0
"""Pixels of a finding, at least."""
_BAD_BELOW = 2
"""Findings of kinds of a lower rank are bad, the others warnings."""


def draw_limits(canvas: Canvas, area: Rect, facts: Facts) -> None:
    """Draw what the kernel takes of a multiprocessor, what that allows, and the occupancy."""
    found = facts.occupancy
    if found is None:
        _say(canvas, area, "The occupancy is not known: " + _unknown_occupancy(facts.capture))
        return
    wide = canvas.text(area.left, area.top + 30, percent(found.fraction), size=30, bold=True)
    x = area.left + max(wide, 96) + 12
    causes = " and ".join(found.limited_by)
    told = f"{found.warps_per_sm} of {found.max_warps} warps per {found.unit}, limited by {causes}"
    for number, line in enumerate(wrapped(told, area.right - x, LEAST, 4)):
        canvas.text(x, area.top + 6 + 14 * number, line, size=LEAST)
    y = area.top + 54
    for cause, allowed in sorted(found.limits, key=lambda row: row[1])[:_MOST_CAUSES]:
        look = "bad" if cause in found.limited_by else "bar"
        canvas.text(area.left, y + 10, _taken(facts.capture, cause), size=LEAST, room=area.width - 72)
        canvas.text(area.right, y + 10, f"{allowed} block{'s' * (allowed != 1)}", look="bad" if look == "bad" else "m",
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
        spilled = f", {resources.spilled_bytes} bytes spilled" if resources.spilled_bytes else " a thread"
        return f"registers: {resources.registers}{accumulators}{spilled}"
    if cause == SHARED:
        limit = f" of {limits.shared_bytes_per_block:,}" if limits is not None else ""
        return f"shared: {resources.shared_bytes or 0:,}{limit} bytes"
    if cause == TENSOR_MEMORY:
        return f"tensor memory: {resources.tensor_memory_columns} columns"
    if cause == WARPS:
        warps = dict(capture.metadata).get("num_warps", capture.launch.option("num_warps"))
        return f"warps: {warps} a block"
    return cause


def draw_findings(canvas: Canvas, area: Rect, findings: Sequence[Finding], failure: str) -> None:
    """Draw the worst findings, each with its code, its place and what it says."""
    y = area.top
    if failure:
        for line in wrapped(failure, area.width, LEAST, 5):
            canvas.text(area.left, y + 11, line, look="bad", size=LEAST)
            y += 14
    shown = findings[: min(WORST, int((area.bottom - y) // _FINDING))]
    if not shown and not failure:
        _say(canvas, area, "Nothing was found that is known to cost time.")
        return
    height = min((area.bottom - y) / max(len(shown), 1), 60.0)
    for finding in shown:
        look = "bad" if finding.kind.rank < _BAD_BELOW else "warn"
        canvas.rect(Rect(area.left, y + 1, 4, 42), look, radius=2)
        used = canvas.text(
            area.left + 12, y + 12, f"{finding.code} {finding.kind.name}", look=look, room=area.width - 100
        )
        place = line_text(finding.place)
        if place:
            canvas.text(area.right, y + 12, _line_of(place), look="m", size=LEAST, anchor="end",
                        room=area.width - used - 24)  # fmt: skip
        told = f"{finding.operation} {finding.text}".strip()
        for number, line in enumerate(wrapped(told, area.width - 12, LEAST, 2)):
            canvas.text(area.left + 12, y + 27 + 14 * number, line, size=LEAST)
        y += height


def draw_conversions(canvas: Canvas, area: Rect, rows: Sequence[Cost], *, known: bool) -> float:
    """Draw the conversions of layouts, those that cost most first; returns how far down it goes.

    `known`: whether the capture holds what they are read from.
    """
    if not rows:
        text = "The TTGIR has none." if known else "Not known: the capture holds no TTGIR."
        canvas.text(area.left, area.top + 12, text, look="m", room=area.width)
        return area.top + 20
    y = area.top
    most = max(int((area.height + 4) // 32), 1)
    most = most - 1 if len(rows) > most > 1 else most
    for row in rows[:most]:
        size, moves = row.figures.get("bytes"), row.figures.get("moves", "")
        text = f"{size:,} bytes" if isinstance(size, int) else "bytes not known"
        how = "not moved" if moves == "nothing" else f"across {moves}"
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
    """Draw the least time that the memory and each unit need for the launch."""
    y = area.top
    for line in wrapped(floor_line(roofline), area.width, LEAST, 2):
        canvas.text(area.left, y + 11, line, size=LEAST)
        y += 14
    times = {name: span for name, span in roofline.times_s.items() if span[1] > 0}
    longest = max((span[0] for span in times.values()), default=0.0)
    y += 5
    for name, span in sorted(times.items(), key=lambda row: -row[1][0])[: int((area.bottom - y) // 17)]:
        room = area.width - 106 - 66
        wide = room * span[0] / longest if longest else 0.0
        canvas.text(area.left, y + 11, name, size=LEAST, room=100)
        canvas.rect(Rect(area.left + 106, y + 2, wide, 10), "bar", radius=2)
        canvas.text(area.left + 112 + wide, y + 11, duration_text(span[0]), look="m", size=LEAST, room=60)
        y += 17


def draw_mix(canvas: Canvas, area: Rect, facts: Facts) -> None:
    """Draw how many instructions there are of each family that matters."""
    if not facts.families:
        _say(canvas, area, "The capture holds no assembly.")
        return
    most = int(area.height // 18)
    chosen = sorted(facts.families.items(), key=lambda row: -row[1])[:most]
    rows = [(name, count) for name, count in facts.families.items() if (name, count) in chosen]
    longest = max(count for _, count in rows)
    left = area.left + 114
    room = area.width - 114 - 44
    for number, (name, count) in enumerate(rows):
        y = area.top + 18 * number
        canvas.text(left - 8, y + 12, name, size=LEAST, anchor="end", room=106)
        wide = room * count / longest
        canvas.rect(Rect(left, y + 3, wide, 11), "bar", radius=2)
        canvas.text(left + wide + 6, y + 12, f"{count}", look="m", size=LEAST)


def _line_of(place: str) -> str:
    return f"line {place.rpartition(':')[2]}" if place else ""


def _say(canvas: Canvas, area: Rect, text: str) -> None:
    for number, line in enumerate(wrapped(text, area.width, 12, 4)):
        canvas.text(area.left, area.top + 14 + 17 * number, line, look="m")
