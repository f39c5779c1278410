"""Every page and picture of a hostile capture, opened in Chromium: no script of it runs, and nothing is fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from irscope.store.file import save
from tests.hostile.payload import with_payload
from tests.hostile.viewing import run_quietly
from tests.marks import sampled
from tests.report_browser.captures import softmax

PAGES = (
    ("report", "{a}", "{b}", "{failed}", "-o", "{out}"),
    ("diff", "{a}", "{b}", "-s", "all", "-o", "{out}"),
    ("diff", "{a}", "{failed}", "-o", "{out}.html"),
    ("layout", "{a}", "-o", "{out}"),
    ("layout", "{a}", "-o", "{out}.svg"),
    ("draw", "dataflow", "{a}", "--stage", "ttgir", "-o", "{out}.svg"),
)


@pytest.mark.parametrize("command", sampled(PAGES, 2, name=lambda words: f"{words[0]} {words[-1].rpartition('}')[2]}"))
def test_a_hostile_page_runs_nothing_and_asks_for_nothing(
    browser: Any, tmp_path: Path, command: tuple[str, ...]
) -> None:
    plain = softmax()
    captures = {"a": with_payload(plain), "b": with_payload(softmax(8)), "failed": with_payload(plain, failed=True)}
    files = {name: str(save(capture, tmp_path / f"{name}.irscope")) for name, capture in captures.items()}
    words = tuple(word.format(**files, out=tmp_path / "page.html") for word in command)
    code, _, told = run_quietly(words)
    assert code in (0, 1), told
    output = Path(words[-1])
    context = browser.new_context()
    asked: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    page.goto(output.as_uri())
    page.wait_for_timeout(200)
    assert page.title() != "owned"
    assert page.evaluate("document.querySelectorAll('img[src=x], a[href^=javascript]').length") == 0
    assert page.evaluate("[...document.querySelectorAll('*')].some(one => one.onload || one.onerror)") is False
    assert [
        url for url in asked if url.split("#")[0] != output.as_uri() and not url.startswith(("data:", "blob:"))
    ] == []
    context.close()
