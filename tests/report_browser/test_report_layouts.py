"""The report's layouts, driven in Chromium: what a cell, a choice, a bit and an address show is the compiler's map."""

from __future__ import annotations

from typing import Any

import pytest

from irscope.render.report.facts import between_layouts, capture_of_layouts
from irscope.render.report.page import render_report
from tests.memory.test_between import PADDED, REGISTERS, described
from tests.render.layout.test_figure import ALL, BLOCKED, MMA
from tests.report_browser.conftest import Open
from tests.report_browser.test_report_tabs import fragment

pytestmark = [pytest.mark.slow, pytest.mark.newest]


def mouse(page: Any, canvas: str, column: int, row: int, *, click: bool = False) -> None:
    """Point at a cell of a picture; the axes are read off the canvas, as a person does."""
    cell, high, left, top = map(float, page.get_attribute(f"canvas.{canvas}", "data-cell").split())
    place = {"x": left + cell * (column + 0.5), "y": top + high * (row + 0.5)}
    (page.click if click else page.hover)(f"canvas.{canvas}", position=place)
    settle(page)


def settle(page: Any) -> None:
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")


def show(page: Any, address: str) -> None:
    page.evaluate(f"location.hash = {address!r}")
    settle(page)


def said(page: Any) -> str:
    return page.inner_text(".details")


def test_a_layout_is_explored(open_report: Open) -> None:
    page = open_report([capture_of_layouts(ALL)], "tab=layouts")
    page.wait_for_selector("canvas.tensor[data-cell]")

    mouse(page, "tensor", 9, 5)
    (owner,) = BLOCKED.threads.owners_at(BLOCKED.layout.flatten((5, 9)))
    assert "element (5, 9)" in said(page)
    assert f"warp {owner.warp}, lane {owner.lane}, register {owner.register}" in said(page)
    assert "lane bit 0: [0, 8]" in said(page)
    mouse(page, "hardware", 3, 37)
    assert "→ (4, 43)" in said(page)
    assert BLOCKED.layout.apply(register=3, lane=5, warp=1) == (4, 43)

    # A click keeps it, and the address says so; Escape lets go.
    mouse(page, "tensor", 9, 5, click=True)
    mouse(page, "tensor", 3, 8)
    assert "element (5, 9)" in said(page)
    assert "element=5%2C9" in fragment(page)
    page.keyboard.press("Escape")
    assert "element" not in fragment(page)

    # Bits.
    page.click("text='next bit'")
    settle(page)
    assert page.inner_text(".step") == "register bit 0 (value 1) adds [0, 1]"
    page.click("text='previous bit'")
    settle(page)
    assert page.inner_text(".step") == "warp bit 1 (value 2) adds [8, 0]"
    assert "bit=13" in fragment(page)
    assert page.locator(".matrix .one").count() == sum(index.bit_count() for index in BLOCKED.layout.flat_bases())

    page.fill("input[name=warp]", "3")
    settle(page)
    assert "2048 elements:" in said(page)

    # An address brings it back; a strange one does no harm.
    show(page, "tab=layouts&layout=2&color=lane&lane=6&warp=2&register=1")
    place = MMA.layout.apply(register=1, lane=6, warp=2)
    assert f"→ ({place[0]}, {place[1]})" in said(page)
    assert page.input_value("select[aria-label=colour]") == "lane"
    for strange in ("layout=99", "element=1,2,3", "bit=-4&lane=x", "color=%3Cscript%3E", "lead=9,9&&&=="):
        show(page, f"tab=layouts&{strange}")
        assert "#blocked" in page.inner_text(".layout-list [aria-pressed=true]")

    # Shared memory, a comparison, no map, and a plane of three dimensions.
    show(page, "tab=layouts&layout=3")
    mouse(page, "tensor", 8, 1)
    assert "byte 128, bank 0" in said(page)
    show(page, "tab=layouts&layout=2&versus=1")
    assert "elements have another thread in #blocked 128×64" in page.inner_text(".comparison")
    show(page, "tab=layouts&layout=4")
    assert "No picture: no one knows" in page.inner_text(".layout-body")
    show(page, "tab=layouts&layout=7&lead=2")
    mouse(page, "tensor", 0, 0)
    assert "element (2, 0, 0)" in said(page)


def test_two_layouts_stand_beside_each_other_at_one_scale(open_report: Open) -> None:
    first, second = described(REGISTERS[0]), described(PADDED)
    there, back = between_layouts(first, second)
    view = {"tab": "layouts", "layout": 1, "versus": 2}
    text = render_report([capture_of_layouts([first, second])], view=view, between={(0, 1): there, (1, 0): back})
    page = open_report(text)
    page.wait_for_selector("canvas.second[data-cell]")
    left, right = (page.locator(f"canvas.{name}").bounding_box() for name in ("tensor", "second"))
    assert left["y"] == right["y"]
    assert left["x"] < right["x"]
    assert page.get_attribute("canvas.tensor", "data-cell") == page.get_attribute("canvas.second", "data-cell")
    assert "bank conflicts" in page.inner_text(".comparison")
    assert "framed: what the first lanes of warp 0 access together" in page.inner_text(".comparison")
    mouse(page, "second", 3, 1)
    assert "element (1, 3)" in said(page)
    # [64:+8] of f16: the second line of 64 elements begins with 8 of padding.
    show(page, "tab=layouts&layout=2")
    assert second.memory is not None
    mouse(page, "hardware", 8, 1)
    assert f"byte {second.memory.byte(64)}, bank 4 → (1, 0)" in said(page)
    mouse(page, "hardware", 7, 1)
    assert "Point at a cell" in said(page)
