"""Figures as people read them: a share, a duration, a resource by its name. One way for each, everywhere.

JSON holds the numbers themselves, unrounded; the report's page has the same rules in `frontend/src/format.ts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.ir.locations.model import is_library

_PERCENT = "_percent"


def percent(fraction: float) -> str:
    """`12.5 %`, `50 %`: one decimal if needed. Tiny shares are distinguished from 0, and almost all from 100 %."""
    value = round(100 * fraction, 1)
    if value == 0 < fraction:
        return "< 0.1 %"
    if value == 100 > 100 * fraction:
        return "> 99.9 %"
    return f"{value:g} %"


def milliseconds(duration_us: float) -> str:
    """`0.42`, `12.5`, `204` of a duration in microseconds: about three digits."""
    decimals = 2 if duration_us < 10_000 else 1 if duration_us < 100_000 else 0
    return f"{duration_us / 1000:.{decimals}f}"


def resource_title(name: str) -> str:
    """`spill store bytes`; a share's name goes without its unit, which stands beside the figure."""
    return name.removesuffix(_PERCENT).replace("_", " ")


def resource_value(name: str, value: Any) -> str:
    """A resource, a dash where it is not known; shares (`occupancy_percent`) as shares."""
    if value is None:
        return "–"
    return percent(value / 100) if name.endswith(_PERCENT) else str(value)


def scaled(value: float, units: Sequence[tuple[float, str]], digits: int = 3) -> str:
    """`4.18 TB/s`: a value in the first unit that it reaches, (factor, name) from the largest on; else in the last."""
    factor, name = next((one for one in units if value >= one[0]), units[-1])
    return f"{value / factor:.{digits}g} {name}".rstrip()


def difference(value: float | None) -> str:
    """`+12.5`, `-3`: how far one figure is from another, to a tenth."""
    return "" if value is None else f"{round(value, 1):+g}"


def short_name(path: str) -> str:
    """A library file's path from `triton/` on; another file's name."""
    plain = path.replace("\\", "/")
    start = f"/{plain}".rfind("/triton/")
    return plain[start:] if start >= 0 and is_library(path) else plain.rpartition("/")[2]


_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def duration_text(seconds: float) -> str:
    """`1.25 µs`: three digits."""
    return scaled(seconds, _TIMES)
