"""What came of a check as Markdown, for the summary of a workflow or a comment of a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from irscope.analysis.checks.results import BreachGroup, Report
from irscope.render.checks.places import file_and_line
from irscope.render.checks.text import breach_lines, others_text, summary_line
from irscope.render.text.tables import visible

__all__ = ["render_markdown"]

# What Markdown, or the HTML in it, would read as its own.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~@&])")
_MOST_DETAILS = 25


def render_markdown(report: Report, root: Path) -> str:
    """A heading, a table with a row for each breach, and its details to be opened."""
    return "\n".join(_lines(report, root)) + "\n"


def _lines(report: Report, root: Path) -> Iterator[str]:
    yield f"### irscope check: {'passed' if report.passed else 'failed'}"
    yield ""
    yield _plain(summary_line(report))
    if report.groups:
        yield ""
        yield "| assertion | kernel | line | what is the case |"
        yield "| --- | --- | --- | --- |"
        yield from (_row(group, root) for group in report.groups)
        for group in report.groups[:_MOST_DETAILS]:
            yield from _details(group)
        if (more := len(report.groups) - _MOST_DETAILS) > 0:
            yield ""
            yield f"… and {more} more."
    for title, rows in (("Better than the baseline", report.better), ("Notes", report.notes)):
        if rows:
            yield ""
            yield f"{title}:"
            yield ""
            yield from (f"- {_plain(row)}" for row in rows)


def _row(group: BreachGroup, root: Path) -> str:
    file, line = file_and_line(group, root)
    kernel = _plain(group.captures[0].name)
    if others := others_text(group):
        kernel += f" ({_plain(others)})"
    where = _plain(f"{file}:{line}") if file else ""
    return f"| {_plain(group.breach.assertion)} | {kernel} | {where} | {_plain(group.breach.text)} |"


def _details(group: BreachGroup) -> Iterator[str]:
    text = "\n".join(row[2:] for row in breach_lines(group.breach))
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield ""
    yield f"<details><summary>{_plain(group.breach.assertion)}: {_plain(group.captures[0].name)}</summary>"
    yield ""
    yield f"{fence}text"
    yield text
    yield fence
    yield ""
    yield "</details>"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(text).replace("\n", " "))
