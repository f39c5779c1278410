"""L2's throughput of profiled launches by Nsight Compute's own counters, in the terms of which it is predicted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

from irscope.device.clocks import clock_of
from irscope.target import Target
from irscope.timing import steps

DATA = Path(__file__).parents[2] / "benchmarks/timing/data"
RATE = clock_of(Target.parse("cuda:90"), "h200").l2_bytes_per_s


def profiled() -> Iterator[dict[str, Any]]:
    for path in sorted(DATA.glob("h200-ncu-*.jsonl")):
        yield from map(json.loads, path.read_text("utf-8").splitlines())


def test_the_terms_of_l2_give_its_counted_throughput() -> None:
    errors: list[float] = []
    for row in profiled():
        metrics = row["metrics"]
        seconds = metrics["gpu__time_duration.sum"] * 1e-9
        names = ("lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", "lts__t_bytes.sum")
        read, written, every = (metrics[name] * size / seconds for name, size in zip(names, (32, 32, 1), strict=True))
        filled, lines = (metrics[name] / seconds for name in ("dram__bytes_read.sum", "lts__t_requests.sum"))
        # L2 counts half of what DRAM reads again, and stores and additions 1.5 times.
        sent, stored, added = max(read - filled / 2, 0.0), written / 1.5, max(every - read - written, 0.0) / 1.5
        between = sent * steps._L2_READ + stored * steps._L2_STORED + added * steps._L2_ADDED
        between += filled * steps._L2_FILLED
        busy = (between / RATE + lines * steps._L2_LINE, sent * steps._L2_SENT / RATE, lines * steps._L2_LOOKUP)
        if row["l2"] and row["l2"] > 5:
            errors.append(100 * max(busy) - row["l2"])
    assert len(errors) > 450
    assert mean(map(abs, errors)) < 6.5
    assert abs(median(errors)) < 5
