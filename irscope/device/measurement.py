"""Measurements of variants of a launch on a GPU: agreement with the baseline, time, ratio of times.

Each distinct program is checked and timed once: does it compute the same, and how fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from irscope.errors import DeviceFault, UsageError
from irscope.model.capture import Capture

Verdict = Literal["identical", "close", "different", "nan", "fault", "timeout", "failed"]

VERDICTS: tuple[Verdict, ...] = ("identical", "close", "different", "nan", "fault", "timeout", "failed")
"""From the best to the worst."""

FEWEST_ROUNDS = 6
"""With fewer pairs no pair of order statistics holds the median with 95 % confidence: 2 · 0.5⁵ > 0.05."""

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Agreement:
    """One launch's outputs compared with those of the same launch under the empty plan, on the same inputs."""

    verdict: Verdict
    """`identical`: bitwise. `close`: within the noise of the empty plan's own runs. `nan`: it computed a NaN, whatever
    the empty plan did. `fault`: the GPU ended the process. `failed`: it could not be launched."""
    max_abs_error: float | None = None
    """Over the elements that are finite on both sides; None if nothing was compared."""
    max_rel_error: float | None = None
    """Of the same elements, relative to the empty plan's value; elements where that is 0 are left out."""
    argument: str = ""
    """The argument that deviates most; or an empty string."""
    differing: int = 0
    """Elements that are not bitwise equal, in all arguments."""
    detail: str = ""
    """The kind of fault, the number of elements never written, the place of the NaN, …"""
    noise: float | None = None
    """The largest deviation of the empty plan's own runs in that argument; None if no noise was measured."""
    over_noise: float | None = None
    """The largest ratio of an element's error to the limit that its own noise sets; None if that is 0."""
    typical_over_noise: float | None = None
    """Root mean square of the errors, in units of each element's noise."""
    beyond_noise: int = 0
    """Elements beyond their own noise, in the argument that has most of them."""
    noise_of: str = ""
    """The runs of the empty plan that the noise was measured by."""

    @property
    def passes(self) -> bool:
        """Whether the variant computes the same, as far as this launch shows."""
        return self.verdict in ("identical", "close")

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"passes": self.passes}


@dataclass(frozen=True, slots=True)
class Timing:
    """One variant's times, each of one launch, between two events of the device."""

    median_us: float
    low_us: float
    """The first quartile."""
    high_us: float
    """The third quartile."""
    count: int
    cold: bool = True
    """Whether the L2 cache was flushed before each launch."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A variant's time over the baseline's: above 1 it is slower."""

    value: float
    low: float
    """Of the 95 % confidence interval."""
    high: float

    @property
    def different(self) -> bool:
        """Whether 1 lies outside the interval: the noise allows to say that it is slower, or faster."""
        return not self.low <= 1.0 <= self.high

    @property
    def text(self) -> str:
        """`1.31x (1.29 to 1.33)`, or `1.00x, no difference`."""
        if not self.different:
            return f"{self.value:.2f}x, no difference"
        # Enough digits that the interval does not seem to hold the 1 that it excludes.
        digits = next((n for n in (2, 3, 4) if round(self.low, n) > 1.0 or round(self.high, n) < 1.0), 5)
        return f"{self.value:.{digits}f}x ({self.low:.{digits}f} to {self.high:.{digits}f})"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"different": self.different}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One launch as two environments make it, each with its own Triton: `before` and `after`."""

    device: str
    """The name of the GPU."""
    before: Timing | None = None
    """None where `after` faults or hangs: neither is timed then."""
    after: Timing | None = None
    ratio: Ratio | None = None
    """Of `after` to `before`."""
    agreement: Agreement | None = None
    """What `after` leaves in memory, compared with `before`, on the inputs of `before`; None if not compared."""
    why_not_compared: str = ""

    @property
    def computes_other(self) -> bool:
        """Whether `after` leaves something else than rounding explains; the same NaNs as `before` are no other."""
        agreement = self.agreement
        if agreement is None or agreement.passes:
            return False
        return agreement.verdict != "nan" or agreement.differing > 0

    def as_json(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "before": self.before and self.before.as_json(),
            "after": self.after and self.after.as_json(),
            "ratio": self.ratio and self.ratio.as_json(),
            "result": self.agreement and self.agreement.as_json(),
            "why_not_compared": self.why_not_compared,
        }


def timing_of(times_us: Sequence[float], *, cold: bool) -> Timing:
    """The median and the quartiles of one variant's times, in microseconds; at least one."""
    ordered = sorted(times_us)
    return Timing(quantile(ordered, 0.5), quantile(ordered, 0.25), quantile(ordered, 0.75), len(ordered), cold)


def ratio_of(
    variant_us: Sequence[float], baseline_us: Sequence[float], again_us: Sequence[float] | None = None
) -> Ratio:
    """The median of the ratios of rounds that each timed both, with its 95 % confidence interval.

    `variant_us[i]` and `baseline_us[i]` were taken one after the other, so that what drifts (clocks, heat) is in both.
    The interval lies between two order statistics of the ratios, chosen by the binomial distribution: it asks nothing
    of the noise but that the rounds are independent (Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2,
    confidence intervals for quantiles). `again_us`: the baseline's own program, loaded a second time and timed like a
    variant; the interval is widened by what that differs from the baseline, for where a program lies in memory is no
    difference between programs. Raises UsageError for fewer than `FEWEST_ROUNDS` pairs.
    """
    ratios = _ratios(variant_us, baseline_us)
    rank = _rank_of_low(len(ratios))
    spread = 1.0
    if again_us is not None:
        of_itself = quantile(_ratios(again_us, baseline_us), 0.5)
        spread = max(of_itself, 1.0 / of_itself)
    return Ratio(quantile(ratios, 0.5), ratios[rank] / spread, ratios[len(ratios) - 1 - rank] * spread)


def _ratios(variant_us: Sequence[float], baseline_us: Sequence[float]) -> list[float]:
    return sorted(time / baseline for time, baseline in zip(variant_us, baseline_us, strict=True))


def require_rounds(count: int) -> None:
    """Raise UsageError for fewer rounds than a confidence interval needs."""
    if count < FEWEST_ROUNDS:
        raise UsageError(f"{count} rounds give no 95 % confidence interval: take at least {FEWEST_ROUNDS}.")


def _rank_of_low(count: int) -> int:
    """0-based rank of the interval's lower end: the largest whose symmetric interval still has the confidence."""
    require_rounds(count)
    # P(fewer than rank + 1 of the ratios lie below the true median) stays under half of what may go wrong.
    allowed = (1.0 - _CONFIDENCE) / 2.0
    below, rank = 0.5**count, 0
    while below <= allowed:
        rank += 1
        below += math.comb(count, rank) / 2**count
    return rank - 1


def quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile of sorted values, between two of them by linear interpolation."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


class Session(Protocol):
    """A launch of a script, held on a GPU (`irscope.record.gpu.session`) or by the CPU (`…gpu.on_machine`)."""

    @property
    def baseline(self) -> Capture: ...
    def check(self, capture: Capture) -> Agreement: ...
    def time(
        self, captures: Sequence[Capture], *, rounds: int, cold: bool = True
    ) -> Sequence[tuple[Timing | None, Ratio | None]]: ...


_Measured = tuple[Agreement, Timing | None, Ratio | None]

# A program that computes something else still has a time; one that does not end has none.
_NOT_TIMED = ("fault", "timeout", "failed")


def measure_programs(
    session: Session, programs: Mapping[str, Capture], *, rounds: int, progress: Callable[[], None] = lambda: None
) -> dict[str, _Measured]:
    """Check and time each program once; one that faults or hangs has no time.

    `programs`: `code_of` a capture, and one capture that has it. `progress`: called after each check.
    """
    agreements: dict[str, Agreement] = {}
    for program, capture in programs.items():
        agreements[program] = session.check(capture)
        progress()
    timed = [program for program, agreement in agreements.items() if agreement.verdict not in _NOT_TIMED]
    times = dict(zip(timed, _times(session, [programs[program] for program in timed], rounds), strict=True))
    found = {program: times.get(program, (None, None)) for program in agreements}
    return {program: (agreements[program], timing, ratio) for program, (timing, ratio) in found.items()}


def _times(session: Session, captures: Sequence[Capture], rounds: int) -> Sequence[tuple[Timing | None, Ratio | None]]:
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
