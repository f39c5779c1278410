"""The GPU as the parent sees it: what it makes of what its child tells, of faults, hangs and ends; a fake child."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.device.measurement import Agreement
from irscope.errors import DeviceFault, NoDevice, RecordingError, UsageError
from irscope.interruption import Interrupted
from irscope.model.capture import Artifact, Capture, Failure, Target
from irscope.plan import PassPlan
from irscope.record.gpu.session import (
    DeviceProcess,
    DeviceSession,
    ScriptCheck,
    check_script_on_device,
    device_session,
    load_command,
    own_grid,
    require_variant,
)
from irscope.record.process.requests import RecordRequest

FAKE = Path(__file__).parents[1] / "device" / "fake_child.py"
REQUEST = RecordRequest(mode="script", path="kernels.py")


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A "Python" that runs the fake whatever module it is told to run."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    path.chmod(0o755)
    monkeypatch.setenv("FAKE_STARTS", str(tmp_path / "starts"))
    return str(path)


@pytest.fixture
def starts(tmp_path: Path) -> Callable[[], list[dict[str, object]]]:
    """How each child so far was started."""
    return lambda: [json.loads(line) for line in (tmp_path / "starts").read_text().splitlines()]


def variant(session: DeviceSession, binary: bytes) -> Capture:
    artifacts = (*session.baseline.artifacts[:-1], Artifact("cubin", binary))
    return replace(session.baseline, artifacts=artifacts)


def test_a_launch_is_held_and_its_variants_are_checked_and_timed(interpreter: str, starts) -> None:
    with device_session(replace(REQUEST, interpreter=interpreter), 1) as session:
        assert session.baseline.name == "kernel"
        assert session.baseline.launch.grid == (3, 2, 1)
        assert (session.info.device, session.info.bytes, session.info.scalars) == ("Fake GPU", 4096, (("n", 4),))
        assert session.check(variant(session, b"same")) == Agreement("identical", differing=3)
        assert session.check(variant(session, b"wrong")).verdict == "different"
        assert session.check(variant(session, b"refused")).verdict == "failed"
        same, slow = session.time([session.baseline, variant(session, b"slow")], rounds=20)
        assert same[1].text == "1.00x, no difference"
        assert (slow[1].value, slow[0].count) == (2.0, 20)
        assert session.ceilings().flops_per_s is None
        assert session.ceilings("float16").flops_per_s == 8e14
    assert starts() == [{"kind": "PinLaunch", "launch": 1}]


@pytest.mark.parametrize(("binary", "said"), [(b"fault", "illegal memory access"), (b"die", "SIGSEGV")])
def test_a_variant_that_faults_takes_its_process_with_it_and_the_next_gets_a_new_one(
    interpreter: str, starts, binary: bytes, said: str
) -> None:
    with device_session(replace(REQUEST, interpreter=interpreter), None) as session:
        found = session.check(variant(session, binary))
        assert found.verdict == "fault"
        assert said in found.detail
        assert session.check(variant(session, b"same")).passes
        assert session.restarts == 1
    # The second time the number is known.
    assert starts() == [{"kind": "PinLaunch", "launch": None}, {"kind": "PinLaunch", "launch": 1}]


def test_the_answer_to_an_interrupted_question_is_none_to_the_next(
    interpreter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with device_session(replace(REQUEST, interpreter=interpreter), 1) as session:
        wrong, same = variant(session, b"wrong"), variant(session, b"same")

        def interrupted(*_: object) -> None:
            raise Interrupted

        with monkeypatch.context() as patches:
            patches.setattr(DeviceProcess, "read", interrupted)
            with pytest.raises(Interrupted):
                session.check(wrong)
        assert session.check(same).passes


def test_a_variant_that_hangs_is_ended(interpreter: str) -> None:
    with device_session(replace(REQUEST, interpreter=interpreter), 1, launch_timeout_s=0.5) as session:
        assert session.check(variant(session, b"hang")) == Agreement("timeout", detail="no end after 0.5 s")
        assert session.check(variant(session, b"same")).passes
        assert session.restarts == 1


def test_a_fault_while_timing_is_an_error(interpreter: str) -> None:
    with device_session(replace(REQUEST, interpreter=interpreter), 1) as session:
        with pytest.raises(DeviceFault, match="misaligned"):
            session.time([variant(session, b"fault")], rounds=10)
        assert session.time([session.baseline], rounds=10)


def test_what_cannot_run_is_no_variant(interpreter: str) -> None:
    with device_session(replace(REQUEST, interpreter=interpreter), 1) as session:
        failed = replace(
            session.baseline, status="failed", failure=Failure("pass", "no\nmore", "ttgir", "ttgir:coalesce#1")
        )
        assert session.check(failed) == Agreement("failed", detail="it does not compile: ttgir:coalesce#1: no")
        bare = replace(session.baseline, artifacts=session.baseline.artifacts[:-1])
        assert session.check(bare).detail == "it holds no binary"
        with pytest.raises(RecordingError, match="cannot be timed"):
            session.time([bare], rounds=10)
        with pytest.raises(UsageError, match="at least 6"):
            session.time([session.baseline], rounds=5)
        with pytest.raises(UsageError, match="cuda:80 cannot run here"):
            session.check(replace(session.baseline, target=Target.parse("cuda:80")))
        other = replace(session.baseline.launch, constants=(("BLOCK", "64"),))
        # On its own grid, which other tiles need.
        assert load_command(session.baseline, own_grid(session.baseline, session.baseline)).arguments[-1] is None
        tiles = replace(session.baseline, launch=other)
        assert load_command(tiles, own_grid(tiles, session.baseline)).arguments[-1] == (3, 2, 1)
        require_variant(tiles, session.baseline, 1)
        with pytest.raises(UsageError, match="other parameters or constants"):
            session.check(replace(session.baseline, launch=replace(other, grid=None)))


@pytest.mark.parametrize(
    ("scenario", "error", "said"),
    [
        ("no-gpu", NoDevice, "no GPU here"),
        ("dies", RecordingError, "exited with code 7"),
        ("dies-after", RecordingError, "the script prints this"),
        ("hangs", DeviceFault, "the launch took longer than 0.5 s"),
    ],
)
def test_a_session_that_never_begins(
    interpreter: str, monkeypatch: pytest.MonkeyPatch, scenario: str, error: type[Exception], said: str
) -> None:
    monkeypatch.setenv("FAKE_SCENARIO", scenario)
    with (
        pytest.raises(error, match=said),
        device_session(replace(REQUEST, interpreter=interpreter), 1, launch_timeout_s=0.5),
    ):
        pass


def test_misuse() -> None:
    with pytest.raises(UsageError, match="give the FILE"), device_session(replace(REQUEST, mode="text"), 1):
        pass
    with (
        pytest.raises(UsageError, match="every pass on"),
        device_session(replace(REQUEST, plan=PassPlan.parse("-cse")), 1),
    ):
        pass
    with (
        pytest.raises(RecordingError, match="cannot be started"),
        device_session(replace(REQUEST, interpreter="/no/python"), 1),
    ):
        pass


def test_no_process_and_no_descriptor_is_left(interpreter: str) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with device_session(replace(REQUEST, interpreter=interpreter), 1) as session:
        child = session._child
        assert child is not None
        session.check(variant(session, b"fault"))
        session.check(variant(session, b"same"))
        second = session._child
        assert second is not None
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert all(process._child._process.poll() is not None for process in (child, second))


def checked(interpreter: str, monkeypatch: pytest.MonkeyPatch, scenario: str) -> ScriptCheck:
    monkeypatch.setenv("FAKE_SCENARIO", scenario)
    return check_script_on_device(replace(REQUEST, interpreter=interpreter), launch_timeout_s=0.5)


def test_a_script_that_is_well(interpreter: str, monkeypatch: pytest.MonkeyPatch, starts) -> None:
    found = checked(interpreter, monkeypatch, "")
    assert found.passes
    assert [(row.where.launch, row.where.count, row.where.kernel, row.where.grid) for row in found.launches] == [
        (1, 1, "kernel", (3, 2, 1))
    ]
    assert [capture.name for capture in found.captures] == ["kernel"]
    assert starts() == [{"kind": "CheckScript", "launch": None}]


@pytest.mark.parametrize(
    ("scenario", "verdict", "detail", "ended"),
    [
        ("wrong", "different", "", ""),
        ("hangs", "timeout", "no end after 0.5 s", "it was ended"),
        ("killed", "fault", "the process was ended by SIGKILL", "the process was ended by SIGKILL"),
        (
            "empty-faults",
            "fault",
            "under the empty plan already: CUDA error: an illegal memory access",
            "CUDA error: an illegal memory access",
        ),
        (
            "faults-itself",
            "fault",
            "CUDA error: unspecified launch failure",
            "CUDA error: unspecified launch failure",
        ),
        ("script-fails", "identical", "", ""),
    ],
)
def test_a_script_that_is_not(
    interpreter: str, monkeypatch: pytest.MonkeyPatch, scenario: str, verdict: str, detail: str, ended: str
) -> None:
    found = checked(interpreter, monkeypatch, scenario)
    assert not found.passes
    (row,) = found.launches
    assert (row.where.kernel, row.agreement.verdict, row.agreement.detail, found.ended) == (
        "kernel",
        verdict,
        detail,
        ended,
    )
    if scenario == "script-fails":
        assert found.script_end is not None
        assert found.script_end.message == "AssertionError: wrong"


def test_a_script_that_launches_nothing_does_not_pass() -> None:
    assert not ScriptCheck((), (), None).passes


def test_a_script_whose_process_dies_at_once(interpreter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecordingError, match="exited with code 7 before any kernel"):
        checked(interpreter, monkeypatch, "dies")
    with pytest.raises(NoDevice):
        checked(interpreter, monkeypatch, "no-gpu")


def test_what_the_script_prints_is_handed_on(interpreter: str) -> None:
    said: list[str] = []
    check_script_on_device(replace(REQUEST, interpreter=interpreter), echo=said.append)
    assert "".join(said) == "the script prints this\n"
