"""Findings as text and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from os.path import basename
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from irscope.analysis.findings.edits import patch_of
from irscope.analysis.findings.model import LEAST_SHARE, Finding, Suggestion
from irscope.model.capture import Capture
from irscope.model.plain import picked
from irscope.render.text.tables import duration_text, least_text

if TYPE_CHECKING:
    # It imports NumPy, which a summary does not need.
    from irscope.analysis.findings.costs import Timed
    from irscope.analysis.findings.versus import Versus

# %acc_66      #blocked1      line 95 of ttgir
_NAME = re.compile(r"[%#][\w.$-]+|\bline \d+ of ttgir")
BAD_BELOW = 2
"""Findings of kinds of a lower rank are bad, the others warnings."""
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def render_findings(findings: Sequence[Finding], *, color: bool) -> str:
    """Each finding with its causes, the evidence of each, and what mends it; equal ones once, with all their lines."""
    return "\n".join("\n".join(_lines(one, others, color)) + "\n" for one, *others in grouped(findings))


_LEAST_WIDTH = 60
_INDENT = 18


def render_explanation(
    findings: Sequence[Finding],
    capture: Capture,
    time: Timed,
    *,
    width: int | None,
    color: bool,
    every: bool = False,
) -> str:
    """The predicted time of a launch and what bounds it, then each finding with its cost, place, cause and fix.

    `every`: with those that cost less than 3 % of the time, which are counted otherwise.
    """
    bold, plain = (_BOLD, _PLAIN) if color else ("", "")
    head, *lines = _summary(capture, time)
    heads = wrap(head, max(width, _LEAST_WIDTH), subsequent_indent="    ") if width else [head]
    width = max(width or 100, _LEAST_WIDTH)
    rows = [*(f"{bold}{row}{plain}" for row in heads), *lines]
    groups = [group for group in grouped(findings) if every or not group[0].is_small]
    for number, group in enumerate(groups, 1):
        rows += _short(number, group, width, bold, plain)
    smaller = len(findings) - sum(map(len, groups))
    if smaller:
        rows.append(f"    {smaller} smaller: --all")
    elif not groups:
        rows.append("    no finding" + (f" that costs {LEAST_SHARE:.0%} of the predicted time" if time.model else ""))
    if patch := patch_of(capture, findings):
        rows += patch.rstrip("\n").split("\n") if every else ["    fixes are edits of the file: --apply-to FIXED.py"]
    return "\n".join(rows) + "\n"


def _summary(capture: Capture, time: Timed) -> list[str]:
    prediction, launch = time.prediction, capture.launch
    tuning = launch.autotuning if launch.autotuning is not None and launch.autotuning.count > 1 else None
    which, others = "", list[str]()
    if tuning is not None:
        which = f", configuration {tuning.number_text}{_OF_WINNER[tuning.winner]}"
        others = [_OF_OTHERS.format(tuning.count)] if tuning.winner is None else []
    if prediction is None:
        return [f"{capture.name}  {capture.target}{which}   not predicted: {time.why_not}", *others]
    low, high = (duration_text(one) for one in prediction.interval)
    about = "about " if time.least_seconds != time.floor_seconds else ""
    least = time.least_seconds
    floor = f"   minimum {about}{least_text(least, prediction.launch_seconds)}" if least else ""
    rows = [
        f"{capture.name}  {capture.target}, {prediction.part}{which}   predicted {duration_text(prediction.seconds)} "
        f"({low} to {high}){floor}   limited by {prediction.bound}",
        *others,
    ]
    if time.model is None:
        rows += [f"    {one}" for one in prediction.notes[:1]]
    shares = [f"{basename(one.file)}:{one.line} {one.share:.0%}" for one in prediction.lines if one.line][:3]
    return [*rows, f"    most of the time: {', '.join(shares)}"] if shares else rows


_OF_WINNER = {True: ", the fastest", False: ", not the fastest", None: ""}
_OF_OTHERS = "    findings of this configuration, which was not timed: `irscope tune` predicts all {}"


def _short(number: int, group: Sequence[Finding], width: int, bold: str, plain: str) -> Iterator[str]:
    one = group[0]
    cost = f"{duration_text(one.seconds):>8} {one.share:>4.0%}" if one.seconds is not None else f"{'':13}"
    places = list(dict.fromkeys(f"{basename(file)}:{line}" for each in group for file, line in each.place[:1] if file))
    where = ", ".join(places[:3]) or "the kernel"
    text = f"{where}  {f'{one.operation} ' if one.operation else ''}{one.text} [{one.code}]"
    first, *others = wrap(text, width - _INDENT, break_on_hyphens=False) or [""]
    yield f"{bold}{number:>2}{plain} {cost}  {first}"
    yield from (f"{'':{_INDENT}}{row}" for row in others)
    if (fix := best_fix_text(one)) is not None:
        yield from (f"{'':{_INDENT}}{row}" for row in wrap(fix, width - _INDENT, break_on_hyphens=False))


def best_fix_text(finding: Finding) -> str | None:
    """The fix with the least predicted time; else what is to be done, which was not tried."""
    if (best := finding.best_fix) is not None:
        seconds = best.proof.seconds if best.proof is not None else None
        timing = f"; {best.proof.timing}" if best.proof is not None and best.proof.timing else ""
        return f"fix: {best.text}   {f'predicted {duration_text(seconds)}, ' if seconds else ''}compiled, fits{timing}"
    untried = next((one for one in finding.suggestions if one.proof is None), None)
    return f"not tried: {untried.text}" if untried is not None else None


def grouped(findings: Sequence[Finding]) -> Iterable[list[Finding]]:
    """Findings that say the same of several operations, names and lines of the IR aside, each group at its first."""
    groups: dict[object, list[Finding]] = {}
    for one in findings:
        causes = tuple((_NAME.sub("", cause.text), cause.evidence) for cause in one.causes)
        key = (one.code, one.operation, one.text, one.cost, causes, one.suggestions) if one.operation else id(one)
        groups.setdefault(key, []).append(one)
    return groups.values()


def told_of(finding: Finding) -> str:
    """A finding in a sentence or two: its cost, what it is, and its fix: `41 µs (43%): tt.load …; fix: …`."""
    cost = f"{duration_text(finding.seconds)} ({finding.share:.0%}): " if finding.seconds else ""
    told = f"{cost}{finding.operation} {finding.text}" if finding.operation else f"{cost}{finding.text}"
    fix = best_fix_text(finding)
    return f"{told}; {fix}" if fix else told


def line_of_finding(finding: Finding) -> str:
    """A finding on one line: `IRS501 spills  matmul.py:31  spills registers: …`."""
    file, line = finding.place[0] if finding.place else ("", 0)
    place = f"{basename(file)}:{line}" if file else ""
    operation = f"{finding.operation} {finding.text}" if finding.operation else finding.text
    return "  ".join(filter(None, (f"{finding.code} {finding.kind.name}", place, operation)))


def findings_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [
        picked(
            one,
            "code name=kind.name operation values text cost weight seconds",
            share=one.share if one.seconds is not None else None,
            ttgir_line=one.line or None,
            place=[{"file": file, "line": line} for file, line in one.place],
            causes=[asdict(cause) for cause in one.causes],
            suggestions=[_suggestion_json(suggestion) for suggestion in one.suggestions],
        )
        for one in findings
    ]


def render_versus(before: Capture, after: Capture, found: Versus, *, color: bool) -> str:
    """Why one capture takes longer than another: totals, the terms that differ, findings of one side alone."""
    bold, plain = (_BOLD, _PLAIN) if color else ("", "")
    rows: list[str] = []
    for label, capture, time in (("A", before, found.before), ("B", after, found.after)):
        head, *_ = _summary(capture, time)
        rows.append(f"{label} {capture.id[:8]}  {head}")
    rows.append(f"{bold}B: {found.sentence}{plain}")
    titles = {
        "unit": "time that a unit is busy", "wait": "time that warps spend on", "line": "time of a line",
        "figure": "figures",
    }  # fmt: skip
    for kind, title in titles.items():
        terms = [one for one in found.terms if one.kind == kind]
        rows += [f"  {title}"] if terms else []
        for one in terms:
            text = "{:,.0f}".format if kind == "figure" else duration_text
            rows.append(f"    {one.name:<28} {text(one.before or 0.0):>12} → {text(one.after or 0.0)}")
    for label, findings in (("only B", found.new), ("only A", found.removed)):
        rows += [
            f"  {label}: {duration_text(one.seconds or 0.0)} {one.share:.0%}  {line_of_finding(one)}"
            for one in findings
        ]
    return "\n".join(rows) + "\n"


def versus_json(before: Capture, after: Capture, found: Versus) -> dict[str, Any]:
    return {"a": before.id, "b": after.id, "kernel": before.name} | picked(
        found,
        "ratio text=sentence options first_pass",
        time_a=time_json(found.before),
        time_b=time_json(found.after),
        terms=[picked(one, "kind name before after") for one in found.terms],
        new=findings_json(found.new),
        removed=findings_json(found.removed),
    )


def time_json(time: Timed) -> dict[str, Any]:
    prediction = time.prediction
    if prediction is None:
        return {"predicted_s": None, "interval_s": None, "minimum_s": None, "bound": "", "part": "", "lines": [],
                "why_not": time.why_not}  # fmt: skip
    return picked(
        prediction,
        "predicted_s=seconds interval_s=interval bound part",
        minimum_s=time.floor_seconds,
        lines=[picked(one, "file line share") for one in prediction.lines[:3]],
        why_not="",
    )


def _lines(finding: Finding, others: Sequence[Finding], color: bool) -> Iterator[str]:
    bold, dim, plain = (_BOLD, _DIM, _PLAIN) if color else ("", "", "")
    calls = _calls(finding) or "the whole kernel"
    operation = " ".join(filter(None, (finding.operation, *finding.values[:1])))
    yield f"{bold}{finding.code} {finding.kind.name}{plain}  {calls}  {operation}".rstrip()
    if others:
        places = Counter(map(_calls, others))
        counted = ", ".join(f"{place}{f' ({number} times)' if number > 1 else ''}" for place, number in places.items())
        yield f"  {len(others) + 1} times, also: {counted}"
    yield f"  {finding.text}"
    predicted = (
        f"predicted {duration_text(finding.seconds)}, {finding.share:.0%} of the time; " if finding.seconds else ""
    )
    yield f"  cost: {predicted}{finding.cost}"
    for number, cause in enumerate(finding.causes):
        yield f"  {'because' if not number else '       '} {cause.text} {dim}[{cause.evidence}: {cause.source}]{plain}"
    for one in sorted(finding.suggestions, key=_order):
        yield from _suggested(one, dim, plain)


def _calls(finding: Finding) -> str:
    """`helper.py:3 ← kernel.py:12`."""
    return " ← ".join(f"{basename(file)}:{line}" for file, line in finding.place)


def _order(suggestion: Suggestion) -> int:
    if suggestion.proof is None:
        return 1
    return 0 if suggestion.proof.is_better else 2


def _suggested(one: Suggestion, dim: str, plain: str) -> Iterator[str]:
    proof = one.proof
    if proof is None:
        yield f"  not tried: {one.text}"
    elif proof.is_better:
        yield f"  fix: {one.text}"
        yield f"        compiled with {one.tried}: {'; '.join(filter(None, (*proof.effects, proof.timing)))}"
    else:
        why = proof.failure or f"no improvement{': ' if proof.effects else ''}{'; '.join(proof.effects)}"
        yield f"  {dim}tried {one.tried or one.text}: {why}{plain}"


def _suggestion_json(one: Suggestion) -> dict[str, Any]:
    head = {"text": one.text, "changes": [str(change) for change in one.changes]}
    proof = one.proof
    if proof is None:
        nothing: dict[str, Any] = {"compiled_with": [], "effects": [], "predicted_s": None}
        return head | nothing | {"outcome": "not tried", "failure": "", "time": None}
    time = {
        "verdict": proof.agreement.verdict if proof.agreement is not None else None,
        "ratio": proof.ratio.as_json() if proof.ratio is not None else None,
        "untimed": proof.untimed,
    }
    return picked(
        proof,
        "effects failure predicted_s=seconds",
        **head,
        compiled_with=head["changes"],
        outcome="better" if proof.is_better else "failed" if proof.failure else "no improvement",
        time=time if proof.timing else None,
    )
