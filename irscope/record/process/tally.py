"""How far a recording is: its kernels, variants and failures, and of what is being autotuned how much is left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from irscope.model.capture import Launch

__all__ = ["Tally"]

_BAR = 12
_WORTH_SAYING_S = 2.0


@dataclass(slots=True)
class Tally:
    """Counts the compiles of a recording as they begin and end."""

    kernels: set[str] = field(default_factory=set[str])
    begun: int = 0
    ended: int = 0
    failed: int = 0
    _expected: int = 0
    """How many compiles there will be when the tunings under way are done."""
    _began_s: float = field(default_factory=time.monotonic)
    _tunings: dict[str, int] = field(default_factory=dict[str, int])

    def begins(self, launch: Launch, *, every_configuration: bool) -> None:
        """A compile begins. `every_configuration`: whether all that pruning leaves of an autotuned kernel are made."""
        if not self.begun:
            self._began_s = time.monotonic()
        self.kernels.add(launch.kernel.name)
        self.begun += 1
        tuning = launch.autotuning
        if tuning is not None and every_configuration:
            kept = tuning.count if tuning.kept is None else tuning.kept
            done = self._tunings.get(launch.kernel.name, 0) % kept
            if not done:
                self._expected = self.begun - 1 + kept
            self._tunings[launch.kernel.name] = done + 1
        self._expected = max(self._expected, self.begun)

    def ends(self, *, failed: bool) -> None:
        """A compile ended."""
        self.ended += 1
        self.failed += failed

    def dropped(self) -> None:
        """A compile that began is another's."""
        self.begun -= 1
        self._expected -= 1

    @property
    def text(self) -> str:
        """`████░░░░ 12 of 28 variants of 2 kernels, 1 failed, about 40 s left`; empty before the second variant."""
        if self.begun < 2:
            return ""
        filled = _BAR * self.ended // self._expected
        bar = "█" * filled + "░" * (_BAR - filled)
        of = f" of {len(self.kernels)} kernels" if len(self.kernels) > 1 else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{bar} {self.ended} of {self._expected} variants{of}{failed}{self._left()}"

    def _left(self) -> str:
        if not self.ended:
            return ""
        each_s = (time.monotonic() - self._began_s) / self.ended
        left_s = each_s * (self._expected - self.ended)
        return f", about {left_s:.0f} s left" if left_s > _WORTH_SAYING_S else ""
