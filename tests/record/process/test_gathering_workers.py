"""Recordings whose launches compile in workers, against those that compile one after another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.model.capture import Capture, Environment
from irscope.record.process.requests import KnownCompile, request_for
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
        artifacts=tuple(replace(one, duration_us=None, processor_us=None) for one in capture.artifacts),
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


def known(recording: Recording) -> tuple[KnownCompile, ...]:
    captures = {capture.id: capture for capture in recording.captures}
    return tuple(one.of(captures[id_]) for id_, one in recording.known.items())


@pytest.mark.newest
@pytest.mark.parametrize(("jobs", "is_known"), [(1, False), (3, False), (1, True), (3, True)])
def test_what_is_stored_is_not_compiled_again(one_after_another: Recording, jobs: int, is_known: bool):
    ids = tuple(capture.id for capture in one_after_another.captures if capture.status == "ok")
    request = request_for(SCRIPT, targets="cuda:90", config="all", arguments=("all",), jobs=jobs)
    request = replace(request, disassemble=False, layouts=False, stored=ids)
    again = record_request(replace(request, known=known(one_after_another) if is_known else ()))
    assert sorted(again.stored) == sorted(ids)
    assert [capture.name for capture in again.captures] == ["tuned", "refused_by_the_assembler"]
    assert again.output == one_after_another.output


@pytest.mark.newest
@pytest.mark.parametrize("jobs", [1, 3])
def test_the_first_configuration_is_the_same_where_it_is_stored(jobs: int):
    """No other one is compiled in its place, and its launch is told of."""
    script = SCRIPT.with_name("autotuned.py")
    request = replace(request_for(script, targets="cuda:90", jobs=jobs), disassemble=False, layouts=False)
    first = record_request(request)
    ok = {capture.id: capture for capture in first.captures if capture.status == "ok"}
    again = record_request(replace(request, stored=tuple(ok)))
    assert again.stored.keys() == ok.keys()
    assert len(again.captures) == len(first.captures) - len(ok)
    assert {id_: launch.grid for id_, launch in again.stored.items()} == {id_: ok[id_].launch.grid for id_ in ok}
    assert again.output == first.output


KERNEL = """
import triton
import triton.language as tl

FACTOR = tl.constexpr(2)

@triton.jit
def scaled(x):
    return x * FACTOR

@triton.jit
def product(x, y, BLOCK: tl.constexpr):
    tl.static_print("the front end ran")
    at = tl.arange(0, BLOCK)
    tl.store(y + at, scaled(tl.load(x + at)))

class Buffer:
    dtype = "fp32"
    def data_ptr(self): return 4096

product[(4,)](Buffer(), Buffer(), BLOCK=128)
"""


def test_the_front_end_runs_where_anything_that_it_reads_changed(tmp_path: Path):
    """Of a kernel that is as it was, it does not."""
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL)
    request = replace(request_for(script, targets="cuda:90"), disassemble=False, layouts=False)
    first = record_request(request)
    (capture,) = first.captures
    request = replace(request, stored=(capture.id,), known=known(first))
    for before, after, is_same in (
        ("(4,)]", "(8,)]", True),
        ("class Buffer:", "# A comment.\nclass Buffer:", True),
        ("constexpr(2)", "constexpr(3)", False),
        ("return x * FACTOR", "return x + FACTOR", False),
        ("@triton.jit\ndef product", "\n@triton.jit\ndef product", False),
        ("BLOCK=128", "BLOCK=256", False),
        ("BLOCK=128", "BLOCK=128, num_warps=8", False),
        ('"fp32"', '"fp16"', False),
    ):
        script.write_text(KERNEL.replace(before, after))
        again = record_request(request)
        ran = "the front end ran" in again.output
        assert (ran, list(again.stored), len(again.captures)) == (
            (False, [capture.id], 0) if is_same else (True, [], 1)
        ), after
    script.write_text(KERNEL)
    (other,) = record_request(replace(request, targets=("cuda:80",))).captures
    assert other.id != capture.id


def test_what_fails_in_a_worker_ends_the_program_where_it_was_launched():
    """As without workers, though the program went on: it did not catch what its launch would have raised."""
    one, other = recorded("failing", 1), recorded("failing", 2)
    for recording in (one, other):
        assert [dict(each.launch.constants).get("BLOCK") for each in recording.captures] == ["32", None]
        assert [end.of_compile for end in recording.stopped] == [True]
        assert recording.captures[1].failure is not None
        assert recording.captures[1].failure.kind == "assembler"
    assert one.stopped[0].frames == other.stopped[0].frames


@pytest.mark.newest
def test_a_compile_that_ends_its_worker_ends_the_program_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ended = recorded("ending", 2)
    failures = [capture.failure and (capture.failure.kind, capture.failure.stage) for capture in ended.captures]
    assert failures == [None, None, None, ("abort", "ptx")]
    assert "SIGSEGV" in ended.captures[3].failure.message


@pytest.mark.newest
def test_a_compile_has_the_settings_of_its_launch():
    """The script changes environment variables and knobs, and what it changes in the compiler is called."""
    expected = [comparable(capture) for capture in recorded("changing", 1).captures]
    changed = recorded("changing", 2)
    assert [comparable(capture) for capture in changed.captures] == expected
    assert {"!dbg" in str(capture.text("llir")) for capture in expected} == {True, False}


@pytest.mark.newest
def test_a_program_that_ends_at_once_loses_nothing():
    assert [capture.status for capture in recorded("leaving", 2).captures] == ["ok"] * 6


@pytest.mark.newest
def test_what_a_killed_program_left_is_compiled_all_the_same():
    killed = recorded("leaving killed", 2)
    assert [capture.status for capture in killed.captures] == ["ok"] * 6
    assert "SIGKILL" in killed.notes[0]
