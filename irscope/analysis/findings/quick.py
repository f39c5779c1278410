"""Findings that need neither addresses nor the compiler's log, for a summary: they cost a hundredth of a compile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from irscope.errors import DAMAGE
from irscope.ir.mlir.tokens import ALIAS, definitions
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.analysis.findings.model import Finding
    from irscope.ir.mlir.model import MlirModule, Operation


def quick_findings(capture: Capture) -> tuple[Finding, ...]:
    """Those of a capture, the worst first, without what comments silence; none if the capture is damaged."""
    fails = capture.failure is not None and capture.failure.kind == "fit"
    if not fails and not capture.resources.spilled_bytes and not _has_slow_dots(capture):
        return ()
    # Not before: importing them takes longer than most summaries.
    from irscope.analysis.findings.find import worst
    from irscope.analysis.findings.loops import dot_findings, loop_findings
    from irscope.analysis.findings.model import is_silenced
    from irscope.analysis.findings.resources import register_findings, resource_findings
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


def _has_slow_dots(capture: Capture) -> bool:
    """Whether its text shows a dot in a blocked layout, or one in a loop that the pipeliner does not take."""
    if capture.target.backend != "cuda" or "ttgir" not in capture.stages:
        return False
    text, stages = capture.text("ttgir"), capture.launch.option("num_stages")
    waits = "scf.while" in text or (isinstance(stages, int) and stages < 2)
    if "dot" not in text and "mma" not in text:
        return False
    if not waits and not _may_be_blocked(text):
        return False
    from irscope.ir.mlir.reader import parse_mlir

    module = parse_mlir(text)
    dots = [one for one in module.walk() if one.kind == "dot"]
    return bool(dots) and (waits or any(one.opcode == "dot" and _is_blocked(module, one) for one in dots))


def _may_be_blocked(text: str) -> bool:
    """Whether a line with a dot ends in a type that may have a blocked layout: most kernels are not parsed."""
    aliases = definitions(text)
    # '%acc_104 = tt.dot %a_92, %b_93, %acc_80, inputPrecision = tf32 : … -> tensor<128x256xf32, #mma>'
    results = [line.rpartition("->")[2] for line in text.splitlines() if ".dot " in line or '.dot"' in line]
    named = (aliases.get(name, "") for result in results for name in ALIAS.findall(result))
    return any("blocked" in layout for layout in (*results, *named))


def _is_blocked(module: MlirModule, dot: Operation) -> bool:
    layout = module.encoding_of(dot.result_types[0]) if dot.results else None
    return layout is not None and layout.is_blocked
