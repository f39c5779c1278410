"""IRS603: dots of f32 whose operands the matrix instructions round to TF32."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.analysis.findings.model import Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.mlir.reader import MlirModule, Operation, Value
from irscope.ir.mlir.uses import maker_in

__all__ = ["may_round", "precision_findings"]

_DOTS = ("tt.dot", "ttng.warp_group_dot", "ttng.tc_gen5_mma")
# mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32    tcgen05.mma.cta_group::1.kind::tf32    v_mfma_f32_32x32x4_xf32
_ROUNDED = re.compile(r"(?:\bw?g?mma\.|\btcgen05\.mma\.)[\w.:]{0,80}\btf32\b|\bv_s?mfmac?_\w{1,40}_xf32\b")
_ASKED = "inputPrecision = tf32 "
_WIDENED = ("arith.extf", "tt.fp_to_fp")
# %a = arith.sitofp %b : tensor<64x64xi8> to tensor<64x64xf32>
_SMALL_INTEGER = re.compile(r"\barith\.[su]itofp\b[^:]{0,99}: (?:tensor<(?:\d{1,9}x){1,9})?i[1-8]\b")
_SAME_VALUES = ("tt.trans", "tt.reshape", "tt.broadcast", "tt.expand_dims", "tt.splat", "arith.negf", "math.absf")


def may_round(studied: Studied) -> bool:
    """Whether a dot is a finding if its instructions are known: others of its place are dots too."""
    assembly = studied.capture.texts.get(studied.machine.text_stage, "")
    return (
        _ASKED in studied.capture.texts.get("ttir", "")
        and _ROUNDED.search(assembly) is not None
        and any(use.name in _DOTS and not studied.instructions_of(use.line) for use in studied.uses.operations)
    )


def precision_findings(studied: Studied) -> Iterator[Finding]:
    """The dots that were asked to be TF32, or not asked not to be, and are, with an operand that TF32 cannot hold."""
    for use in studied.uses.operations:
        if use.name not in _DOTS:
            continue
        rounded = sum(_ROUNDED.search(text) is not None for text in studied.instructions_of(use.line))
        dot = studied.dot_as_written(use) if rounded else None
        if dot is None or _ASKED not in dot.text:
            continue
        widened = [_widening(studied.written, value) for value in dot.operands[:2]]
        if all(widened):
            continue
        causes = [
            studied.in_ir(f"its instructions: {rounded} of TF32", use.line, "assembly"),
            studied.in_ir('its input_precision is "tf32", which is the default', dot.first_line, stage="ttir"),
        ]
        for number, one in enumerate(widened):
            if one is not None:
                said = f"operand {number} is exact: {one.name} made it, of a type that TF32 holds"
                causes.append(studied.in_ir(said, one.first_line, stage="ttir"))
        where = "each operand" if not any(widened) else f"operand {widened.index(None)}"
        yield studied.finding(
            "IRS603",
            use.line,
            "rounds its f32 operands to TF32, which has 10 bits of mantissa in place of 23",
            # NVIDIA's matrix instructions cut the other bits off: PTX has no `cvt.rna.tf32` before them.
            f"a relative error of less than 2⁻¹⁰ in {where}",
            1,
            causes,
            [Suggestion('input_precision="tf32x3" or "ieee", if that is not enough: both are slower')],
        )


def _widening(module: MlirModule, value: Value) -> Operation | None:
    """The operation that made an f32 value of 16 bits or fewer, which TF32 holds; None if it may have more."""
    made = maker_in(module, value)
    while made is not None and made.name in _SAME_VALUES and made.operands:
        made = maker_in(module, made.operands[0])
    if made is None or (made.name not in _WIDENED and _SMALL_INTEGER.search(made.text) is None):
        return None
    return made
