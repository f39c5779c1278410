"""Draws a roofline as SVG: operations per byte to the right, operations per second upwards, both logarithmic.

Each unit that the launch uses has its roof and a point: the unit's intensity, and the rate that it has if the launch
takes its least time. Where the counts lie between bounds the point is a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, ceil, cos, degrees, floor, inf, log10, radians, sin

from irscope.analysis.roofline.model import Roofline, UnitWork
from irscope.errors import UsageError
from irscope.render.assets import read_asset
from irscope.render.canvas import Elements, width_of
from irscope.render.text.bench import rate_text
from irscope.render.text.roofline import duration_text, floor_line, headline

__all__ = ["roofline_svg"]

_WIDTH, _HEIGHT = 1000, 640
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 24, 96, 64
_COLORS = 6
_SIZE = 11.6
"""Pixels of its texts, with some room."""
_ROW = 14


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


def roofline_svg(roofline: Roofline) -> str:
    """The chart; raises UsageError if there is no peak, or nothing computed, to draw."""
    bandwidth, drawn = roofline.bytes_per_s, [one for one in roofline.units if one.rate and one.flops[1]]
    if bandwidth is None:
        raise UsageError(f"no peak of {roofline.target} is known, so there is no roof to draw.")
    if not drawn:
        raise UsageError(
            f"{roofline.kernel} computes nothing on a unit with a known peak, so there is no point to draw."
        )
    axes = _axes(roofline, drawn, bandwidth)
    chart = Elements()
    chart.write(28, 34, f"{roofline.kernel} · roofline", "roof-t roof-h")
    chart.write(28, 56, headline(roofline), "roof-m")
    chart.write(28, 74, floor_line(roofline), "roof-m")
    _grid(chart, axes)
    _memory(chart, axes, roofline, drawn, bandwidth)
    labels = _Labels()
    for number, one in enumerate(drawn):
        _roof(chart, axes, one, number % _COLORS, bandwidth, labels)
    for number, one in enumerate(drawn):
        _point(chart, axes, roofline, one, number % _COLORS, labels)
    return chart.document(_WIDTH, _HEIGHT, headline(roofline), read_asset("roofline.css"), "roof-bg", look="roof")


def _axes(roofline: Roofline, drawn: list[UnitWork], bandwidth: float) -> _Axes:
    ridges = [one.rate / bandwidth for one in drawn if one.rate]
    points = [side for one in drawn for side in roofline.intensity(one) if 0 < side < inf]
    rates = [one.rate for one in drawn if one.rate] + [_reached(roofline, one) for one in drawn]
    x = floor(min(map(log10, ridges + points)) - 0.3), ceil(max(map(log10, ridges + points)) + 0.6)
    least = min([rate for rate in rates if rate > 0])
    return _Axes(x, (floor(log10(least) - 0.3), ceil(log10(max(rates)) + 0.1)))


def _reached(roofline: Roofline, one: UnitWork) -> float:
    """A unit's rate in a launch that takes its least time."""
    times = roofline.floor_s
    return one.flops[0] / times[0] if times is not None and times[0] else 0.0


def _grid(chart: Elements, axes: _Axes) -> None:
    bottom = _HEIGHT - _BOTTOM
    for decade in range(axes.x[0], axes.x[1] + 1):
        x, _ = axes.at(10.0**decade, 1.0)
        chart.line(x, _TOP, x, bottom, "roof-g")
        chart.write(x, bottom + 18, f"{10.0**decade:g}", "roof-m", anchor="middle")
    for decade in range(axes.y[0], axes.y[1] + 1):
        _, y = axes.at(1.0, 10.0**decade)
        chart.line(_LEFT, y, _WIDTH - _RIGHT, y, "roof-g")
        chart.write(_LEFT - 8, y + 4, rate_text(10.0**decade, "").strip(), "roof-m", anchor="end")
    across = (_LEFT + _WIDTH - _RIGHT) / 2
    chart.write(across, bottom + 42, "operations per byte of DRAM →", "roof-m", anchor="middle")
    chart.write(24, (_TOP + bottom) / 2, "operations per second →", "roof-m", anchor="middle", angle=-90)


def _memory(chart: Elements, axes: _Axes, roofline: Roofline, drawn: list[UnitWork], bandwidth: float) -> None:
    """The sloped roof, up to the highest ridge."""
    highest = max(one.rate for one in drawn if one.rate)
    (x1, y1), (x2, y2) = _ends(axes, bandwidth, highest)
    chart.line(x1, y1, x2, y2, "roof-line roof-memory")
    if roofline.ceilings is not None:
        begin, end = _ends(axes, roofline.ceilings.bytes_per_s, highest)
        chart.line(*begin, *end, "roof-line roof-memory roof-measured")
    # Along the line, above it.
    angle = degrees(atan2(y2 - y1, x2 - x1))
    x, y = (x1 + x2) / 2 + 10 * sin(radians(angle)), (y1 + y2) / 2 - 10 * cos(radians(angle))
    chart.write(x, y, f"DRAM {rate_text(bandwidth, 'B/s')}", "roof-t", anchor="middle", angle=angle)


def _ends(axes: _Axes, bandwidth: float, highest: float) -> tuple[tuple[float, float], tuple[float, float]]:
    first = max(10.0 ** axes.x[0], 10.0 ** axes.y[0] / bandwidth)
    return axes.at(first, first * bandwidth), axes.at(highest / bandwidth, highest)


def _roof(chart: Elements, axes: _Axes, one: UnitWork, color: int, bandwidth: float, labels: _Labels) -> None:
    for rate, style in ((one.rate, ""), (one.measured_rate, " roof-measured")):
        if rate:
            (x1, y), (x2, _) = axes.at(rate / bandwidth, rate), axes.at(10.0 ** axes.x[1], rate)
            chart.line(x1, y, x2, y, f"roof-line roof-c{color}{style}")
    text = f"{one.unit} {rate_text(one.rate or 0, 'FLOP/s')}, from {(one.rate or 0) / bandwidth:.3g} FLOP/byte on"
    x, y = axes.at(10.0 ** axes.x[1], one.rate or 0)
    wide = width_of(text, _SIZE)
    chart.write(x - 6, labels.free(x - 6 - wide, y - 6, wide), text, f"roof-f{color}", anchor="end")


def _point(chart: Elements, axes: _Axes, roofline: Roofline, one: UnitWork, color: int, labels: _Labels) -> None:
    low, high = roofline.intensity(one)
    reached = _reached(roofline, one)
    if not reached:
        return
    (x1, y), (x2, _) = axes.at(low, reached), axes.at(high, reached)
    _, bottom = axes.at(low, 0)
    share = f", {duration_text(one.time_s[0])} alone" if one.time_s is not None else ""
    text = f"{one.unit}: {low:.3g} FLOP/byte{share}"
    wide = width_of(text, _SIZE)
    left = x2 + 10 if x2 + 10 + wide < _WIDTH - _RIGHT else x1 - 10 - wide
    chart.line(x1, y, x1, bottom, f"roof-drop roof-c{color}")
    chart.path(f"M{x1 - 5.5:.1f} {y:.1f}a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0", f"roof-f{color} roof-point", tip=text)
    chart.write(left, labels.free(left, y + 4, wide), text, f"roof-f{color}")
    if x2 - x1 > 1:
        chart.line(x1, y, x2, y, f"roof-line roof-c{color}")


class _Labels:
    """Where labels stand, so that none covers another."""

    def __init__(self) -> None:
        self._held: list[tuple[float, float, float]] = []

    def free(self, left: float, y: float, wide: float) -> float:
        """The nearest line downwards on which a text from `left` on meets no other."""
        right = left + wide
        while any(left < end and begin < right and abs(y - other) < _ROW for begin, end, other in self._held):
            y += 2
        self._held.append((left, right, y))
        return y


def _decade(value: float) -> float:
    return -inf if value <= 0 else inf if value == inf else log10(value)
