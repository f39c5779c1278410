"""Measures one launch as two interpreters make it, each in a session of its own on the same GPU."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from irscope.device.measurement import FEWEST_ROUNDS, Agreement, Measurement, quantile, ratio_of, timing_of
from irscope.errors import DeviceFault, UsageError
from irscope.record.gpu.session import DeviceSession
from irscope.record.process.own_folder import own_folder

__all__ = ["measure_pair"]

_BLOCKS = 20


def measure_pair(before: DeviceSession, after: DeviceSession, *, rounds: int = 100, cold: bool = True) -> Measurement:
    """Compare what two sessions' launches leave, on the inputs of the first, and time them in turn.

    The sessions take turns in up to 20 blocks of rounds, the one first, then the other. The ratio is of the medians of
    blocks that follow each other, and its interval holds what a second copy of the first one's program differs from
    the first.

    `rounds`: launches of each that are timed, 6 at least. `cold`: flush the L2 before each. Raises UsageError for
    fewer rounds, and DeviceFault where a launch faults or hangs while it is timed.
    """
    if rounds < FEWEST_ROUNDS:
        raise UsageError(f"{rounds} rounds give no 95 % confidence interval: take at least {FEWEST_ROUNDS}.")
    agreement, why_not = _compared(before, after)
    device = before.info.device
    if agreement is not None and agreement.verdict in ("fault", "timeout", "failed"):
        return Measurement(device, agreement=agreement)
    blocks = min(rounds, _BLOCKS)
    each = -(-rounds // blocks)
    sides = (before, after)
    times: tuple[list[tuple[float, ...]], list[tuple[float, ...]]] = ([], [])
    again: list[tuple[float, ...]] = []
    for number in range(blocks):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            base, copy = sides[side].times_us(rounds=each, cold=cold)
            times[side].append(base)
            again += [copy] if side == 0 else []
    ours, theirs, noise = ([_median(block) for block in rows] for rows in (*times, again))
    first, second = (timing_of([*chain.from_iterable(rows)], cold=cold) for rows in times)
    return Measurement(device, first, second, ratio_of(theirs, ours, noise), agreement, why_not)


def _median(times_us: tuple[float, ...]) -> float:
    return quantile(sorted(times_us), 0.5)


def _compared(before: DeviceSession, after: DeviceSession) -> tuple[Agreement | None, str]:
    """(whether the second leaves what the first leaves, why that is not known)."""
    with own_folder() as folder:
        inputs, outputs = (_made(folder / name) for name in ("inputs", "outputs"))
        before.store_inputs(inputs)
        try:
            why_not = after.make_again(inputs, outputs)
        except TimeoutError:
            return Agreement("timeout", detail=f"no end after {after.launch_timeout_s:g} s"), ""
        except DeviceFault as fault:
            return Agreement("fault", detail=str(fault)), ""
        try:
            return (None, why_not) if why_not else (before.check_outputs(outputs), "")
        except TimeoutError:
            return None, f"the comparison did not end in {before.launch_timeout_s:g} s"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
