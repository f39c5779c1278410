"""What a script's other processes launch is recorded, and they end as they would."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="it records, and Triton is not installed")
pytestmark = [pytest.mark.triton, pytest.mark.newest]

from irscope.record.process.requests import RecordRequest  # noqa: E402
from irscope.record.process.session import Recording, record_request  # noqa: E402

SCRIPT = Path(__file__).parents[1] / "scripts" / "children.py"


def recorded(*arguments: str) -> Recording:
    quick = {"virtual": True, "targets": ("cuda:90",), "layouts": False, "disassemble": False}
    return record_request(RecordRequest(mode="script", path=str(SCRIPT), arguments=arguments, **quick))


def origin(recording: Recording, number: int) -> str:
    return recording.captures[number].environment.origin_text


def test_launches_of_forked_and_started_processes_are_recorded() -> None:
    before = dict(os.environ), list(sys.path)
    recording = recorded()
    (end,) = recording.script_ends
    assert end.code == 0, end
    # What the script itself sees of its children: the fork's own exit code, and not what its parent had still to do.
    assert "processes [0, 0, 0, 0]" in recording.output
    assert "fork 5" in recording.output
    assert "found 1 of irscope's on the path of a child: False" in recording.output
    names = [capture.name for capture in recording.captures]
    assert names == ["own_kernel", "child_kernel", "spawned_kernel", "started_kernel"], recording.output
    assert all(capture.has_compiled and capture.launch.grid == (1, 1, 1) for capture in recording.captures)
    assert all(capture.launch.kernel.source and capture.sources for capture in recording.captures)
    assert origin(recording, 0) == ""
    assert origin(recording, 1).startswith("a fork of the script (")
    assert origin(recording, 2).startswith("multiprocessing (spawn) (")
    assert origin(recording, 3).startswith(f"{os.path.basename(sys.executable)} ")
    # A Python that is told to ignore its environment takes no part, and that is said.
    (note,) = recording.notes
    assert note.startswith("The script started 1 other Python process (")
    assert "-I -c pass" in note
    assert (dict(os.environ), list(sys.path)) == before


def test_a_process_compiles_the_same_as_the_script_does() -> None:
    """The artifacts of a fork's and of a started process's compile are those that the script's own compile gives."""
    alone = {capture.name: capture for capture in recorded("here").captures}
    for capture in recorded().captures:
        own = alone[capture.name]
        assert capture.id == own.id
        assert capture.texts == own.texts
        assert capture.cubin == own.cubin
        assert [step.label for step in capture.passes()] == [step.label for step in own.passes()]
