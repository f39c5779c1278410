"""The clock of launches with tensor cores and without, against the cycles and times that Nsight Compute counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from irscope.device.clocks import CLOCKS

DATA = Path(__file__).parents[2] / "benchmarks" / "timing" / "data"
_PIPES = tuple(
    f"sm__inst_executed_pipe_tensor_op_{one}.avg.pct_of_peak_sustained_elapsed" for one in ("gmma", "hmma", "imma")
)


def _profiled() -> Iterator[tuple[float, float]]:
    """(Hertz, percent of the time in which tensor cores are issued to), of each profiled launch."""
    for path in DATA.glob("h?00-ncu*.jsonl"):
        for line in path.read_text().splitlines():
            metrics = json.loads(line).get("metrics") or {}
            cycles, ns = metrics.get("sm__cycles_elapsed.avg"), metrics.get("gpu__time_duration.avg")
            if cycles and ns and any(name in metrics for name in _PIPES):
                yield cycles / ns * 1e9, sum(metrics.get(name) or 0.0 for name in _PIPES)


@pytest.mark.parametrize("part", ["h100", "h200"])
def test_the_clock_of_profiled_launches(part: str) -> None:
    clock = CLOCKS[part]
    # Units that other instructions use too are busy for less than a hundredth.
    with_tensor_cores = [hertz for hertz, busy in _profiled() if 2 <= busy < 20]
    without = [hertz for hertz, busy in _profiled() if busy < 1]
    assert len(with_tensor_cores) > 60
    assert len(without) > 100
    assert median(with_tensor_cores) == pytest.approx(clock.with_tensor_cores().clock_hz, rel=0.01)
    assert median(without) == pytest.approx(clock.clock_hz, rel=0.01)
