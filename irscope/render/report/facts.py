"""The facts of a capture that a report holds outside of its texts: inputs, resources, stages, passes and findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from irscope.analysis.findings.find import every_finding
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.quick import quick_findings
from irscope.analysis.findings.silence import is_silenced
from irscope.analysis.findings.studied import Studied
from irscope.analysis.passes.effects import PassEffect, pass_effects
from irscope.analysis.resources.metrics import instruction_families, resource_rows
from irscope.device.occupancy import excesses_of, occupancy_of
from irscope.errors import DAMAGE
from irscope.ir.locations.user import line_text
from irscope.memory.access import Cost
from irscope.memory.costs import costs_of
from irscope.model.capture import Capture, stage_named
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


_LARGEST = 8
"""Operations whose change is named with a pass."""


def facts_of(capture: Capture, costs: Sequence[Cost], found: Sequence[Finding]) -> dict[str, Any]:
    """All but the texts of a capture, as JSON holds it; `found` are its findings."""
    launch = capture.launch
    occupancy = occupancy_of(capture)
    return {
        "id": capture.id,
        "kernel": capture.name,
        "file": launch.kernel.file,
        "line": launch.kernel.line,
        "firstLine": launch.kernel.first_line,
        "target": str(capture.target),
        "warpSize": capture.target.warp_size,
        "status": capture.status,
        "failure": asdict(capture.failure) | {"verdict": capture.failure.verdict} if capture.failure else None,
        "plan": str(capture.plan),
        "language": launch.language,
        "signature": list(launch.signature),
        "constants": list(launch.constants),
        "attributes": list(launch.attributes),
        "options": list(launch.options),
        "grid": launch.grid,
        "autotuning": asdict(launch.autotuning) if launch.autotuning else None,
        "resources": resource_rows(capture),
        "occupancy": occupancy and occupancy.as_json(),
        "families": instruction_families(capture),
        "environment": {key: value for key, value in asdict(capture.environment).items() if value != ()},
        "metadata": list(capture.metadata),
        "notes": list(capture.notes),
        "compileUs": capture.compile_us,
        "snapshotLevel": capture.snapshot_level,
        "stages": [
            {
                "stage": item.stage,
                "kind": stage_named(item.stage).kind,
                "title": stage_named(item.stage).title,
                "us": item.duration_us,
                "bytes": len(item.data),
                "lines": item.data.count("\n") if isinstance(item.data, str) else None,
                "digest": None if isinstance(item.data, str) else sha256(item.data).hexdigest()[:16],
            }
            for item in capture.artifacts
        ],
        "passes": [_pass(effect) for effect in pass_effects(capture)],
        "findings": findings_of(capture, costs, found),
    }


def _pass(effect: PassEffect) -> dict[str, Any]:
    snapshot = effect.snapshot
    row: dict[str, Any] = {
        "stage": snapshot.stage,
        "name": snapshot.name,
        "n": snapshot.occurrence,
        "index": snapshot.index,
        "argument": snapshot.argument,
        "options": snapshot.options,
        "outcome": snapshot.outcome,
        "changed": snapshot.changed,
        "us": snapshot.duration_us,
        "group": snapshot.group,
        "scope": snapshot.scope,
        "leftOut": snapshot.text_left_out,
    }
    counts = [effect.lines, effect.operations, effect.layouts, effect.convert_layouts]
    if any(counts):
        row["counts"] = counts
        row["byOperation"] = list(effect.by_operation[:_LARGEST])
    return {name: value for name, value in row.items() if value not in ("", None, False) or name == "changed"}
