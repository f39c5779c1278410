"""The passes of a capture as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from irscope.analysis.passes.effects import PassEffect
from irscope.model.capture import Capture
from irscope.plan import PassRule
from irscope.render.text.figures import milliseconds
from irscope.render.text.tables import picked, table

_SLOW_FACTOR = 10
"""A pass that takes this many times the median of those that ran is marked as slow."""


def render_passes(capture: Capture, effects: list[PassEffect], *, width: int | None, color: bool) -> str:
    """Passes as a table: time, whether each changed the IR, and by how much."""
    times = sorted(effect.snapshot.duration_us for effect in effects if effect.snapshot.duration_us is not None)
    slow = max(times[len(times) // 2] * _SLOW_FACTOR, 5000) if times else None
    rows = [_cells(effect, slow) for effect in effects]
    columns = ["stage", "#", "pass", "ms", "", "ops ±", "lines ±", "layouts ±", "convert ±"]
    columns.append("MLIR argument and options")
    return table(columns, rows, width=width, color=color) + _footer(effects)


def _footer(effects: list[PassEffect]) -> str:
    ran = [effect.snapshot for effect in effects if effect.snapshot.outcome == "ran"]
    total = milliseconds(sum(snapshot.duration_us or 0 for snapshot in ran))
    parts = [f"{len(effects)} passes", f"{sum(1 for item in ran if item.changed)} changed the IR"]
    unknown = sum(1 for item in ran if item.changed is None)
    if unknown:
        parts.append(f"{unknown} not compared (? – --snapshots all does)")
    skipped = sum(1 for effect in effects if effect.snapshot.outcome == "skipped")
    if skipped:
        parts.append(f"{skipped} switched off")
    return f"\n{', '.join(parts)}; {total} ms.\n"


def _cells(effect: PassEffect, slow_us: float | None) -> list[str]:
    snapshot = effect.snapshot
    marks = {"skipped": "OFF", "failed": "FAILED"}
    mark = marks.get(snapshot.outcome) or {True: "changed", False: "", None: "?"}[snapshot.changed]
    duration = snapshot.duration_us
    time = "" if duration is None else milliseconds(duration)
    if duration is not None and slow_us is not None and duration >= slow_us:
        time += " SLOW"
    arguments = snapshot.argument + (f"{{{snapshot.options}}}" if snapshot.options else "")
    return [
        effect.stage_title,
        str(snapshot.index),
        effect.title,
        time,
        mark,
        _signed(effect.operations),
        _signed(effect.lines),
        _signed(effect.layouts),
        _signed(effect.convert_layouts),
        arguments + (f" on {snapshot.scope}" if snapshot.scope else ""),
    ]


def _signed(value: int | None) -> str:
    return "" if not value else f"{value:+d}"


def passes_json(capture: Capture, effects: list[PassEffect]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for effect in effects:
        row = asdict(effect.snapshot)
        del row["text"]
        row["plan_name"] = str(PassRule(effect.snapshot.name, effect.snapshot.stage, effect.snapshot.occurrence))
        row["text_left_out"] = effect.snapshot.text_left_out
        row |= {
            "lines_change": effect.lines,
            "operations_change": effect.operations,
            "layouts_change": effect.layouts,
            "convert_layouts_change": effect.convert_layouts,
            "by_operation": dict(effect.by_operation),
        }
        rows.append(row)
    return picked(capture, "id kernel=name target", passes=rows)
