"""What came of a check as workflow commands of GitHub Actions, which shows them as annotations of the changed lines.

Source of the form: "Workflow commands for GitHub Actions", Setting an error message.
"""

from __future__ import annotations

from pathlib import Path

from irscope.analysis.checks.results import Report
from irscope.render.checks.places import file_and_line
from irscope.render.checks.text import breach_lines, others_text, summary_line
from irscope.render.text.tables import visible

__all__ = ["render_github"]


def render_github(report: Report, root: Path) -> str:
    """One command a line: an error for each breach, a notice for what got better; then the sum, which is plain text."""
    lines: list[str] = []
    for group in report.groups:
        file, line = file_and_line(group, root)
        name = " ".join(filter(None, (group.captures[0].name, others_text(group))))
        message = "\n".join([name, *(row[2:] for row in breach_lines(group.breach))])
        place = f"file={_property(file)},line={line}," if file else ""
        lines.append(f"::error {place}title={_property(f'irscope {group.breach.assertion}')}::{_data(message)}")
    lines += [f"::error title=irscope::{_data(f'{one} says nothing of any capture')}" for one in report.vacuous]
    if report.better:
        better = "\n".join(["better than the baseline:", *report.better])
        lines.append(f"::notice title=irscope::{_data(better)}")
    return "\n".join([*lines, *map(visible, report.notes), summary_line(report)]) + "\n"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
