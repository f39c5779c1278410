"""Renders a Comparison: the header, the tables, and the diffs of the stages that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from irscope.analysis.diff.captures import Change, Comparison
from irscope.analysis.diff.entries import TextDiff
from irscope.analysis.diff.schedule import ScheduleDiff
from irscope.model.capture import Capture
from irscope.render.text.diff import render_diff
from irscope.render.text.figures import difference, milliseconds, resource_title, resource_value
from irscope.render.text.tables import table, visible

_LARGEST = 6
_LINES = 12
_PASSES = 5


def render_comparison(
    comparison: Comparison,
    *,
    stages: Sequence[str],
    width: int | None = None,
    color: bool = False,
    side_by_side: bool = False,
    stat: bool = False,
    context: int = 3,
    schedule: bool = False,
) -> str:
    """A comparison as text: who is compared, in what they differ, tables, then the diffs of `stages`.

    `schedule` adds how the SASS of both sides is scheduled.
    """
    parts = [_header(comparison), _stage_table(comparison, width, color)]
    parts += _rows("resources", comparison.resources, width, color)
    if all(_has_assembly(one) for one in (comparison.left, comparison.right)):
        parts += _rows("instructions", comparison.instructions, width, color)
    parts += _line_table(comparison)
    parts += _pass_table(comparison, width, color)
    if schedule:
        parts.append(_schedule(comparison.schedule, width=width, color=color))
    if not stat:
        for stage in stages:
            parts.append(_stage_diff(comparison, stage, width, color, side_by_side, context))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _header(comparison: Comparison) -> str:
    left, right = comparison.left, comparison.right
    names = [visible(f"{one.id[:8]} {one.name} {one.target}") for one in (left, right)]
    lines = [f"--- {names[0]}", f"+++ {names[1]}"]
    width = max((len(change.name) for change in comparison.differences), default=0)
    for change in comparison.differences:
        lines.append(f"  {visible(change.name):<{width}}  {_value(change.left)} → {_value(change.right)}")
    if not comparison.differences:
        lines.append("  nothing that went in differs")
    if comparison.is_empty:
        lines.append("  every stage is the same")
    sass = next((stage.state for stage in comparison.stages if stage.stage == "sass"), "")
    if sass == "same" and comparison.schedule is not None and not comparison.schedule.is_empty:
        lines.append(f"  sass: {_schedule_note(comparison.schedule)}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    return "–" if value is None else visible(str(value))


def _stage_table(comparison: Comparison, width: int | None, color: bool) -> str:
    rows: list[list[str]] = []
    for stage in comparison.stages:
        before, after = stage.operations
        is_one_sided = stage.state in ("left only", "right only")
        operations = f"{before} → {after} ({after - before:+d})"
        if is_one_sided or before == after:
            operations = str(before or after or "")
        changed = [f"{one.name} {one.difference:+.0f}" for one in stage.largest[:_LARGEST] if one.difference]
        more = len(stage.largest) - _LARGEST
        changed += [f"{more} more"] if more > 0 else []
        rows.append([stage.stage, stage.state, operations, ", ".join(changed) or stage.summary])
    return table(["stage", "", "operations", "largest changes"], rows, width=width, color=color)


def _has_assembly(capture: Capture) -> bool:
    return any(name in capture.stages for name in ("sass", "amdgcn", "ptx"))


def _rows(title: str, changes: Sequence[Change], width: int | None, color: bool) -> list[str]:
    if not changes:
        return []
    rows = [[name, before, "→", after, by] for name, before, after, by in _change_cells(title, changes)]
    return [table([title, "before", "", "after", "±"], rows, width=width, color=color)]


def _change_cells(title: str, changes: Sequence[Change]) -> list[list[str]]:
    """The name, both values and the difference of each resource or count that changed."""
    return [
        [
            resource_title(change.name),
            resource_value(change.name, change.left),
            resource_value(change.name, change.right),
            difference(change.difference) if title == "instructions" or None not in (change.left, change.right) else "",
        ]
        for change in changes
    ]


def _line_table(comparison: Comparison) -> list[str]:
    if not comparison.lines:
        return []
    own = comparison.right.launch.kernel.file
    lines = ["Python lines whose operations changed most:"]
    for row in comparison.lines[:_LINES]:
        where = f"line {row.line}" if row.file == own else f"{PurePath(row.file).name}:{row.line}"
        lines.append(f"  {visible(where)}: " + ", ".join(f"{change:+d} {stage}" for stage, change in row.stages))
    if len(comparison.lines) > _LINES:
        lines.append(f"  and {len(comparison.lines) - _LINES} more lines")
    return ["\n".join(lines) + "\n"]


def _pass_table(comparison: Comparison, width: int | None, color: bool) -> list[str]:
    """The passes that ran on one side only, and those whose time changed most, side by side.

    Two compiles of one thing take different times: where nothing else differs, times are no difference.
    """
    rows = [row for row in comparison.passes if row.left_us is not None or row.right_us is not None]
    if all(row.left_us is None for row in rows) or all(row.right_us is None for row in rows):
        return []
    one_sided = [row for row in rows if row.outcome[0] != row.outcome[1]]
    if not one_sided and (comparison.is_empty or all(row.left_us == row.right_us for row in rows)):
        return []
    both = sorted(
        (row for row in rows if row not in one_sided), key=lambda row: -abs((row.right_us or 0) - (row.left_us or 0))
    )
    cells = [
        [row.label, _time(row.left_us, row.outcome[0]), "→", _time(row.right_us, row.outcome[1])]
        for row in (one_sided if comparison.is_empty else one_sided + both)[:_PASSES]
    ]
    if not comparison.is_empty:
        totals = [sum(row.left_us or 0 for row in rows), sum(row.right_us or 0 for row in rows)]
        cells.append([f"all {len(rows)}", milliseconds(totals[0]), "→", milliseconds(totals[1])])
    return [table(["passes, ms", "before", "", "after"], cells, width=width, color=color)]


def _time(duration_us: int | None, outcome: str) -> str:
    marks = {"skipped": "off", "failed": "failed", "absent": "–"}
    return marks.get(outcome) or ("–" if duration_us is None else milliseconds(duration_us))


def _stage_diff(
    comparison: Comparison, stage: str, width: int | None, color: bool, side_by_side: bool, context: int
) -> str:
    text_diff = comparison.diff(stage)
    title = f"diff of {stage}"
    if text_diff is None or text_diff.is_empty:
        return f"{title}: no difference but names and numbers\n" if text_diff is not None else f"{title}: none\n"
    body = render_diff(text_diff, side_by_side=side_by_side, width=width, color=color, context=context)
    return f"{title}: {text_diff.summary}\n{body}"


def _schedule_note(schedule: ScheduleDiff) -> str:
    """One line for where nothing but the schedule differs."""
    return f"the same instructions; the schedule differs in {len(schedule.changes)}: --schedule shows it"


def _schedule(schedule: ScheduleDiff | None, *, width: int | None, color: bool) -> str:
    """The instructions whose schedule differs, one row each."""
    if schedule is None:
        return "schedule of sass: not on both sides\n"
    count = len(schedule.changes)
    unpaired = f"; {schedule.unpaired} instructions are on one side only" if schedule.unpaired else ""
    title = f"schedule of sass: {count or 'none'} of {schedule.compared} instructions differ{unpaired}"
    if not count:
        return f"{title}\n"
    rows = [
        [
            f"{change.left_offset:04x}",
            f"{change.right_offset:04x}",
            ", ".join(f"{field.name} {field.left} → {field.right}" for field in change.fields),
            visible(change.text),
        ]
        for change in schedule.changes
    ]
    return f"{title}\n" + table(["left", "right", "schedule", "instruction"], rows, width=width, color=color)


def comparison_json(comparison: Comparison, stages: Sequence[str]) -> dict[str, Any]:
    """A comparison as JSON: all tables, and the entries of the diffs asked for."""
    return {
        "left": {"id": comparison.left.id, "kernel": comparison.left.name, "target": str(comparison.left.target)},
        "right": {"id": comparison.right.id, "kernel": comparison.right.name, "target": str(comparison.right.target)},
        "empty": comparison.is_empty,
        "differences": [asdict(change) for change in comparison.differences],
        "stages": [
            {
                "stage": stage.stage,
                "state": stage.state,
                "operations": list(stage.operations),
                "changes": {change.name: change.difference for change in stage.largest},
                "summary": stage.summary,
            }
            for stage in comparison.stages
        ],
        "resources": [asdict(change) for change in comparison.resources],
        "instructions": [asdict(change) for change in comparison.instructions],
        "lines": [{"file": row.file, "line": row.line, "stages": dict(row.stages)} for row in comparison.lines],
        "passes": [asdict(row) for row in comparison.passes],
        "schedule": comparison.schedule and asdict(comparison.schedule),
        "diffs": {stage: text_diff_json(found) for stage in stages if (found := comparison.diff(stage)) is not None},
    }


def text_diff_json(text_diff: TextDiff) -> dict[str, Any]:
    """The comparison of two texts as JSON."""
    return {"fallback": text_diff.fallback, "counts": dict(text_diff.counts), "unified": text_diff.unified()}
