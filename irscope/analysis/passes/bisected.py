"""What a bisection of a kernel's passes found, as values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.analysis.diff.entries import TextDiff
from irscope.analysis.passes.ablation import plan_without
from irscope.analysis.passes.bisection import Judgement
from irscope.model.capture import Capture
from irscope.plan import PassPlan, PassRule

Mode = Literal["off", "first"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one variant was judged."""

    judgement: Judgement
    saw: str = ""
    """What the check saw: `registers 198`, `exit code 1`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One variant that was judged."""

    off: tuple[str, ...]
    """The passes that are off, of those that were looked at."""
    plan: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class GuiltyDiff:
    """What a pass did to the IR, where it ran."""

    label: str
    text_diff: TextDiff


@dataclass(frozen=True, slots=True)
class Bisection:
    """What a bisection found."""

    base: Capture
    """The kernel with every pass on."""
    check: str
    """What is good, in words."""
    mode: Mode
    passes: tuple[str, ...]
    """The labels of those that were looked at."""
    is_planned: bool
    """Whether they are what a plan switches off; else all."""
    kept: tuple[str, ...]
    """Those of them that stayed on: the compile cannot do without them."""
    tries: int
    """The compiles that it took to find those."""
    steps: tuple[Step, ...]
    left: Step
    """The side with fewer passes off."""
    right: Step
    guilty: tuple[str, ...] = ()
    """What the judgement hangs on: off on the right and on on the left. Several where what lies between cannot be
    judged; none where nothing was found."""
    is_steady: bool = True
    """Whether both sides were judged the same when they were asked again."""
    fixed: tuple[str, ...] = ()
    """What the plan switches off besides: these stay off on every side."""
    subject: str = ""
    """What names `base` in a command."""
    diff: GuiltyDiff | None = None
    """What the guilty pass did, with what is off on the left off; None where it works on no MLIR."""


def short_plan(off: Collection[str], every: Sequence[str]) -> PassPlan:
    """The plan that switches these passes off, by naming them or, in a stage where that is shorter, what stays on."""
    plan = PassPlan()
    for stage in dict.fromkeys(label.partition(":")[0] for label in every):
        inside = [label for label in every if label.startswith(f"{stage}:")]
        gone = [label for label in inside if label in off]
        left = [label for label in inside if label not in off]
        if len(gone) > 1 and not left:
            plan = plan.without(PassRule("*", stage))
        elif left and len(left) < len(gone):
            plan = PassPlan(plan.disabled, plan.only + tuple(PassRule.parse(label) for label in left))
        else:
            plan = plan_without(plan, gone)
    return plan
