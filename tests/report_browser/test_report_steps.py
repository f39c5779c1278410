"""Steps in the report: from pass to pass, and through the browser's history."""

from __future__ import annotations

import pytest

from tests.report_browser.captures import softmax
from tests.report_browser.conftest import SETTLED, Open
from tests.report_browser.test_report_tabs import FRONT, first_changed, fragment, until

pytestmark = pytest.mark.slow


def test_passes_are_stepped_by_keyboard(open_report: Open) -> None:
    page = open_report([softmax()])
    first_changed(page)
    before = page.inner_text(".item[aria-selected=true] .name")
    page.keyboard.press("j")
    second = page.inner_text(".item[aria-selected=true] .name")
    page.keyboard.press("ArrowDown")
    third = page.inner_text(".item[aria-selected=true] .name")
    page.keyboard.press("k")
    assert page.inner_text(".item[aria-selected=true] .name") == second
    assert len({before, second, third}) >= 2
    assert "pass=" in fragment(page)


def test_a_diff_that_was_drawn_ahead_is_the_one_drawn_when_asked_for(open_report: Open) -> None:
    page = open_report([softmax()], "tab=passes&hide=1&pass=17", fresh=True)
    shown: dict[str, str] = {}
    swapped = 0
    for _ in range(4):
        until(page, "document.querySelectorAll('.diff.behind .cm-line').length > 1")
        page.evaluate("new Promise(done => setTimeout(() => requestIdleCallback(() => done(0)), 100))")
        page.evaluate(f"window.before = document.querySelector('{FRONT}'); 0")
        page.keyboard.press("j")
        page.evaluate(SETTLED)
        assert page.locator(FRONT).count() == 1
        shown[fragment(page)] = page.inner_text(".pass")
        swapped += page.evaluate(f"window.before !== document.querySelector('{FRONT}')")
    assert swapped
    assert len(set(shown.values())) == 4
    for address, text in shown.items():
        page.evaluate(f"location.hash = {address!r}")
        page.reload()
        page.wait_for_selector("html[data-ready]")
        page.evaluate(SETTLED)
        assert page.inner_text(".pass") == text, address


def test_back_and_forward(open_report: Open) -> None:
    page = open_report([softmax()], fresh=True)
    # The page's clock moves by these steps alone. Those that follow another at once make no history of their own; the
    # first one does however early it comes.
    page.evaluate("window.clock = 1; performance.now = () => window.clock; 0")
    for key, later in (("2", 0), ("3", 1000), ("4", 1)):
        page.evaluate(f"window.clock += {later}; 0")
        page.keyboard.press(key)
    page.wait_for_selector(".layouts")
    page.go_back()
    page.wait_for_selector(".passes")
    page.go_back()
    page.wait_for_selector(".overview")
    page.go_forward()
    page.wait_for_selector(".passes")
    # After a walk through history too.
    page.keyboard.press("3")
    page.wait_for_selector(".stages")
    page.go_back()
    page.wait_for_selector(".passes")
