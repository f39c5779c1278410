"""Recordings whose launches compile in forks of the script's process, against those that compile one after another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.model.capture import Capture, Environment
from irscope.record.process.requests import request_for
from irscope.record.process.session import Recording, record_request

pytestmark = pytest.mark.triton

SCRIPT = Path(__file__).parents[1] / "scripts" / "many_variants.py"


def recorded(mode: str, jobs: int, *, layouts: bool = False) -> Recording:
    request = request_for(SCRIPT, targets="cuda:90", config="all", arguments=tuple(mode.split()), jobs=jobs)
    return record_request(replace(request, disassemble=False, layouts=layouts))


def comparable(capture: Capture) -> Capture:
    """A capture without times; and the grid of a launch that failed is known only where that came late."""
    return replace(
        capture,
        artifacts=tuple(replace(one, duration_us=None) for one in capture.artifacts),
        snapshots=tuple(replace(one, duration_us=None) for one in capture.snapshots),
        environment=Environment(),
        compile_us=None,
        launch=replace(capture.launch, grid=None) if capture.failure else capture.launch,
        failure=capture.failure and replace(capture.failure, message="", diagnostics=""),
    )


@pytest.fixture(scope="module")
def one_after_another() -> Recording:
    return recorded("all", 1, layouts=True)


@pytest.fixture(scope="module")
def side_by_side() -> Recording:
    return recorded("all", 3, layouts=True)


@pytest.mark.newest
def test_the_captures_are_the_same_and_in_the_same_order(one_after_another: Recording, side_by_side: Recording):
    expected = [comparable(capture) for capture in one_after_another.captures]
    found = [comparable(capture) for capture in side_by_side.captures]
    assert [capture.id for capture in found] == [capture.id for capture in expected]
    assert found == expected
    assert len(found) == 11


@pytest.mark.newest
def test_the_script_sees_what_it_sees_without(one_after_another: Recording, side_by_side: Recording):
    """Registers, metadata, texts, the autotuner's choice and an error that it catches."""
    assert side_by_side.output == one_after_another.output
    assert "caught PTXASError" in side_by_side.output
    assert side_by_side.script_ends == one_after_another.script_ends
    assert not side_by_side.stopped


@pytest.mark.newest
@pytest.mark.parametrize("jobs", [1, 3])
def test_what_is_stored_is_not_compiled_again(one_after_another: Recording, jobs: int):
    ids = tuple(capture.id for capture in one_after_another.captures if capture.status == "ok")
    request = request_for(SCRIPT, targets="cuda:90", config="all", arguments=("all",), jobs=jobs)
    again = record_request(replace(request, disassemble=False, layouts=False, stored=ids))
    assert sorted(again.stored) == sorted(ids)
    assert [capture.name for capture in again.captures] == ["tuned", "refused_by_the_assembler"]
    assert again.output == one_after_another.output


def test_what_fails_beside_the_script_is_raised_where_it_is_read():
    stopped_at_once, went_on = recorded("failing", 1), recorded("failing", 2)
    blocks = [
        [dict(capture.launch.constants).get("BLOCK") for capture in one.captures] for one in (stopped_at_once, went_on)
    ]
    assert blocks == [["32", None], ["32", None, "64"]]
    for one in (stopped_at_once, went_on):
        assert [end.of_compile for end in one.stopped] == [True]
        assert one.captures[1].failure is not None
        assert one.captures[1].failure.kind == "assembler"
    assert "metadata" in went_on.stopped[0].frames


@pytest.mark.newest
def test_a_compile_that_ends_its_fork_is_one_failed_capture():
    ended = recorded("ending", 2)
    assert not ended.stopped
    failures = [capture.failure and (capture.failure.kind, capture.failure.stage) for capture in ended.captures]
    assert failures == [None, None, None, ("abort", "ptx"), *[None] * 6]
    assert [capture.launch.grid for capture in ended.captures] == [(1, 1, 1)] * 10
    assert "SIGSEGV" in ended.captures[3].failure.message


@pytest.mark.newest
def test_a_compile_has_the_settings_of_its_launch():
    """The script changes environment variables and knobs before there is a fork for it."""
    expected = [comparable(capture) for capture in recorded("changing", 1).captures]
    changed = recorded("changing", 2)
    assert [comparable(capture) for capture in changed.captures] == expected
    assert {"!dbg" in str(capture.text("llir")) for capture in expected} == {True, False}
    # A fork makes several: it costs a fifth of a small compile.
    forks = changed.output.split()
    assert len(forks) == 9
    assert len(set(forks)) < 9


@pytest.mark.newest
def test_a_program_that_ends_at_once_loses_nothing():
    assert [capture.status for capture in recorded("leaving", 2).captures] == ["ok"] * 6


@pytest.mark.newest
def test_a_killed_program_is_no_fault_of_the_compiler():
    failures = [capture.failure for capture in recorded("leaving killed", 2).captures]
    assert failures[0] is None
    assert {failure.kind for failure in failures if failure is not None} == {"interrupt"}
    assert all("SIGKILL" in failure.message for failure in failures if failure is not None)
