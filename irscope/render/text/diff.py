"""Draws a TextDiff, unified with marked words or side by side, and a Comparison of two captures with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile, zip_longest
from pathlib import PurePath
from typing import Any

from irscope.analysis.diff.captures import Change, Comparison, ScheduleDiff
from irscope.analysis.diff.texts import DiffEntry, DiffOp, Span, TextDiff
from irscope.analysis.resources import assembly_of
from irscope.model.plain import picked
from irscope.render.text.tables import (
    WIDE,
    difference,
    masked,
    milliseconds,
    resource_title,
    resource_value,
    shorten,
    table,
    visible,
)

_RESET = "\x1b[0m"
_AROUND = 2
_STYLES = {
    "removed": "\x1b[31m",
    "added": "\x1b[32m",
    "moved": "\x1b[36m",
    "header": "\x1b[1m",
    "hunk": "\x1b[35m",
    "faint": "\x1b[2m",
    "mark": "\x1b[7m",
    "unmark": "\x1b[27m",
}


@dataclass(frozen=True, slots=True)
class _DiffRow:
    """One line of the drawing: what stands on the left and on the right, by line; -1 for nothing."""

    op: DiffOp
    left: int
    right: int
    left_marks: tuple[Span, ...] = ()
    right_marks: tuple[Span, ...] = ()
    partner: int = -1
    """For a moved line, where it stands on the other side."""


@dataclass(frozen=True, slots=True)
class _Fold:
    count: int
    what: str


def render_unified(
    diff: TextDiff,
    *,
    color: bool = False,
    context: int = 3,
    left_name: str = "left",
    right_name: str = "right",
) -> str:
    """A unified diff for reading, or an empty string if nothing differs.

    Without colour, changed words stand within `[-…-]` and `{+…+}`, and each changed operation is one line, marked
    `!`; moved lines are marked `<` where they were and `>` where they are. With `color`, changed operations are two
    lines with the words that differ reversed. Lines that only read another of several equal computations are folded.
    For a patch that tools apply, see `TextDiff.unified`.
    """
    if diff.is_empty:
        return ""
    painter = _Painter(color)
    lines = [painter.paint(f"--- {left_name}", "header"), painter.paint(f"+++ {right_name}", "header")]
    lines.extend(painter.paint(note, "faint") for note in _notes(diff))
    for row in _diff_rows(diff, context):
        if isinstance(row, _Fold):
            lines.append(painter.paint(f"@@ {row.count} {row.what} @@", "hunk"))
        else:
            lines.extend(_unified_row(diff, row, painter))
    return "\n".join(lines) + "\n"


def render_diff(
    diff: TextDiff, *, side_by_side: bool, width: int | None = None, color: bool = False, context: int = 3
) -> str:
    if side_by_side:
        return render_side_by_side(diff, width=width, color=color, context=context)
    return render_unified(diff, color=color, context=context)


def render_around(diff: TextDiff, lefts: Collection[int], rights: Collection[int], *, color: bool = False) -> str:
    """The rows of a diff around lines of the left and of the right text, by their 1-based numbers in these."""
    rows = [row for row in _diff_rows(diff, len(diff.left_lines), rewired=True) if not isinstance(row, _Fold)]
    wanted = {
        near
        for index, row in enumerate(rows)
        if (row.left >= 0 and diff.left_numbers[row.left] in lefts)
        or (row.right >= 0 and diff.right_numbers[row.right] in rights)
        for near in range(index - _AROUND, index + _AROUND + 1)
    }
    painter = _Painter(color)
    lines: list[str] = []
    for index, row in enumerate(rows):
        if index in wanted:
            lines.extend(_unified_row(diff, row, painter))
        elif index - 1 in wanted:
            lines.append(painter.paint("@@", "hunk"))
    return "\n".join(lines) + "\n" if lines else ""


def _unified_row(diff: TextDiff, row: _DiffRow, painter: _Painter) -> Iterator[str]:
    left = masked(diff.left_lines[row.left]) if row.left >= 0 else ""
    right = masked(diff.right_lines[row.right]) if row.right >= 0 else ""
    if row.op == "equal":
        yield f"  {right}"
    elif row.op == "removed":
        yield painter.paint(f"- {left}", "removed")
    elif row.op == "added":
        yield painter.paint(f"+ {right}", "added")
    elif row.op == "moved":
        sign, text, numbers = ("<", left, diff.right_numbers) if row.left >= 0 else (">", right, diff.left_numbers)
        way = "to" if row.left >= 0 else "from"
        note = f"  // moved {way} line {numbers[row.partner]}"
        yield painter.paint(f"{sign} {text}", "moved") + painter.paint(note, "faint")
    elif painter.color:
        yield painter.marked(left, row.left_marks, "removed", "- ")
        yield painter.marked(right, row.right_marks, "added", "+ ")
    else:
        yield f"! {_merged(left, right, row.left_marks, row.right_marks)}"


def _merged(left: str, right: str, left_marks: tuple[Span, ...], right_marks: tuple[Span, ...]) -> str:
    # Outside the marks both have the same text but for blanks: what is removed stands behind as many other characters.
    removed: deque[tuple[int, bool, str]] = deque()
    ink = at = 0
    for start, end in left_marks:
        ink += len("".join(left[at:start].split()))
        removed.append((ink, left[start - 1 : start].isspace(), f"[-{left[start:end]}-]"))
        at = end
    added = dict(right_marks)
    ink, at = 0, len(right) - len(right.lstrip())
    parts = [right[:at]]
    while at < len(right):
        is_blank = right[at].isspace() and at not in added
        while removed and removed[0][0] <= ink and not (removed[0][1] and is_blank):
            parts.append(removed.popleft()[2])
        end = added.get(at, at + 1)
        parts.append(f"{{+{right[at:end]}+}}" if at in added else right[at])
        ink += at not in added and not is_blank
        at = end
    return "".join((*parts, *(text for _, _, text in removed)))


def render_side_by_side(diff: TextDiff, *, width: int | None = None, color: bool = False, context: int = 3) -> str:
    """Both sides next to each other in `width` columns, or an empty string if nothing differs.

    The sign between the columns shows the change: `|` changed, `<` only on the left, `>` only on the
    right, `~` moved. Lines too long for their column continue below; of a changed line, parts without a difference are
    left out, for which `…` stands, and of an equal line what does not fit.
    """
    if diff.is_empty:
        return ""
    painter = _Painter(color)
    column = max(_NARROWEST, ((width or WIDE) - 3) // 2)
    lines = [painter.paint(note, "faint") for note in _notes(diff)]
    for row in _diff_rows(diff, context):
        if isinstance(row, _Fold):
            lines.append(painter.paint(f"{f' {row.count} {row.what} ':·^{2 * column + 3}}", "hunk"))
            continue
        left = _cell(diff.left_lines, row.left, row.left_marks, column, painter, row.op, _LEFT_STYLES)
        right = _cell(diff.right_lines, row.right, row.right_marks, column, painter, row.op, _RIGHT_STYLES)
        for number, (one, other) in enumerate(zip_longest(left, right, fillvalue=" " * column)):
            lines.append(f"{one} {' ' if number else _SIGNS[row.op]} {other}".rstrip())
    return "\n".join(lines) + "\n"


_SIGNS: Mapping[DiffOp, str] = {"equal": " ", "changed": "|", "removed": "<", "added": ">", "moved": "~"}
_LEFT_STYLES: Mapping[DiffOp, str] = {"changed": "removed", "removed": "removed", "moved": "moved"}
_RIGHT_STYLES: Mapping[DiffOp, str] = {"changed": "added", "added": "added", "moved": "moved"}


_NARROWEST = 8
_HANGING = "  "


def _cell(
    lines: tuple[str, ...],
    line: int,
    marks: tuple[Span, ...],
    width: int,
    painter: _Painter,
    op: DiffOp,
    styles: Mapping[DiffOp, str],
) -> Iterator[str]:
    if line < 0:
        return
    text = masked(lines[line])
    if op == "equal":
        yield shorten(text, width).ljust(width)
        return
    parts = _parts(text, width)
    chosen = [
        index
        for index, (start, end) in enumerate(parts)
        if not index or not marks or any(a < end and b > start for a, b in marks)
    ]
    for index, after in zip_longest(chosen, chosen[1:], fillvalue=len(parts)):
        start, end = parts[index]
        before = _HANGING if start else ""
        behind = " …" if after > index + 1 else ""
        inside = tuple((max(a, start) - start, min(b, end) - start) for a, b in marks if b > start and a < end)
        blanks = " " * (width - len(before) - (end - start) - len(behind))
        yield before + painter.marked(text[start:end], inside, styles.get(op, "")) + behind + blanks


def _parts(text: str, width: int) -> list[Span]:
    """The parts of a text for a column, broken between words; only a word that is wider is broken itself."""
    if len(text) <= width:
        return [(0, len(text))]
    found: list[Span] = []
    start, end = 0, len(text.rstrip())
    while start < end:
        # Room for the sign of what is left out behind it, and for the blanks before what is not the first.
        room = width - 2 - (len(_HANGING) if found else 0)
        ink = start + len(text[start:]) - len(text[start:].lstrip())
        blank = text.rfind(" ", ink, start + room + 1) if end - start > room else end
        stop = min(blank if blank > ink else start + room, end)
        found.append((start, stop))
        start = stop + (text[stop : stop + 1] == " ")
    return found


def _notes(diff: TextDiff) -> Iterator[str]:
    if diff.fallback:
        yield diff.fallback
    if diff.is_unrelated:
        yield "The texts have hardly a line in common."


def _diff_rows(diff: TextDiff, context: int, *, rewired: bool = False) -> Iterator[_DiffRow | _Fold]:
    """The rows near a change; the equal rows between are folded, and without `rewired` those only rewired too."""
    last = len(diff.entries) - 1
    for index, entry in enumerate(diff.entries):
        if entry.op == "equal":
            head, tail = context if index else 0, context if index < last else 0
            yield from _context(entry, head, tail)
        elif entry.is_rewired and not rewired:
            if not index or not diff.entries[index - 1].is_rewired:
                run = takewhile(lambda one: one.is_rewired, diff.entries[index:])
                yield _Fold(sum(1 for _ in run), "that only read an equal value from elsewhere")
        elif entry.op == "changed":
            left_marks, right_marks = diff.marks(entry)
            yield _DiffRow("changed", entry.left.start, entry.right.start, left_marks, right_marks)
        else:
            partners = iter(entry.partner or ())
            for line in entry.left:
                yield _DiffRow(entry.op, line, -1, partner=next(partners, -1))
            for line in entry.right:
                yield _DiffRow(entry.op, -1, line, partner=next(partners, -1))


def _context(entry: DiffEntry, head: int, tail: int) -> Iterator[_DiffRow | _Fold]:
    count = len(entry.left)
    hidden = count - head - tail
    for offset in range(count):
        if hidden < 1 or offset < head or offset >= count - tail:
            yield _DiffRow("equal", entry.left[offset], entry.right[offset])
        elif offset == head:
            yield _Fold(hidden, "equal")


class _Painter:
    """Puts terminal colours around text, or nothing."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def paint(self, text: str, style: str) -> str:
        return f"{_STYLES[style]}{text}{_RESET}" if self.color and style else text

    def marked(self, text: str, marks: tuple[Span, ...], style: str, sign: str = "") -> str:
        """A text in one style behind its sign, with some spans reversed."""
        if not self.color or not style:
            return sign + text
        parts = [sign]
        at = 0
        for start, end in marks:
            parts += [text[at:start], _STYLES["mark"], text[start:end], _STYLES["unmark"]]
            at = end
        return self.paint("".join([*parts, text[at:]]), style)


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
    if assembly_of(comparison.left) and assembly_of(comparison.right):
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
        lines.append("  no difference in the inputs")
    if comparison.is_empty:
        lines.append("  every stage is the same")
    sass = next((stage.state for stage in comparison.stages if stage.stage == "sass"), "")
    if sass == "same" and comparison.schedule is not None and not comparison.schedule.is_empty:
        count = len(comparison.schedule.changes)
        lines.append(f"  sass: the same instructions; the schedule differs in {count}: --schedule shows it")
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


def _schedule(schedule: ScheduleDiff | None, *, width: int | None, color: bool) -> str:
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
    sides = {name: getattr(comparison, name) for name in ("left", "right")}
    changes = {name: getattr(comparison, name) for name in ("differences", "resources", "instructions", "passes")}
    return {
        **{name: picked(one, "id kernel=name target") for name, one in sides.items()},
        **{name: [asdict(row) for row in rows] for name, rows in changes.items()},
        "empty": comparison.is_empty,
        "stages": [
            picked(stage, "stage state operations summary")
            | {"changes": {change.name: change.difference for change in stage.largest}}
            for stage in comparison.stages
        ],
        "lines": [picked(row, "file line", stages=dict(row.stages)) for row in comparison.lines],
        "schedule": comparison.schedule and asdict(comparison.schedule),
        "diffs": {stage: text_diff_json(diff) for stage in stages if (diff := comparison.diff(stage)) is not None},
    }


def text_diff_json(text_diff: TextDiff) -> dict[str, Any]:
    return picked(text_diff, "fallback", counts=dict(text_diff.counts), unified=text_diff.unified())
