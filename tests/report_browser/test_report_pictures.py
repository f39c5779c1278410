"""The page's pictures beside those of its stages: partitions of warps, passes, and live registers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.source.annotations import annotate
from irscope.model.capture import Artifact, Capture
from irscope.render.canvas import Rect
from irscope.render.warps import warps_picture
from tests.analysis.flow.test_partitions_turns import WARPS
from tests.render.poster.texts import texts_of, wrong_boxes
from tests.report_browser.captures import softmax
from tests.report_browser.conftest import Open
from tests.report_browser.test_report_tabs import until

pytestmark = pytest.mark.slow

# The texts of the gutters of the second pane; the first element of each only makes it as wide as it is.
_GUTTERS = """[...document.querySelectorAll(".stage-pane")[1].querySelectorAll(".cm-labels")].map((gutter) =>
    [...gutter.children].slice(1).map((one) => one.textContent.trim()))"""


def specialized() -> Capture:
    ttgir = Artifact("ttgir", (WARPS / "ws_matmul.ttgir").read_text())
    capture = softmax()
    return replace(capture, artifacts=tuple(ttgir if one.stage == "ttgir" else one for one in capture.artifacts))


def test_the_pictures_of_the_commands_are_in_the_page(open_report: Open, tmp_path: Path) -> None:
    capture = specialized()
    page = open_report([capture], "tab=graph&of=warps")
    drawn = warps_picture(capture)
    assert drawn is not None
    until(page, "document.querySelectorAll('.graph.drawn .node').length > 10")
    wanted = [one.text for one in texts_of(drawn.svg)]
    assert page.evaluate("[...document.querySelectorAll('.graph text')].map((one) => one.textContent)") == wanted
    # An operation leads to its line of the TTGIR.
    page.locator(".graph .node", has_text="MMA").click()
    until(page, "document.querySelector('.pane .lit-strong')?.innerText.includes('ttng.tc_gen5_mma')")
    # What is saved has the colours of the page, and is the picture of the command.
    with page.expect_download() as saved:
        page.get_by_role("button", name="SVG").click()
    path = tmp_path / "saved.svg"
    saved.value.save_as(path)
    svg = path.read_text("utf-8")
    assert "#ffffff" in svg or "rgb(255, 255, 255)" in svg
    assert "class=" not in svg
    texts = texts_of(svg)
    assert [one.text for one in texts] == wanted
    assert wrong_boxes(texts, Rect(0, 0, 1280, 720)) == []
    # A box of the passes opens its pass.
    page.get_by_role("button", name="passes", exact=True).click()
    until(page, "document.querySelectorAll('.graph .node').length > 10 && !document.querySelector('.graph.drawn')")
    names = page.evaluate("[...document.querySelectorAll('.graph .node')].map((one) => one.textContent)")
    ran = [one for one in capture.passes() if one.changed]
    assert sum(any(one.name in name for one in ran) for name in names) >= len({one.name for one in ran})
    at, chosen = next((at, one) for at, one in enumerate(capture.passes()) if one.changed)
    page.locator(".graph .node", has_text=chosen.name).first.click()
    until(page, f"location.hash.includes('tab=passes') && location.hash.includes('pass={at + 1}')")


def test_live_registers_stand_beside_machine_code_and_python(open_report: Open) -> None:
    capture = softmax()
    found = annotate(capture)
    page = open_report([capture], "tab=stages&panes=py0,sass")
    until(page, "document.querySelectorAll('.stage-pane .cm-labels').length >= 4")
    live, numbers = page.evaluate(_GUTTERS)[:2]
    shown = {int(number): re.findall(r"\d+|‖", text) for text, number in zip(live, numbers, strict=True) if number}
    known = {one.line: [str(one.live), *(["‖"] if one.tick else [])] for one in found.instructions}
    seen = [line for line in shown if line in known]
    assert len(seen) > 10
    assert [shown[line] for line in seen] == [known[line] for line in seen]
    # The strip is as wide as the registers that a thread has, and as high as the text; a click goes to a place in it.
    assert found.peak is not None
    box = page.evaluate("document.querySelector('.strip svg').getAttribute('viewBox').split(' ').map(Number)")
    assert box[2] == max(found.registers or 0, found.peak.live or 0)
    steps = page.evaluate("document.querySelector('.strip .curve').getAttribute('d')")
    assert max(map(int, re.findall(r"H(\d+)", steps))) == found.peak.live
    assert page.get_attribute(".strip", "aria-label").startswith(f"sass: at most {found.peak.live} live registers")
    before = page.locator(".stage-pane").nth(1).locator(".cm-scroller").evaluate("(one) => one.scrollTop")
    strip = page.locator(".strip").bounding_box()
    page.mouse.click(strip["x"] + 10, strip["y"] + 0.9 * strip["height"])
    until(page, f"document.querySelectorAll('.cm-scroller')[1].scrollTop > {before + 100}")
    until(page, "document.querySelector('.stage-pane .lit-strong')")
    page.keyboard.press("r")
    until(page, "!document.querySelector('.strip')")
