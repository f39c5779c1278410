"""Predicted times, of a launch and of configurations: as text, JSON, a picture with a timeline, and a Chrome trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irscope.render.canvas import Canvas, Rect, theme_named
from irscope.render.roofline import bytes_text
from irscope.render.text.tables import duration_text, picked, table
from irscope.timing.predict import Prediction, Share
from irscope.timing.simulate import Span
from irscope.timing.tuning import Ranked, Size, Tuning, config_text

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
    tracks = {warp: f"warp {warp}" for warp in sorted({span.warp for span in one.timeline})}
    spans = (
        (span.why, "predicted", span.warp, span.start / per_us, (span.end - span.start) / per_us, span.index)
        for span in one.timeline
    )
    return chrome_trace(f"{one.kernel}: one CTA, predicted", tracks, spans, "instruction")


def chrome_trace(
    process: str, tracks: Mapping[int, str], spans: Iterable[tuple[str, str, int, float, float, int]], number: str
) -> dict[str, Any]:
    """Spans (name, category, track, start and duration in µs, a number of this name) in Chrome's trace format."""
    events: list[dict[str, Any]] = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": process}}]
    for track, name in tracks.items():
        events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": track, "args": {"name": name}})
    events += [
        {"name": name, "cat": category, "ph": "X", "pid": 1, "tid": track, "ts": start, "dur": duration,
         "args": {number: value}}
        for name, category, track, start, duration, value in spans
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


_MOST_ROWS = 20


def tuning_text(tuning: Tuning, top: int, *, width: int | None = None, color: bool = False) -> str:
    """The table of configurations, what failed, the best by size, and the fastest as triton.Config."""
    if not tuning.rows:
        return _failed(tuning)
    parts = [
        f"{tuning.kernel} on {tuning.part}: {len(tuning.rows)} configurations by predicted time, "
        f"{len(tuning.failed)} failed\n",
        _table(tuning, width, color),
        _by_size(tuning, width, color) if len(tuning.sizes) > 1 else "",
        _failed(tuning),
        "".join(f"{note}\n" for note in tuning.notes),
        "".join(
            f"{row.candidate.name}: not measured: {row.why_not_measured}\n"
            for row in tuning.rows
            if row.why_not_measured
        ),
        "".join(f"{config_text(row.candidate)},  # {_time_text(row)}\n" for row in tuning.fastest_first[:top]),
    ]
    return "\n".join(filter(None, parts))


def _time_text(row: Ranked) -> str:
    if row.measured is None:
        return f"{duration_text(row.seconds)} predicted"
    return f"{duration_text(row.measured.median_us * 1e-6)} measured, {duration_text(row.seconds)} predicted"


def _measured_cells(row: Ranked) -> list[object]:
    if row.measured is None:
        return ["–", "–"]
    return [duration_text(row.measured.median_us * 1e-6), f"{row.seconds * 1e6 / row.measured.median_us:.2f}"]


def _size_text(size: Size) -> str:
    return " ".join(f"{name}={value}" for name, value in size) or "time"


def _table(tuning: Tuning, width: int | None, color: bool) -> str:
    names = [name for name, _ in tuning.rows[0].candidate.config]
    is_measured = any(row.measured is not None for row in tuning.rows)
    times = [*map(_size_text, tuning.sizes)]
    times = ["predicted", "measured", "predicted / measured"] if is_measured else times
    columns = [*names, *times, "bound", "waves", "registers", "shared"]
    rows: list[list[object]] = []
    for row in tuning.rows[:_MOST_ROWS]:
        config, held = dict(row.candidate.config), row.candidate.capture
        first = row.predictions[0]
        resources = held.resources if held is not None else None
        rows.append(
            [
                *(config.get(name, "") for name in names), *(duration_text(one.seconds) for one in row.predictions),
                *(_measured_cells(row) if is_measured else ()), first.bound, f"{first.waves:.2f}",
                resources and resources.registers, resources and resources.shared_bytes,
            ]
        )  # fmt: skip
    rest = (
        f"… and {len(tuning.rows) - len(rows)} slower ones; --json has all.\n" if len(tuning.rows) > len(rows) else ""
    )
    return table(columns, rows, width=width, color=color) + rest


def _by_size(tuning: Tuning, width: int | None, color: bool) -> str:
    rows = [
        [_size_text(size), tuning.best(number).candidate.name,
         duration_text(tuning.best(number).predictions[number].seconds)]
        for number, size in enumerate(tuning.sizes)
    ]  # fmt: skip
    return table(["size", "fastest by prediction", "time"], rows, width=width, color=color)


def _failed(tuning: Tuning) -> str:
    lines = [f"  {one.name}: {one.failure.splitlines()[0]}\n" for one in tuning.failed]
    return "Not timed:\n" + "".join(lines) if lines else ""


def tuning_json(tuning: Tuning) -> dict[str, Any]:
    """As JSON."""
    return picked(
        tuning,
        "kernel part",
        notes=list(tuning.notes),
        sizes=[dict(size) for size in tuning.sizes],
        configs=[
            {
                "config": dict(row.candidate.config),
                "id": row.candidate.capture.id if row.candidate.capture is not None else "",
                "seconds": [one.seconds for one in row.predictions],
                "bounds": [one.bound for one in row.predictions],
                "measured": row.measured and row.measured.as_json(),
                "why_not_measured": row.why_not_measured,
                "triton": config_text(row.candidate),
            }
            for row in tuning.rows
        ],
        failed=[{"config": dict(one.config), "reason": one.failure} for one in tuning.failed],
    )
