"""A launch's roofline: as text, as JSON, and as SVG with logarithmic axes.

Each unit that the launch uses has its roof and a point: the unit's intensity, and the rate that it has if the launch
takes its minimum time. Where the counts lie between bounds the point is a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import atan2, ceil, cos, degrees, floor, inf, log10, radians, sin
from typing import Any

from irscope.analysis.roofline import MEMORY, OperationWork, Roofline, UnitWork, mark
from irscope.errors import UsageError
from irscope.memory.access import MOST, SECTOR_BYTES
from irscope.model.plain import picked
from irscope.render.canvas import Canvas, Rect, width_of
from irscope.render.text.bench import rate_text
from irscope.render.text.tables import bytes_text, duration_text, table

_MOST_ROWS = 12


def roofline_text(roofline: Roofline, *, width: int | None = None, color: bool = False) -> str:
    """Tables of the bounds, of the bytes by argument and of the operations that compute most, and what was assumed."""
    parts = [
        f"{headline(roofline)}\n",
        _bounds(roofline, width, color),
        f"{floor_line(roofline)}\n",
        _arguments(roofline, width, color),
        _operations(roofline, width, color),
        "".join(f"{note}\n" for note in _notes(roofline)),
    ]
    return "\n".join(filter(None, parts))


def headline(roofline: Roofline) -> str:
    """The launch, and the part whose peaks are taken."""
    grid = "×".join(map(str, roofline.grid))
    others = f"; --part {' or '.join(roofline.other_parts)} for another" if roofline.other_parts else ""
    part = f"peaks of {roofline.peaks.name}{others}" if roofline.peaks is not None else f"no known peaks{others}"
    return f"{roofline.kernel}, grid {grid}, {roofline.target}: {part}"


def floor_line(roofline: Roofline) -> str:
    """The minimum time and the resource that bounds it, in words."""
    floor, by = roofline.floor_s, roofline.bound_by
    if floor is None:
        said = "The minimum time is unknown: no peak of this target is known."
    elif not by:
        said = "No operations and no bytes were counted."
    else:
        said = f"Minimum time: {duration_text(floor[0])}, bound by {' or '.join(by)}."
        if floor[0] < floor[1] < inf:
            said += f" With the upper bounds of the counts it would be {duration_text(floor[1])}."
    if roofline.measured_s is not None and roofline.ceilings is not None:
        measured = duration_text(roofline.measured_s)
        said += f" At the rates measured on {roofline.ceilings.device}: {measured}."
    return said


def _bounds(roofline: Roofline, width: int | None, color: bool) -> str:
    has_measured = roofline.ceilings is not None
    columns = [
        "bound",
        "work",
        "",
        "peak",
        *(["measured"] if has_measured else []),
        "minimum time",
        "FLOP/byte",
        "ridge",
    ]
    memory: list[object] = [
        MEMORY, _span_text(roofline.dram_bytes, bytes_text), mark(roofline.dram_bytes),
        rate_text(roofline.bytes_per_s, "B/s") if roofline.bytes_per_s else "no known peak",
        *([rate_text(roofline.ceilings.bytes_per_s, "B/s")] if roofline.ceilings is not None else []),
        _span_text(roofline.memory_time_s, duration_text), "", "",
    ]  # fmt: skip
    rows = [memory, *(_unit_row(roofline, one) for one in roofline.units)]
    return table(columns, rows, width=width, color=color)


def _unit_row(roofline: Roofline, one: UnitWork) -> list[object]:
    ridge = roofline.ridge(one)
    measured = [rate_text(one.measured_rate, "FLOP/s") if one.measured_rate else "–"]
    return [
        str(one.unit), _span_text(one.flops, lambda value: f"{value:,} FLOP"), mark(one.flops),
        rate_text(one.rate, "FLOP/s") if one.rate else "no known peak",
        *(measured if roofline.ceilings is not None else []),
        _span_text(one.time_s, duration_text), _span_text(roofline.intensity(one), "{:.3g}".format),
        f"{ridge:.3g}" if ridge else "–",
    ]  # fmt: skip


def _arguments(roofline: Roofline, width: int | None, color: bool) -> str:
    rows = [
        [
            one.argument or "elsewhere",
            "read" if one.is_read else "written",
            _span_text(one.distinct_bytes, bytes_text),
            mark(one.distinct_bytes),
            _span_text((one.sectors[0] * SECTOR_BYTES, min(one.sectors[1] * SECTOR_BYTES, MOST)), bytes_text),
            _span_text(one.requested_bytes, bytes_text),
        ]
        for one in roofline.touched
    ]
    return (
        table(["argument", "", "distinct", "", "in sectors", "requested"], rows, width=width, color=color)
        if rows
        else ""
    )


def _operations(roofline: Roofline, width: int | None, color: bool) -> str:
    chosen = sorted(roofline.operations, key=lambda one: (-_cost(roofline, one), one.line))
    rows = [
        [
            str(one.unit), one.operation, one.place.rpartition("/")[2], one.line, f"{one.flops_each:,}",
            _span_text(one.executions, _count_text), _span_text(one.flops, _count_text),
            f"{one.copies}" if one.copies > 1 else "",
        ]
        for one in chosen[:_MOST_ROWS]
    ]  # fmt: skip
    if not rows:
        return ""
    rest = f"… and {len(chosen) - len(rows)} more operations; --json has all.\n" if len(chosen) > len(rows) else ""
    columns = ["unit", "operation", "Python", "line", "FLOP each", "executions", "FLOP", "copies"]
    return table(columns, rows, width=width, color=color) + rest


def _cost(roofline: Roofline, one: OperationWork) -> float:
    """What an operation takes of its unit; of one without a peak its count, behind all others."""
    rate = next((unit.rate for unit in roofline.units if unit.unit == one.unit), None)
    return one.flops[1] / rate if rate else one.flops[1] * 1e-30


def _notes(roofline: Roofline) -> list[str]:
    notes = [
        f"memory: each sector of {SECTOR_BYTES} bytes that the launch reads, and each that it writes, once: what DRAM "
        "moves at least with cold caches, if all that is written reaches it."
    ]
    if (asked := roofline.requested) is not None:
        unit = "sectors" if asked.unit_bytes == SECTOR_BYTES else f"lines of {asked.unit_bytes} bytes"
        certainty = {"exact": "exact", "range": "between bounds", "sampled": "sampled"}[asked.certainty]
        notes.append(
            f"caches: the instructions request {_span_text(asked.bytes, bytes_text)}, and access "
            f"{_span_text(asked.moved_bytes, bytes_text)} in {unit}; {certainty}."
        )
    if roofline.spilled_bytes:
        notes.append(
            f"spills: the threads store and load {bytes_text(roofline.spilled_bytes)} of spilled registers, each once: "
            "a loop does so in each iteration. They go through the caches, and are not among the memory's bytes."
        )
    if roofline.atomics[1]:
        notes.append(
            f"atomics: {_span_text(roofline.atomics, _count_text)} elements, which the L2 cache adds or exchanges one "
            "after another where they are the same: no minimum time includes them."
        )
    most = roofline.distinct_bytes[1]
    if roofline.l2_bytes is not None and 0 < most <= roofline.l2_bytes:
        notes.append(
            f"All of it fits into an L2 cache of {bytes_text(roofline.l2_bytes)}: a launch with a warm cache can be "
            "faster than the memory's minimum time."
        )
    if roofline.operations:
        notes.append("line: of the TTGIR, as irscope show ID --stage ttgir --loc prints it.")
    if roofline.units:
        notes.append(
            "FLOP: each element once, those included that a mask drops later; dots as whole tiles, 2·M·N·K. Divisions "
            "and functions count as one, whatever they become."
        )
    copied = [one for one in roofline.units if one.executed_flops[1] > one.flops[1]]
    notes += [
        f"{one.unit}: {_span_text(one.executed_flops, _count_text)} FLOP are executed, since threads that hold copies "
        "of an element compute each."
        for one in copied
    ]
    if roofline.peaks is not None:
        clocks = [f"{clock:,.0f} MHz" for clock in dict.fromkeys(roofline.peaks.clocks_mhz) if clock is not None]
        at = f" at {' and '.join(clocks)}" if clocks else ""
        notes.append(f"Peaks: dense{at}; {roofline.peaks.source}.")
    if roofline.ceilings is not None:
        notes.append(f"Measured: by `irscope doctor --gpu` on {roofline.ceilings.date}: a large copy, torch.matmul.")
    notes += [f"Not known: {note}." if not note.startswith("not counted") else f"{note[0].upper()}{note[1:]}."
              for note in roofline.notes]  # fmt: skip
    return [*notes, *(f"Assumed: {one}." for one in roofline.assumed)]


def roofline_json(roofline: Roofline) -> dict[str, Any]:
    """As JSON; a bound that is not known is null."""
    peaks, requested, ceilings = roofline.peaks, roofline.requested, roofline.ceilings
    clocks = ("matrix_clock_mhz", "clock_mhz")
    return picked(
        roofline,
        "id=capture_id kernel target grid other_parts bound_by assumed notes",
        part=peaks and picked(peaks, "name=part title=name source", **dict(zip(clocks, peaks.clocks_mhz, strict=True))),
        memory=picked(
            roofline,
            "bytes_per_s l2_bytes spilled_bytes",
            **_spans(roofline, "dram_bytes distinct_bytes atomic_elements=atomics"),
            time_s=_span(roofline.memory_time_s),
            requested_bytes=requested and _span(requested.bytes),
            cache_bytes=requested and _span(requested.moved_bytes),
            cache_certainty=requested and requested.certainty,
            arguments=[
                _spans(one, "distinct_bytes sectors requested_bytes")
                | {"argument": one.argument, "access": "read" if one.is_read else "written"}
                for one in roofline.touched
            ],
        ),
        units=[
            picked(one, "unit=unit.kind dtype=unit.dtype flops_per_s=rate measured_flops_per_s=measured_rate")
            | _spans(one, "flops executed_flops")
            | {"time_s": _span(one.time_s), "intensity": _span(roofline.intensity(one)), "ridge": roofline.ridge(one)}
            for one in roofline.units
        ],
        operations=[
            picked(one, "line operation source=place unit=unit.kind dtype=unit.dtype flops_each copies")
            | _spans(one, "executions flops")
            for one in roofline.operations
        ],
        floor_s=_span(roofline.floor_s),
        measured=ceilings
        and picked(
            ceilings, "device date bytes_per_s", flops_per_s=dict(ceilings.flops_per_s), time_s=roofline.measured_s
        ),
    )


def _spans(value: object, names: str) -> dict[str, Any]:
    return {name: _span(span) for name, span in picked(value, names).items()}


def _span(span: Sequence[float] | None) -> dict[str, float | None] | None:
    return {"least": span[0], "most": None if span[1] >= MOST else span[1]} if span is not None else None


def _count_text(value: float) -> str:
    return f"{value:,}"


def _span_text(span: tuple[float, float] | None, text: Callable[[Any], str]) -> str:
    if span is None:
        return "–"
    low, high = span
    if low == high:
        return text(low)
    return f"at least {text(low)}" if high >= MOST else f"{text(low)} to {text(high)}"


_WIDTH, _HEIGHT = 1000, 640
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 24, 96, 64
_COLORS = 6
_SIZE = 11.5


@dataclass(frozen=True, slots=True)
class _Axes:
    """Decades of both axes: from 10**first to 10**last."""

    x: tuple[int, int]
    y: tuple[int, int]

    def at(self, intensity: float, rate: float) -> tuple[float, float]:
        """The pixel of a point; what lies outside is put on the edge."""
        across = (_decade(intensity) - self.x[0]) / (self.x[1] - self.x[0])
        up = (_decade(rate) - self.y[0]) / (self.y[1] - self.y[0])
        wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return _LEFT + min(max(across, 0.0), 1.0) * wide, _HEIGHT - _BOTTOM - min(max(up, 0.0), 1.0) * high


def roofline_svg(roofline: Roofline, theme: str | None = None) -> str:
    """The chart; raises UsageError if there is no peak, or nothing computed, to draw."""
    bandwidth, drawn = roofline.bytes_per_s, [one for one in roofline.units if one.rate and one.flops[1]]
    if bandwidth is None:
        raise UsageError(f"no peak of {roofline.target} is known, so there is no roof to draw.")
    if not drawn:
        raise UsageError(
            f"{roofline.kernel} computes nothing on a unit with a known peak, so there is no point to draw."
        )
    axes = _axes(roofline, drawn, bandwidth)
    canvas = Canvas(theme, _WIDTH, _HEIGHT)
    canvas.text(28, 34, f"{roofline.kernel} · roofline", size=19, bold=True)
    canvas.text(28, 56, headline(roofline), look="m", size=_SIZE)
    canvas.text(28, 74, floor_line(roofline), look="m", size=_SIZE)
    _grid(canvas, axes)
    _memory(canvas, axes, roofline, drawn, bandwidth)
    # Labels last, where no line is.
    labels = [_roof(canvas, axes, one, number % _COLORS, bandwidth) for number, one in enumerate(drawn)]
    labels += [_point(canvas, axes, roofline, one, number % _COLORS) for number, one in enumerate(drawn)]
    for label in labels:
        label()
    return canvas.svg(headline(roofline), ground="on")


def _axes(roofline: Roofline, drawn: list[UnitWork], bandwidth: float) -> _Axes:
    ridges = [one.rate / bandwidth for one in drawn if one.rate]
    points = [side for one in drawn for side in roofline.intensity(one) if 0 < side < inf]
    rates = [one.rate for one in drawn if one.rate] + [_reached(roofline, one) for one in drawn]
    x = floor(min(map(log10, ridges + points)) - 0.3), ceil(max(map(log10, ridges + points)) + 0.6)
    least = min([rate for rate in rates if rate > 0])
    return _Axes(x, (floor(log10(least) - 0.3), ceil(log10(max(rates)) + 0.1)))


def _reached(roofline: Roofline, one: UnitWork) -> float:
    """A unit's rate in a launch that takes its minimum time."""
    times = roofline.floor_s
    return one.flops[0] / times[0] if times is not None and times[0] else 0.0


def _grid(canvas: Canvas, axes: _Axes) -> None:
    bottom = _HEIGHT - _BOTTOM
    for decade in range(axes.x[0], axes.x[1] + 1):
        x, _ = axes.at(10.0**decade, 1.0)
        canvas.line(x, _TOP, x, bottom, "grid")
        canvas.text(x, bottom + 18, f"{10.0**decade:g}", look="m", size=_SIZE, anchor="middle")
    for decade in range(axes.y[0], axes.y[1] + 1):
        _, y = axes.at(1.0, 10.0**decade)
        canvas.line(_LEFT, y, _WIDTH - _RIGHT, y, "grid")
        canvas.text(_LEFT - 8, y + 4, rate_text(10.0**decade, "").strip(), look="m", size=_SIZE, anchor="end")
    across = (_LEFT + _WIDTH - _RIGHT) / 2
    canvas.text(across, bottom + 42, "operations per byte of DRAM →", look="m", size=_SIZE, anchor="middle")
    canvas.text(24, (_TOP + bottom) / 2, "operations per second →", look="m", size=_SIZE, anchor="middle", angle=-90)


def _memory(canvas: Canvas, axes: _Axes, roofline: Roofline, drawn: list[UnitWork], bandwidth: float) -> None:
    highest = max(one.rate for one in drawn if one.rate)
    (x1, y1), (x2, y2) = _ends(axes, bandwidth, highest)
    canvas.line(x1, y1, x2, y2, "roof peak")
    if roofline.ceilings is not None:
        begin, end = _ends(axes, roofline.ceilings.bytes_per_s, highest)
        canvas.line(*begin, *end, "roof peak measured")
    # Along the line, above it.
    angle = degrees(atan2(y2 - y1, x2 - x1))
    x, y = (x1 + x2) / 2 + 10 * sin(radians(angle)), (y1 + y2) / 2 - 10 * cos(radians(angle))
    canvas.text(x, y, f"DRAM {rate_text(bandwidth, 'B/s')}", size=_SIZE, anchor="middle", angle=angle)


def _ends(axes: _Axes, bandwidth: float, highest: float) -> tuple[tuple[float, float], tuple[float, float]]:
    first = max(10.0 ** axes.x[0], 10.0 ** axes.y[0] / bandwidth)
    return axes.at(first, first * bandwidth), axes.at(highest / bandwidth, highest)


def _roof(canvas: Canvas, axes: _Axes, one: UnitWork, color: int, bandwidth: float) -> Callable[[], None]:
    """Draw the peak of a unit; returns what writes its label."""
    for rate, style in ((one.rate, ""), (one.measured_rate, " measured")):
        if rate:
            (x1, y), (x2, _) = axes.at(rate / bandwidth, rate), axes.at(10.0 ** axes.x[1], rate)
            canvas.line(x1, y, x2, y, f"roof c{color}{style}")
            canvas.keep_clear(Rect(x1, y - 1, x2 - x1, 2))
    text = f"{one.unit} {rate_text(one.rate or 0, 'FLOP/s')}, from {(one.rate or 0) / bandwidth:.3g} FLOP/byte on"
    x, y = axes.at(10.0 ** axes.x[1], one.rate or 0)
    return partial(canvas.label, x - 6, y - 6, text, f"k{color}", anchor="end", size=_SIZE)


def _point(canvas: Canvas, axes: _Axes, roofline: Roofline, one: UnitWork, color: int) -> Callable[[], None]:
    """Draw where a unit is; returns what writes its label."""
    low, high = roofline.intensity(one)
    reached = _reached(roofline, one)
    if not reached:
        return lambda: None
    (x1, y), (x2, _) = axes.at(low, reached), axes.at(high, reached)
    _, bottom = axes.at(low, 0)
    share = f", {duration_text(one.time_s[0])} alone" if one.time_s is not None else ""
    text = f"{one.unit}: {low:.3g} FLOP/byte{share}"
    wide = width_of(text, _SIZE)
    left = x2 + 10 if x2 + 10 + wide < _WIDTH - _RIGHT else x1 - 10 - wide
    canvas.line(x1, y, x1, bottom, f"drop c{color}")
    canvas.disc(x1, y, 5.5, f"k{color}", tip=text)
    if x2 - x1 > 1:
        canvas.line(x1, y, x2, y, f"roof c{color}")
    return partial(canvas.label, left, y + 15, text, f"k{color}", size=_SIZE)


def _decade(value: float) -> float:
    return -inf if value <= 0 else inf if value == inf else log10(value)
