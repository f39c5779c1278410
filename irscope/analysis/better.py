"""The verdict on a rewrite of a kernel: whether it gives the same result in less time, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from irscope.analysis.findings.model import Finding
from irscope.device.measurement import Measurement
from irscope.timing.predict import Prediction
from irscope.verify.meaning import MeaningVerdict

BetterAnswer = Literal["better", "not better", "changed", "not decided"]


@dataclass(frozen=True, slots=True)
class BetterVerdict:
    """Whether a compile may replace another, and what that brings."""

    answer: BetterAnswer
    """`better`: it computes the same and takes less time. `not better`: the same, and does not. Else what it computes
    is another thing, or is not known to be the same."""
    reasons: tuple[str, ...]
    """Why it is changed or not decided; of `not better`, the ratio that does not show it to be faster."""
    meaning: MeaningVerdict
    before: Prediction | None = None
    after: Prediction | None = None
    untimed: str = ""
    """Why a time is not predicted."""
    minimum_seconds: float | None = None
    """The lower bound of the second launch by the roofline."""
    measured: Measurement | None = None
    """Both launches on the GPU, each as its own program makes it."""
    then: tuple[str, Mapping[str, Any]] = ("list", {})
    """What to call next: a tool of `irscope serve mcp`, and its arguments."""
    finding: Finding | None = None
    """Of the second: what costs most."""

    @property
    def ratio(self) -> float | None:
        """The second's predicted time over the first's."""
        return self.after.seconds / self.before.seconds if self.before and self.after else None

    @property
    def over_minimum(self) -> float | None:
        """The second's predicted time over its minimum."""
        return self.after.seconds / self.minimum_seconds if self.after and self.minimum_seconds else None

    def as_json(self) -> dict[str, Any]:
        """The form of `irscope verify A B --better --json`."""
        before, after, finding = self.before, self.after, self.finding
        return {
            "answer": self.answer,
            "reasons": list(self.reasons),
            "meaning": self.meaning.answer,
            "programs": self.meaning.programs,
            "all_programs": self.meaning.all_programs,
            "before_s": None if before is None else before.seconds,
            "after_s": None if after is None else after.seconds,
            "after_interval_s": None if after is None else list(after.interval),
            "bound": None if after is None else after.bound,
            "ratio": self.ratio,
            "untimed": self.untimed,
            "minimum_s": self.minimum_seconds,
            "over_minimum": self.over_minimum,
            "measured": None if self.measured is None else self.measured.as_json(),
            "code": None if finding is None else finding.code,
            "finding": None if finding is None else finding.text,
            "next": {"tool": self.then[0], "arguments": dict(self.then[1])},
        }
