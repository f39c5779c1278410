"""What a prediction adds up, term by term, against Nsight Compute's counters of the same launches."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from irscope.device.clocks import Clock, clock_of
from irscope.device.measurement import quantile
from irscope.store.file import load
from irscope.timing.accesses import Access
from irscope.timing.execution import Execution, execute
from irscope.timing.steps import SHARED, demand_of, rates_of
from irscope.timing.walk import Observed, Skip

_L2_OF_STORES = 1.5
"""Sectors that an H100's and an H200's L2 counts for one that is stored: half of them lie in the other partition."""
_LEAST_SECTORS = 1e5


def predicted(execution: Execution, clock: Clock) -> dict[str, float]:
    """The terms of a launch by the names of Nsight Compute's metrics."""
    instructions = stored = 0.0
    for group in execution.groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if isinstance(entry, Skip):
                continue
            instructions += weight * len(group.rows)
            access: Access | None = entry.payload if isinstance(entry, Observed) else None
            if access is not None and "store" in access.kind:
                stored += access.sectors * access.missed * access.is_on * weight * len(group.rows)
    demand = demand_of(execution, clock, rates_of(clock, min(execution.ctas, clock.units)))
    return {
        "smsp__inst_executed.sum": instructions * execution.ctas,
        "l1tex__data_pipe_lsu_wavefronts.sum": demand.cycles[SHARED] * execution.ctas,
        "lts__t_sectors_op_write.sum": stored * _L2_OF_STORES * execution.ctas,
        "dram__bytes.sum": demand.dram_bytes * execution.ctas,
    }


def counted(metrics: Mapping[str, float]) -> dict[str, float]:
    """The same of a profiled launch, as far as they are large enough to compare."""
    found = dict(metrics) | {"dram__bytes.sum": metrics["dram__bytes_read.sum"] + metrics["dram__bytes_write.sum"]}
    return {name: value for name, value in found.items() if value > _LEAST_SECTORS}


def compare(folder: Path, counters: Path, part: str) -> str:
    """Compare every profiled launch that a folder of `record` has a capture of: a line for each term."""
    ratios: dict[str, dict[str, float]] = defaultdict(dict)
    for line in counters.read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        name = f"{row['family']}-{row['number']:02}"
        if not (path := folder / f"{name}.irscope").exists():
            continue
        capture = load(path)
        clock = clock_of(capture.target, part)
        mine, theirs = predicted(execute(capture, clock), clock), counted(row["metrics"])
        for term, value in mine.items():
            if theirs.get(term):
                ratios[term][name] = value / theirs[term]
    return "\n".join(_line(term, found) for term, found in ratios.items())


def _line(term: str, ratios: Mapping[str, float]) -> str:
    errors = sorted(abs(ratio - 1) for ratio in ratios.values())
    worst = sorted(ratios, key=lambda name: -abs(ratios[name] - 1))[:6]
    far = ", ".join(f"{name} {ratios[name]:.2f}" for name in worst)
    return (
        f"{term}: {len(errors)} launches, predicted over counted {median(ratios.values()):.2f} in the median, "
        f"error {median(errors):.0%} in the median and {quantile(errors, 0.9):.0%} at the 90th percentile; {far}"
    )
