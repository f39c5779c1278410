"""Every view of the report in three sizes and two themes, and printed.

`IRSCOPE_SCREENSHOTS=FOLDER pytest tests/report_browser/test_report_views.py` keeps what it looked like.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.report_browser.captures import softmax
from tests.report_browser.conftest import SETTLED, Open
from tests.report_browser.views import VIEWS, rich

pytestmark = [pytest.mark.slow, pytest.mark.newest]

SIZES = ((390, 844), (1280, 800), (1920, 1080))
THEMES = ("light", "dark")
KEPT = os.environ.get("IRSCOPE_SCREENSHOTS")

# What sticks out of the page, what is cut without a sign of it, and what lies over something else's text.
FLAWS = """() => {
  const found = [];
  const name = (one) => `${one.tagName.toLowerCase()}.${one.className.baseVal ?? one.className}` +
    ` "${one.textContent.trim().slice(0, 40)}"`;
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) found.push(`the page is ${wide} wide`);
  const scrolls = (one) => {
    for (let at = one; at && at !== document.body; at = at.parentElement)
      if (getComputedStyle(at).overflowX !== 'visible') return true;
    return false;
  };
  for (const one of document.querySelectorAll('#app *')) {
    if (!one.checkVisibility({visibilityProperty: true}) || one.closest('.cm-editor, svg, .offscreen')) continue;
    const {right, left, width} = one.getBoundingClientRect();
    if (width && (right > innerWidth + 1 || left < -1) && !scrolls(one.parentElement)) found.push(`out: ${name(one)}`);
    const style = getComputedStyle(one);
    const cut = (['hidden', 'clip'].includes(style.overflowX) && one.scrollWidth > one.clientWidth + 1
        && style.textOverflow !== 'ellipsis')
      || (['hidden', 'clip'].includes(style.overflowY) && one.scrollHeight > one.clientHeight + 3);
    if (cut && one.textContent.trim() && one.clientWidth) found.push(`cut: ${name(one)}`);
    // Text of its own that is wider than its box, where nothing scrolls.
    if (style.overflowX === 'visible' && style.display !== 'inline' && one.scrollWidth > one.clientWidth + 1
        && [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) && one.clientWidth)
      found.push(`wider than its box: ${name(one)}`);
  }
  return found;
}"""


@pytest.mark.exhaustive
def test_every_view_fits_in_every_size_and_theme(open_report: Open) -> None:
    page = open_report(rich())
    flaws: list[str] = []
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for view in VIEWS:
            page.evaluate(f"location.hash = '#tab={view}'")
            for theme in THEMES:
                # A theme changes colours alone, which the smallest shows as well as the others.
                if theme != THEMES[0] and (width, height) != SIZES[0]:
                    continue
                page.evaluate(f"document.documentElement.dataset.theme = {theme!r}; {SETTLED}")
                if theme == THEMES[0]:
                    flaws += [f"{width}x{height} {view}: {flaw}" for flaw in page.evaluate(FLAWS)]
                if KEPT or (width, height) == SIZES[0]:
                    picture = page.screenshot(path=place(f"{width}-{theme}-{view}"))
                    assert len(picture) > 5000
    assert flaws == []


# What can be pressed or filled in, and is on paper all the same; a link is text.
CONTROLS = """() => [...document.querySelectorAll('button:not(.link), select, input, nav, .bar-of-tools, .pass-list')]
  .filter((one) => one.checkVisibility({visibilityProperty: true})).map((one) => one.outerHTML.slice(0, 120))"""


def test_every_view_is_printed_as_a_document(open_report: Open) -> None:
    page = open_report(rich(), fresh=True)
    flaws: list[str] = []
    texts: dict[str, str] = {}
    page.set_viewport_size({"width": 718, "height": 1047})  # A4 less Chromium's margins
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    for view in VIEWS:
        page.evaluate(f"location.hash = '#tab={view}'; {SETTLED}")
        page.evaluate(SETTLED)
        flaws += [f"{view}: {flaw}" for flaw in page.evaluate(FLAWS) + page.evaluate(CONTROLS)]
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        texts[view] = page.inner_text("#app")
        # Whose it is, which no header says on paper.
        assert texts[view].startswith(page.title().removesuffix(" · irscope"))
    assert flaws == []
    assert "IRS501" in texts["overview"]
    assert "the pass gave up" in texts["overview&c=4"]
    assert "ttgir:TritonGPUCoalesce#1" in texts["passes&pass=17"]
    assert "Memory over time" in texts["memory&c=3"]
    assert "every pass on" in texts["results"]
    # All lines, not those that are in sight on a screen.
    page.evaluate(f"location.hash = '#tab=stages'; {SETTLED}")
    lines = [line for line in softmax().text("ttgir").split("\n") if not line.startswith("#loc")]
    assert page.locator(".stage-pane:nth-child(2) .cm-line").count() == len(lines)
    assert page.pdf().startswith(b"%PDF")


def place(name: str) -> Path | None:
    """Where a screenshot is kept, if it is."""
    return Path(KEPT) / f"{name.replace('&', '-').replace('=', '')}.png" if KEPT else None
