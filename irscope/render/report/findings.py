"""The findings that a report's overview begins with: what costs most, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.device.fit import excesses_of
from irscope.device.occupancy import occupancy_of
from irscope.errors import IrscopeError
from irscope.memory.cost import Cost
from irscope.memory.costs import costs_of
from irscope.model.capture import Capture
from irscope.render.text.figures import percent

_MOST = 8
_SLOW_SHARE = 0.2
_LOW_OCCUPANCY = 0.5


def findings_of(capture: Capture, costs: Sequence[Cost]) -> list[dict[str, Any]]:
    """Findings, the most serious first: `level` (bad, warn, note), `text`, and where to look: `stage`, `line`, `pass`.

    `costs` are those of `costs_of_layouts`.
    """
    rows = [*_failure(capture), *_spills(capture), *_occupancy(capture), *_costs(costs), *_slow_passes(capture)]
    ranks = {"bad": 0, "warn": 1, "note": 2}
    return sorted(rows, key=lambda row: ranks[row["level"]])[: 2 * _MOST]


def _failure(capture: Capture) -> list[dict[str, Any]]:
    failure = capture.failure
    if failure is None:
        return []
    text = f"The compile {failure.verdict}: {failure.headline}"
    return [{"level": "bad", "text": text, "pass": failure.pass_label}]


def _spills(capture: Capture) -> list[dict[str, Any]]:
    stored, loaded = capture.resources.spill_store_bytes or 0, capture.resources.spill_load_bytes or 0
    if not stored and not loaded:
        return []
    stage = next((name for name in ("sass", "amdgcn") if name in capture.stages), "")
    text = f"Registers spill: a thread stores {stored} bytes and loads {loaded}."
    return [{"level": "bad", "text": text, "stage": stage}]


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
    except (IrscopeError, ValueError, KeyError, TypeError, IndexError):
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
