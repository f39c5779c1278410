"""Memory over time as text and as plain values."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from irscope.memory.allocation import AllocatedMemory, allocations_of
from irscope.render.layout.timeline import memory_json, memory_text, timeline_svg
from tests.memory.cases import too_large


def test_each_buffer_has_a_line_and_those_of_the_peak_come_first() -> None:
    text = memory_text("kernel", allocations_of(too_large()))
    head, peak, names, *rows = text.splitlines()
    assert head == "kernel: 120000 of 101376 bytes of shared memory: limit exceeded by 18624"
    assert peak == "peak: 120000 bytes allocated at ttg.local_alloc, step 1 of 9"
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


SVG = "{http://www.w3.org/2000/svg}"
Box = dict[str, float]


def drawn(allocation: AllocatedMemory) -> ElementTree.Element:
    return ElementTree.fromstring(timeline_svg("a <kernel> & more", [allocation]))


def boxes_of(root: ElementTree.Element) -> list[Box]:
    """The boxes of the buffers, in the buffers' order."""
    groups = sorted(root.iter(f"{SVG}g"), key=lambda group: int(group.attrib["data-buffer"]))
    rects = [group.find(f"{SVG}rect").attrib for group in groups]  # type: ignore[union-attr]
    return [{name: float(rect[name]) for name in ("x", "y", "width", "height")} for rect in rects]


def texts_of(root: ElementTree.Element) -> dict[str, tuple[float, float]]:
    return {node.text or "": (float(node.attrib["x"]), float(node.attrib["y"])) for node in root.iter(f"{SVG}text")}


def test_boxes_are_to_scale() -> None:
    (shared,) = allocations_of(too_large())
    root = drawn(shared)
    boxes = boxes_of(root)
    x, y, width, height = ([box[name] for box in boxes] for name in ("x", "y", "width", "height"))
    assert len(boxes) == len(shared.buffers) == 3
    assert height[0] == height[1] == pytest.approx(180 / 1.04, abs=0.1)
    assert y[1] + height[1] == pytest.approx(y[0], abs=0.1)  # %b stands on %a
    assert x[0] < x[1] < x[0] + width[0] < x[1] + width[1]  # %a begins first, and ends before %b
    assert width[0] / (shared.buffers[0].end - shared.buffers[0].start) == pytest.approx(width[2], abs=0.1)
    texts = texts_of(root)
    assert "limit 101376" in texts
    assert any("k<&>.py:7" in text for text in texts)


def test_the_peaks_label_stands_above_its_line_and_the_axis_is_free_of_it() -> None:
    (shared,) = allocations_of(too_large())
    root = drawn(shared)
    (line,) = (node for node in root.iter(f"{SVG}path") if node.attrib["class"] == "mark")
    x, top, base, same_x, after_axis, floor = map(float, re.findall(r"[\d.]+", line.attrib["d"]))
    texts = texts_of(root)
    _, baseline = texts["peak: 120000 bytes"]
    assert x == same_x
    assert baseline < top < base < after_axis < floor
    _, axis = texts["Python"]
    assert base < axis < after_axis


def test_a_buffer_too_small_to_scale_is_seen_within_the_plot() -> None:
    """Barriers at the very top: as high as a line, not above the total, and not behind what they stand on."""
    (shared,) = allocations_of(too_large())
    first, second, third = shared.buffers
    barriers = replace(third, offset=shared.total - 24, size=24, start=second.start, end=second.end, what="3×1×i64")
    below = replace(second, size=second.size - 24)
    root = drawn(replace(shared, limit=None, buffers=(barriers, first, below)))
    boxes = boxes_of(root)
    numbers = [group.attrib["data-buffer"] for group in root.iter(f"{SVG}g")]
    assert boxes[0]["height"] == 4
    assert boxes[0]["y"] == pytest.approx(boxes[2]["y"], abs=0.2)
    assert numbers.index("0") > numbers.index("2")


def test_loops_within_one_another_stand_below_one_another() -> None:
    (shared,) = allocations_of(too_large())
    steps = len(shared.steps)
    root = drawn(replace(shared, loops=((0, steps), (2, steps - 1))))
    frames = [node.attrib["d"] for node in root.iter(f"{SVG}path") if node.attrib["class"] == "axis"]
    outer, inner = (float(re.findall(r"V([\d.]+)", path)[0]) for path in frames)
    assert inner >= outer + 14


def test_buffers_are_numbered_through_all_memories() -> None:
    (shared,) = allocations_of(too_large())
    svg = timeline_svg("two", [shared, replace(shared, space="tensor")])
    assert sorted(map(int, re.findall(r'data-buffer="(\d+)"', svg))) == list(range(6))


def test_nothing_is_fetched_or_run() -> None:
    svg = timeline_svg("kernel", allocations_of(too_large()))
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in svg


@pytest.mark.parametrize("name", ["\x00\x1b[31m", "\ufffe\uffff", "\udc80", "]]>&<\u2028"])
def test_any_name_gives_xml(name: str) -> None:
    (shared,) = allocations_of(too_large())
    buffers = tuple(replace(one, value=name, owner=name, place=f"{name}.py:7") for one in shared.buffers)
    ElementTree.fromstring(timeline_svg(name, [replace(shared, buffers=buffers)]).encode("utf-8"))
