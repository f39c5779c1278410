"""The report's page: its policy, that it fetches nothing, and that nothing of a capture becomes markup."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import re
from html.parser import HTMLParser

import pytest

from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.render.capture import summary_html
from irscope.render.dot.graph import has_dot
from irscope.render.report.page import render_report
from tests.render.report.unpacked import unpacked
from tests.report_browser.captures import HOSTILE, failed, hostile, softmax, without_a_pass

VOID = {"meta", "link"}


class Page(HTMLParser):
    """The elements of a page, and the text of each script by its id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = (dict(attrs).get("id") or "loader") if tag == "script" else ""

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.scripts[self._open] = self.scripts.get(self._open, "") + data


def policy_of(page: Page) -> dict[str, list[str]]:
    content = next(attrs["content"] for tag, attrs in page.tags if tag == "meta" and attrs.get("http-equiv"))
    return {words[0]: words[1:] for part in (content or "").split(";") if (words := part.split())}


@pytest.mark.parametrize("dot", [True, False], ids=["dot", "page"])
def test_the_policy_allows_the_scripts_by_hash_and_nothing_else(monkeypatch: pytest.MonkeyPatch, dot: bool) -> None:
    """The page that has no graph to place holds no Graphviz, and may run none."""
    if dot and not has_dot():
        pytest.skip("dot is not installed")
    monkeypatch.setattr("irscope.render.report.page.has_dot", lambda: dot)
    page = Page(render_report([softmax()]))
    policy = policy_of(page)
    assert policy["default-src"] == ["'none'"]
    assert policy["connect-src"] == ["'none'"]
    assert policy["base-uri"] == ["'none'"]
    assert "'unsafe-inline'" not in str(policy)
    assert "'unsafe-eval'" not in str(policy)
    packed = (page.scripts[name] for name in ("viewer", "graphs") if name in page.scripts)
    for code in (page.scripts["loader"].encode(), *map(unpacked, packed)):
        digest = base64.b64encode(hashlib.sha256(code).digest()).decode()
        assert f"'sha256-{digest}'" in policy["script-src"]
    assert ("graphs" in page.scripts) == (not dot)
    assert ("'wasm-unsafe-eval'" in policy["script-src"]) == (not dot)
    assert len(policy["script-src"]) == (2 if dot else 4)


def test_the_page_names_no_address() -> None:
    page = Page(render_report([softmax(), without_a_pass(), failed()]))
    for tag, attrs in page.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset", "background"):
            assert (attrs.get(name) or "data:,").startswith("data:"), (tag, attrs)
        assert not any(name.startswith("on") for name in attrs), (tag, attrs)
    assert "sourceMappingURL" not in page.scripts["loader"]


def test_hostile_content_adds_no_element() -> None:
    plain, evil = Page(render_report([softmax()])), Page(render_report([hostile()]))
    kinds = {tag for tag, _ in plain.tags}
    assert {tag for tag, _ in evil.tags} <= kinds | {"strong", "pre"}
    assert [a for t, a in evil.tags if t == "script"] == [a for t, a in plain.tags if t == "script"]
    text = render_report([hostile()])
    assert "owned'</script>" not in text
    assert "<img" not in text


def test_data_is_base_85_alone() -> None:
    page = Page(render_report([hostile(), softmax()]))
    for name in ("index", "chunk0", "chunk1", "viewer"):
        assert re.fullmatch(r"[^<>&'\"\\\s]*", page.scripts[name]), name
    index = json.loads(unpacked(page.scripts["index"]))
    assert index["captures"][0]["kernel"] == HOSTILE


def test_no_capture_is_an_error() -> None:
    with pytest.raises(UsageError, match="at least one capture"):
        render_report([])


@pytest.mark.parametrize(
    "capture", [softmax(), without_a_pass(), failed(), hostile()], ids=["ok", "off", "failed", "hostile"]
)
def test_a_notebook_shows_the_overview(capture: Capture) -> None:
    # Who makes a capture in a notebook has imported it.
    importlib.import_module("irscope.api")
    text = capture._repr_html_()
    assert text == summary_html(capture)
    tags = {tag for tag, _ in Page(text).tags}
    assert tags <= {
        "div",
        "h2",
        "small",
        "p",
        "strong",
        "pre",
        "table",
        "caption",
        "tr",
        "th",
        "td",
        "details",
        "summary",
    }
    assert ("failed" in text) == (capture.status == "failed")
