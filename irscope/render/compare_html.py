"""Renders comparisons as one page of HTML: no script, no request, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from irscope.analysis.compare import Change, Comparison
from irscope.analysis.entries import DiffEntry, TextDiff
from irscope.analysis.marks import Span
from irscope.render.assets import read_asset
from irscope.render.figures import difference, resource_title, resource_value

_CONTEXT = 3


def render_comparisons_html(comparisons: Sequence[Comparison]) -> str:
    """A page with each comparison's header, tables and the side-by-side diffs of its stages, folded.

    Everything that comes from a capture is escaped text. A content security policy forbids scripts and requests.
    """
    body = "\n".join(_comparison(comparison) for comparison in comparisons)
    names = ", ".join(dict.fromkeys(comparison.right.name for comparison in comparisons))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>irscope diff: {escape(names)}</title>\n<style>\n{read_asset('compare.css')}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


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
            parts.append(f"<details><summary>{summary}</summary>{_side_by_side(text_diff)}</details>")
    return "\n".join(filter(None, parts))


def _changes(title: str, changes: Sequence[Change], counted: bool = True) -> str:
    if not changes:
        return ""
    rows = [
        [
            resource_title(change.name) if counted else change.name,
            resource_value(change.name, change.left),
            resource_value(change.name, change.right),
            difference(change.difference) if counted else "",
        ]
        for change in changes
    ]
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


def _side_by_side(diff: TextDiff) -> str:
    return f'<table class="diff"><tbody>{"".join(_rows(diff))}</tbody></table>'


def _rows(diff: TextDiff) -> Iterator[str]:
    last = len(diff.entries) - 1
    for number, entry in enumerate(diff.entries):
        if entry.op == "equal":
            yield from _equal(diff, entry, head=_CONTEXT if number else 0, tail=_CONTEXT if number < last else 0)
            continue
        for index in range(max(len(entry.left), len(entry.right))):
            left = entry.left[index] if index < len(entry.left) else None
            right = entry.right[index] if index < len(entry.right) else None
            marks = diff.marks(entry) if entry.op == "changed" else ((), ())
            yield _row(diff, entry.op, left, right, *marks)


def _equal(diff: TextDiff, entry: DiffEntry, head: int, tail: int) -> Iterator[str]:
    pairs = list(zip(entry.left, entry.right, strict=True))
    folded = len(pairs) - head - tail
    if folded <= 1:
        for left, right in pairs:
            yield _row(diff, "equal", left, right)
        return
    for left, right in pairs[:head]:
        yield _row(diff, "equal", left, right)
    yield f'<tr class="fold"><td colspan="4">{folded} equal lines</td></tr>'
    for left, right in pairs[len(pairs) - tail :]:
        yield _row(diff, "equal", left, right)


def _row(
    diff: TextDiff,
    op: str,
    left: int | None,
    right: int | None,
    left_marks: tuple[Span, ...] = (),
    right_marks: tuple[Span, ...] = (),
) -> str:
    cells = _cell(diff.left_lines, diff.left_numbers, left, left_marks)
    cells += _cell(diff.right_lines, diff.right_numbers, right, right_marks)
    return f'<tr class="{op}">{cells}</tr>'


def _cell(lines: Sequence[str], numbers: Sequence[int], index: int | None, marks: tuple[Span, ...]) -> str:
    if index is None:
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
