"""How long loads wait for L2 and DRAM, against microbenchmarks on an H100 and an H200."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from irscope.device.clocks import CLOCKS
from irscope.timing.delays import dram_delay, l2_delay

_DATA = Path(__file__).parents[2] / "benchmarks" / "microbench" / "data"


def _measured(part: str) -> dict[str, dict[str, Any]]:
    return json.loads((_DATA / f"{part}.json").read_text())["constants"]


def _rows_of_mixed() -> list[tuple[str, int, int, int]]:
    """(name, loads, stores, threads of a multiprocessor), as long as the threads' own instructions take no time."""
    # Eight loads are compiled to two rounds of four.
    names = [re.match(r"mixed_([124])loads_(\d)stores_(\d)x(\d+)$", name) for name in _measured("h200")]
    rows = [(one[0], int(one[1]), int(one[2]), int(one[3]) * int(one[4])) for one in names if one is not None]
    return [row for row in rows if row[3] <= 1024]


def test_an_iteration_takes_as_long_as_its_last_sector() -> None:
    clock, measured = CLOCKS["h200"], _measured("h200")
    ratios: dict[str, float] = {}
    for name, loads, stores, threads in _rows_of_mixed():
        cycles = measured[name]["median"]
        moved = 4 * threads * clock.units * clock.clock_hz / cycles / clock.dram_bytes_per_s
        reading, writing = loads * moved / clock.dram_efficiency, stores * moved / clock.write_efficiency
        if reading + writing < 0.7:
            delay = dram_delay(clock, reading + writing, writing, 4 * loads)
            ratios[name] = (clock.dram_latency + delay) / cycles
    assert len(ratios) == 33
    assert all(ratio == pytest.approx(1, abs=0.09) for ratio in ratios.values()), ratios


def test_streams_in_flight_show_the_same_latency() -> None:
    clock = CLOCKS["h100"]
    ratios: dict[str, float] = {}
    for name, row in _measured("h100").items():
        if (one := re.match(r"dram_read_(\d+)B_x(\d+)_(\d+)x(\d+)$", name)) is None:
            continue
        size, unroll, ctas, threads = map(int, one.groups())
        used = row["median"] / clock.dram_bytes_per_s / clock.dram_efficiency
        if used < 0.75:
            cycles = size * unroll * ctas * threads * clock.units / row["median"] * clock.clock_hz
            ratios[name] = (clock.dram_latency + dram_delay(clock, used, 0.0, size * unroll)) / cycles
    assert len(ratios) == 8
    assert all(ratio == pytest.approx(1, abs=0.13) for ratio in ratios.values()), ratios


def test_streams_that_hit_l2_wait_for_one_another() -> None:
    """Between none and all of what streams of loads alone show, which is 1.7 times what kernels do."""
    clock = CLOCKS["h200"]
    instructions, sectors = 170.0, 64
    ratios: dict[str, float] = {}
    for name, row in _measured("h200").items():
        if (one := re.match(r"together_(?:apart|next)_1of(\d+)_(\d+)x4$", name)) is None:
            continue
        in_flight = int(one[1]) * int(one[2]) * 4 * 16
        used = row["median"] / clock.l2_bytes_per_s
        waited = in_flight / row["median"] * clock.clock_hz - instructions - clock.l2_latency
        ratios[name] = l2_delay(clock, used, sectors) / waited
    assert len(ratios) == 6
    assert all(ratio == pytest.approx(0.6, abs=0.1) for ratio in ratios.values()), ratios
