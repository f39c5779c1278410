"""Launches in child processes are not recorded: a recording says so, and is not disturbed by them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("triton", reason="it records, and Triton is not installed")
pytestmark = [pytest.mark.triton, pytest.mark.newest]

from irscope.record.process.requests import RecordRequest  # noqa: E402
from irscope.record.process.session import record_request  # noqa: E402

SCRIPT = Path(__file__).parents[1] / "scripts" / "children.py"


@pytest.mark.parametrize("arguments", [(), ("only",)])
def test_children_are_counted_and_end_as_they_would(arguments: tuple[str, ...]) -> None:
    request = RecordRequest(mode="script", path=str(SCRIPT), arguments=arguments, virtual=True, targets=("cuda:90",))
    recording = record_request(request)
    (end,) = recording.script_ends
    assert end.code == 0, end
    # What the script itself sees of its children: the fork's own exit code, and not what its parent had still to do.
    assert "processes [0, 0, 0, 0]" in recording.output
    assert "fork 5" in recording.output
    assert [capture.launch.kernel.name for capture in recording.captures] == ([] if arguments else ["own_kernel"])
    if not arguments:
        assert recording.captures[0].failure is None
    launched, started = recording.notes
    assert launched.startswith("3 forked processes of the script launched kernels, which were not recorded")
    assert started.startswith("The script started 3 other Python processes")
    assert "multiprocessing (spawn)" in started
    assert "python3 -c pass" in started
