"""Renders an Upgrade as one page of HTML: a block for each kernel, its explanation, and the IR behind a click."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from irscope.analysis.upgrade.model import Row
from irscope.analysis.upgrade.report import Upgrade
from irscope.render.pages.compare import diff_table
from irscope.render.pages.page import render_page
from irscope.render.text.upgrade import changes_text, explanation, headline, sorted_rows, stages_text

_SHOWN_LINES = 5
"""Of the explanation, below the name and what changed: seven lines in all before a click."""


def render_upgrade_html(upgrade: Upgrade, *, every: bool) -> str:
    """The page. What comes from a capture is escaped text; a policy forbids scripts and requests."""
    before, after = upgrade.versions
    body = "\n".join(_parts(upgrade, every))
    return render_page(f"irscope upgrade: Triton {before} → {after}", body, styles=("compare.css", "upgrade.css"))


def _parts(upgrade: Upgrade, every: bool) -> Iterator[str]:
    before, after = upgrade.versions
    yield f"<h1>Triton {escape(before)} → {escape(after)}</h1>"
    yield f"<p>{escape(headline(upgrade).partition(': ')[2])}</p>"
    for note in upgrade.notes:
        yield f"<p><small>{escape(note)}</small></p>"
    for row in sorted_rows(upgrade.rows, every):
        yield _row(row, upgrade.versions)


def _row(row: Row, versions: tuple[str, str]) -> str:
    capture = row.capture
    name = f"{escape(capture.name)} <small>{escape(' '.join(filter(None, [str(capture.target), row.variant])))}</small>"
    where = stages_text(row.blame)
    changed = changes_text(row, 4) + (f" — comes in {where}" if where else "")
    lines = [line for line in explanation(row, versions, diff_lines=0) if line][:_SHOWN_LINES]
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    parts = [
        f'<section class="{row.verdict}"><h2><span class="verdict">{row.verdict}</span> {name}</h2>',
        f"<p>{escape(changed)}</p>",
        f"<ul>{listed}</ul>" if listed else "",
        _facts(row),
    ]
    guilty = row.blame.guilty if row.blame is not None else None
    if guilty is not None and guilty.diff is not None and not guilty.diff.is_empty:
        summary = f"the IR after {escape(guilty.label)} <small>{escape(guilty.diff.summary)}</small>"
        parts.append(f"<details><summary>{summary}</summary>{diff_table(guilty.diff)}</details>")
    return "\n".join(filter(None, [*parts, "</section>"]))


def _facts(row: Row) -> str:
    """All that changed, behind a click."""
    if len(row.changes) < 2:
        return ""
    cells = "".join(
        f'<tr class="{one.verdict}"><td>{one.verdict}</td><td>{escape(one.text)}</td></tr>' for one in row.changes
    )
    return f"<details><summary>{len(row.changes)} facts changed</summary><table>{cells}</table></details>"
