"""How the run of a program ends for the recording."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("triton", reason="the recording process needs Triton")

from irscope.record.process.events import ScriptEnd
from irscope.record.programs import worker

pytestmark = pytest.mark.triton


class Held(BaseException):
    """Ends a program at its launch."""


@contextmanager
def up_to_a_launch(_: Any):
    with suppress(Held):
        yield


def test_a_program_that_is_ended_at_a_launch_ended_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    def run(_: Any) -> ScriptEnd:
        raise Held

    reported: list[Any] = []
    watch: Any = SimpleNamespace(report=reported.append, workers=None, last_error=None)
    monkeypatch.setattr(worker, "run_program", run)
    monkeypatch.setattr(worker, "recorded_launches", lambda *_: nullcontext())
    monkeypatch.setattr(worker, "recorded_processes", lambda *_: nullcontext())
    worker._script(watch, SimpleNamespace(real=True), SimpleNamespace(), tmp_path, up_to_a_launch)  # type: ignore[arg-type]
    assert reported == [ScriptEnd(0)]
