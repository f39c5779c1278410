"""Where warps waited, for the report: samples of each line of SASS, TTGIR and Python, if the capture has a profile."""

from __future__ import annotations

from typing import Any

from irscope.analysis.counters.operations import counted_launch
from irscope.errors import DAMAGE
from irscope.ir.logs.source_page import Counters
from irscope.model.capture import Capture
from irscope.render.text.profile import stall_text


def heat_of(capture: Capture) -> dict[str, Any] | None:
    """`stalled`: samples of warps that waited, in all; `lines`: stage, or file of Python → (line, samples, tip).

    None for a capture without a profile, or with one that is not of its code.
    """
    if capture.profile is None:
        return None
    try:
        counted = counted_launch(capture)
    except DAMAGE:
        # It comes from the capture's file, which may say anything.
        return None
    parts: dict[tuple[str, int], list[Counters]] = {}
    for row in counted.operations:
        file, _, line = row.place.rpartition(":")
        if file:
            parts.setdefault((file, int(line)), []).append(row.counters)
        if row.line:
            parts.setdefault(("ttgir", row.line), []).append(row.counters)
        for one in row.instructions:
            parts.setdefault(("sass", one.line), []).append(one.counters)
    lines: dict[str, list[tuple[int, int, str]]] = {}
    for (stage, line), found in sorted(parts.items()):
        total = Counters.sum(found)
        lines.setdefault(stage, []).append((line, total.stalled, _tip(total)))
    return {"stalled": counted.counters.stalled, "lines": lines}


def _tip(counters: Counters) -> str:
    stalls = f"{counters.stalled} samples of warps that waited for {stall_text(counters)}" if counters.stalled else ""
    executed = f"executed {counters.executed} times by warps" if counters.executed is not None else ""
    sectors = f"{counters.sectors} sectors in {counters.lines} lines" if counters.sectors else ""
    return "; ".join(filter(None, (stalls, executed, sectors)))
