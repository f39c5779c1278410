"""Memory over time as text and as plain values."""

from __future__ import annotations

from irscope.memory.allocation import allocations_of
from irscope.render.text.memory import memory_json, memory_text
from tests.memory.cases import too_large


def test_each_buffer_has_a_line_and_those_of_the_peak_come_first() -> None:
    text = memory_text("kernel", allocations_of(too_large()))
    head, peak, names, *rows = text.splitlines()
    assert head == "kernel: 120000 of 101376 bytes of shared memory: 18624 too many"
    assert peak == "peak: 120000 bytes held at ttg.local_alloc, step 1 of 9"
    assert names.split() == ["offset", "bytes", "at", "peak", "buffer", "operation", "Python", "steps", "over", "time"]
    assert [row.split()[:2] for row in rows] == [["0", "60000"], ["60000", "60000"], ["8", "16"]]
    assert [row.count("●") for row in rows] == [1, 1, 0]
    bars = [row.split()[-1] for row in rows]
    assert all(len(bar) == 32 for bar in bars)
    assert bars[0].count("▮") == bars[1].count("▮") == 1
    assert bars[0].index("▮") == bars[1].index("▮") < bars[2].index("█")


def test_json_names_the_holders_of_the_peak() -> None:
    (shared,) = memory_json(allocations_of(too_large()))
    assert shared["peak"] == {"step": 1, "held": 120000, "gaps": 0, "holders": [0, 1]}
    assert [one["value"] for one in shared["buffers"]] == ["%a", "%b", ""]
    assert len(shared["steps"]) == 9
    assert list(map(list, shared["loops"])) == [[6, 7]]
