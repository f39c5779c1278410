"""Renders comparisons as one page of HTML: without scripts or requests, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from irscope.analysis.diff.captures import Change, Comparison
from irscope.analysis.diff.entries import TextDiff
from irscope.analysis.diff.marks import Span
from irscope.render.pages.page import render_page
from irscope.render.text.compare import change_cells
from irscope.render.text.diff import Fold, diff_rows

_CONTEXT = 3


def render_comparisons_html(comparisons: Sequence[Comparison]) -> str:
    """A page with each comparison's header, tables and the side-by-side diffs of its stages, folded.

    Everything that comes from a capture is escaped text. A content security policy forbids scripts and requests.
    """
    body = "\n".join(_comparison(comparison) for comparison in comparisons)
    names = ", ".join(dict.fromkeys(comparison.right.name for comparison in comparisons))
    return render_page(f"irscope diff: {names}", body, styles=("compare.css",))


def _comparison(comparison: Comparison) -> str:
    left, right = comparison.left, comparison.right
    parts = [
        f"<h1>{escape(left.name)} <small>{escape(str(left.target))} · {left.id[:8]}</small> → "
        f"{escape(right.name)} <small>{escape(str(right.target))} · {right.id[:8]}</small></h1>",
        _changes("What went in", comparison.differences, counted=False),
        _stages(comparison),
        _changes("Resources", comparison.resources),
        _changes("Instructions", comparison.instructions),
    ]
    for stage, text_diff in comparison.diffs:
        if not text_diff.is_empty:
            summary = f"{escape(stage)} <small>{escape(text_diff.summary)}</small>"
            parts.append(f"<details><summary>{summary}</summary>{diff_table(text_diff)}</details>")
    return "\n".join(filter(None, parts))


def _changes(title: str, changes: Sequence[Change], counted: bool = True) -> str:
    if not changes:
        return ""
    rows = change_cells(changes)
    if not counted:
        rows = [[change.name, *cells[1:3], ""] for change, cells in zip(changes, rows, strict=True)]
    return _table(title, ["", "before", "after", "±"], rows)


def _stages(comparison: Comparison) -> str:
    rows: list[list[str]] = []
    for stage in comparison.stages:
        largest = ", ".join(f"{item.name} {item.difference:+.0f}" for item in stage.largest[:8] if item.difference)
        before, after = stage.operations
        rows.append([stage.stage, stage.state, str(before or ""), str(after or ""), largest or stage.summary])
    return _table("Stages", ["", "", "before", "after", "largest changes"], rows)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2>\n<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


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
