"""What the walk of the SASS counts, against the counters of an H200 for the same launches."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from irscope.analysis.counters.operations import kernel_of_page
from irscope.device.clocks import CLOCKS
from irscope.model.capture import Capture
from irscope.store.file import load
from irscope.timing.execution import Execution, execute
from irscope.timing.walk import Observed, Skip

COUNTED = sorted((Path(__file__).parents[1] / "data" / "counters").rglob("*.irscope"))


def _named(path: Path) -> Capture:
    return load(path)


def _counts(execution: Execution) -> tuple[Counter[int], Counter[int]]:
    """Instruction → how often warps of the walked CTA execute it, and the global sectors of these."""
    executed, sectors = Counter[int](), Counter[int]()
    for group in execution.groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if isinstance(entry, Skip):
                continue
            index = entry.index if isinstance(entry, Observed) else entry
            executed[index] += round(weight * len(group.rows))
            if isinstance(entry, Observed) and entry.payload and entry.payload.kind in ("load", "store"):
                sectors[index] += round(weight * len(group.rows) * entry.payload.sectors * entry.payload.is_on)
    return executed, sectors


@pytest.mark.parametrize("path", COUNTED, ids=lambda path: path.stem)
def test_as_often_as_the_hardware_counts(path: Path) -> None:
    capture = _named(path)
    if capture.profile is None or "sass" not in capture.stages:
        pytest.skip("the capture holds no counters of its own SASS")
    execution = execute(capture, CLOCKS["h200"])
    counted = kernel_of_page(capture, capture.profile.page).instructions
    if execution.assumed or execution.work.max() > execution.work.min():
        pytest.skip("data decide its way, or its CTAs differ and one of them is walked whole")
    executed, _ = _counts(execution)
    rows = [one.counters.executed or 0 for one in counted]
    found = [executed[index] * execution.ctas for index in range(len(execution.program.code))]
    wrong = [
        (index, execution.program.code[index].text, mine, theirs)
        for index, (mine, theirs) in enumerate(zip(found, rows, strict=False))
        # Of the last CTA some warps may leave early; lanes that came apart meet at a BSYNC, each for itself.
        if abs(mine - theirs) >= execution.warps and execution.program.bases[index] != "BSYNC"
    ]
    assert wrong == []


def test_the_counted_captures_are_there() -> None:
    assert len(COUNTED) > 20
