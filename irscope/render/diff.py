"""Draws a TextDiff: unified with marked words, side by side, or as a summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from irscope.analysis.entries import DiffEntry, DiffOp, TextDiff
from irscope.analysis.marks import Span
from irscope.render.tables import masked

_RESET = "\x1b[0m"
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
class _Row:
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
    """Lines that are left out."""

    count: int
    what: str


def render_unified(
    diff: TextDiff,
    *,
    color: bool = False,
    context: int = 3,
    left_name: str = "left",
    right_name: str = "right",
    rewired: bool = False,
) -> str:
    """A unified diff for reading; empty where nothing differs.

    Without colour, changed words stand within `[-…-]` and `{+…+}`, and each changed operation is one line, marked
    `!`; moved lines are marked `<` where they were and `>` where they are. With `color`, changed operations are two
    lines with the words that differ reversed. Lines that only read another of several equal computations are folded,
    unless `rewired` asks for them. For a patch that tools apply, see `TextDiff.unified`.
    """
    if diff.is_empty:
        return ""
    painter = _Painter(color)
    lines = [painter.paint(f"--- {left_name}", "header"), painter.paint(f"+++ {right_name}", "header")]
    lines.extend(painter.paint(note, "faint") for note in _notes(diff))
    for row in _rows(diff, context, rewired):
        if isinstance(row, _Fold):
            lines.append(painter.paint(f"@@ {row.count} {row.what} @@", "hunk"))
        else:
            lines.extend(_unified_row(diff, row, painter))
    return "\n".join(lines) + "\n"


def _unified_row(diff: TextDiff, row: _Row, painter: _Painter) -> Iterator[str]:
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
        yield painter.marked(f"- {left}", _shifted(row.left_marks, 2), "removed")
        yield painter.marked(f"+ {right}", _shifted(row.right_marks, 2), "added")
    else:
        yield f"! {_merged(left, right, row.left_marks, row.right_marks)}"


def _merged(left: str, right: str, left_marks: tuple[Span, ...], right_marks: tuple[Span, ...]) -> str:
    # What both have in common is one text, cut at different places: walk the common stretches of both.
    parts = [right[: len(right) - len(right.lstrip())]]
    at_left, at_right = len(left) - len(left.lstrip()), len(parts[0])
    ours, theirs = list(left_marks), list(right_marks)
    while ours or theirs:
        to_left = ours[0][0] - at_left if ours else len(left) - at_left
        to_right = theirs[0][0] - at_right if theirs else len(right) - at_right
        common = min(to_left, to_right)
        parts.append(right[at_right : at_right + common])
        at_left, at_right = at_left + common, at_right + common
        if ours and to_left == common:
            start, end = ours.pop(0)
            parts.append(f"[-{left[start:end]}-]")
            at_left = end
        if theirs and to_right == common:
            start, end = theirs.pop(0)
            parts.append(f"{{+{right[start:end]}+}}")
            at_right = end
    return "".join(parts) + right[at_right:]


def render_side_by_side(
    diff: TextDiff, *, width: int = 120, color: bool = False, context: int = 3, rewired: bool = False
) -> str:
    """Both sides next to each other in `width` columns; empty where nothing differs.

    The sign between the columns says what became of a line: `|` changed, `<` only on the left, `>` only on the
    right, `~` moved. Lines too long for their column are cut with an ellipsis, around the first word that differs.
    """
    if diff.is_empty:
        return ""
    painter = _Painter(color)
    column = max(8, (width - 3) // 2)
    lines = [painter.paint(note, "faint") for note in _notes(diff)]
    for row in _rows(diff, context, rewired):
        if isinstance(row, _Fold):
            lines.append(painter.paint(f"{f' {row.count} {row.what} ':·^{2 * column + 3}}", "hunk"))
            continue
        left = _cell(diff.left_lines, row.left, row.left_marks, column, painter, _LEFT_STYLES.get(row.op, ""))
        right = _cell(diff.right_lines, row.right, row.right_marks, column, painter, _RIGHT_STYLES.get(row.op, ""))
        lines.append(f"{left} {_SIGNS[row.op]} {right}".rstrip())
    return "\n".join(lines) + "\n"


_SIGNS: Mapping[DiffOp, str] = {"equal": " ", "changed": "|", "removed": "<", "added": ">", "moved": "~"}
_LEFT_STYLES: Mapping[DiffOp, str] = {"changed": "removed", "removed": "removed", "moved": "moved"}
_RIGHT_STYLES: Mapping[DiffOp, str] = {"changed": "added", "added": "added", "moved": "moved"}


def _cell(lines: tuple[str, ...], line: int, marks: tuple[Span, ...], width: int, painter: _Painter, style: str) -> str:
    if line < 0:
        return " " * width
    text = masked(lines[line])
    start = 0
    if len(text) > width and marks and marks[0][0] > width - 12:
        start = min(marks[0][0] - width // 3, len(text) - width)
    shown = text[start : start + width]
    if start:
        shown = "…" + shown[1:]
    if start + width < len(text):
        shown = shown[:-1] + "…"
    inside = tuple((max(0, a - start), min(width, b - start)) for a, b in marks if b > start and a < start + width)
    return painter.marked(shown, inside, style) + " " * (width - len(shown))


_BARS: tuple[tuple[DiffOp, str], ...] = (("added", "+"), ("removed", "-"), ("changed", "!"), ("moved", "~"))


def render_stat(diff: TextDiff, *, width: int = 60) -> str:
    """One line a kind of change, with a bar; then the sentence of `TextDiff.summary`."""
    counts = diff.counts
    largest = max((count for op, count in counts.items() if op != "equal"), default=0)
    lines: list[str] = []
    for op, sign in _BARS:
        if counts[op]:
            bar = sign * max(1, round(counts[op] * (width - 20) / max(largest, width - 20)))
            lines.append(f" {op:<8} {counts[op]:>6} | {bar}")
    return "\n".join([*lines, *_notes(diff, unrelated=False), diff.summary]) + "\n"


def _notes(diff: TextDiff, *, unrelated: bool = True) -> Iterator[str]:
    if diff.fallback:
        yield diff.fallback
    if unrelated and diff.is_unrelated:
        yield "The texts have next to nothing in common."


def _rows(diff: TextDiff, context: int, rewired: bool) -> Iterator[_Row | _Fold]:
    """The rows near a change; what stands between is folded."""
    last = len(diff.entries) - 1
    for index, entry in enumerate(diff.entries):
        if entry.op == "equal":
            yield from _context(entry, context, is_first=not index, is_last=index == last)
        elif entry.is_rewired and not rewired:
            before = diff.entries[index - 1] if index else None
            if before is None or not before.is_rewired:
                yield _Fold(_rewired_run(diff, index), "that only read an equal value from elsewhere")
        elif entry.op == "changed":
            left_marks, right_marks = diff.marks(entry)
            yield _Row("changed", entry.left.start, entry.right.start, left_marks, right_marks)
        else:
            partners = iter(entry.partner or ())
            for line in entry.left:
                yield _Row(entry.op, line, -1, partner=next(partners, -1))
            for line in entry.right:
                yield _Row(entry.op, -1, line, partner=next(partners, -1))


def _rewired_run(diff: TextDiff, index: int) -> int:
    count = 0
    while index + count < len(diff.entries) and diff.entries[index + count].is_rewired:
        count += 1
    return count


def _context(entry: DiffEntry, context: int, *, is_first: bool, is_last: bool) -> Iterator[_Row | _Fold]:
    count = len(entry.left)
    head = 0 if is_first else min(context, count)
    tail = 0 if is_last else min(context, count - head)
    hidden = count - head - tail
    for offset in range(count):
        if hidden > 0 and offset == head:
            yield _Fold(hidden, "equal")
        if offset < head or offset >= count - tail:
            yield _Row("equal", entry.left[offset], entry.right[offset])


def _shifted(marks: tuple[Span, ...], by: int) -> tuple[Span, ...]:
    return tuple((start + by, end + by) for start, end in marks)


class _Painter:
    """Puts terminal colours around text, or nothing."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def paint(self, text: str, style: str) -> str:
        return f"{_STYLES[style]}{text}{_RESET}" if self.color and style else text

    def marked(self, text: str, marks: tuple[Span, ...], style: str) -> str:
        """A text in one style, with some spans reversed."""
        if not self.color or not style:
            return text
        parts: list[str] = []
        at = 0
        for start, end in marks:
            parts += [text[at:start], _STYLES["mark"], text[start:end], _STYLES["unmark"]]
            at = end
        return self.paint("".join([*parts, text[at:]]), style)
