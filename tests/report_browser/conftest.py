"""A browser for the report's tests: one Chromium for all, and pages that may neither ask for anything nor complain."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from irscope.model.capture import Capture
from irscope.render.report.page import render_report

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A renderer that is started ahead of each page and seldom taken.
    "--disable-features=SpareRendererForSitePerProcess",
]

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


class Shelf:
    """The reports of a module's tests, each written once, and their pages, each opened once."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self._browser = browser
        self._folder = folder
        self._paths: dict[object, Path] = {}
        self._captures: list[Capture] = []
        self._pages: dict[Path, Any] = {}
        self._contexts: list[Any] = []
        self.said: list[str] = []
        """What pages wrote to their consoles, and their errors."""
        self.asked: list[str] = []
        """What pages requested."""

    def written(self, report: list[Capture] | str) -> Path:
        """The file of a report of captures, or of a page's HTML."""
        key = report if isinstance(report, str) else tuple(map(id, report))
        path = self._paths.get(key)
        if path is None:
            if not isinstance(report, str):
                self._captures += report  # so that no other one gets its id
            path = self._paths[key] = self._folder / str(len(self._paths)) / "report.html"
            path.parent.mkdir()
            text = report if isinstance(report, str) else render_report(report)
            path.write_text(text, "utf-8", "surrogateescape")
        return path

    def open(self, report: list[Capture] | str, fragment: str = "", *, fresh: bool = False) -> Any:
        """A page that shows a report: the one that shows it already, as new to its reader, or a fresh one."""
        path = self.written(report)
        page = None if fresh else self._pages.get(path)
        if page is None:
            page = self._new_page()
            page.goto(path.as_uri() + (f"#{fragment}" if fragment else ""))
            page.wait_for_selector("html[data-ready]")
            page.evaluate(SETTLED)
            if not fresh:
                self._pages[path] = page
            return page
        page.bring_to_front()
        page.mouse.move(0, 0)
        page.emulate_media(color_scheme="light")
        page.evaluate(f"document.activeElement.blur(); delete document.documentElement.dataset.theme; {SETTLED}")
        page.evaluate("location.hash = '#tab=overview'")
        page.evaluate(f"location.hash = {'#' + fragment!r}; {SETTLED}")
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _new_page(self) -> Any:
        context = self._browser.new_context(viewport={"width": 1280, "height": 800})
        self._contexts.append(context)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        return page


# Two frames, in which nothing is waited for: what was asked for is drawn.
SETTLED = """new Promise(done => {
  const settle = () => document.querySelector("[aria-busy=true]") ? requestAnimationFrame(settle)
    : requestAnimationFrame(() => requestAnimationFrame(() => done(0)));
  requestAnimationFrame(settle);
})"""


@pytest.fixture(scope="module")
def shelf(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    made = Shelf(browser, tmp_path_factory.mktemp("reports"))
    yield made
    made.close()


@pytest.fixture
def open_report(shelf: Shelf) -> Iterator[Open]:
    """`open_report(captures or HTML, fragment)`: a page that shows them, whose console and requests are checked.

    The tests of a module share the pages of their reports; `fresh=True` gives one of its own to a test that changes
    more than its address can change back.
    """
    shelf.said.clear()
    shelf.asked.clear()
    yield shelf.open
    assert shelf.said == []
    assert [url for url in shelf.asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert all(url.split("#")[0].endswith("report.html") for url in shelf.asked if url.startswith("file:"))
