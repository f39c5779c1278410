"""Runs variants of a launch on the GPU: does each distinct program compute the same, and how fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irscope.device.measurement import Agreement, Ratio, Session, Timing
from irscope.errors import DeviceFault
from irscope.model.capture import Capture

_Measured = tuple[Agreement, Timing | None, Ratio | None]

# A program that computes something else still has a time; one that does not end has none.
_NOT_TIMED = ("fault", "timeout", "failed")


def measure_programs(
    session: Session, programs: Mapping[str, Capture], *, rounds: int, progress: Callable[[], None] = lambda: None
) -> dict[str, _Measured]:
    """Check and time each program once.

    `session`: the launch they are variants of. `programs`: `code_of` a capture, and one capture that has it.
    `rounds`: how often each is timed, all of them interleaved. `progress`: called after each check.

    Returns what was measured by program; one that faults or hangs has no time.
    """
    agreements: dict[str, Agreement] = {}
    for program, capture in programs.items():
        agreements[program] = session.check(capture)
        progress()
    timed = [program for program, agreement in agreements.items() if agreement.verdict not in _NOT_TIMED]
    times = dict(zip(timed, _times(session, [programs[program] for program in timed], rounds), strict=True))
    found = {program: times.get(program, (None, None)) for program in agreements}
    return {program: (agreements[program], timing, ratio) for program, (timing, ratio) in found.items()}


def _times(
    session: Session, captures: Sequence[Capture], rounds: int
) -> Sequence[tuple[Timing, Ratio] | tuple[None, None]]:
    """All of them interleaved; where one faults only now and then, in halves without it."""
    if not captures:
        return ()
    try:
        return session.time(captures, rounds=rounds)
    except DeviceFault:
        if len(captures) == 1:
            return ((None, None),)
        middle = len(captures) // 2
        return (*_times(session, captures[:middle], rounds), *_times(session, captures[middle:], rounds))
