"""The graphs of a report are those of `irscope graph`: nothing is lost where they are made small."""

from __future__ import annotations

import html
import re
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from irscope.model.capture import Artifact
from irscope.render.dot.flows import passes_graph, stage_graph
from irscope.render.dot.graph import render_bytes
from irscope.render.report.pictures import packed_graphs
from irscope.render.warps import warps_picture
from tests.analysis.flow.test_partitions_turns import WARPS
from tests.render.poster.texts import texts_of
from tests.report_browser.captures import failed, hostile, softmax

pytestmark = pytest.mark.newest


def packed(placed: bool) -> dict[str, tuple[dict[str, list[int]], str]]:
    texts: list[str] = []

    def add(text: str, _: str) -> int:
        texts.append(text)
        return len(texts) - 1

    rows, unplaced = packed_graphs(softmax(), add, placed=placed)
    assert unplaced == (not placed)
    assert all(row["dot"] == (not placed) for row in rows)
    return {row["of"]: (row["lines"], texts[row["text"]]) for row in rows}


@pytest.mark.skipif(shutil.which("dot") is None, reason="dot is not installed")
def test_a_picture_keeps_every_node_edge_and_text() -> None:
    found = packed(placed=True)
    assert list(found) == ["passes", "ttir", "ttgir", "llir", "ptx", "sass"]
    graphs = {of: graph.drawing for of in ("ttgir", "sass") if (graph := stage_graph(softmax(), of)) is not None}
    passes = passes_graph(softmax())
    assert passes is not None
    assert len(graphs) == 2
    for of, graph in (*graphs.items(), ("passes", passes)):
        whole = ElementTree.fromstring(render_bytes(graph, "svg"))
        small = ElementTree.fromstring(found[of][1])
        told = [[each.text for each in one.iter() if each.tag.endswith(("text", "title"))] for one in (whole, small)]
        assert told[0] == told[1]
        assert len(told[0]) > 20
        # Paths, and polygons that became some: each ends where it ended, within rounding.
        ends = [[_end(each) for each in one.iter() if each.tag.endswith(("path", "polygon"))] for one in (whole, small)]
        for (x, y), (other_x, other_y) in zip(*ends, strict=True):
            assert abs(x - other_x) <= 1
            assert abs(y - other_y) <= 1
        assert len(found[of][1]) < 0.7 * len(render_bytes(graph, "svg"))


def _end(element: ElementTree.Element) -> tuple[float, float]:
    """Where a path or a polygon ends."""
    points = element.get("points")
    if points is not None:
        x, y = points.split()[-1].split(",")
        return float(x), float(y)
    x = y = 0.0
    for letter, text in re.findall(r"([MCLmcl])([^MCLmcl]*)", element.get("d") or ""):
        pairs = [tuple(map(float, point.split(","))) for point in text.split()]
        for at, (left, top) in enumerate(pairs, 1):
            if letter.isupper():
                x, y = left, top
            elif letter != "c" or at % 3 == 0:
                x, y = x + left, y + top
    return x, y


def test_without_dot_the_source_goes_in() -> None:
    found = packed(placed=False)
    graph = stage_graph(softmax(), "ttgir")
    assert graph is not None
    lines, source = found["ttgir"]
    assert source == graph.drawing.source
    held = {line for runs in lines.values() for line in range(min(runs), max(runs) + 1)}
    text = softmax().text("ttgir").split("\n")
    loads = [number for number, line in enumerate(text, 1) if "tt.load" in line]
    assert loads
    assert held.issuperset(loads)


def test_captures_that_say_anything_have_what_can_be_drawn() -> None:
    for capture in (hostile(), failed()):
        rows, _ = packed_graphs(capture, lambda *_: 0, placed=False)
        assert all(row["of"] in ("passes", *capture.stages) for row in rows)
        # What passes and their options are called is no DOT.
        if shutil.which("dot") is not None:
            assert not any(row["dot"] for row in packed_graphs(capture, lambda *_: 0, placed=True)[0])


def test_partitions_are_drawn_as_by_the_command() -> None:
    texts: list[str] = []
    ttgir = (WARPS / "ws_matmul.ttgir").read_text()
    capture = replace(softmax(), artifacts=(Artifact("ttgir", ttgir),))
    rows, _ = packed_graphs(capture, lambda text, _: texts.append(text) or len(texts) - 1, placed=False)
    (row,) = (row for row in rows if row["of"] == "warps")
    assert not row["dot"]
    drawn = warps_picture(capture)
    assert drawn is not None
    shown = texts[row["text"]]
    assert "<style>" not in shown
    assert [one.text for one in texts_of(shown)] == [one.text for one in texts_of(drawn.svg)]
    # Each operation of the picture leads to its line.
    names = {html.unescape(name) for name in re.findall(r'<g class="node">\n?<title>([^<]*)</title>', shown)}
    assert names == set(row["lines"])
    lines = ttgir.splitlines()
    for name, (first, last) in row["lines"].items():
        assert first == last
        assert name.split()[2] in lines[first - 1]
