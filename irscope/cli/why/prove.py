"""Tries suggestions: compiles each from the capture's own source, and says what it changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from irscope.analysis.findings.measures import without_refuted
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.studied import Studied
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import tell_origin
from irscope.cli.why.budget import Budget
from irscope.cli.why.compiles import Compiles
from irscope.cli.why.tries import Changes, Tries, is_mended
from irscope.errors import IrscopeError
from irscope.model.capture import Capture

__all__ = ["proven"]

Timed = Callable[[Sequence[Finding], Mapping[Changes, Capture]], tuple[Finding, ...]]


def proven(
    studied: Studied, findings: Sequence[Finding], compiles: Compiles, budget: Budget, timed: Timed | None = None
) -> tuple[Finding, ...]:
    """The findings with what became of each suggestion that can be tried.

    Each change is compiled once, and as far as a finding needs that it would mend. Of a finding that one suggestion
    mends, no other is tried, and other options are left out.

    Args:
        studied: the capture.
        findings: what was found in it, the worst first.
        compiles: does them.
        budget: how many compiles there are; changes of arguments share one where there would be more.
        timed: adds the times of what helped, from the findings and the captures of all changes that were compiled. Then
            every compile makes a binary.
    """
    if budget.compiles == 0 or not any(one.changes for finding in findings for one in finding.suggestions):
        return tuple(findings)
    from irscope.record.triton.versions import triton_version

    capture = studied.capture
    if capture.environment.triton_version != triton_version():
        say(
            f"{capture.name} was compiled by Triton {capture.environment.triton_version}: "
            "nothing was tried with another."
        )
        return tuple(findings)
    tell_origin(capture)
    tries, found = Tries(studied, compiles, budget, to_binary=timed is not None), tuple(findings)
    try:
        while chosen := tries.choose(found):
            tries.compile(chosen)
            found = tuple(tries.told(one) for one in found)
    except IrscopeError as error:
        say(f"Nothing could be tried: {error}")
    if tries.left_out:
        changes = "change" if tries.left_out == 1 else "changes"
        say(
            f"{capture.name}: {tries.left_out} more {changes} could mend it and were not tried; --tries all tries them."
        )
    if timed is not None:
        found = timed(found, tries.captures)
    return tuple(without_refuted(_without_alternatives(one)) for one in found)


def _without_alternatives(finding: Finding) -> Finding:
    """A finding that was mended, without the options that were not tried for that."""
    if not is_mended(finding):
        return finding
    kept = [
        one for one in finding.suggestions if one.proof is not None or {part.kind for part in one.changes} != {"option"}
    ]
    return replace(finding, suggestions=tuple(kept))
