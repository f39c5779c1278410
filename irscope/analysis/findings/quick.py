"""Findings that need neither addresses nor the compiler's log, for a summary: they cost a hundredth of a compile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from irscope.errors import DAMAGE
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.analysis.findings.model import Finding

__all__ = ["quick_findings", "worst"]

# %5 = tt.dot %1, %2, %3 : tensor<32x32xf32, #ttg.dot_op<…>> * tensor<…> -> tensor<32x32xf32, #blocked> loc(#loc7)
_BY_FMA = re.compile(r"\btt\.dot [^\n]{1,1000}-> tensor<[\dx]{1,40}\w{1,12}, #blocked")
_DOT = re.compile(r"\b(?:tt\.dot|ttng\.warp_group_dot|ttng\.tc_gen5_mma)")


def quick_findings(capture: Capture) -> tuple[Finding, ...]:
    """Those of a capture, the worst first, without what comments silence; none if the capture is damaged."""
    if not _may_have(capture):
        return ()
    # Not before: importing them takes longer than most summaries.
    from irscope.analysis.findings.kinds.dots import dot_findings
    from irscope.analysis.findings.kinds.loops import loop_findings
    from irscope.analysis.findings.kinds.resources import register_findings, resource_findings
    from irscope.analysis.findings.silence import is_silenced
    from irscope.analysis.findings.studied import Studied

    studied = Studied(replace(capture, log=None))
    try:
        found = list(resource_findings(studied))
        if capture.resources.spilled_bytes:
            found += register_findings(studied)
        if _has_slow_dots(capture):
            found += [*loop_findings(studied, ()), *dot_findings(studied, ())]
        return worst(one for one in found if not is_silenced(one, capture))
    except DAMAGE:
        # What is in a capture's file may say anything.
        return ()


def worst(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in their order, the worst first."""
    return tuple(sorted(findings, key=lambda one: (one.kind.rank, -one.weight, one.line, one.code)))


def _may_have(capture: Capture) -> bool:
    fails = capture.failure is not None and capture.failure.kind == "fit"
    return bool(fails or capture.resources.spilled_bytes or _has_slow_dots(capture))


def _has_slow_dots(capture: Capture) -> bool:
    """Whether its text shows a dot in a blocked layout, or one in a loop that the pipeliner does not take."""
    if capture.target.backend != "cuda" or "ttgir" not in capture.stages:
        return False
    text, stages = capture.text("ttgir"), capture.launch.option("num_stages")
    waits = "scf.while" in text or (isinstance(stages, int) and stages < 2)
    return bool(_BY_FMA.search(text) or (waits and _DOT.search(text)))
