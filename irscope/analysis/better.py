"""The verdict on a rewrite of a kernel: whether it gives the same result in less time, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from irscope.analysis.findings.model import Finding
from irscope.device.measurement import Measurement
from irscope.model.plain import picked
from irscope.timing.predict import Prediction
from irscope.verify.meaning import MeaningVerdict

BetterAnswer = Literal["better", "not better", "changed", "not decided"]


@dataclass(frozen=True, slots=True)
class BetterVerdict:
    """Whether a compile may replace another, and the gain."""

    answer: BetterAnswer
    """`better`: it computes the same and takes less time. `not better`: the same, and does not. Else its result
    differs, or is not known to be the same."""
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
    """The next call: a tool of `irscope serve mcp`, and its arguments."""
    finding: Finding | None = None
    """The most expensive part of the second."""

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
        names = "answer reasons ratio untimed over_minimum minimum_s=minimum_seconds"
        return picked(
            self,
            names + " meaning=meaning.answer programs=meaning.programs all_programs=meaning.all_programs",
            before_s=self.before and self.before.seconds,
            after_s=self.after and self.after.seconds,
            after_interval_s=self.after and list(self.after.interval),
            bound=self.after and self.after.bound,
            measured=self.measured and self.measured.as_json(),
            code=self.finding and self.finding.code,
            finding=self.finding and self.finding.text,
            next={"tool": self.then[0], "arguments": dict(self.then[1])},
        )
