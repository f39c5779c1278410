"""What is known of a kernel under two compilers: its two compiles, the facts that changed, and what is to blame."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal, TypeVar

from irscope.analysis.diff.texts import TextDiff
from irscope.analysis.findings.model import Finding
from irscope.analysis.regressions import FactChange
from irscope.device.measurement import Measurement
from irscope.model.capture import Capture, SnapshotLevel

__all__ = ["Asking", "Blame", "Guilty", "Probe", "Question", "Row", "Side", "other_side"]

Side = Literal["before", "after"]
"""Of the two compilers: `before` is the one of `--from`, `after` the one of `--to`."""


def other_side(side: Side) -> Side:
    """The other of the two."""
    return "after" if side == "before" else "before"


@dataclass(frozen=True, slots=True)
class Question:
    """A compile that is asked for: the text of a stage, compiled on by one of the two."""

    side: Side
    """Which of the two compiles."""
    stage: str
    """The stage whose artifact the text is."""
    text: str
    giver: Capture
    """The capture that the text is of, which knows what a later stage alone does not: the shared memory."""
    last_stage: str = ""
    """The stage after which it stops; empty for none."""
    snapshots: SnapshotLevel = "none"
    off: tuple[str, ...] = ()
    """The labels of passes that are off too."""
    resumed: int = 0
    """How many passes of the stage are behind the text, which is IR within the stage then; 0 for its artifact."""


_Found = TypeVar("_Found")
Asking = Generator[Question, Capture | None, _Found]
"""What asks for one compile after another, and gets each one's capture, or None where the compiler refuses."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One graft: the artifact of a stage by one compiler, compiled on by the other."""

    stage: str
    """The last stage that is the giver's."""
    by: Side
    """Who compiled on."""
    like: Side | None
    """Whose fact came of it; None if it is neither's, or it did not compile."""
    value: str
    """The fact as text, or why there is none."""


@dataclass(frozen=True, slots=True)
class Guilty:
    """The pass of the stage to blame after which the two differ."""

    label: str
    """`ttgir:coalesce#1`; or what is no pass of MLIR's: `llvm-opt`, `ptxas`."""
    outcome: tuple[str, str]
    """(before, after): `ran`, `skipped`, `failed` or `absent`."""
    options: tuple[str, str]
    """(before, after)."""
    is_confirmed: bool | None
    """Whether the difference of the stage is gone without the pass; None if it cannot be switched off."""
    diff: TextDiff | None
    """The IR after it, before against after."""
    proof: str = ""
    """How it was confirmed, in words."""


@dataclass(frozen=True, slots=True)
class Blame:
    """Where a change comes from."""

    change: FactChange
    """The change that was followed."""
    stages: tuple[str, ...]
    """The stage that makes it; several where it could not be told which, none where nothing could be."""
    probes: tuple[Probe, ...]
    guilty: Guilty | None = None
    doubts: tuple[str, ...] = ()
    """Why it is uncertain, in sentences; empty if it is not."""

    @property
    def telling_probes(self) -> tuple[Probe, ...]:
        """The grafts from which something was learned; all if there is none."""
        return tuple(one for one in self.probes if one.like) or self.probes

    @property
    def is_sure(self) -> bool:
        """Whether it is one stage, and every graft was validated."""
        return len(self.stages) == 1 and not self.doubts


@dataclass(frozen=True, slots=True)
class Row:
    """One variant of a kernel under both compilers; a side that has none of it is None."""

    before: Capture | None
    after: Capture | None
    variant: str = ""
    """What tells it from the others of its kernel: `BLOCK=64 num_warps=8`."""
    changes: tuple[FactChange, ...] = ()
    """What got worse first."""
    blame: Blame | None = None
    findings: tuple[Finding, ...] = ()
    """Those that came with the change."""
    measured: Measurement | None = None
    """The launch on a GPU; None if it was not asked for, or could not be made."""
    why_not_measured: str = ""

    @property
    def capture(self) -> Capture:
        """One that is there."""
        capture = self.after or self.before
        if capture is None:
            raise ValueError("a row of no capture")
        return capture

    @property
    def unread(self) -> Side | None:
        """The side that does not read the IR of the other one's front end, so that there is nothing to compare."""
        sides: tuple[tuple[Side, Capture | None], ...] = (("before", self.before), ("after", self.after))
        return next((side for side, one in sides if one and one.failure and one.failure.kind == "parse"), None)

    @property
    def verdict(self) -> Literal["worse", "better", "other", "same", "unpaired"]:
        """What is to be said of it in one word: `other` if facts changed, and none for the better or the worse."""
        if self.before is None or self.after is None or self.unread is not None:
            return "unpaired"
        verdicts = {one.verdict for one in self.changes}
        if "worse" in verdicts:
            return "worse"
        return "better" if "better" in verdicts else "other" if verdicts else "same"
