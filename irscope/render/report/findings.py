"""The findings that a report's overview begins with: what costs most, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.analysis.findings.find import every_finding
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.quick import quick_findings
from irscope.analysis.findings.silence import is_silenced
from irscope.analysis.findings.studied import Studied
from irscope.device.fit import excesses_of
from irscope.device.occupancy import occupancy_of
from irscope.errors import DAMAGE
from irscope.ir.locations.user import line_text
from irscope.memory.access import Cost
from irscope.memory.costs import costs_of
from irscope.model.capture import Capture
from irscope.render.text.figures import percent

_MOST = 8
_MOST_WORST = 3
_BAD_BELOW = 2
"""Findings of kinds of a lower rank are bad, the others warnings."""
_SLOW_SHARE = 0.2
_LOW_OCCUPANCY = 0.5


def findings_of(capture: Capture, costs: Sequence[Cost], found: Sequence[Finding]) -> list[dict[str, Any]]:
    """Rows: the failure, the three worst findings of `irscope why`, then what else stands out.

    Each has a `level` (bad, warn, note), its `text`, the `code` of a finding, and where to look: `stage` and `line`,
    `place` (`kernel.py:23`), `pass`.

    Args:
        capture: the capture.
        costs: those of `costs_of_layouts`.
        found: those of `findings_in`.
    """
    others = [*_occupancy(capture), *_costs(costs), *_slow_passes(capture)]
    ranks = {"bad": 0, "warn": 1, "note": 2}
    others.sort(key=lambda row: ranks[row["level"]])
    worst = [_row(one) for one in found[:_MOST_WORST] if capture.failure is None or one.code != "IRS503"]
    return [*_failure(capture), *worst, *others][: 2 * _MOST]


def findings_in(capture: Capture, costs: Sequence[Cost], *, evaluates: bool) -> Sequence[Finding]:
    """The findings of a capture, the worst first.

    Args:
        capture: the capture.
        costs: those of `costs_of_layouts`.
        evaluates: whether addresses are evaluated for that, which takes a tenth of a compile's time.
    """
    if not evaluates:
        return quick_findings(capture)
    studied = Studied(capture, costs, follows_operations=False)
    return [one for one in every_finding(studied) if not is_silenced(one, capture)]


def _row(finding: Finding) -> dict[str, Any]:
    row: dict[str, Any] = {
        "level": "bad" if finding.kind.rank < _BAD_BELOW else "warn",
        "code": f"{finding.code} {finding.kind.name}",
        "text": f"{finding.operation} {finding.text}".strip(),
    }
    if finding.line:
        row |= {"stage": "ttgir", "line": finding.line}
    if place := line_text(finding.place):
        row["place"] = place
    return row


def _failure(capture: Capture) -> list[dict[str, Any]]:
    failure = capture.failure
    if failure is None:
        return []
    text = f"The compile {failure.verdict}: {failure.headline}"
    return [{"level": "bad", "text": text, "pass": failure.pass_label}]


def _occupancy(capture: Capture) -> list[dict[str, Any]]:
    if excesses := excesses_of(capture):
        # A failure of the capture, except in one that was recorded before that was judged.
        rows = [{"level": "bad", "text": f"It does not fit: {row}."} for row in excesses]
        return [] if capture.failure is not None else rows
    found = occupancy_of(capture)
    if found is None or found.fraction > _LOW_OCCUPANCY:
        return []
    causes = " and ".join(found.limited_by)
    text = (
        f"Occupancy is {percent(found.fraction)}: {found.warps_per_sm} of {found.max_warps} warps, limited by {causes}."
    )
    return [{"level": "warn", "text": text}]


def _costs(costs: Sequence[Cost]) -> list[dict[str, Any]]:
    rows = [row for row in costs if row.excess]
    return [
        {"level": "warn", "text": f"{row.operation}: {row.summary}", "stage": "ttgir", "line": row.line}
        for row in rows[:_MOST]
    ]


def costs_of_layouts(capture: Capture) -> list[Cost]:
    """The costs of layouts and accesses, the worst first; none if the capture's layouts are damaged."""
    try:
        return costs_of(capture)
    except DAMAGE:
        # Layouts come from the capture's file, which may say anything.
        return []


def _slow_passes(capture: Capture) -> list[dict[str, Any]]:
    timed = [(item.duration_us, item.label) for item in capture.passes() if item.duration_us]
    total = sum(duration for duration, _ in timed)
    return [
        {"level": "note", "text": f"{label} takes {percent(duration / total)} of all passes' time.", "pass": label}
        for duration, label in sorted(timed, reverse=True)[:2]
        if duration > _SLOW_SHARE * total
    ]
