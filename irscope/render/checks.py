"""The result of a check in every form: text, Markdown, JSON, SARIF, and annotations of GitHub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from os.path import basename
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from irscope.analysis.checks.results import BreachGroup, Checked, Report
from irscope.analysis.checks.subject import Breach
from irscope.analysis.findings.model import KINDS
from irscope.model.plain import picked
from irscope.render.text.tables import counted, duration_text, fenced, visible


def _file_and_line(group: BreachGroup, root: Path) -> tuple[str, int]:
    """The path of a breach from `root`, absolute if it is outside of it, and its line, 1-based; empty if not known."""
    first = group.captures[0]
    file, line = group.breach.place[0] if group.breach.place else (first.file, first.line)
    if not file:
        return "", 1
    path = PurePath(file)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    return path.as_posix(), max(1, line)


def _file_uri(path: str) -> str:
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)


_BOLD, _RED, _GREEN, _DIM, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[0m"
_MOST_OTHERS = 4


def render_report(report: Report, *, color: bool) -> str:
    """Each breach with its line, causes and IR, then what got better, then the sum of it."""
    return "\n".join("\n".join(rows) for rows in _parts(report, color)) + "\n"


def _summary_line(report: Report) -> str:
    """`2 assertions are broken, in 3 of 12 captures.`"""
    total = sum(bool(one.id) for one in report.captures)
    captures = counted(total, "capture")
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
        parts.append(f"{one} applies to none of the {captures}: no kernel has the operation it checks")
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
    finding = breach.finding
    if finding is not None and finding.seconds is not None:
        yield f"  costs {duration_text(finding.seconds)}, {finding.share:.0%} of the predicted time"
    for suggestion in finding.suggestions[:1] if finding is not None else ():
        yield visible(f"  suggested fix: {suggestion.text}")
    width = len(str(breach.excerpt[-1][0])) if breach.excerpt else 0
    for number, row in breach.excerpt:
        mark = ">" if number == breach.line else " "
        yield visible(f"  {breach.stage} {mark} {number:>{width}} | {row}")


def _message(group: BreachGroup) -> str:
    captures = " ".join(filter(None, (group.captures[0].name, _others_text(group))))
    return "\n".join([captures, *(row[2:] for row in breach_lines(group.breach))])


def _others_text(group: BreachGroup) -> str:
    """The other captures that it is of: empty, or `and 3 more: 1f0c2b3a, …`."""
    others = [one.id[:8] for one in group.captures[1:]]
    if not others:
        return ""
    more = ", …" if len(others) > _MOST_OTHERS else ""
    return f"and {len(others)} more: {', '.join(others[:_MOST_OTHERS])}{more}"


def _parts(report: Report, color: bool) -> Iterator[list[str]]:
    bold, red, green, dim, plain = (_BOLD, _RED, _GREEN, _DIM, _PLAIN) if color else ("",) * 5
    for group in report.groups:
        others = _others_text(group)
        first = group.captures[0]
        more = "  ".join(filter(None, (first.differs, others)))
        head = f"{red}{bold}broken{plain} {bold}{group.breach.assertion}{plain}  {visible(first.name)}"
        yield [f"{head}  {dim}{visible(more)}{plain}" if more else head, *breach_lines(group.breach), ""]
    if report.better:
        yield [f"{green}better{plain} {visible(line)}" for line in report.better]
    end = f"{bold}{green if report.passed else red}"
    yield [*map(visible, report.notes), f"{end}{_summary_line(report)}{plain}"]


# What Markdown, or the HTML in it, would read as its own.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~@&])")
_MOST_DETAILS = 25


def render_markdown(report: Report, root: Path) -> str:
    """A heading, a table with a row for each breach, and its details to be opened."""
    return "\n".join(_lines(report, root)) + "\n"


def _lines(report: Report, root: Path) -> Iterator[str]:
    yield f"### irscope check: {'passed' if report.passed else 'failed'}"
    yield ""
    yield _plain(_summary_line(report))
    if report.groups:
        yield ""
        yield "| assertion | kernel | line | result |"
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
    file, line = _file_and_line(group, root)
    kernel = _plain(group.captures[0].name)
    if others := _others_text(group):
        kernel += f" ({_plain(others)})"
    where = _plain(f"{file}:{line}") if file else ""
    return f"| {_plain(group.breach.assertion)} | {kernel} | {where} | {_plain(group.breach.text)} |"


def _details(group: BreachGroup) -> Iterator[str]:
    yield ""
    yield f"<details><summary>{_plain(group.breach.assertion)}: {_plain(group.captures[0].name)}</summary>"
    yield ""
    yield fenced("\n".join(row[2:] for row in breach_lines(group.breach)), "text")
    yield ""
    yield "</details>"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(text).replace("\n", " "))


def render_github(report: Report, root: Path) -> str:
    """One command a line: an error for each breach, a notice for what got better; then the sum, which is plain text."""
    lines: list[str] = []
    for group in report.groups:
        file, line = _file_and_line(group, root)
        place = f"file={_property(file)},line={line}," if file else ""
        lines.append(f"::error {place}title={_property(f'irscope {group.breach.assertion}')}::{_data(_message(group))}")
    lines += [f"::error title=irscope::{_data(f'{one} applies to no capture')}" for one in report.vacuous]
    if report.better:
        better = "\n".join(["better than the baseline:", *report.better])
        lines.append(f"::notice title=irscope::{_data(better)}")
    return "\n".join([*lines, *map(visible, report.notes), _summary_line(report)]) + "\n"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def report_json(report: Report) -> dict[str, Any]:
    return picked(report, "passed vacuous better notes", captures=[_capture_json(one) for one in report.captures])


def _capture_json(checked: Checked) -> dict[str, Any]:
    assertions = [
        picked(
            one,
            "rule assertion",
            holds=None if one.breaches is None else not one.breaches,
            breaches=[_breach_json(breach) for breach in one.breaches or ()],
        )
        for one in checked.outcomes
    ]
    return picked(checked, "id kernel target file line differs_in=differs", assertions=assertions)


def _breach_json(breach: Breach) -> dict[str, Any]:
    return picked(
        breach,
        "text python causes stage",
        place=[{"file": file, "line": line} for file, line in breach.place],
        finding=breach.finding.code if breach.finding is not None else "",
        cost_s=breach.finding.seconds if breach.finding is not None else None,
        line=breach.line or None,
        excerpt=[{"line": number, "text": row} for number, row in breach.excerpt],
    )


RULES = {
    "compiles": "The kernel compiles, and fits on the device.",
    "safe": "No launch has an invalid or racing access.",
    "max-compile-time": "The compile takes at most this much processor time.",
    "max-regs": "A thread uses at most this many registers.",
    "no-spills": "No register is spilled to local memory.",
    "max-shared": "A CTA uses at most this many bytes of shared memory.",
    "uses": "The kernel has instructions of a family, or an operation.",
    "min-width": "Accesses of global memory move at least this many bits per thread at once.",
    "pipelined": "Loads of a loop's dots are issued in an earlier iteration.",
    "filecheck": "The text of a stage matches a file of FileCheck patterns.",
    "golden": "The text of a stage is structurally equal to a file.",
    "baseline": "Nothing got worse than the baseline.",
    **{one.code: f"The kernel has no finding {one.name}." for one in KINDS.values()},
}
"""The kinds of breaches; of findings their codes."""


def sarif_log(report: Report, root: Path, version: str, address: str = "") -> dict[str, Any]:
    """The log: one run with a result for each breach; `root`: what paths are relative to, `address`: irscope's."""
    used = list(dict.fromkeys(_rule(group.breach) for group in report.groups))
    return {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "irscope",
                        "semanticVersion": version,
                        **({"informationUri": address} if address else {}),
                        "rules": [{"id": one, "shortDescription": {"text": RULES[one]}} for one in used],
                    }
                },
                "invocations": [{"executionSuccessful": True}],
                "results": [_result(group, used, root) for group in report.groups],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _rule(breach: Breach) -> str:
    return breach.finding.code if breach.rule == "no-finding" and breach.finding is not None else breach.rule


def _result(group: BreachGroup, used: list[str], root: Path) -> dict[str, Any]:
    breach, first = group.breach, group.captures[0]
    file, line = _file_and_line(group, root)
    location: dict[str, Any] = {"logicalLocations": [{"name": first.kernel, "kind": "function"}]}
    if file:
        region: dict[str, Any] = {"startLine": line}
        if breach.python:
            region["snippet"] = {"text": breach.python}
        location["physicalLocation"] = {"artifactLocation": {"uri": _file_uri(file)}, "region": region}
    identity = "\n".join([first.kernel, breach.assertion, breach.python, breach.text])
    rule = _rule(breach)
    return {
        "ruleId": rule,
        "ruleIndex": used.index(rule),
        "level": "error",
        "message": {"text": _message(group)},
        "locations": [location],
        # Neither the line nor the variants: a result stays the same one where lines move.
        "partialFingerprints": {"irscope/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32]},
        "properties": {"assertion": breach.assertion, "captures": [one.id for one in group.captures]},
    }
