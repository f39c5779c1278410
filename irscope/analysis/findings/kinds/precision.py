"""IRS603: dots of f32 whose operands the matrix instructions round to TF32."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.analysis.findings.model import Cause, Finding, Suggestion
from irscope.analysis.findings.studied import Studied

__all__ = ["may_round", "precision_findings"]

_DOTS = ("tt.dot", "ttng.warp_group_dot", "ttng.tc_gen5_mma")
# mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32    tcgen05.mma.cta_group::1.kind::tf32    v_mfma_f32_32x32x4_xf32
_ROUNDED = re.compile(r"(?:\bw?g?mma\.|\btcgen05\.mma\.)[\w.:]{0,80}\btf32\b|\bv_s?mfmac?_\w{1,40}_xf32\b")
_ASKED = "inputPrecision = tf32 "


def may_round(studied: Studied) -> bool:
    """Whether a dot is a finding if its instructions are known: others of its place are dots too."""
    assembly = studied.capture.texts.get(studied.machine.text_stage, "")
    return (
        _ASKED in studied.capture.texts.get("ttir", "")
        and _ROUNDED.search(assembly) is not None
        and any(use.name in _DOTS and not studied.instructions_of(use.line) for use in studied.uses.operations)
    )


def precision_findings(studied: Studied) -> Iterator[Finding]:
    """The dots that were asked to be TF32, or not asked not to be, and are."""
    for use in studied.uses.operations:
        if use.name not in _DOTS:
            continue
        rounded = sum(_ROUNDED.search(text) is not None for text in studied.instructions_of(use.line))
        written, line = studied.dot_as_written(use) if rounded else ("", 0)
        if _ASKED not in written:
            continue
        yield studied.finding(
            "IRS603",
            use.line,
            "rounds its f32 operands to TF32, which has 10 bits of mantissa in place of 23",
            "a relative error of up to 2⁻¹¹ in each operand",
            1,
            [
                studied.in_ir(f"its instructions: {rounded} of TF32", use.line, "assembly"),
                Cause('its input_precision is "tf32", which is the default', "ir", f"line {line} of ttir"),
            ],
            [Suggestion('input_precision="tf32x3" or "ieee", if that is not enough: both are slower')],
        )
