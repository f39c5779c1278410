"""One launch as two interpreters make it: with fake children, each with its own times and results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from irscope.device.measurement import Measurement
from irscope.errors import UsageError
from irscope.record.gpu.session import DeviceSession, device_session, measure_pair
from irscope.record.process.requests import RecordRequest

FAKE = Path(__file__).parents[1] / "device" / "fake_child.py"
Sessions = Callable[..., tuple[DeviceSession, DeviceSession]]


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Sessions]:
    """A session that is as it is, and one of an interpreter with some variables."""
    with ExitStack() as held:

        @contextmanager
        def session(name: str, variables: dict[str, str]) -> Iterator[DeviceSession]:
            path = tmp_path / name
            set_ = "".join(f"export {one}={value}\n" for one, value in variables.items())
            path.write_text(
                f'#!/bin/sh\nexport FAKE_STARTS={tmp_path / "starts"}\n{set_}exec "{sys.executable}" "{FAKE}" "$@"\n'
            )
            path.chmod(0o755)
            request = RecordRequest(mode="script", path="kernels.py", interpreter=str(path))
            with device_session(request, 1, launch_timeout_s=0.5) as made:
                yield made

        yield lambda **variables: (
            held.enter_context(session("before", {})),
            held.enter_context(session("after", variables)),
        )


def measured(sessions: Sessions, **variables: str) -> Measurement:
    return measure_pair(*sessions(**variables), rounds=30)


def test_the_same_is_no_difference(sessions: Sessions) -> None:
    found = measured(sessions)
    assert (found.device, found.ratio and found.ratio.text) == ("Fake GPU", "1.00x, no difference")
    # 20 blocks of 2 rounds are the least that hold 30.
    assert found.before is not None
    assert found.before == found.after
    assert (found.before.count, found.before.median_us) == (40, 100.5)
    assert found.agreement is not None
    assert (found.agreement.verdict, found.computes_other) == ("identical", False)


def test_a_slower_one_with_another_result(sessions: Sessions) -> None:
    found = measured(sessions, FAKE_FACTOR="1.5", FAKE_LEAVES="different")
    assert found.ratio is not None
    assert (found.ratio.value, found.ratio.different) == (pytest.approx(1.5), True)
    assert found.before is not None
    assert found.after is not None
    assert (found.before.median_us, found.after.median_us) == (100.5, 150.75)
    assert found.computes_other


def test_one_that_faults_or_hangs_on_the_inputs_of_the_other_is_not_timed(sessions: Sessions) -> None:
    before, after = sessions(FAKE_LEAVES="fault")
    found = measure_pair(before, after)
    assert found.agreement is not None
    assert (found.agreement.verdict, found.before, found.ratio) == ("fault", None, None)
    assert "illegal memory access" in found.agreement.detail
    assert found.computes_other


def test_one_that_hangs(sessions: Sessions) -> None:
    found = measured(sessions, FAKE_LEAVES="hang")
    assert found.agreement is not None
    assert (found.agreement.verdict, found.agreement.detail) == ("timeout", "no end after 0.5 s")


def test_other_integers_are_timed_and_not_compared(sessions: Sessions) -> None:
    found = measured(sessions, FAKE_LEAVES="other")
    assert (found.agreement, found.why_not_compared) == (None, "x holds other integers")
    assert found.ratio is not None
    assert not found.computes_other


def test_too_few_rounds(sessions: Sessions) -> None:
    with pytest.raises(UsageError, match="5 rounds"):
        measure_pair(*sessions(), rounds=5)
