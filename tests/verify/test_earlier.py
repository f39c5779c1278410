"""What earlier launches left unwritten is found where a later launch reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.verify.safety import verify_launch

KERNELS = Path(__file__).with_name("earlier_kernels.py")
pytestmark = [pytest.mark.triton, pytest.mark.newest]


@pytest.fixture(scope="module")
def captures() -> tuple[Capture, ...]:
    request = request_for(KERNELS, targets=("cuda:90",), disassemble=False, layouts=False, snapshots="none")
    return tuple(record_request(request).captures)


def test_what_an_earlier_launch_wrote_in_part_is_unwritten_elsewhere(captures: tuple[Capture, ...]) -> None:
    verdicts = {one.name: verify_launch(one, earlier=captures) for one in captures}
    wrong = {name: verdict.violations[0] for name, verdict in verdicts.items() if verdict.answer == "wrong"}
    assert {*wrong} == {"copies_all_too_early", "copies_by_descriptor"}
    violation = wrong["copies_all_too_early"]
    assert (violation.kind, violation.address) == ("uninitialised-read", "x_ptr")
    # 2 · 128 + 44 = 300, the first that no launch wrote.
    assert (violation.accesses[0].program, violation.accesses[0].element) == ((2, 0, 0), (44,))
    assert all(verdict.answer != "not decided" for verdict in verdicts.values())


def test_what_a_launch_wrote_that_is_not_recorded_is_not_known(captures: tuple[Capture, ...]) -> None:
    (reader,) = (one for one in captures if one.name == "copies_all_too_early")
    rest = [one for one in captures if one.name != "writes_a_part"]
    assert verify_launch(reader, earlier=rest).answer == "safe"
