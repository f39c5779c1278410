"""Draws a roofline as SVG: operations per byte to the right, operations per second upwards, both logarithmic.

Each unit that the launch uses has its roof and a point: the unit's intensity, and the rate that it has if the launch
takes its least time. Where the counts lie between bounds the point is a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import atan2, ceil, degrees, floor, inf, log10

from irscope.analysis.roofline.model import Roofline, UnitWork
from irscope.errors import UsageError
from irscope.render.assets import read_asset
from irscope.render.text.bench import rate_text
from irscope.render.text.roofline import duration_text, floor_line, headline

__all__ = ["roofline_svg"]

_WIDTH, _HEIGHT = 1000, 640
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 24, 96, 64
_COLORS = 6
_LETTER = 7.0
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
    parts = [
        f'<text class="roof-t roof-h" x="28" y="34">{escape(roofline.kernel)} · roofline</text>',
        f'<text class="roof-m" x="28" y="56">{escape(headline(roofline))}</text>',
        f'<text class="roof-m" x="28" y="74">{escape(floor_line(roofline))}</text>',
        *_grid(axes),
        *_memory(axes, roofline, drawn, bandwidth),
    ]
    labels = _Labels()
    for number, one in enumerate(drawn):
        parts += _roof(axes, one, number % _COLORS, bandwidth, labels)
    for number, one in enumerate(drawn):
        parts += _point(axes, roofline, one, number % _COLORS, labels)
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="roof" {size} role="img">'
        f"<title>{escape(headline(roofline))}</title><style>{read_asset('roofline.css')}</style>"
        f'<rect class="roof-bg" width="{_WIDTH}" height="{_HEIGHT}"/>{"".join(parts)}</svg>\n'
    )


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


def _grid(axes: _Axes) -> list[str]:
    bottom, parts = _HEIGHT - _BOTTOM, list[str]()
    for decade in range(axes.x[0], axes.x[1] + 1):
        x, _ = axes.at(10.0**decade, 1.0)
        parts.append(f'<line class="roof-g" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(_text("roof-m", x, bottom + 18, f"{10.0**decade:g}", "middle"))
    for decade in range(axes.y[0], axes.y[1] + 1):
        _, y = axes.at(1.0, 10.0**decade)
        parts.append(f'<line class="roof-g" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text("roof-m", _LEFT - 8, y + 4, rate_text(10.0**decade, "").strip(), "end"))
    middle = (_TOP + bottom) / 2
    parts.append(_text("roof-m", (_LEFT + _WIDTH - _RIGHT) / 2, bottom + 42, "operations per byte of DRAM →", "middle"))
    parts.append(
        f'<text class="roof-m" text-anchor="middle" x="24" y="{middle:.1f}" transform="rotate(-90 24 {middle:.1f})">'
        "operations per second →</text>"
    )
    return parts


def _memory(axes: _Axes, roofline: Roofline, drawn: list[UnitWork], bandwidth: float) -> list[str]:
    """The sloped roof, up to the highest ridge."""
    highest = max(one.rate for one in drawn if one.rate)
    parts = [_slope(axes, bandwidth, highest, "")]
    if roofline.ceilings is not None:
        parts.append(_slope(axes, roofline.ceilings.bytes_per_s, highest, " roof-measured"))
    (x1, y1), (x2, y2) = _ends(axes, bandwidth, highest)
    # Along the line, above it.
    x, y, angle = (x1 + x2) / 2, (y1 + y2) / 2, degrees(atan2(y2 - y1, x2 - x1))
    parts.append(
        f'<text class="roof-t" text-anchor="middle" x="{x:.1f}" y="{y - 10:.1f}" '
        f'transform="rotate({angle:.1f} {x:.1f} {y:.1f})">DRAM {rate_text(bandwidth, "B/s")}</text>'
    )
    return parts


def _ends(axes: _Axes, bandwidth: float, highest: float) -> tuple[tuple[float, float], tuple[float, float]]:
    first = max(10.0 ** axes.x[0], 10.0 ** axes.y[0] / bandwidth)
    return axes.at(first, first * bandwidth), axes.at(highest / bandwidth, highest)


def _slope(axes: _Axes, bandwidth: float, highest: float, style: str) -> str:
    (x1, y1), (x2, y2) = _ends(axes, bandwidth, highest)
    return f'<path class="roof-line roof-memory{style}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _roof(axes: _Axes, one: UnitWork, color: int, bandwidth: float, labels: _Labels) -> list[str]:
    parts = list[str]()
    for rate, style in ((one.rate, ""), (one.measured_rate, " roof-measured")):
        if rate:
            (x1, y), (x2, _) = axes.at(rate / bandwidth, rate), axes.at(10.0 ** axes.x[1], rate)
            parts.append(f'<path class="roof-line roof-c{color}{style}" d="M{x1:.1f} {y:.1f}H{x2:.1f}"/>')
    text = f"{one.unit} {rate_text(one.rate or 0, 'FLOP/s')}, from {(one.rate or 0) / bandwidth:.3g} FLOP/byte on"
    x, y = axes.at(10.0 ** axes.x[1], one.rate or 0)
    parts.append(
        _text(f"roof-f{color}", x - 6, labels.free(x - 6 - len(text) * _LETTER, y - 6, len(text)), text, "end")
    )
    return parts


def _point(axes: _Axes, roofline: Roofline, one: UnitWork, color: int, labels: _Labels) -> list[str]:
    low, high = roofline.intensity(one)
    reached = _reached(roofline, one)
    if not reached:
        return []
    (x1, y), (x2, _) = axes.at(low, reached), axes.at(high, reached)
    _, bottom = axes.at(low, 0)
    share = f", {duration_text(one.time_s[0])} alone" if one.time_s is not None else ""
    text = f"{one.unit}: {low:.3g} FLOP/byte{share}"
    left = x2 + 10 if x2 + 10 + len(text) * _LETTER < _WIDTH - _RIGHT else x1 - 10 - len(text) * _LETTER
    parts = [
        f'<line class="roof-drop roof-c{color}" x1="{x1:.1f}" x2="{x1:.1f}" y1="{y:.1f}" y2="{bottom:.1f}"/>',
        f'<circle class="roof-f{color} roof-point" cx="{x1:.1f}" cy="{y:.1f}" r="5.5">'
        f"<title>{escape(text)}</title></circle>",
        _text(f"roof-f{color}", left, labels.free(left, y + 4, len(text)), text, "start"),
    ]
    if x2 - x1 > 1:
        parts.append(f'<line class="roof-line roof-c{color}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
    return parts


class _Labels:
    """Where labels stand, so that none covers another."""

    def __init__(self) -> None:
        self._held: list[tuple[float, float, float]] = []

    def free(self, left: float, y: float, letters: int) -> float:
        """The nearest line downwards on which a text from `left` on meets no other."""
        right = left + letters * _LETTER
        while any(left < end and begin < right and abs(y - other) < _ROW for begin, end, other in self._held):
            y += 2
        self._held.append((left, right, y))
        return y


def _decade(value: float) -> float:
    return -inf if value <= 0 else inf if value == inf else log10(value)


def _text(style: str, x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="{style}" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
