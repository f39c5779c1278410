"""What `last` names: the last complete recording, all of it, for every command."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.cli.captures import captures_of, stored_captures
from irscope.cli.keeping import kept_captures
from irscope.cli.streams import say
from irscope.interruption import Interrupted
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import reporting
from irscope.store.recent import CaptureStore
from irscope.target import Target
from tests.cli.product import Run
from tests.store.test_file import capture


def test_last_is_the_whole_last_recording_that_was_complete(irscope: Run) -> None:
    store, one = CaptureStore(), capture()
    store.add(one)
    others = [replace(one, target=Target.parse(text)) for text in ("cuda:80", "cuda:100")]
    other = replace(one, launch=replace(one.launch, kernel=replace(one.launch.kernel, name="other")))
    with kept_captures() as keep:
        for each in (*others, other):
            keep(each)
    whole = [each.id for each in (*others, other)]
    assert [found.id for found in stored_captures("last")] == whole
    with reporting(say):
        assert [found.id for found in captures_of(None, RecordingOptions())] == whole
    with suppress(Interrupted), kept_captures() as keep:
        keep(replace(one, target=Target.parse("cuda:120")))
        raise Interrupted(2)
    with kept_captures(becomes_last=False) as keep:
        keep(replace(one, target=Target.parse("cuda:89")))
    assert [found.id for found in stored_captures("last")] == whole
    # A kernel, a pattern or an id chooses from it, in every command; what needs one capture lists them.
    assert [found.id for found in stored_captures("last::other")] == [other.id]
    assert [found.id for found in stored_captures("last::o*")] == [other.id]
    assert [found.id for found in stored_captures(f"last::{whole[1][:6]}")] == [whole[1]]
    for command in ("show", "why", "passes", "source", "check"):
        code, out, err = irscope(command, "last::nothing")
        assert (code, out) == (1, "")
        assert "the last recording holds no kernel 'nothing'" in err
    code, _, err = irscope("reproduce", "last")
    assert code == 2
    assert all(f"last::{id_}" in err for id_ in whole)


@pytest.mark.parametrize("command", ["dump", "show", "check", "why", "diff", "passes", "report", "layout"])
def test_an_empty_argument_is_not_the_last_recording(
    command: str, irscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = irscope(command, "")
    assert (code, out) == (2, "")
    assert "'' names no file and no capture" in err
