"""What a reduction gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irscope.analysis.reduce.program import Case
from irscope.analysis.reduce.python import PythonCase
from irscope.model.capture import Capture, Failure, PassSnapshot


@dataclass(frozen=True, slots=True)
class Size:
    """How big a case is."""

    operations: int
    """The module and its functions included."""
    characters: int
    """Of the text in MLIR's custom form, without locations."""
    passes: int
    """How many may run, as far as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReductionResult:
    """What a search ended with."""

    capture: Capture
    """What it began with."""
    kept: str
    """What is still true of it, in words."""
    versions: tuple[tuple[str, str], ...]
    """(program, version) of what compiles it."""
    failure: Failure | None
    """How it fails; None where what is kept is no failure."""
    taken: tuple[tuple[str, int], ...]
    """(step, how many places it shrank), in the order in which they first helped."""
    compiled: int
    """How many candidates were compiled."""
    seconds: float
    signal: int = 0
    """The signal that interrupted it, so that the smallest may not be found yet; 0 for none."""

    @property
    def is_complete(self) -> bool:
        """Whether it was not interrupted."""
        return not self.signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced(ReductionResult):
    """The smallest IR that was found."""

    origin: str
    """The text that it began with: `before ttgir:pipeline#1`, `stage ttir`."""
    into: str
    """The stage whose passes run on the text."""
    before: Size
    after: Size
    case: Case
    text: str
    """The reduced text in MLIR's custom form."""
    passes: tuple[PassSnapshot, ...]
    """Those that run on it, up to the failure."""
    repeated: int
    """How many candidates were known already."""
    goes_on: bool = True
    """Whether what was found out of candidates is kept for the next time."""
    is_steady: bool = True
    """False if what is kept was not so when the result was compiled again, three times."""
    hangs_after_s: float = 0.0
    """The time limit of a candidate, where what is kept is that it hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedPython(ReductionResult):
    """The smallest Python text of a kernel that was found."""

    case: PythonCase
    lines_before: int
    """Without comments and blank lines."""
    options: tuple[tuple[str, Any], ...]

    @property
    def lines(self) -> int:
        """Without comments and blank lines."""
        return sum(1 for line in self.case.text.splitlines() if line.strip())
