"""Renders how the schedules of two SASS texts differ."""

from __future__ import annotations

from irscope.analysis.diff.schedule import ScheduleDiff
from irscope.render.text.tables import table, visible


def schedule_note(schedule: ScheduleDiff) -> str:
    """One line for where nothing but the schedule differs."""
    return f"the same instructions; the schedule differs in {len(schedule.changes)}: --schedule shows it"


def render_schedule(schedule: ScheduleDiff | None, *, width: int, color: bool) -> str:
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
