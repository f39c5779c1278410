"""Pictures of layouts: the figure, SVG, terminal, table and page, with what must hold for each."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from irscope.errors import MissingTool, UsageError, installing
from irscope.layout.described import DescribedLayout, as_json
from irscope.layout.maps import Preimage
from irscope.model.capture import Target
from irscope.model.layout import LayoutMap, LayoutRefusal, LayoutRow, LinearLayout
from irscope.render.canvas import fills, hexadecimal, luminance, render_png, shade_of
from irscope.render.layout.figure import COLOR_BY, MAX_RUNS, make_figure
from irscope.render.layout.svg import render_svg
from irscope.render.layout.terminal import layout_table, render_terminal

TARGET = Target.parse("cuda:90")
SVG = "{http://www.w3.org/2000/svg}"


def bits(count: int, dimension: int, first: int = 1, rank: int = 2) -> list[list[int]]:
    return [[first << bit if index == dimension else 0 for index in range(rank)] for bit in range(count)]


def layout(kind: str, bases: dict, shape: list[int], **more) -> DescribedLayout:
    answer = LayoutMap(LinearLayout.of(bases, shape))
    encoding = f"#ttg.{kind}<{{order = [1, 0]}}>"
    return DescribedLayout(LayoutRow(f"#{kind}", encoding, tuple(shape), ("f16",), answer=answer, **more), TARGET)


def refused(alias: str, message: str = "", encoding: str = "#vendor.x<1>") -> DescribedLayout:
    return DescribedLayout(LayoutRow(alias, encoding, (4,), answer=LayoutRefusal("unasked", message)), TARGET)


BLOCKED = layout(
    "blocked",
    {
        "register": [*bits(3, 1), *bits(3, 0, 16)],
        "lane": [*bits(3, 1, 8), *bits(2, 0)],
        "warp": bits(2, 0, 4),
        "block": [],
    },
    [128, 64],
)
MMA = layout(
    "nvidia_mma",
    {
        "register": [[0, 1], [8, 0], *bits(3, 1, 8), [64, 0]],
        "lane": [[0, 2], [0, 4], *bits(3, 0)],
        "warp": bits(2, 0, 16),
        "block": [],
    },
    [128, 64],
)
SHARED = layout(
    "swizzled_shared",
    {"offset": [*bits(6, 1), [1, 8], [2, 16], [4, 32], *bits(4, 0, 8)], "block": []},
    [128, 64],
    buffers=2,
)
MISSING = refused("#x", "no one knows")
# 256 × 256, and no unit: every bit of the row changes the column too.
TANGLED = layout(
    "generic_linear",
    {
        "register": [[1 << bit, 1 << bit] for bit in range(8)],
        "lane": [[0, 1 << bit] for bit in range(5)],
        "warp": [[0, 32 << bit] for bit in range(3)],
        "block": [],
    },
    [256, 256],
)
LONG = layout(
    "slice", {"register": [[1], [2]], "lane": [[4], [8], [16], [32], [64]], "warp": [[0]], "block": []}, [128]
)
DEEP = layout(
    "blocked",
    {"register": bits(2, 2, rank=3), "lane": [*bits(3, 2, 4, 3), *bits(2, 1, rank=3)], "warp": bits(2, 0, rank=3)},
    [4, 4, 32],
)
ALL = [BLOCKED, MMA, SHARED, MISSING, TANGLED, LONG, DEEP]


def test_the_unit_that_repeats_is_shown_with_its_count() -> None:
    figure = make_figure(BLOCKED)
    assert (figure.rows, figure.columns) == (16, 64)
    assert "the 16×64 unit repeats 8 times down, each time in other registers of the same threads" in figure.facts
    assert len(figure.runs) == 16 * 8
    assert (figure.runs[1].label, figure.runs[1].detail, figure.runs[1].length) == ("t1", "r0–7", 8)
    shared = make_figure(SHARED)
    assert (shared.rows, shared.columns) == (8, 64)
    assert any("repeats 16 times down, in the same banks" in fact for fact in shared.facts)
    assert (shared.runs[8].label, shared.runs[8].detail) == ("144", "b4–7")


def test_a_layout_without_a_unit_is_cut_to_a_window_that_is_named() -> None:
    figure = make_figure(TANGLED)
    assert figure.runs
    assert any(re.fullmatch(r"elements \[0:\d+, 0:\d+\] of 256×256", fact) for fact in figure.facts)


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_every_element_of_the_plane_is_drawn_once(item: DescribedLayout) -> None:
    figure = make_figure(item)
    cells = set()
    for run in figure.runs:
        for step in range(run.length):
            cell = (run.row + step, run.column) if figure.vertical else (run.row, run.column + step)
            assert cell not in cells
            cells.add(cell)
    assert len(cells) == figure.rows * figure.columns


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_svg_is_text_without_script(item: DescribedLayout) -> None:
    figure = make_figure(item)
    svg = render_svg([figure])
    root = ElementTree.fromstring(svg)
    drawn = [node for node in root.iter(f"{SVG}rect") if re.match(r"f\d+-\d+$", node.get("class", ""))]
    assert len(drawn) == len(figure.runs)
    assert not list(root.iter(f"{SVG}script"))
    assert "prefers-color-scheme:dark" in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert any(figure.title in (node.text or "") for node in root.iter(f"{SVG}text"))


def test_a_hostile_name_stays_text() -> None:
    hostile = refused("#<script>alert(1)</script>")
    ElementTree.fromstring(render_svg([make_figure(hostile)]))
    assert "<script>alert" not in render_svg([make_figure(hostile)])
    assert "\x1b" not in render_terminal(make_figure(refused("#a\x1b[2J", "\x1b", "\x1b")))


def test_large_layouts_are_quick_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    read = Preimage.__getitem__
    monkeypatch.setattr(Preimage, "__getitem__", lambda self, element: looked_up.append(element) or read(self, element))
    for item in (TANGLED, MMA, BLOCKED):
        for color in ("warp", "lane", "register", "vector"):
            looked_up.clear()
            svg = render_svg([make_figure(DescribedLayout(item.row, TARGET), color)])
            assert len(looked_up) <= 24 * MAX_RUNS, (item.name, color)
            assert len(svg.encode()) < 1_000_000


@pytest.mark.parametrize("color", COLOR_BY)
def test_colours_fit_the_layout(color: str) -> None:
    item = SHARED if color == "bank" else MMA
    assert make_figure(item, color).color_by == color
    with pytest.raises(UsageError, match="colour it by"):
        make_figure(MMA if color == "bank" else SHARED, color)
    with pytest.raises(UsageError, match="is not a colouring"):
        make_figure(item, "wrap")


@pytest.mark.parametrize("count", [1, 8, 16, 32, 64, 256])
@pytest.mark.parametrize("dark", [False, True])
def test_text_on_every_filling_is_readable(count: int, dark: bool) -> None:
    for fill in fills(count, dark):
        shade = shade_of(fill)
        ink = luminance(tuple(int(shade.text[at : at + 2], 16) for at in (1, 3, 5)))
        light, low = max(ink, luminance(fill)), min(ink, luminance(fill))
        assert (light + 0.05) / (low + 0.05) >= 4.5, hexadecimal(fill)


def test_terminal_names_what_the_colour_would_say() -> None:
    plain = render_terminal(make_figure(MMA), width=120)
    assert "\x1b" not in plain
    assert "w3 t0" in plain
    colored = render_terminal(make_figure(MMA), width=120, color=True)
    assert "\x1b[" in colored
    assert max(len(line) for line in plain.splitlines()) <= 130
    assert "no picture: no one knows" in render_terminal(make_figure(MISSING))


def test_table_counts_copies() -> None:
    table = layout_table([LONG, SHARED, MISSING])
    assert "2 warps" in table
    assert "50 %" in table
    assert "16384 B shared" in table
    assert "no map: #x 4: no one knows" in table


def test_png_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingTool, match=re.escape(installing("png"))):
        render_png("<svg/>")


def test_png_has_twice_the_pixels(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="PNG needs resvg-py, which is optional")
    data = render_png(render_svg([make_figure(BLOCKED)]))
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == 2560


def test_json_holds_the_whole_map() -> None:
    data = as_json(BLOCKED)
    assert len(data["map"]) == 128 * 64
    assert data["threads"]["registers"] == 64
    assert "map" not in as_json(SHARED, full=False)
    assert as_json(MISSING)["reason"] == "no one knows"
