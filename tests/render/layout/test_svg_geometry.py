"""Labels: every cell of every picture names its lane and registers, in letters that can be read, within the cell."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from irscope.ir.mlir.attributes import read_encoding
from irscope.layout.computed import computed_map
from irscope.layout.described import DescribedLayout
from irscope.layout.rows import query_type
from irscope.model.capture import Target
from irscope.model.layout import LayoutMap, LayoutRow
from irscope.render.canvas import LETTER
from irscope.render.layout.figure import Figure, make_figure, make_lines_figure
from irscope.render.layout.svg import render_svg
from irscope.render.layout.terminal import render_terminal
from irscope.store.file import load
from tests.layout.cases import CASES, Case
from tests.render.layout.test_figure import ALL, SVG, bits, layout

CAPTURES = sorted((Path(__file__).parents[2] / "data" / "layouts").glob("*.irscope"))
MFMA = layout(
    "amd_mfma",
    {
        "register": [[1, 0], [2, 0], [8, 0], [16, 0]],
        "lane": [*bits(5, 1), [4, 0]],
        "warp": [[0, 32], [32, 0]],
        "block": [],
    },
    [64, 64],
)
"""amd_mfma 32×32 over 2×2 warps, not transposed."""


def case_layout(case: Case, answer: LayoutMap) -> DescribedLayout:
    return DescribedLayout(
        LayoutRow("", case.encoding, case.shape, (case.element,), answer=answer), Target.parse(case.target)
    )


def check(figure: Figure) -> None:
    """Every run has its label, in letters of at least 7.5 pixels, within its cell; and both of its parts."""
    root = ElementTree.fromstring(render_svg([figure]))
    texts = [node for node in root.iter(f"{SVG}text") if node.get("class", "")[:2] in ("l ", "d ")]
    labels = [node for node in texts if node.get("class", "")[:2] == "l "]
    details = [node for node in texts if node not in labels] + [node for text in labels for node in text]
    assert len(labels) == len(figure.runs), figure.title
    assert len(details) == sum(bool(run.detail) for run in figure.runs), figure.title
    assert {f"{run.label}" for run in figure.runs} == {(node.text or "").strip() for node in labels}
    sizes = [float(node.get("font-size", "0")) for node in labels]
    assert min(sizes) >= 7.5
    assert sorted(sizes)[len(sizes) // 2] >= 8.9, figure.title
    boxes = [
        [float(node.get(name, "0")) for name in ("x", "y", "width", "height")]
        for node in root.iter(f"{SVG}rect")
        if re.match(r"f\d+-\d+$|way$", node.get("class", ""))
    ]
    # Cells and labels stand in one order.
    for node, (left, top, width, height) in zip(labels, boxes, strict=True):
        text = "".join(node.itertext())
        x, y, size = (float(node.get(name, "0")) for name in ("x", "y", "font-size"))
        assert x == pytest.approx(left + width / 2, abs=0.2)
        assert len(text) * LETTER * size <= width + 0.2, (figure.title, text)
        assert top - 1 <= y - 0.75 * size, (figure.title, text)
        assert y <= top + height, (figure.title, text)


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_the_layouts_of_kernels(capture: Path) -> None:
    loaded = load(capture)
    for row in loaded.layouts:
        figure = make_figure(DescribedLayout(row, loaded.target))
        if not figure.missing:
            check(figure)


@pytest.mark.parametrize("item", [*ALL, MFMA], ids=lambda item: item.name)
@pytest.mark.parametrize("color", [None, "lane", "register"])
def test_every_colouring(item: DescribedLayout, color: str | None) -> None:
    figure = make_figure(item, color if item.threads is not None else None)
    if not figure.missing:
        check(figure)
        for run in figure.runs[:8]:
            assert re.search(r"t\d+", run.label) or item.threads is None
            assert run.detail


def test_computed_cases() -> None:
    for case in CASES:
        answer = computed_map(read_encoding(case.encoding), case.shape)
        if answer is not None:
            check(make_figure(case_layout(case, answer)))


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.exhaustive) for part in (1, 2))])
def test_every_case(part: int) -> None:
    from irscope.record.process.annotations import LayoutServer, Module

    pytest.importorskip("triton", reason="the layouts are the compiler's, and Triton is not installed")
    checked = 0
    with LayoutServer() as server:
        for case in CASES[part::3]:
            module = Module.of(Target.parse(case.target), case.num_warps, case.num_ctas)
            types = [query_type(case.encoding, case.shape, case.element)]
            (answer,) = server.wait(server.ask(module, types=types)).answered_types()
            if isinstance(answer, LayoutMap):
                check(make_figure(case_layout(case, answer)))
                checked += 1
    assert checked > 50


def test_padding_has_labels_too() -> None:
    text = "#ttg.padded_shared<[64:+8, 512:+4] {order = [1, 0], shape = [64, 64]}>"
    answer = computed_map(read_encoding(text), (64, 64))
    assert answer is not None
    figure = make_lines_figure(case_layout(Case(text, (64, 64)), answer))
    assert figure is not None
    check(figure)


def test_the_terminal_names_lanes_warps_and_registers() -> None:
    for color in (False, True):
        text = render_terminal(make_figure(MFMA), width=120, color=color)
        assert re.search(r"t63 r12–15" if color else r"w3 t63 r12–15", text)
