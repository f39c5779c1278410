"""A diff as a table of HTML, for pages without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from irscope.analysis.diff.entries import TextDiff
from irscope.analysis.diff.marks import Span
from irscope.render.text.diff import Fold, diff_rows

_CONTEXT = 3


def diff_table(diff: TextDiff) -> str:
    """The two texts side by side, what is equal folded."""
    return f'<table class="diff"><tbody>{"".join(_rows(diff))}</tbody></table>'


def _rows(diff: TextDiff) -> Iterator[str]:
    for row in diff_rows(diff, _CONTEXT, rewired=True, fewest=2):
        if isinstance(row, Fold):
            yield f'<tr class="fold"><td colspan="4">{row.count} equal lines</td></tr>'
        else:
            cells = _cell(diff.left_lines, diff.left_numbers, row.left, row.left_marks)
            cells += _cell(diff.right_lines, diff.right_numbers, row.right, row.right_marks)
            yield f'<tr class="{row.op}">{cells}</tr>'


def _cell(lines: Sequence[str], numbers: Sequence[int], index: int, marks: tuple[Span, ...]) -> str:
    if index < 0:
        return "<td></td><td></td>"
    number = numbers[index] if index < len(numbers) else index + 1
    return f'<td class="number">{number}</td><td class="code">{_marked(lines[index], marks)}</td>'


def _marked(line: str, marks: tuple[Span, ...]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in marks:
        parts += [escape(line[at:start]), "<mark>", escape(line[start:end]), "</mark>"]
        at = end
    return "".join(parts) + escape(line[at:])
