"""A launch's roofline as text and as JSON: what it computes and moves, and the least time for each of them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from irscope.analysis.roofline.model import MEMORY, OperationWork, Roofline, UnitWork, mark
from irscope.memory.access import MOST, Span
from irscope.memory.programs.footprint import SECTOR_BYTES
from irscope.render.text.bench import rate_text
from irscope.render.text.tables import table

__all__ = ["bytes_text", "duration_text", "floor_line", "headline", "roofline_json", "roofline_text"]

_MOST_ROWS = 12
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


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
    """The least time and what sets it, in words."""
    floor, by = roofline.floor_s, roofline.bound_by
    if floor is None:
        said = "The least time is not known: no peak of this target is."
    elif not by:
        said = "It computes nothing and moves nothing, as far as it was counted."
    else:
        said = f"Least time: {duration_text(floor[0])}, bound by {' or '.join(by)}."
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
        "at best",
        *(["measured"] if has_measured else []),
        "least time",
        "FLOP/byte",
        "ridge",
    ]
    memory: list[object] = [
        MEMORY, _span_text(roofline.dram_bytes, bytes_text), mark(roofline.dram_bytes),
        rate_text(roofline.bytes_per_s, "B/s") if roofline.bytes_per_s else "no known peak",
        *([rate_text(roofline.ceilings.bytes_per_s, "B/s")] if roofline.ceilings is not None else []),
        _duration_span(roofline.memory_time_s), "", "",
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
        _duration_span(one.time_s), _intensity_text(roofline.intensity(one)), f"{ridge:.3g}" if ridge else "–",
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
        table(["argument", "", "distinct", "", "in sectors", "asked for"], rows, width=width, color=color)
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
            f"caches: the instructions ask for {_span_text(asked.bytes, bytes_text)}, and touch "
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
            "after another where they are the same: no least time counts them."
        )
    most = roofline.distinct_bytes[1]
    if roofline.l2_bytes is not None and 0 < most <= roofline.l2_bytes:
        notes.append(
            f"All of it fits into an L2 cache of {bytes_text(roofline.l2_bytes)}: a launch that finds it there is not "
            "held to the memory's least time."
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
    peaks = roofline.peaks
    return {
        "id": roofline.capture_id,
        "kernel": roofline.kernel,
        "target": roofline.target,
        "grid": roofline.grid,
        "part": peaks and {
            "name": peaks.part,
            "title": peaks.name,
            "matrix_clock_mhz": peaks.clocks_mhz[0],
            "clock_mhz": peaks.clocks_mhz[1],
            "source": peaks.source,
        },
        "other_parts": roofline.other_parts,
        "memory": {
            "dram_bytes": _span(roofline.dram_bytes),
            "distinct_bytes": _span(roofline.distinct_bytes),
            "bytes_per_s": roofline.bytes_per_s,
            "time_s": _times(roofline.memory_time_s),
            "requested_bytes": roofline.requested and _span(roofline.requested.bytes),
            "cache_bytes": roofline.requested and _span(roofline.requested.moved_bytes),
            "cache_certainty": roofline.requested and roofline.requested.certainty,
            "l2_bytes": roofline.l2_bytes,
            "spilled_bytes": roofline.spilled_bytes,
            "atomic_elements": _span(roofline.atomics),
            "arguments": [
                {
                    "argument": one.argument,
                    "access": "read" if one.is_read else "written",
                    "distinct_bytes": _span(one.distinct_bytes),
                    "sectors": _span(one.sectors),
                    "requested_bytes": _span(one.requested_bytes),
                }
                for one in roofline.touched
            ],
        },
        "units": [
            {
                "unit": one.unit.kind,
                "dtype": one.unit.dtype,
                "flops": _span(one.flops),
                "executed_flops": _span(one.executed_flops),
                "flops_per_s": one.rate,
                "measured_flops_per_s": one.measured_rate,
                "time_s": _times(one.time_s),
                "intensity": _times(roofline.intensity(one)),
                "ridge": roofline.ridge(one),
            }
            for one in roofline.units
        ],
        "operations": [
            {
                "line": one.line,
                "operation": one.operation,
                "source": one.place,
                "unit": one.unit.kind,
                "dtype": one.unit.dtype,
                "flops_each": one.flops_each,
                "executions": _span(one.executions),
                "flops": _span(one.flops),
                "copies": one.copies,
            }
            for one in roofline.operations
        ],
        "floor_s": _times(roofline.floor_s),
        "bound_by": roofline.bound_by,
        "measured": roofline.ceilings and {
            "device": roofline.ceilings.device,
            "date": roofline.ceilings.date,
            "bytes_per_s": roofline.ceilings.bytes_per_s,
            "flops_per_s": dict(roofline.ceilings.flops_per_s),
            "time_s": roofline.measured_s,
        },
        "assumed": roofline.assumed,
        "notes": roofline.notes,
    }  # fmt: skip


def _span(span: Span) -> dict[str, int | None]:
    return {"least": span[0], "most": None if span[1] >= MOST else span[1]}


def _times(times: tuple[float, float] | None) -> dict[str, float | None] | None:
    return None if times is None else {"least": times[0], "most": None if times[1] == inf else times[1]}


def _count_text(value: int) -> str:
    return f"{value:,}"


def _span_text(span: Span, text: Callable[[int], str]) -> str:
    low, high = span
    if low == high:
        return text(low)
    return f"at least {text(low)}" if high >= MOST else f"{text(low)} to {text(high)}"


def _duration_span(times: tuple[float, float] | None) -> str:
    if times is None:
        return "–"
    low, high = times
    if low == high:
        return duration_text(low)
    return f"at least {duration_text(low)}" if high == inf else f"{duration_text(low)} to {duration_text(high)}"


def _intensity_text(sides: tuple[float, float]) -> str:
    low, high = sides
    if low == high:
        return f"{low:.3g}"
    return f"at least {low:.3g}" if high == inf else f"{low:.3g} to {high:.3g}"


def duration_text(seconds: float) -> str:
    """`1.25 µs`: three digits."""
    for factor, unit in _TIMES:
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.2g} ns" if seconds else "0 ns"


def bytes_text(value: int) -> str:
    """`1.5 MiB`; below a KiB and where it is no round number of them also the bytes."""
    for factor, unit in _SIZES:
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value} B"
