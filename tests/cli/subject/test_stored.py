"""What `last` names: one capture, or the whole last recording for a command that takes several."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.cli.subject.captures import captures_of
from irscope.cli.subject.stored import stored_captures
from irscope.model.recording_options import RecordingOptions
from irscope.store.recent import CaptureStore
from irscope.target import Target
from tests.cli.product import Run
from tests.store.test_file import capture


def test_last_is_a_capture_or_a_recording() -> None:
    store, one = CaptureStore(), capture()
    store.add(one, "earlier")
    others = [replace(one, target=Target.parse(text)) for text in ("cuda:80", "cuda:100")]
    for other in others:
        store.add(other, "last")
    assert [found.id for found in stored_captures("last")] == [others[1].id]
    assert [found.id for found in stored_captures("last", last_is_whole=True)] == [other.id for other in others]
    whole = captures_of(None, RecordingOptions(), last_is_whole=True)
    assert [found.id for found in whole] == [other.id for other in others]


@pytest.mark.parametrize("command", ["dump", "show", "check", "why", "diff", "passes", "report", "layout"])
def test_an_empty_argument_is_not_the_last_recording(
    command: str, irscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = irscope(command, "")
    assert (code, out) == (2, "")
    assert "'' names no file and no capture" in err
