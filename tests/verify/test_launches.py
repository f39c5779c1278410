"""All launches of a compile are verified, and what they left unwritten is found where a later launch reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.model.capture import Capture
from irscope.model.launch_record import LaunchRecord, OtherLaunch
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.verify.launches import verify_launches
from irscope.verify.safety import verify_launch
from tests.once import kept
from tests.verify.test_safety import captures as safety_captures

KERNELS = Path(__file__).with_name("launched_kernels.py")
pytestmark = [pytest.mark.triton, pytest.mark.newest]


@pytest.fixture(scope="module")
def captures() -> tuple[Capture, ...]:
    request = request_for(KERNELS, targets=("cuda:90",), disassemble=False, layouts=False, snapshots="none")
    return kept("the launches to verify", lambda: tuple(record_request(request).captures))


def test_what_an_earlier_launch_wrote_in_part_is_unwritten_elsewhere(captures: tuple[Capture, ...]) -> None:
    # Of each compile the first launch.
    verdicts = {one.name: verify_launch(one, earlier=captures) for one in captures}
    wrong = {name: verdict.violations[0] for name, verdict in verdicts.items() if verdict.answer == "wrong"}
    assert {*wrong} == {"copies_all_too_early", "copies_by_descriptor"}
    violation = wrong["copies_all_too_early"]
    assert (violation.kind, violation.address) == ("uninitialised-read", "x_ptr")
    # 2 · 128 + 44 = 300, the first that no launch wrote.
    assert (violation.accesses[0].program, violation.accesses[0].element) == ((2, 0, 0), (44,))
    assert all(verdict.answer != "not decided" for verdict in verdicts.values())


def test_memory_of_torch_empty_is_followed_where_the_cpu_computes(
    tmp_path: Path, captures: tuple[Capture, ...]
) -> None:
    script = tmp_path / KERNELS.name
    lines = KERNELS.read_text("utf-8").splitlines()
    script.write_text("\n".join(line for line in lines if "* 9" not in line))
    request = request_for(script, targets=("cuda:90",), disassemble=False, layouts=False, snapshots="none")
    computed = record_request(replace(request, computes=True, data_limit_bytes=1 << 20)).captures
    for recorded in (captures, computed):
        verdicts = {one.name: verify_launches(one, earlier=recorded) for one in recorded if one.name != "gathers"}
        wrong = [name for name, verdict in verdicts.items() if verdict.answer == "wrong"]
        assert sorted(wrong) == ["copies_all_too_early", "copies_by_descriptor"]


def test_what_a_launch_wrote_that_is_not_recorded_is_not_known(captures: tuple[Capture, ...]) -> None:
    (reader,) = (one for one in captures if one.name == "copies_all_too_early")
    rest = [one for one in captures if one.name != "writes_a_part"]
    assert verify_launch(reader, earlier=rest).answer == "safe"


def test_each_launch_of_a_compile_is_verified(captures: tuple[Capture, ...]) -> None:
    (gathers,) = (one for one in captures if one.name == "gathers")
    first = replace(gathers, launch=replace(gathers.launch, others=()))
    assert verify_launches(first).violations == ()
    verdict = verify_launches(gathers)
    assert [one.kind for one in verdict.violations] == ["out-of-bounds"]
    # 57 · 9 is the first beyond 511.
    assert verdict.violations[0].accesses[0].element == (57,)
    assert verdict.notes[0] == "this is launch 2 of the compile, with another index_ptr"


def test_a_launch_that_differs_by_unwritten_memory_is_named() -> None:
    capture = safety_captures("cuda:90")["adds_to_zeros"]
    assert capture.launch.record is not None
    assert capture.launch.grid is not None
    rows = [replace(one, is_unwritten=one.path == "y_ptr", data="") for one in capture.launch.record.arguments]
    first = [replace(one, data="") for one in capture.launch.record.arguments]
    other = OtherLaunch(capture.launch.grid, LaunchRecord(tuple(rows)))
    launch = replace(capture.launch, record=LaunchRecord(tuple(first)), others=(other,))
    verdict = verify_launches(capture.with_(launch=launch))
    assert [one.kind for one in verdict.violations] == ["uninitialised-read"]
    assert verdict.notes[0] == "this is launch 2 of the compile, with y_ptr unwritten"


def test_a_launch_that_fails_on_the_cpu_is_verified(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    kernels, _, _ = KERNELS.read_text("utf-8").partition("if __name__")
    script.write_text(
        f"{kernels}y = torch.ones(64, device='cuda')\ngathers[(1,)](y.long() * 64, y, y.clone(), BLOCK=64)\n"
    )
    request = request_for(script, targets=("cuda:90",), disassemble=False, layouts=False, snapshots="none")
    recording = record_request(replace(request, computes=True, data_limit_bytes=1 << 20))
    (violation,) = verify_launches(recording.captures[0]).violations
    assert (violation.kind, violation.accesses[0].element) == ("out-of-bounds", (0,))


def test_bounds_are_checked_where_memory_is_too_large_to_compare_programs(
    captures: tuple[Capture, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (gathers,) = (one for one in captures if one.name == "gathers")
    monkeypatch.setattr("irscope.verify.trace._MOST_PLACES", 16)
    verdict = verify_launches(gathers)
    assert [one.kind for one in verdict.violations] == ["out-of-bounds"]
    assert "more than the 16 that are followed" in verdict.undecided[-1]
