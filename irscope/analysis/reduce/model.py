"""What a reduction gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irscope.analysis.reduce.python import PythonCase
from irscope.analysis.reduce.search import Case
from irscope.model.capture import Capture, Failure, PassSnapshot
from irscope.plan import PassPlan


@dataclass(frozen=True, slots=True)
class Size:
    """How big a case is."""

    operations: int
    """The module and its functions included."""
    characters: int
    """Of the text in MLIR's custom form, without locations."""
    passes: int
    """How many may run, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smallest case that was found, and what it is the reduction of."""

    capture: Capture
    """What it began with."""
    kept: str
    """What is still true of it, in words."""
    origin: str
    """The text that it began with: `before ttgir:pipeline#1`, `stage ttir`."""
    into: str
    """The stage whose passes run on the text."""
    before: Size
    after: Size
    case: Case
    text: str
    """The reduced text in MLIR's custom form."""
    versions: tuple[tuple[str, str], ...]
    """(program, version) of what compiles it."""
    failure: Failure | None
    """How it fails; None where what is kept is no failure."""
    passes: tuple[PassSnapshot, ...]
    """Those that run on it, up to the failure."""
    taken: tuple[tuple[str, int], ...]
    """(step, how many places it shrank), in the order in which they first helped."""
    compiled: int
    repeated: int
    """How many candidates were compiled, and how many were known already."""
    seconds: float
    signal: int = 0
    """The signal that interrupted it, so that the smallest may not be found yet; 0 for none."""
    goes_on: bool = True
    """Whether what was found out of candidates is kept for the next time."""
    is_steady: bool = True
    """False if what is kept was not so when the result was compiled again, three times."""
    hangs_after_s: float = 0.0
    """The time limit of a candidate, where what is kept is that it hangs."""

    @property
    def is_complete(self) -> bool:
        """Whether it was not interrupted."""
        return not self.signal


@dataclass(frozen=True, slots=True)
class ReducedPython:
    """The smallest Python text of a kernel that was found."""

    capture: Capture
    kept: str
    kernel: str
    case: PythonCase
    lines_before: int
    """Without comments and blank lines."""
    target: str
    options: tuple[tuple[str, Any], ...]
    plan: PassPlan
    versions: tuple[tuple[str, str], ...]
    failure: Failure | None
    taken: tuple[tuple[str, int], ...]
    compiled: int
    seconds: float
    signal: int = 0
    """As of `Reduced`."""

    @property
    def is_complete(self) -> bool:
        """Whether it was not interrupted."""
        return not self.signal

    @property
    def lines(self) -> int:
        """Without comments and blank lines."""
        return sum(1 for line in self.case.text.splitlines() if line.strip())
