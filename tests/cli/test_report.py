"""`irscope report`: from a stored capture to a page, with neither Triton nor torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.__main__ import run
from irscope.store.file import save
from irscope.store.recent import CaptureStore
from tests.report_browser.captures import failed, softmax, without_a_pass


def test_a_stored_capture_becomes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = softmax()
    CaptureStore().add(capture)
    page = tmp_path / "softmax.html"
    assert run(["report", capture.id[:8], "-o", str(page)]) == 0
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    said = capsys.readouterr()
    assert said.out == ""
    assert f"wrote {page}: 1 capture, " in said.err


def test_several_files_become_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [
        save(capture, tmp_path / f"{number}.irscope") for number, capture in enumerate((softmax(), without_a_pass()))
    ]
    page = tmp_path / "both.html"
    assert run(["report", *map(str, paths), "-o", str(page), "--title", "two <of> them"]) == 0
    text = page.read_text("utf-8")
    assert "<title>two &lt;of&gt; them · irscope</title>" in text
    assert "2 captures" in capsys.readouterr().err


def test_a_failed_capture_is_shown_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(failed(), tmp_path / "failed.irscope")
    page = tmp_path / "failed.html"
    assert run(["report", str(path), "-o", str(page)]) == 0
    assert "The compile failed in" in page.read_text("utf-8")
    assert "the pass gave up" in capsys.readouterr().err


def test_the_page_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("click.launch", opened.append)
    path = save(softmax(), tmp_path / "one.irscope")
    page = tmp_path / "one.html"
    assert run(["report", str(path), "-o", str(page), "--open"]) == 0
    assert opened == [page.resolve().as_uri()]


@pytest.mark.parametrize("command", ["report", "why", "verify", "time", "passes", "reproduce"])
def test_a_folder_is_no_file(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Before anything is looked for or computed: "last" does not exist.
    assert run([command, "last", "-o", str(tmp_path)]) == 2
    said = f"irscope: -o {str(tmp_path)!r} is a folder: {command} writes one file, such as {str(tmp_path / 'FILE')!r}."
    assert capsys.readouterr().err.startswith(said)


def test_nothing_stored_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "-o", str(tmp_path / "page.html")]) == 1
    assert "no capture is stored" in capsys.readouterr().err
