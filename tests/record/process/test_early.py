"""A recording process that is started before it is known what is recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from irscope.record.process.early import begun_early

from irscope.errors import RecordingError
from irscope.record.process import early
from irscope.record.process.requests import RecordRequest
from irscope.record.process.session import record_request
from tests.record.telling_child import telling_child

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise RecordingError("a second process")

    monkeypatch.setattr(early, "child_process", refused)


def _record(interpreter: str | None = None) -> str:
    """The name of what was recorded, or why nothing was."""
    request = RecordRequest(mode="script", path="script.py", targets=("cuda:90",), interpreter=interpreter)
    try:
        return record_request(request).captures[0].name
    except RecordingError as error:
        return str(error)


def test_the_first_recording_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", telling_child(tmp_path, 1))
    with begun_early():
        assert [_record(), _record()] == ["kernel0", "a second process"]
    assert _record() == "a second process"


@pytest.mark.parametrize("change", ["environment", "working folder", "interpreter"])
def test_another_one_is_started_where_it_is_not_what_is_wanted(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", telling_child(tmp_path, 1))
    with begun_early():
        if change == "environment":
            monkeypatch.setenv("TRITON_PTXAS_PATH", "ptxas")
        elif change == "working folder":
            monkeypatch.chdir(tmp_path)
        assert _record(sys.executable if change == "interpreter" else None) == "a second process"


def test_nothing_is_left_of_one_that_is_not_used() -> None:
    with begun_early():
        assert early._early is not None
        pid, folder = early._early.child.pid, early._early.folder
        assert folder.is_dir()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_prevents_it_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/python")
    with begun_early():
        assert early._early is None


def test_it_takes_no_number_of_a_closed_stream() -> None:
    """Of a program without standard streams, which would write to its socket."""
    code = "from irscope.record.process import early as e\nwith e.begun_early(): raise SystemExit(e._early is not None)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for closed in ("<&-", ">&-", "2>&-"):
        command = ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, code]
        assert subprocess.run(command, env=environment, check=False).returncode == 0
