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


@pytest.fixture(scope="module")
def recording(clean_session: None) -> Recording:
    return recorded()


def test_launches_of_forked_and_started_processes_are_recorded(recording: Recording) -> None:
    (end,) = recording.script_ends
    assert end.code == 0, end
    # What the script itself sees of its children: the fork's own exit code, and not what its parent had still to do.
    assert "processes [0, 0, 0, 0, 0]" in recording.output
    assert "fork 5" in recording.output
    assert "found 1 of irscope's on the path of a child: False" in recording.output
    # Those of processes that run side by side come in any order.
    origins = {capture.name: capture.environment.origin_text for capture in recording.captures}
    assert len(origins) == len(recording.captures) == 5, recording.output
    assert all(capture.has_compiled and capture.launch.grid == (1, 1, 1) for capture in recording.captures)
    assert all(capture.launch.kernel.source and capture.sources for capture in recording.captures)
    assert recording.captures[0].name == "own_kernel"
    assert origins["own_kernel"] == ""
    assert origins["child_kernel"].startswith("a fork of the script (")
    assert origins["spawned_kernel"].startswith("multiprocessing (spawn) (")
    assert origins["served_kernel"].startswith("multiprocessing (forkserver) (")
    assert origins["started_kernel"].startswith(f"{os.path.basename(sys.executable)} ")
    assert not recording.notes


def test_a_process_compiles_the_same_as_the_script_does(recording: Recording) -> None:
    """The artifacts of a fork's and of a started process's compile are those that the script's own compile gives."""
    alone = {capture.name: capture for capture in recorded("here").captures}
    for capture in recording.captures:
        own = alone[capture.name]
        assert capture.id == own.id
        assert capture.texts == own.texts
        assert capture.cubin == own.cubin
        assert [step.label for step in capture.passes()] == [step.label for step in own.passes()]
