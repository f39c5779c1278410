"""What came of a check, as text."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import basename

from irscope.analysis.checks.model import Breach
from irscope.analysis.checks.results import BreachGroup, Report
from irscope.render.text.tables import visible

__all__ = ["breach_lines", "others_text", "render_report", "summary_line"]

_BOLD, _RED, _GREEN, _DIM, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[0m"
_MOST_OTHERS = 4


def render_report(report: Report, *, color: bool) -> str:
    """Each breach with its line, causes and IR, then what got better, then the sum of it."""
    return "\n".join("\n".join(rows) for rows in _parts(report, color)) + "\n"


def summary_line(report: Report) -> str:
    """`2 assertions are broken, in 3 of 12 captures.`"""
    total = sum(bool(one.id) for one in report.captures)
    captures = f"{total} capture{'s' * (total != 1)}"
    if report.passed:
        # That a kernel compiles is asserted without being asked for.
        given = {one.assertion for checked in report.captures for one in checked.outcomes if one.rule != "compiles"}
        if not given:
            return f"{captures} checked: each compiles. No other assertion was given (irscope check --help)."
        return f"{captures} checked: every assertion holds."
    broken = sum(bool(one.id and one.breaches) for one in report.captures)
    missing = sum(not one.id for one in report.captures)
    parts: list[str] = []
    if broken:
        breaches = sum(bool(group.captures[0].id) for group in report.groups)
        parts.append(f"{breaches} breach{'es' * (breaches != 1)}, in {broken} of {captures}")
    if missing:
        parts.append(f"{missing} of the baseline {'is' if missing == 1 else 'are'} not launched any more")
    for one in report.vacuous:
        parts.append(f"{one} says nothing of any of the {captures}: no kernel has what it is about")
    return "; ".join(parts) + "."


def breach_lines(breach: Breach) -> Iterator[str]:
    """The text of a breach, its line of Python, its causes, and the IR around."""
    yield f"  {visible(breach.text)}"
    if breach.place:
        calls = " ← ".join(f"{basename(file)}:{line}" for file, line in breach.place)
        yield visible(f"  {calls}: {breach.python}" if breach.python else f"  {calls}")
    for number, cause in enumerate(breach.causes):
        is_text = breach.rule in ("filecheck", "golden")
        yield visible(f"    {cause}" if is_text else f"  {'       ' if number else 'because'} {cause}")
    width = len(str(breach.excerpt[-1][0])) if breach.excerpt else 0
    for number, row in breach.excerpt:
        mark = ">" if number == breach.line else " "
        yield visible(f"  {breach.stage} {mark} {number:>{width}} | {row}")


def others_text(group: BreachGroup) -> str:
    """The other captures that it is of: empty, or `and 3 more: 1f0c2b3a, …`."""
    others = [one.id[:8] for one in group.captures[1:]]
    if not others:
        return ""
    more = ", …" if len(others) > _MOST_OTHERS else ""
    return f"and {len(others)} more: {', '.join(others[:_MOST_OTHERS])}{more}"


def _parts(report: Report, color: bool) -> Iterator[list[str]]:
    bold, red, green, dim, plain = (_BOLD, _RED, _GREEN, _DIM, _PLAIN) if color else ("",) * 5
    for group in report.groups:
        others = others_text(group)
        first = group.captures[0]
        more = "  ".join(filter(None, (first.differs, others)))
        head = f"{red}{bold}broken{plain} {bold}{group.breach.assertion}{plain}  {visible(first.name)}"
        yield [f"{head}  {dim}{visible(more)}{plain}" if more else head, *breach_lines(group.breach), ""]
    if report.better:
        yield [f"{green}better{plain} {visible(line)}" for line in report.better]
    end = f"{bold}{green if report.passed else red}"
    yield [*map(visible, report.notes), f"{end}{summary_line(report)}{plain}"]
