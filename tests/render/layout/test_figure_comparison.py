"""Two pictures beside each other: one part of the tensor, one scale, and frames around what differs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import product

import pytest

from irscope.errors import UsageError
from irscope.layout.described import DescribedLayout
from irscope.render.layout.figure import Figure, make_pair
from irscope.render.layout.svg import render_svg
from irscope.render.layout.terminal import render_beside
from tests.layout.cases import blocked
from tests.memory.test_between import REGISTERS, SHARED, described
from tests.render.layout.test_figure import BLOCKED, LONG, MMA, SVG

PAIRS = list(product((*REGISTERS[:4], *SHARED), repeat=2))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_both_show_the_same_elements_and_frame_the_same(first: str, second: str) -> None:
    a, b = described(first), described(second)
    pair = make_pair(a, b)
    assert len({(figure.rows, figure.columns) for figure in pair}) == 1
    frames = [framed(figure) for figure in pair]
    assert frames[0] == frames[1]
    if a.threads is not None and b.threads is not None:
        meant = {
            (row, column)
            for row, column in product(range(pair[0].rows), range(pair[0].columns))
            if same_thread(a, b, row * 64 + column) is ("the same thread" in pair[0].mark_text)
        }
        assert frames[0] == (meant if pair[0].mark_text else set())
    if a.memory is not None and b.memory is not None:
        for row, column in product(range(pair[0].rows), range(pair[0].columns)):
            moved = a.memory.place(row * 64 + column) != b.memory.place(row * 64 + column)
            meant_moved = "another byte" in pair[0].mark_text
            assert ((row, column) in frames[0]) == (bool(pair[0].mark_text) and moved is meant_moved)


def framed(figure: Figure) -> set[tuple[int, int]]:
    return {
        (run.row + step, run.column) if figure.vertical else (run.row, run.column + step)
        for run in figure.runs
        if run.marked
        for step in range(run.length)
    }


def same_thread(a: DescribedLayout, b: DescribedLayout, element: int) -> bool:
    assert a.threads is not None
    assert b.threads is not None
    ours, theirs = (
        {(owner.warp, owner.lane) for owner in item.threads.owners_at(element)} for item in (a, b) if item.threads
    )
    return bool(ours & theirs)


def test_one_svg_holds_both_at_one_scale() -> None:
    svg = render_svg(make_pair(MMA, BLOCKED), beside=True)
    root = ElementTree.fromstring(svg)
    grids = [node for node in root.iter(f"{SVG}rect") if node.get("class") == "axis"]
    assert len({(grid.get("width"), grid.get("height")) for grid in grids}) == 1
    assert len({grid.get("y") for grid in grids[: len(grids) // 2]}) >= 1
    titles = [node for node in root.iter(f"{SVG}text") if node.get("class") == "t b"]
    assert len({title.get("y") for title in titles}) == 1
    assert len({title.get("x") for title in titles}) == 2
    half = int(root.get("width", "0")) / 2
    for x in (float(node.get("x", "0")) for node in root.iter(f"{SVG}rect")):
        assert x < 2 * half


def test_the_terminal_puts_them_beside_each_other_if_it_is_wide() -> None:
    pair = make_pair(described(REGISTERS[0], (8, 16)), described(REGISTERS[2], (8, 16)))
    wide = render_beside(pair, width=280).splitlines()
    assert wide[0].count(" · ") == 2
    assert max(map(len, wide)) <= 280
    narrow = render_beside(pair, width=80).splitlines()
    assert narrow[0].count(" · ") == 1
    assert len(narrow) > len(wide)


def test_compared_layouts_mark_the_fewer() -> None:
    figure = make_pair(MMA, BLOCKED)[0]
    assert figure.mark_text == "framed: the same thread holds it in #blocked"
    assert 0 < len(framed(figure)) < 0.5 * figure.rows * figure.columns
    assert any(re.match(r"to #blocked: moves across warps", fact) for fact in figure.facts)
    assert make_pair(MMA, MMA)[0].mark_text == ""
    with pytest.raises(UsageError, match="can't be compared"):
        make_pair(MMA, LONG)


def test_a_colouring_is_for_the_layout_it_fits() -> None:
    registers, shared = make_pair(described(REGISTERS[0]), described(SHARED[0]), "lane")
    assert (registers.color_by, shared.color_by) == ("lane", "bank")
    with pytest.raises(UsageError, match="is not a colouring"):
        make_pair(MMA, BLOCKED, "wrap")


def test_what_has_too_many_cells_is_cut_alike() -> None:
    one = blocked((1, 1), (1, 32), (4, 1), (1, 0))
    pair = make_pair(described(one, (128, 128)), described(SHARED[1], (128, 128)))
    assert {(figure.rows, figure.columns) for figure in pair} == {(pair[0].rows, pair[0].columns)}
    assert any("of 128×128" in fact or "repeats" in fact for fact in pair[0].facts)
