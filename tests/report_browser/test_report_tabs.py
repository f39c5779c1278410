"""Every tab of the report, driven by the keyboard and the mouse in Chromium."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from irscope.analysis.diff.texts import diff_texts
from irscope.device.occupancy import occupancy_of
from irscope.model.capture import Capture
from irscope.model.evidence import CompilerLog, PassLog
from irscope.render.dot.graph import has_dot
from irscope.render.report.page import render_report
from irscope.render.text.tables import percent
from tests.report_browser.captures import HOSTILE, failed, hostile, softmax, without_a_pass
from tests.report_browser.conftest import Open

pytestmark = pytest.mark.slow


# The diff that is looked at: its neighbours are drawn behind it.
FRONT = ".diff:not(.behind)"


@cache
def several() -> list[Capture]:
    """One with each of other warps, another limit of registers, a pass switched off, and a pass that failed."""
    one = softmax()
    limited = one.with_(launch=replace(one.launch, options=(*one.launch.options, ("maxnreg", 64))))
    return [one, softmax(8), limited, without_a_pass(), failed()]


def fragment(page: Any) -> str:
    return page.evaluate("location.hash")


def until(page: Any, condition: str) -> None:
    """Wait for a condition; the page's policy forbids Playwright to evaluate one by itself."""
    for _ in range(100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never so: {condition}")


def first_changed(page: Any) -> None:
    page.keyboard.press("2")
    page.wait_for_selector(f"{FRONT} .cm-line")


def test_the_overview_says_what_was_compiled(open_report: Open) -> None:
    page = open_report([softmax()])
    text = page.inner_text(".overview")
    for word in (
        "softmax",
        "cuda:90",
        "BLOCK",
        "1024",
        "16 × 1 × 1",
        "3.9.0",
        "168",
        "IRS501 spills",
        "spills registers",
    ):
        assert word in text, word
    assert "Occupancy" in text
    assert "limited by registers" in text
    # The meter, the finding and the table of resources write it one way.
    occupancy = occupancy_of(softmax())
    assert occupancy is not None
    shares = re.findall(r"occupancy[^\d]*([\d.]+ ?%)", text, re.IGNORECASE)
    assert len(shares) >= 3
    assert set(shares) == {percent(occupancy.fraction)}


def test_a_pass_shows_its_log(open_report: Open) -> None:
    step = next(snapshot for snapshot in softmax().passes() if snapshot.stage == "ttgir")
    said = '[triton-loop-pipeline]: Load %x = tt.load %p : !tt.ptr<f16> loc("k.py":3:4) is too small for pipelining\n'
    page = open_report([replace(softmax(), log=CompilerLog((PassLog("ttgir", said + HOSTILE, step.index),)))])
    first_changed(page)
    assert page.locator(".pass-log").count() == 0
    page.evaluate(f"location.hash = '#tab=passes&pass={softmax().snapshots.index(step) + 1}'")
    page.wait_for_selector(".pass-log")
    assert page.inner_text(".pass-log summary") == "The compiler's log: 1 decision"
    page.click(".pass-log summary")
    assert "k.py:3 not pipelined" in " ".join(page.inner_text(".pass-log table").split())
    # As text, whatever it holds.
    assert HOSTILE in page.inner_text(".pass-log pre")


def test_hiding_and_filtering(open_report: Open) -> None:
    page = open_report([softmax()])
    first_changed(page)
    every = page.locator(".item").count()
    page.keyboard.press("h")
    assert 0 < page.locator(".item").count() < every
    assert page.locator(".item.same").count() == 0
    page.keyboard.press("/")
    page.keyboard.type("coalesce")
    until(page, "document.querySelectorAll('.item').length < 3")
    assert "filter=coalesce" in fragment(page)


def test_the_diff_is_the_structural_one(open_report: Open) -> None:
    capture = softmax()
    number = next(index for index, item in enumerate(capture.snapshots) if "Coalesce" in item.name and item.changed)
    snapshot = capture.snapshots[number]
    before, after = capture.text_before(snapshot), capture.text_after(snapshot)
    assert before is not None
    assert after is not None
    diff = diff_texts(before, after, "mlir")
    page = open_report([capture], f"tab=passes&pass={number + 1}")
    page.wait_for_selector(f"{FRONT} .cm-line")
    assert diff.summary in page.inner_text(".pass-head")
    added = {diff.right_lines[line].strip() for entry in diff.entries if entry.op == "added" for line in entry.right}
    shown = page.eval_on_selector_all(
        f"{FRONT} :is(.row-added, .row-moved)", "all => all.map(one => one.textContent.trim())"
    )
    assert added
    assert added & set(shown)


def test_toggles(open_report: Open) -> None:
    page = open_report([softmax()], "tab=passes&pass=3")
    page.wait_for_selector(f"{FRONT} .cm-line")
    # What is drawn ahead lies behind, and its text is one of the page.
    before = page.inner_text(FRONT)
    for key, name in (("l", "loc"), ("a", "alias"), ("r", "bare")):
        page.keyboard.press(key)
        assert f"{name}=1" in fragment(page)
        page.keyboard.press(key)
        assert f"{name}=1" not in fragment(page)
        page.wait_for_function(
            "([front, text]) => document.querySelector(front).innerText === text", arg=[FRONT, before]
        )
    page.keyboard.press("s")
    assert "side=1" in fragment(page)


def test_side_by_side_scrolls_as_one(open_report: Open) -> None:
    capture = softmax()
    largest = max(range(len(capture.snapshots)), key=lambda index: len(capture.snapshots[index].text or ""))
    page = open_report([capture], f"tab=passes&pass={largest + 1}&side=1")
    page.wait_for_selector(f"{FRONT}.split .pane + .pane .cm-line")
    page.evaluate(f"document.querySelectorAll('{FRONT} .cm-scroller')[0].scrollTop = 400")
    until(page, f"Math.abs(document.querySelectorAll('{FRONT} .cm-scroller')[1].scrollTop - 400) < 2")


def test_a_line_is_followed_through_the_stages(open_report: Open) -> None:
    page = open_report([softmax()], "tab=stages&panes=ttgir,llir,ptx,sass")
    page.wait_for_selector(".stage-pane:nth-child(4) .cm-line")
    page.keyboard.press("j")
    page.keyboard.press("j")
    until(page, "document.querySelectorAll('.stage-pane:first-child .lit-own').length === 1")
    assert "at=ttgir" in fragment(page)
    lit = 0
    for _ in range(12):
        page.keyboard.press("j")
        page.wait_for_timeout(30)
        lit = page.evaluate(
            "[...document.querySelectorAll('.stage-pane')]"
            ".filter(one => one.querySelector('.lit-strong, .lit-weak')).length"
        )
        if lit == 4:
            break
    assert lit == 4
    page.keyboard.press("Escape")
    assert page.locator(".lit-strong").count() == 0


def test_a_value_shows_its_definition_and_uses(open_report: Open) -> None:
    page = open_report([softmax()], "tab=stages&panes=ttgir")
    page.wait_for_selector(".cm-line .w-value")
    page.locator(".cm-line .w-value").nth(8).click()
    page.wait_for_selector(".pane-info b")
    assert "defined" in page.inner_text(".pane-info")
    assert page.locator(".value-definition").count() >= 1


def test_hovering_tells_what_an_operation_does(open_report: Open) -> None:
    page = open_report([softmax()], "tab=stages&panes=ttgir")
    page.wait_for_selector(".cm-line .w-op")
    page.locator(".cm-line .w-op", has_text="tt.get_program_id").first.hover()
    page.wait_for_selector(".tip:not([hidden])")
    assert "program instance" in page.inner_text(".tip")


def test_a_layout_is_opened_from_a_type(open_report: Open) -> None:
    page = open_report([softmax()], "tab=stages&panes=ttgir")
    page.wait_for_selector(".cm-line .w-alias")
    page.locator(".cm-line .w-alias", has_text=re.compile(r"^#blocked$")).first.click()
    page.locator(".pane-info button", has_text="layout").click()
    page.wait_for_selector(".layouts canvas")
    page.hover(".layouts canvas", position={"x": 60, "y": 60})
    until(page, "document.querySelector('.details').textContent.includes('warp')")
    assert "tab=layouts" in fragment(page)


@pytest.mark.parametrize("dot", [True, False], ids=["dot", "page"])
def test_the_graph_goes_from_node_to_line(open_report: Open, monkeypatch: pytest.MonkeyPatch, dot: bool) -> None:
    if dot and not has_dot():
        pytest.skip("dot is not installed")
    monkeypatch.setattr("irscope.render.report.page.has_dot", lambda: dot)
    page = open_report(render_report([softmax()]), "tab=graph&of=ttgir")
    page.wait_for_selector(".graph .node", timeout=20_000)
    assert page.locator("script#graphs").count() == int(not dot)
    assert page.locator(".graph .edge").count() > 5
    # Layouts have their colours, and the legend names them.
    assert page.locator(".graph .node [fill='#96d0f1']").count() >= 1
    assert "#blocked" in page.text_content(".graph")
    page.keyboard.press("j")
    page.wait_for_selector(".graph .node.chosen")
    assert page.locator(".graph-tab .lit-strong").count() >= 1
    page.keyboard.press("+")
    assert "node=n" in fragment(page)


def test_two_are_compared(open_report: Open) -> None:
    page = open_report(several(), fresh=True)
    page.check("input[aria-label='pick 1']")
    page.check("input[aria-label='pick 4']")
    page.click(".captures button:text-is('compare')")
    page.wait_for_selector(".compare .card")
    assert "num_warps" in page.inner_text(".compare")
    page.wait_for_timeout(700)  # steps closer together are one entry of the history
    page.click(".compare button:has-text('llir')")
    page.wait_for_selector(".compare .cm-line.row-added, .compare .cm-line.row-removed")
    page.go_back()
    page.wait_for_selector(".compare .card")


def test_compare_opens_on_what_is_chosen_and_another_capture_keeps_the_pass(open_report: Open) -> None:
    page = open_report(several(), "c=3&tab=passes&pass=4")
    label = page.inner_text(".pass-head h1")
    page.keyboard.press("[")
    assert "c=2" in fragment(page)
    assert page.inner_text(".pass-head h1") == label
    assert page.is_visible("header .picker")

    # Tabs by the arrow keys.
    page.focus("#tab-passes")
    page.keyboard.press("End")
    page.wait_for_selector(".compare .card")
    assert page.evaluate("document.activeElement.id") == "tab-compare"
    assert [page.input_value(f"select[aria-label={side}]") for side in ("before", "after")] == ["0", "1"]
    assert not page.is_visible("header .picker")
    told = page.title()
    assert "num_warps=4" in told
    assert "num_warps=8" in told
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("]")
    assert page.input_value("select[aria-label=after]") == "2"


def test_a_pane_is_taken_whole_and_a_diff_copied(open_report: Open) -> None:
    capture = softmax()
    page = open_report([capture], "tab=stages&panes=ptx", fresh=True)
    page.wait_for_selector(".cm-line")
    page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    # Every line of the text that is not a location, and nothing else of the page.
    copied = page.evaluate("window.copied").split("\n")
    assert len(copied) > 100
    assert set(copied) <= set(capture.text("ptx").split("\n"))

    page.keyboard.press("Control+f")
    page.keyboard.type("mov.b32")
    hits = page.evaluate("window.copied.split('mov.b32').length - 1")
    until(page, f"document.querySelector('.cm-search .hits')?.textContent.includes('{hits} hits')")

    number = next(index for index, item in enumerate(capture.snapshots) if "Coalesce" in item.name and item.changed)
    page.evaluate(f"location.hash = 'tab=passes&pass={number + 1}'")
    page.wait_for_selector(f"{FRONT} .cm-line")
    page.click(".pass-head .copy:text-is('diff')")
    diff = page.evaluate("window.copied").split("\n")
    signs = [line[:1] for line in diff]
    assert signs.count("+") == page.locator(f"{FRONT} :is(.row-added, .row-moved)").count() or "+" in signs
    before = {line.strip() for line in (capture.text_before(capture.snapshots[number]) or "").split("\n")}
    assert any(line[1:].strip() in before for line in diff if line.startswith("-"))


def test_what_is_found_while_the_reader_reads_leaves_the_buttons_in_place(open_report: Open) -> None:
    one = softmax()
    renumbered = tuple(
        replace(stage, data=re.sub(r"%(\w+)", r"%r_\1", stage.text)) if stage.stage == "ttgir" else stage
        for stage in one.artifacts
    )
    page = open_report([one, one.with_(artifacts=renumbered)], fresh=True)
    page.evaluate("window.later = []; window.requestIdleCallback = (step) => window.later.push(step); 0")
    page.evaluate("location.hash = 'tab=compare&a=1&b=2'")
    page.wait_for_selector(".compare button [data-state-of='ttgir']:text-is('differs')")
    page.evaluate("window.held = [...document.querySelectorAll('.compare button')]")
    page.evaluate("(() => { while (window.later.length) window.later.shift()(); })()")
    assert page.is_visible(".compare button [data-state-of='ttgir']:text-is('same')")
    assert page.evaluate("window.held.every((button) => button.isConnected)")


def test_skipped_and_left_out_passes_say_so(open_report: Open) -> None:
    page = open_report(several(), "c=4&tab=passes&pass=1")
    page.wait_for_selector(".item.skipped")
    assert "switched this pass off" in page.inner_text(".pass-body")
    page.keyboard.press("j")
    assert "not recorded" in page.inner_text(".pass-body")


def test_a_pass_that_failed_says_why(open_report: Open) -> None:
    page = open_report(several(), "c=5&tab=passes")
    page.wait_for_selector(".item.failed[aria-selected=true]")
    text = page.inner_text(".pass-body")
    assert "the pass gave up" in text
    assert "no such thing" in text
    assert page.locator(".pass-body .cm-line").count() > 3


def test_a_link_opens_the_same_view_again(open_report: Open) -> None:
    page = open_report([softmax()], "tab=passes&pass=5&side=1&alias=1")
    page.wait_for_selector(f"{FRONT} .cm-line")
    label, body = page.inner_text(".pass-head h1"), page.inner_text(FRONT)
    page.reload()
    page.wait_for_selector(f"{FRONT} .cm-line")
    assert page.inner_text(".pass-head h1") == label
    assert page.inner_text(FRONT) == body


def test_help_theme_and_print(open_report: Open) -> None:
    page = open_report([softmax()])
    page.keyboard.press("?")
    assert "The next capture" in page.inner_text("dialog.help")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog.help", state="detached")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 18, 22)"
    page.keyboard.press("t")
    assert len(page.pdf()) > 10_000


def test_copying_gives_the_command(open_report: Open) -> None:
    page = open_report([softmax()], "tab=passes&pass=3")
    page.wait_for_selector(".pass-head .copy")
    page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
    page.click(".pass-head .copy:has-text('command')")
    copied = page.evaluate("window.copied")
    assert copied.startswith("irscope ")
    assert softmax().id in copied


def test_hostile_content_stays_text(open_report: Open) -> None:
    page = open_report([hostile(), softmax()])
    assert HOSTILE[:30] in page.inner_text("#app")
    tabs = page.get_by_role("tab")
    assert tabs.count() > 5
    for number in range(tabs.count()):
        tab = tabs.nth(number)
        tab.click()
        page.wait_for_timeout(300)
        assert page.title() != "owned", tab
        assert page.evaluate("document.querySelectorAll('#app img[src], #app script, #app iframe').length") == 0, tab
