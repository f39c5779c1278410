"""The report's passes find operations, and an operation its passes."""

from __future__ import annotations

from collections import Counter

import pytest

from irscope.analysis.lives.operations import Lives, is_named, operation_lives
from tests.report_browser.captures import softmax
from tests.report_browser.conftest import Open
from tests.report_browser.test_report_tabs import FRONT, first_changed, fragment, until

pytestmark = pytest.mark.slow


def conversions() -> Lives:
    return operation_lives(softmax(), lambda name: is_named(name, "convert_layout"))


def test_the_filter_finds_an_operation(open_report: Open) -> None:
    page = open_report([softmax()])
    first_changed(page)
    page.keyboard.press("/")
    page.keyboard.type("convert_layout")
    until(page, "document.querySelectorAll('.item .found').length > 0")
    rows = page.locator(".item").all()
    shown = {row.locator(".name").inner_text(): row.locator(".change").inner_text() for row in rows}
    lives = conversions()
    wanted: Counter[str] = Counter()
    for one in lives.counts():
        (snapshot,) = lives.trail.steps[one.step].passes
        name = snapshot.name + (f"#{snapshot.occurrence}" if snapshot.occurrence > 1 else "")
        assert shown.pop(name).replace("\u2212", "-").split() == [
            text for text in (f"+{one.made}" if one.made else "", f"-{one.removed}" if one.removed else "") if text
        ]
        wanted[name] += 1
    assert wanted
    assert not shown


def test_a_click_names_the_pass_that_made_it(open_report: Open) -> None:
    lives = conversions()
    life = next(life for life in lives.lives if life.removal is not None and life.removal.step > life.counted_from >= 0)
    maker, remover = (lives.trail.steps[step].passes[0] for step in (life.counted_from, life.removal.step))
    page = open_report([softmax()], f"tab=passes&pass={remover.index + 1}")
    page.wait_for_selector(f"{FRONT} .cm-line")
    page.locator(f"{FRONT} .cm-line", has_text="ttg.convert_layout").first.click(position={"x": 200, "y": 5})
    until(page, "document.querySelector('.life').innerText.includes('made by')")
    assert maker.label in page.inner_text(".life")
    assert remover.label in page.inner_text(".life")
    page.locator(".life button", has_text=maker.label).click()
    until(page, f"location.hash.includes('pass={maker.index + 1}')")
    assert "tab=passes" in fragment(page)


def test_a_click_in_a_stage_names_it_too(open_report: Open) -> None:
    page = open_report([softmax()], "tab=stages")
    page.wait_for_selector(".stage-pane .cm-line")
    panes = page.locator(".stage-pane", has=page.locator(".cm-line", has_text="#blocked"))
    panes.first.locator(".cm-line", has_text="tt.load").first.click(position={"x": 200, "y": 5})
    until(page, "[...document.querySelectorAll('.pane-info')].some((one) => one.innerText.includes('made by'))")
