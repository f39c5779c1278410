"""Compares the two compiles of a variant: their facts, and their findings where these can differ."""

from __future__ import annotations

import re
from dataclasses import replace

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.model import Finding
from irscope.analysis.regressions import FactChange, changed_facts, facts_of
from irscope.analysis.upgrade.model import Row
from irscope.analysis.upgrade.same import alike
from irscope.device.measurement import Measurement
from irscope.errors import DAMAGE
from irscope.ir.body.clean import Ignored
from irscope.model.capture import Capture, stage_named

__all__ = ["compared", "is_same_code", "with_measurement"]

_LOOSE: frozenset[Ignored] = frozenset({"locations", "attributes"})
_WIDTHS = ("load_bits", "store_bits")

# #blocked = #ttg.blocked<{sizePerThread = [1, 4], …}>
_LAYOUT = re.compile(r"^#(?!loc)\w{1,60} = (#(?:ttg|ttng|gluon|amdg)\.[^\n]*)", re.MULTILINE)
# , CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0]   |   , CGALayout = []
_OF_ONE_CTA = re.compile(r", (?:CTAsPerCGA|CTASplitNum|CTAOrder|CGALayout) = \[[^\]\n]*\]")


def compared(before: Capture | None, after: Capture | None) -> Row:
    """The row of a pair, without blame."""
    if before is None or after is None or is_same_code(before, after):
        return Row(before, after)
    ours, theirs = facts_of(before), facts_of(after)
    ours_found, theirs_found = _findings(before, after, any(ours.get(name) != theirs.get(name) for name in _WIDTHS))
    codes = {one.code for one in ours_found}
    if before.has_compiled and after.has_compiled:
        ours["findings"] = tuple(sorted(codes))
        theirs["findings"] = tuple(sorted({one.code for one in theirs_found}))
    new = tuple(one for one in theirs_found if one.code not in codes)
    return Row(before, after, "", changed_facts(ours, theirs), None, new)


def with_measurement(row: Row, measured: Measurement) -> Row:
    """A row with what its launch does on a GPU: a time that differs beyond the noise and a result that differs count.

    Whether a time is worse is judged by the median of ratios, not by the two medians.
    """
    found: list[FactChange] = []
    if measured.computes_other and measured.agreement is not None:
        found += changed_facts({"result": ""}, {"result": measured.agreement.verdict})
    ratio = measured.ratio
    if ratio is not None and ratio.different and measured.before is not None and measured.after is not None:
        (judged,) = changed_facts({"time_us": 1.0}, {"time_us": ratio.value})
        found.append(replace(judged, before=measured.before.median_us, after=measured.after.median_us))
    changes = tuple(sorted((*row.changes, *found), key=lambda one: one.order))
    return replace(row, changes=changes, measured=measured)


def is_same_code(before: Capture, after: Capture) -> bool:
    """Whether the binaries are the same, so that all facts are."""
    binaries = [one.stage for one in before.artifacts if stage_named(one.stage).is_binary]
    return bool(binaries) and all(
        stage in after.stages and before.artifact(stage).data == after.artifact(stage).data for stage in binaries
    )


def _findings(before: Capture, after: Capture, other_widths: bool) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings of both; those of addresses only where layouts or widths differ, as else they are the same."""
    if not (before.has_compiled and after.has_compiled):
        return (), ()
    ours, theirs = before.texts.get("ttgir", ""), after.texts.get("ttgir", "")
    is_same = alike(ours, theirs, _LOOSE)
    evaluates = not is_same and (other_widths or _layouts(ours) != _layouts(theirs))
    try:
        return findings_of(before, evaluates=evaluates), findings_of(after, evaluates=evaluates)
    except DAMAGE:
        # What is in a capture's file may say anything.
        return (), ()


def _layouts(text: str) -> list[str]:
    """The layouts of a module, without what only other versions write."""
    return sorted({_OF_ONE_CTA.sub("", match[1]).strip() for match in _LAYOUT.finditer(text)})
