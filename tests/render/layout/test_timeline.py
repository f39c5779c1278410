"""The picture of memory over time: a box for each buffer, where and as large as it is."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from irscope.memory.allocation import allocations_of
from irscope.render.layout.timeline import timeline_svg
from tests.memory.cases import too_large

SVG = "{http://www.w3.org/2000/svg}"


def test_boxes_are_to_scale() -> None:
    (shared,) = allocations_of(too_large())
    root = ElementTree.fromstring(timeline_svg("a <kernel> & more", [shared]))
    boxes = [group.find(f"{SVG}rect").attrib for group in root.iter(f"{SVG}g")]  # type: ignore[union-attr]
    x, y, width, height = ([float(box[name]) for box in boxes] for name in ("x", "y", "width", "height"))
    assert len(boxes) == len(shared.buffers) == 3
    assert height[0] == height[1] == pytest.approx(180 / 1.04, abs=0.1)
    assert y[1] + height[1] == pytest.approx(y[0], abs=0.1)  # %b stands on %a
    assert x[0] < x[1] < x[0] + width[0] < x[1] + width[1]  # %a begins first, and ends before %b
    assert width[0] / (shared.buffers[0].end - shared.buffers[0].start) == pytest.approx(width[2], abs=0.1)
    texts = [node.text or "" for node in root.iter(f"{SVG}text")]
    assert "limit 101376" in texts
    assert "peak" in texts
    assert any("k<&>.py:7" in text for text in texts)


def test_nothing_is_fetched_or_run() -> None:
    svg = timeline_svg("kernel", allocations_of(too_large()))
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in svg
