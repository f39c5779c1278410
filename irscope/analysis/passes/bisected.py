"""Finds the passes that a check of a kernel hangs on, by compiling variants; what was found, as values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from irscope.analysis.diff.texts import TextDiff
from irscope.analysis.passes.ablation import plan_without
from irscope.analysis.passes.bisection import Judge, Judgement, Off, absent_passes, first_passes, needed_passes
from irscope.errors import PlanError, RecordingError
from irscope.model.capture import Capture, PassSnapshot
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


Check = Callable[[Capture, Path], Verdict]
"""Judges a variant that compiled, from its capture and its file."""


class _PlanVariants(Protocol):
    """A capture's own source compiled under other plans; `irscope.record.variants.store` makes it."""

    def compile(self, plan: PassPlan) -> Capture: ...
    def path_of(self, plan: PassPlan) -> Path: ...


def compiles_check(capture: Capture, path: Path) -> Verdict:
    """Whether the variant compiles, which is judged before any check."""
    return Verdict("good", "compiles")


@dataclass(frozen=True, slots=True)
class Search:
    """What a bisection looks for, and among which passes."""

    check: Check = compiles_check
    words: str = ""
    """The check in words."""
    mode: Mode = "off"
    """`off`: the fewest passes that flip the check when they are off and all others on. `first`: the pass that flips it
    when the passes before it are on and those after it off."""
    stages: tuple[str, ...] | None = None
    """Whose passes; empty for all, None for all but the optimisers of LLVM and ptxas."""
    partial: bool = False
    """Whether failed compiles are judged too, by the stages that they reached."""

    @property
    def only_compiles(self) -> bool:
        """Whether a variant that compiles is good, whatever it is."""
        return self.check is compiles_check


class BisectionRun:
    """One bisection in progress."""

    def __init__(
        self,
        variants: _PlanVariants,
        base: Capture,
        search: Search,
        plan: PassPlan,
        progress: Callable[[str], None],
    ) -> None:
        """Search the passes that `search` chooses, or those of them that `plan` switches off; raises PlanError."""
        every = list(base.passes())
        plan.check(every)
        self._variants = variants
        self._base = base
        self._search = search
        self._progress = progress
        self._plan = plan
        self._every = [snapshot.label for snapshot in every]
        self._passes = [snapshot.label for snapshot in every if self._is_searched(snapshot)]
        self._fixed = [one.label for one in every if plan.skips(one) and one.label not in self._passes]
        if not self._passes:
            raise PlanError(f"the plan {str(plan)!r} switches off no pass of {', '.join(search.stages or ())}.")
        self._verdicts: dict[Off, Verdict] = {}
        self._tries = 0

    def _is_searched(self, snapshot: PassSnapshot) -> bool:
        if self._plan and not self._plan.skips(snapshot):
            return False
        stages = self._search.stages
        if stages is None:
            # A pass without MLIR argument is an optimiser of LLVM or ptxas; without it every result differs.
            return bool(self._plan or snapshot.argument)
        return not stages or snapshot.stage in stages

    def run(self) -> Bisection:
        """Search, then judge both sides of the result a second time."""
        kept: Off = frozenset()
        if not (self._plan or self._search.only_compiles or self._search.partial):
            kept = needed_passes(self._compiles, len(self._passes))
        judge = Judge(self._ask)
        look = absent_passes if self._search.mode == "off" else first_passes
        flip = look(judge, len(self._passes), kept)
        guilty = flip.guilty
        return Bisection(
            base=self._base,
            check=self._search.words,
            mode=self._search.mode,
            passes=tuple(self._passes),
            is_planned=bool(self._plan),
            fixed=tuple(self._fixed),
            kept=self._labels(kept),
            tries=self._tries,
            steps=tuple(self._step(question.off) for question in judge.questions),
            left=self._step(flip.left.off),
            right=self._step(flip.right.off),
            guilty=self._labels(guilty),
            is_steady=not guilty
            or all(self._judge(side.off).judgement == side.judgement for side in (flip.left, flip.right)),
        )

    def plan_of(self, off: Off) -> PassPlan:
        """The shortest plan with these passes off, and with those of other stages that the given plan switches off."""
        return short_plan({*self._labels(off), *self._fixed}, self._every)

    def _compiles(self, off: Off) -> bool:
        self._progress(f"which passes does it need? {len(off)} of {len(self._passes)} off")
        self._tries += 1
        return self._variants.compile(self.plan_of(off)).has_compiled

    def _ask(self, off: Off) -> Judgement:
        self._progress(f"step {len(self._verdicts) + 1}: {len(off)} of {len(self._passes)} passes off")
        self._verdicts[off] = self._judge(off)
        return self._verdicts[off].judgement

    def _judge(self, off: Off) -> Verdict:
        plan = self.plan_of(off)
        capture = self._variants.compile(plan)
        if capture.failure is not None and not capture.has_compiled and not self._search.partial:
            return Verdict("bad" if self._search.only_compiles else "skip", f"fails in {capture.failure.where}")
        path = self._variants.path_of(plan)
        if not path.is_file():
            raise RecordingError(f"the variant {str(path)!r} is gone: another irscope call dropped it. Try again.")
        return self._search.check(capture, path)

    def _step(self, off: Off) -> Step:
        return Step(self._labels(off), str(self.plan_of(off)), self._verdicts[off])

    def _labels(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._passes[number] for number in sorted(numbers))
