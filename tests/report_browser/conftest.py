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


@pytest.fixture
def open_report(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """`open_report(captures, fragment)`: a page that shows them, whose console and requests are checked."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(60_000)
    said: list[str] = []
    asked: list[str] = []

    def open_page(captures: list[Capture], fragment: str = "") -> Any:
        path = tmp_path / "report.html"
        if not path.exists():
            path.write_text(render_report(captures), "utf-8", "surrogateescape")
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri() + (f"#{fragment}" if fragment else ""))
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert all(url.split("#")[0].endswith("report.html") for url in asked if url.startswith("file:"))
