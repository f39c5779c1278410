"""A graft: the artifact of a stage, or the IR after a pass, by one of two compilers, compiled on by one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irscope.model.capture import Capture, SnapshotLevel

__all__ = ["Graft", "Side", "other_side"]

Side = Literal["before", "after"]
"""Of the two compilers: `before` is the one of `--from`, `after` the one of `--to`."""


def other_side(side: Side) -> Side:
    """The other of the two."""
    return "after" if side == "before" else "before"


@dataclass(frozen=True, slots=True)
class Graft:
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
    with_sass: bool = False
    """Whether the SASS of its binary is needed, as far as nvdisasm is there."""
