"""Steps in the report: from pass to pass, and through the browser's history."""

from __future__ import annotations

from typing import Any

import pytest

from tests.report_browser.captures import softmax
from tests.report_browser.conftest import SETTLED, Open
from tests.report_browser.test_report_tabs import FRONT, first_changed, fragment, until

pytestmark = pytest.mark.slow


def front(page: Any) -> str:
    """What is shown of a pass: its heading, and its diff or the text in place of one."""
    parts = (".pass-head", ".pass-body > :not(.behind):not(.deck)", f".deck:not(.behind) > {FRONT}")
    return "\n".join(text for part in parts for text in page.locator(part).all_inner_texts())


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
        shown[fragment(page)] = front(page)
        swapped += page.evaluate(f"window.before !== document.querySelector('{FRONT}')")
    assert swapped
    assert len(set(shown.values())) == 4
    for address, text in shown.items():
        page.evaluate(f"location.hash = {address!r}")
        page.reload()
        page.wait_for_selector("html[data-ready]")
        page.evaluate(SETTLED)
        assert front(page) == text, address


def test_quick_steps_show_no_picture_of_another_pass_and_end_at_the_right_one(open_report: Open) -> None:
    page = open_report([softmax()], "tab=passes&hide=1&pass=1", fresh=True)
    page.reload()
    page.wait_for_selector("html[data-ready]")
    # Of each frame: the heading, what the heading was drawn for, and what lies in front.
    page.evaluate("""{
      window.frames_ = [];
      const look = () => {
        const front = document.querySelector(".deck:not(.behind) > .diff:not(.behind) .cm-content");
        const said = [".pass-head h1", ".summary"].map(one => document.querySelector(one).textContent);
        frames_.push([...said, front ? front.textContent : ""]);
        requestAnimationFrame(look);
      };
      look();
    }""")
    for key in "jjjjjjkkj":
        page.keyboard.press(key)
    page.evaluate(SETTLED)
    pictures = {tuple(one) for one in page.evaluate("frames_") if one[2] and one[1]}
    assert page.evaluate("frames_").pop()[0] == page.inner_text(".pass-head h1")
    # One heading goes with one diff.
    assert len({heading for heading, _, _ in pictures}) == len({heading + text[:2000] for heading, _, text in pictures})
    address, last = fragment(page), front(page)
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.evaluate(SETTLED)
    assert (fragment(page), front(page)) == (address, last)


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
