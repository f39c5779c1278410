"""A predicted time: as text, as JSON, as a picture of its lines and its timeline, and as a Chrome trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.render.canvas import Canvas, Rect, theme_named
from irscope.render.roofline import bytes_text, duration_text
from irscope.render.text.tables import picked, table
from irscope.timing.predict import Prediction, Share
from irscope.timing.simulate import Span

__all__ = ["prediction_json", "prediction_svg", "prediction_text", "prediction_trace"]

_MOST_LINES = 10
_LOOKS = {"execution": "bar", "copies in flight": "f2", "memory latency": "f2", "DRAM": "f3", "L2": "f3",
          "barrier": "f4"}  # fmt: skip


def prediction_text(
    one: Prediction, floor_s: float | None = None, *, width: int | None = None, color: bool = False
) -> str:
    """What a launch takes and why, the lines with the greatest shares, and what would change it."""
    parts = [
        f"{_head(one)}\n{_answer(one, floor_s)}\n",
        _busy(one, width, color),
        _lines(one, width, color),
        "".join(f"{item.name}: {duration_text(item.seconds)}, {item.gain:.2f} times as fast\n" for item in one.what_if),
        "".join(f"{note}\n" for note in _notes(one)),
    ]
    return "\n".join(filter(None, parts))


def _head(one: Prediction) -> str:
    grid = "×".join(map(str, one.grid))
    waves = f"{one.waves:.2f} waves of {one.ctas_per_unit} CTAs per multiprocessor"
    return f"{one.kernel}, grid {grid}, {one.part}: {waves}"


def _answer(one: Prediction, floor_s: float | None) -> str:
    low, high = one.interval
    floor = f" Roofline's minimum time: {duration_text(floor_s)}." if floor_s else ""
    said = f"Predicted time: {duration_text(one.seconds)} ({duration_text(low)} to {duration_text(high)})"
    return f"{said}, bound by {one.bound}.{floor}"


def _notes(one: Prediction) -> Sequence[str]:
    notes = [f"Assumed: {note}." if one.method == "simulated" else note for note in one.notes]
    if one.is_calibrated:
        notes.append(f"Constants of {one.part} as measured here by irscope time --calibrate.")
    if not one.is_validated:
        notes.append(f"Predictions for {one.part} were not compared with measured times.")
    notes.append("The L2 cache is taken to hold nothing of the operands at the start.")
    return notes


def _busy(one: Prediction, width: int | None, color: bool) -> str:
    waits = [[name, f"{part:.0%}"] for name, part in one.waits[:6]]
    busy = [[name, f"{part:.0%}"] for name, part in one.busy[:6]]
    count = max(len(waits), len(busy))
    rows = [
        [*(busy[number] if number < len(busy) else ["", ""]), *(waits[number] if number < len(waits) else ["", ""])]
        for number in range(count)
    ]
    dram, cache = bytes_text(round(one.dram_bytes)), bytes_text(round(one.l2_bytes))
    moved = f"From DRAM or to it: {dram}; from L2 or to it: {cache}\n"
    columns = ["unit", "busy", "warps: doing or waiting for", "of their time"]
    return table(columns, rows, width=width, color=color) + moved


def _lines(one: Prediction, width: int | None, color: bool) -> str:
    if not one.lines:
        return ""
    rows = [
        [
            f"{item.file.rpartition('/')[2]}:{item.line}" if item.line else "?", f"{item.share:.1%}",
            duration_text(item.seconds), ", ".join(f"{name} {part:.0%}" for name, part in item.reasons[:3]),
            ", ".join(name for name, _ in item.instructions[:3]),
        ]
        for item in one.lines[:_MOST_LINES]
    ]  # fmt: skip
    return table(["Python", "share", "time", "why", "instructions"], rows, width=width, color=color)


def prediction_json(one: Prediction, floor_s: float | None = None) -> dict[str, Any]:
    """As JSON."""
    return picked(
        one,
        "id=capture_id kernel part seconds bound method is_validated is_calibrated grid ctas_per_unit waves "
        "launch_seconds dram_bytes l2_bytes notes",
        interval_s=list(one.interval),
        roofline_s=floor_s,
        busy=dict(one.busy),
        waits=dict(one.waits),
        lines=[
            picked(item, "file line share seconds")
            | {"reasons": dict(item.reasons), "instructions": dict(item.instructions)}
            for item in one.lines
        ],
        what_if=[picked(item, "name seconds gain") for item in one.what_if],
    )


def prediction_trace(one: Prediction) -> dict[str, Any]:
    """The predicted timeline of one CTA in Chrome's trace format, which Perfetto opens: a track for each warp."""
    per_us = one.clock_hz / 1e6 or 1.0
    names = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": f"{one.kernel}: one CTA, predicted"}}
    events: list[dict[str, Any]] = [names]
    for warp in sorted({span.warp for span in one.timeline}):
        events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": warp, "args": {"name": f"warp {warp}"}})
    events += [
        {"name": span.why, "cat": "predicted", "ph": "X", "pid": 1, "tid": span.warp, "ts": span.start / per_us,
         "dur": (span.end - span.start) / per_us, "args": {"instruction": span.index}}
        for span in one.timeline
    ]  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def prediction_svg(one: Prediction, theme: str | None = None) -> str:
    """The lines' shares as bars, and below them the timeline of one CTA."""
    chosen = theme_named(theme) if theme is not None else None
    lines = one.lines[:8]
    warps = sorted({span.warp for span in one.timeline})[:16]
    bars_height, track = 52 + 24 * max(len(lines), 1), 14
    height = 130 + bars_height + 70 + track * max(len(warps), 1) + 40
    canvas = Canvas(chosen, 1000, height)
    canvas.head(one.kernel, f"{one.part}, grid {'×'.join(map(str, one.grid))}", duration_text(one.seconds))
    low, high = one.interval
    canvas.text(
        24, 70, f"predicted {duration_text(low)} to {duration_text(high)}, bound by {one.bound}", look="m", size=13
    )
    area = canvas.panel(Rect(24, 90, 952, bars_height), "Share of each line")
    canvas.bars(area, [_bar(item) for item in lines], 200, 24)
    top = 90 + bars_height + 16
    area = canvas.panel(Rect(24, top, 952, 66 + track * max(len(warps), 1)), "One CTA", "skipped iterations left out")
    _timeline(canvas, area, one, warps, track)
    return canvas.svg(f"{one.kernel}: {duration_text(one.seconds)} predicted")


def _bar(item: Share) -> tuple[str, float, str, str]:
    name = f"{item.file.rpartition('/')[2]}:{item.line}" if item.line else "?"
    return name, item.share, f"{item.share:.0%}", ", ".join(why for why, _ in item.reasons[:2])


def _timeline(canvas: Canvas, area: Rect, one: Prediction, warps: Sequence[int], track: float) -> None:
    end = max((span.end for span in one.timeline), default=0.0) or 1.0
    scale = (area.width - 60) / end
    for row, warp in enumerate(warps):
        y = area.top + row * track
        canvas.text(area.left + 48, y + track - 3, f"warp {warp}", look="m", size=10, anchor="end")
        for span in _joined([span for span in one.timeline if span.warp == warp], 0.7 / scale):
            place = Rect(area.left + 56 + span.start * scale, y + 1, (span.end - span.start) * scale, track - 3)
            canvas.rect(place, _LOOKS.get(span.why, "bar" if span.why in _BUSY else "f1"), tip=span.why)
    base = area.top + len(warps) * track + 16
    canvas.text(area.left + 56, base, "0", look="m", size=10)
    cycles = f"{end:,.0f} cycles"
    canvas.text(area.right, base, cycles, look="m", size=10, anchor="end")


_BUSY = ("execution", "issue", "integer and logic", "FMA", "special functions", "float64")


def _joined(spans: Sequence[Span], least: float) -> list[Span]:
    """Neighbours of one reason as one, and nothing shorter than can be seen."""
    found: list[Span] = []
    for span in spans:
        if (
            found
            and (found[-1].why == span.why or span.end - span.start < least)
            and span.start - found[-1].end < least
        ):
            found[-1] = Span(span.warp, found[-1].index, found[-1].start, span.end, found[-1].why)
        else:
            found.append(Span(span.warp, span.index, span.start, span.end, span.why))
    return found
