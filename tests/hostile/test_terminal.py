"""What a capture holds never reaches a terminal as a control sequence: on either stream, with and without colours."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from irscope.cli.streams import HarmlessStream
from irscope.render.text.tables import visible
from irscope.store.file import save
from tests.cli.product import ROOT
from tests.hostile.payload import CODES, PAYLOAD, with_payload
from tests.hostile.viewing import run_quietly
from tests.report_browser.captures import softmax

# ␛[38;5;33m  ␛[0m  ␛[37;48;2;1;2;3m
_OWN_COLOR = re.compile("\x1b\\[[0-9;]*m")
_RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\udc80-\udcff]")

READS = (
    ("show", "{a}"),
    ("show", "{a}", "--stage", "ttgir"),
    ("show", "{a}", "--stage", "all"),
    ("show", "{failed}"),
    ("show", "{a}", "--after", "coalesce"),
    ("passes", "{a}"),
    ("passes", "{failed}"),
    ("layout", "{a}"),
    ("layout", "{a}", "--costs"),
    ("layout", "{a}", "-l", "#blocked"),
    ("source", "{a}"),
    ("draw", "dataflow", "{a}", "--stage", "ttgir"),
    ("diff", "{a}", "{b}", "-s", "all"),
    ("diff", "{a}", "{b}", "-s", "all", "--side-by-side"),
    ("diff", "{a}", "{failed}"),
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    plain = softmax()
    captures = {"a": with_payload(plain), "b": with_payload(softmax(8)), "failed": with_payload(plain, failed=True)}
    return {name: save(capture, tmp_path / f"{name}.irscope") for name, capture in captures.items()}


@pytest.mark.parametrize("command", READS, ids=" ".join)
@pytest.mark.parametrize("color", [False, True], ids=["plain", "colours"])
def test_no_control_sequence_of_a_capture_comes_through(
    files: dict[str, Path], command: tuple[str, ...], color: bool
) -> None:
    words = tuple(word.format(**files) for word in command)
    takes_color = words[0] not in ("draw",)
    # A stage goes into a pipe as it is; in colours, or on a terminal, it does not.
    if "--stage" in words and not color:
        return
    _, out, told = run_quietly((*words, *(["--color" if color else "--no-color"] if takes_color else [])))
    assert out or told
    assert "\x1b[5;41m" not in out
    assert _RAW.search(_OWN_COLOR.sub("", out) if color else out) is None
    assert "internal error" not in told


def test_standard_error_and_a_terminal_get_none(files: dict[str, Path]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IRSCOPE_PAGER": "", "TERM": "xterm-256color"}
    for words in (["show", files["failed"]], ["show", files["a"], "--stage", "ttgir"], ["diff", files["a"], CODES[:5]]):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "irscope", *map(str, words)], stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        shown = b""
        # Reading a pseudo-terminal whose other end has closed is an error on Linux.
        while True:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
        process.wait()
        os.close(ours)
        text = _OWN_COLOR.sub("", shown.decode("utf-8").replace("\r\n", "\n"))
        assert text.strip()
        assert b"\x1b[5;41m" not in shown
        assert _RAW.search(text) is None


def test_a_harmless_stream_writes_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    stream = HarmlessStream(sys.stderr)
    print(PAYLOAD, file=stream)
    assert _RAW.search(capsys.readouterr().err) is None


def test_each_control_character_is_shown_as_what_it_is() -> None:
    assert visible("a\x1b[0mb\x9bc\u202ed\udc9be") == "a␛[0mb\\x9bc\\u202ed\\x9be"
