"""The results of an ablation."""

from __future__ import annotations

from irscope.analysis.passes.ablation import Ablation, SortKey, Variant
from irscope.model.capture import Capture
from irscope.render.report.results.model import Cell, Results, Section, Table, Tone, View
from irscope.render.text.searches import about, cell, column_title, columns, idle, measured, outcome

__all__ = ["ablation_results"]

_MEANING = (
    "Each row is the compile without that pass, behind each number its difference to the first row. Converts are the "
    "ttg.convert_layout operations at the end of the ttgir stage."
)


def ablation_results(ablation: Ablation, capture: Capture, sort: SortKey | None = None) -> Results:
    """The rows of an ablation; a pass is linked to what it did in `capture`, the first of the page."""
    sentences = [what for what, _ in idle(ablation)]
    sentences += [f"{ablation.missing} more were not compiled"] if ablation.missing else []
    counted = [f"Of {len(ablation.variants)} variants, {'; '.join(sentences)}."] if sentences else []
    variants = (ablation.baseline, *ablation.sorted(sort))
    names = columns(ablation)
    on_gpu = any(one.agreement or one.timing for one in variants)
    numbers = {snapshot.label: number for number, snapshot in enumerate(capture.snapshots, 1)}
    heads = ("off", "artifacts", *(("result", "time") if on_gpu else ()), *(column_title(ablation, n) for n in names))
    rows = tuple(tuple(_cells(ablation, variant, names, on_gpu, numbers)) for variant in variants)
    table = Table(heads, rows, tuple(_tone(ablation, variant) for variant in variants), has_baseline=True)
    failed = tuple((one.name, one.message) for one in ablation.variants if one.message)
    show = f"irscope diff {ablation.capture[:8]} --disable-pass PASS shows what a row changes."
    return Results(
        f"Passes of {ablation.kernel}, {ablation.target}",
        (f"{about(ablation)}.", *counted),
        (Section("Without each pass", (_MEANING, show), table=table, details=failed),),
    )


def _cells(ablation: Ablation, variant: Variant, names: list[str], on_gpu: bool, numbers: dict[str, int]) -> list[Cell]:
    number = numbers.get(variant.off[0]) if len(variant.off) == 1 else None
    view: View = {} if number is None else {"tab": "passes", "pass": number}
    result = outcome(ablation, variant)
    failing: Tone = "" if variant.compiles else "bad"
    cells = [
        Cell(variant.name or "every pass on", key=variant.name, view=view),
        Cell(result, tone=failing, key=result),
    ]
    if on_gpu:
        agreement, time = measured(variant)
        verdict = variant.agreement.verdict if variant.agreement else None
        cells.append(Cell(agreement, tone="bad" if variant.is_wrong else "", key=verdict))
        cells.append(Cell(time, tone=_judged(variant), key=variant.ratio.value if variant.ratio else None))
    for name in names:
        one = cell(ablation, variant, name)
        cells.append(Cell(one.value, one.difference, key=getattr(variant.counts, name)))
    return cells


def _tone(ablation: Ablation, variant: Variant) -> Tone:
    return "idle" if variant.off and variant.compiles and not ablation.changes(variant) else ""


def _judged(variant: Variant) -> Tone:
    """The tone of a time that was measured, and lies beyond the noise; none for what computes something else.

    Fewer instructions are not a gain by themselves, only a shorter time is.
    """
    ratio = variant.ratio
    if not variant.off or ratio is None or not ratio.different or variant.is_wrong:
        return ""
    return "worse" if ratio.value > 1 else "better"
