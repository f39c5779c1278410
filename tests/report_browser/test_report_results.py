"""Results of many compiles, and what was measured, in the report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.render.report.page import render_report
from irscope.render.report.results import ablation_results
from tests.render.report.test_facts_locations_heat import heated
from tests.render.text.test_searches import ABLATION, CHANGED
from tests.report_browser.captures import softmax
from tests.report_browser.conftest import Open
from tests.report_browser.test_report_tabs import FRONT, fragment

pytestmark = pytest.mark.slow


def test_results_are_sorted_and_lead_to_their_passes(open_report: Open) -> None:
    capture = softmax()
    number, snapshot = next((at, one) for at, one in enumerate(capture.snapshots, 1) if one.changed)
    linked = replace(CHANGED, off=(snapshot.label,))
    results = ablation_results(replace(ABLATION, variants=(linked, *ABLATION.variants[1:])), capture)
    page_text = render_report([capture], view={"tab": "results"}, results=results)
    page = open_report(page_text)

    def names() -> list[str]:
        return page.locator(".result-table tbody td:first-child").all_inner_texts()

    assert names() == ["every pass on", "ttgir:<script>#1", snapshot.label, "ttgir:cse#2"]
    page.click(".result-table th button:has-text('instructions')")
    # What has no number comes last, and the baseline stays the first.
    assert names() == ["every pass on", "ttgir:cse#2", snapshot.label, "ttgir:<script>#1"]
    page.click(".result-table th button:has-text('instructions')")
    assert names() == ["every pass on", snapshot.label, "ttgir:cse#2", "ttgir:<script>#1"]
    page.click(f"text='{snapshot.label}'")
    page.wait_for_selector(f"{FRONT} .cm-line")
    assert f"pass={number}" in fragment(page)
    assert page.inner_text(".pass-head h1") == snapshot.label


def test_stalls_stand_beside_the_code(open_report: Open) -> None:
    page = open_report([heated()], "tab=stages&panes=ttgir,sass")
    page.wait_for_selector(".stage-pane .cm-line")
    for index, text in ((0, "arith.addf"), (1, "FADD")):
        pane = page.locator(".stage-pane").nth(index)
        hot = pane.locator(".cm-line.heat-4")
        assert text in hot.inner_text()
        assert "75 %" in pane.locator(".cm-gutters").inner_text()
    hot.hover(position={"x": 200, "y": 5})
    page.wait_for_selector("text=30 samples of stalled warps for global memory 100 %")
