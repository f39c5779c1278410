"""Finds all findings of a capture, the worst first."""

from __future__ import annotations

from irscope.analysis.findings.kinds.accesses import access_findings, atomic_findings, is_seen, overflow_findings
from irscope.analysis.findings.kinds.dots import dot_findings, precision_findings
from irscope.analysis.findings.kinds.loops import loop_findings
from irscope.analysis.findings.kinds.resources import occupancy_findings, register_findings, resource_findings
from irscope.analysis.findings.kinds.shared import shared_findings
from irscope.analysis.findings.kinds.stages import stage_findings
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.quick import worst
from irscope.analysis.findings.studied import Studied
from irscope.errors import DAMAGE
from irscope.model.capture import Capture

__all__ = ["every_finding", "findings_of"]


def findings_of(capture: Capture | Studied, *, evaluates: bool = True) -> tuple[Finding, ...]:
    """The findings of a capture: those of a lower rank first, then those that cost more.

    `evaluates`: whether addresses are evaluated, which takes most of the time; without that, what is found by them
    (narrow and wasteful accesses, conflicts, overflows) is left out.

    The capture should hold its layouts, and the operations of its instructions; with the compiler's log more is found,
    and causes have its lines.
    """
    studied = capture if isinstance(capture, Studied) else Studied(capture)
    found = [*resource_findings(studied), *register_findings(studied), *occupancy_findings(studied)]
    if studied.ttgir:
        accesses = list(access_findings(studied)) if evaluates else []
        loops = list(loop_findings(studied, accesses))
        found += [one for one in accesses if is_seen(studied, one)]
        found += [*loops, *dot_findings(studied, loops), *stage_findings(studied)]
        found += [*atomic_findings(studied), *precision_findings(studied)]
        if evaluates:
            found += [*shared_findings(studied), *studied.kept(_overflows)]
    return worst(found)


def _overflows(studied: Studied) -> tuple[Finding, ...]:
    """Those that no log says more of."""
    return tuple(overflow_findings(studied))


def every_finding(studied: Studied) -> tuple[Finding, ...]:
    """As `findings_of`; none if the capture is damaged: what is in its file may say anything."""
    try:
        return findings_of(studied)
    except DAMAGE:
        return ()
