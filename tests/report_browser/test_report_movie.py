"""The Movie tab: every number is the analysis's, keys step and play, and a frame leads to the diff of its pass."""

from __future__ import annotations

import re

import pytest

from irscope.analysis.movie.make import movie_of
from irscope.analysis.movie.model import COUNTERS
from tests.report_browser.captures import softmax
from tests.report_browser.conftest import Open
from tests.report_browser.test_report_tabs import fragment, until

pytestmark = pytest.mark.slow

READ = """() => ({
  counts: [...document.querySelectorAll('.counters tr')]
    .map((row) => [...row.children].slice(0, 2).map((one) => one.innerText)),
  changes: [...document.querySelectorAll('.changes tr')].map((row) => [...row.children].map((one) => one.innerText)),
  values: [...document.querySelectorAll('.values .card h2')].map((one) => one.firstChild.textContent),
  known: [...document.querySelectorAll('.values .card p:last-child')].map((one) => one.innerText),
  fresh: document.querySelectorAll('.values .fresh').length,
})"""


def test_its_numbers_are_those_of_the_analysis(open_report: Open) -> None:
    movie = movie_of(softmax())
    page = open_report([softmax()], "tab=movie&frame=0")
    page.wait_for_selector(".movie .counters")
    assert len(movie.frames) > 10
    for at, frame in enumerate(movie.frames):
        if at:
            page.keyboard.press("ArrowRight")
        until(page, f"document.querySelector('.movie .headline .faint').innerText === '{at}/{len(movie.frames) - 1}'")
        read = page.evaluate(READ)
        assert read["counts"] == [[title, str(getattr(frame.counts, field))] for field, title in COUNTERS]
        assert read["values"] == [value.title for value in movie.values]
        assert read["fresh"] == sum(held.is_new for held in frame.held)
        rows = [
            [f"+{one.made:,}" * bool(one.made), f"−{one.removed:,}" * bool(one.removed), one.operation]
            for one in (*frame.net_changes, *frame.changes)
        ]
        assert [[re.sub("^~", "", text) for text in row[:3]] for row in read["changes"]] == rows[:24]
        assert (f"{len(rows) - 24} more" in page.inner_text(".beside")) == (len(rows) > 24)
    until(page, f"document.querySelector('.movie input').value === '{len(movie.frames) - 1}'")
    page.keyboard.press("ArrowRight")
    assert f"frame={len(movie.frames) - 1}" in fragment(page)


def test_it_plays_and_leads_to_the_diff(open_report: Open) -> None:
    movie = movie_of(softmax())
    page = open_report([softmax()], "tab=movie&frame=2")
    page.wait_for_selector(".movie .counters")
    page.select_option("[aria-label=speed]", "300")
    page.click("[aria-label=play]")
    until(page, "Number(document.querySelector('.movie input').value) > 3")
    page.click("[aria-label=pause]")
    page.keyboard.press("Home")
    page.keyboard.press("k")
    until(page, "document.querySelector('.movie input').value === '0'")
    page.locator(".movie .timeline .slot").nth(4).click()
    until(page, "document.querySelector('.movie input').value === '4'")
    page.locator(".changes .link").first.click()
    until(page, "document.querySelector('.passes') !== null")
    assert page.inner_text(".pass-head h1") == movie.frames[4].passes[-1]
