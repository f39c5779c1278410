"""Searches over the passes of a kernel: each one switched off in turn, and the ones that a check hangs on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from irscope.analysis.diff.texts import TextDiff, diff_texts
from irscope.analysis.passes.ablation import (
    Ablation,
    AblationRow,
    measure_variant,
    pairs_worth_trying,
    passes_that_may_be_off,
    passes_to_ablate,
    plan_without,
)
from irscope.analysis.passes.bisection import (
    Bisection,
    BisectQuestion,
    BisectSearch,
    BisectStep,
    BisectVerdict,
    Judge,
    Off,
    absent_passes,
    first_passes,
    needed_passes,
    short_plan,
)
from irscope.device.measurement import Session, measure_programs
from irscope.errors import PlanError, RecordingError
from irscope.model.capture import Capture, PassSnapshot, SnapshotLevel
from irscope.plan import LLVM, PassPlan, PassRule
from irscope.record.variants.compiles import Variants
from irscope.record.variants.completing import tell, tell_not_kept
from irscope.record.variants.pool import VariantPool, variant_request

_Off = tuple[str, ...]
_LEVELS: tuple[SnapshotLevel, ...] = ("triton", "all")


def _check_stages(capture: Capture, stages: Sequence[str]) -> None:
    known = tuple(dict.fromkeys(snapshot.plan_stage for snapshot in passes_that_may_be_off(capture)))
    for stage in stages:
        if stage not in (*known, LLVM):
            raise PlanError(f"no pass ran in stage {stage!r}: there are {', '.join(known) or 'none'}, or all.")


def _check_rules(capture: Capture, stages: Sequence[str], rules: Sequence[PassRule]) -> None:
    every = passes_that_may_be_off(capture)
    rules = [rule for rule in rules if rule.stage != LLVM or any(one.group == "llvm" for one in every)]
    PassPlan(tuple(rules)).check(every)
    for rule in rules:
        matching = [one for one in every if rule.matches(one)]
        if not any(not stages or one.plan_stage in stages for one in matching):
            stage = matching[0].plan_stage
            raise PlanError(f"'{rule}' is a pass of {stage}: --stage {stage} selects it.")


def _baseline_of(variants: Variants, plan: PassPlan) -> Capture:
    baseline = variants.compile(plan)
    if variants.not_kept is not None:
        tell_not_kept(variants.not_kept)
    if not baseline.has_compiled:
        under = f" under the plan {str(plan)!r}" if plan else ""
        why = f"{baseline.failure.verdict}: {baseline.failure.message}".rstrip() if baseline.failure is not None else ""
        raise RecordingError(
            f"there is nothing to compare with{under}: {baseline.name} ({baseline.target}) {why}".rstrip()
        )
    return baseline


Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Shows how much of so many is done, while the block runs; what it gives is called after each."""


def _unseen(what: str, count: int) -> AbstractContextManager[Callable[[], None]]:
    return nullcontext(lambda: None)


@dataclass(frozen=True, slots=True)
class AblationSearch:
    """Which passes are switched off."""

    stages: tuple[str, ...] = ("ttgir",)
    """Whose passes; empty for all."""
    rules: tuple[PassRule, ...] = ()
    """Only these passes; none for all."""
    pairs: bool = False
    """Whether two at a time are tried too: the passes that each change the binary, or those of `rules`."""


class AblationRun:
    """One ablation; `ablation` holds the results so far, also after an interruption."""

    def __init__(self, search: AblationSearch, *, progress: Progress = _unseen) -> None:
        self._search = search
        self._progress = progress
        self.ablation: Ablation | None = None
        self.baseline: Capture | None = None
        """The compile under the capture's own plan, once it is there."""
        self._captures: dict[str, Capture] = {}
        """One capture for each distinct program."""

    def compile(self, capture: Capture, pool: VariantPool, *, fresh: bool = False) -> Ablation:
        """Compile every variant; those of an earlier call are taken from there unless `fresh` is set."""
        if capture.snapshots:
            self._check(capture)
        names_llvm = LLVM in self._search.stages or any(rule.stage == LLVM for rule in self._search.rules)
        variants = Variants(pool, capture, fresh=fresh, lists_llvm=names_llvm)
        baseline = _baseline_of(variants, capture.plan)
        ablation = self._begun(capture, baseline)
        singles: list[_Off] = [
            (label,) for label in passes_to_ablate(baseline, self._search.stages, self._search.rules)
        ]
        ablation = self._compiled(variants, baseline, ablation, singles, pool.jobs)
        if self._search.pairs:
            pairs = list(pairs_worth_trying(ablation, named=bool(self._search.rules)))
            ablation = self._compiled(variants, baseline, ablation, pairs, pool.jobs)
        return ablation

    def _check(self, capture: Capture) -> None:
        _check_stages(capture, self._search.stages)
        _check_rules(capture, self._search.stages, self._search.rules)

    def _begun(self, capture: Capture, baseline: Capture) -> Ablation:
        self._check(baseline)
        self.baseline = baseline
        row = measure_variant(baseline, baseline)
        self._captures[row.program] = baseline
        return Ablation(
            kernel=capture.name,
            target=str(capture.target),
            stages=self._search.stages or tuple(dict.fromkeys(snapshot.stage for snapshot in baseline.passes())),
            baseline=row,
            variants=(),
            capture=capture.id,
            triton_version=baseline.environment.triton_version,
            irscope_version=baseline.environment.irscope_version,
        )

    def _compiled(
        self, variants: Variants, baseline: Capture, ablation: Ablation, offs: Sequence[_Off], jobs: int
    ) -> Ablation:
        plans = [plan_without(baseline.plan, off) for off in offs]
        kept = sum(variants.path_of(plan).is_file() for plan in plans)
        what = "pairs" if any(len(off) > 1 for off in offs) else "variants"
        if kept:
            tell(f"{kept} of {len(offs)} {what} were compiled before; --fresh compiles them again.")
        seconds = (len(offs) - kept) * (baseline.compile_us or 0) / 1e6 / jobs
        if what == "pairs" and kept < len(offs):
            tell(f"{len(offs) - kept} pairs of passes to compile, {jobs} at a time: about {seconds:.0f} s.")
        rows: dict[int, AblationRow] = {}

        def so_far() -> Ablation:
            done = tuple(row for _, row in sorted(rows.items()))
            return replace(ablation, variants=(*ablation.variants, *done), missing=len(offs) - len(done))

        self.ablation = so_far()
        with self._progress(f"{baseline.name}: {what}", len(offs)) as advance:
            for index, capture, _ in variants.compile_all(plans):
                rows[index] = measure_variant(capture, baseline, offs[index])
                if rows[index].program:
                    self._captures.setdefault(rows[index].program, capture)
                self.ablation = so_far()
                advance()
        return self.ablation

    def measure(self, session: Session, ablation: Ablation, gpu: str, rounds: int = 50) -> Ablation:
        """Check and time each distinct program on the GPU, `rounds` launches of each, interleaved."""
        programs = self._captures
        with self._progress(f"on {gpu}", len(programs)) as advance:
            measured = measure_programs(session, programs, rounds=rounds, progress=advance)

        def with_measures(row: AblationRow) -> AblationRow:
            if row.program not in measured:
                return row
            agreement, timing, ratio = measured[row.program]
            return replace(row, agreement=agreement, timing=timing, ratio=ratio)

        self.ablation = replace(
            ablation,
            baseline=with_measures(ablation.baseline),
            variants=tuple(with_measures(row) for row in ablation.variants),
            gpu=gpu,
        )
        return self.ablation


def bisected(
    capture: Capture,
    search: Callable[[Capture], BisectSearch],
    pool: VariantPool,
    *,
    stages: Sequence[str] = (),
    plan: PassPlan | None = None,
    fresh: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Bisection:
    """Find the passes that a check hangs on, by compiling the capture's own source with passes switched off by halves.

    Args:
        search: what is looked for, given the compile with every pass on.
        stages: those that it names, which are checked first.
        pool: compiles the variants, one at a time.
        plan: the search is among the passes that it switches off; without it, among all.
        fresh: forget what an earlier call compiled.
    """
    if capture.snapshots:
        _check_stages(capture, stages)
    variants = Variants(pool, capture, fresh=fresh, lists_llvm=LLVM in stages or (plan or PassPlan()).names_llvm)
    base = _baseline_of(variants, PassPlan())
    wanted = search(base)
    _check_stages(base, wanted.stages or ())
    found = _BisectionRun(variants, base, wanted, plan or capture.plan, progress).run()
    return replace(found, subject=base.id, diff=_guilty_diff(pool, capture, found))


class _BisectionRun:
    def __init__(
        self,
        variants: Variants,
        base: Capture,
        search: BisectSearch,
        plan: PassPlan,
        progress: Callable[[str], None],
    ) -> None:
        """Search the passes that `search` chooses, or those of them that `plan` switches off; raises PlanError."""
        every = passes_that_may_be_off(base)
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
        self._judge = Judge(self._verdict)
        self._tries = 0

    def _is_searched(self, snapshot: PassSnapshot) -> bool:
        if self._plan and not self._plan.skips(snapshot):
            return False
        stages = self._search.stages
        if stages is None:
            # A pass without MLIR argument is an optimiser of LLVM or ptxas; without it every result differs.
            return bool(self._plan or (snapshot.argument and snapshot.group == "mlir"))
        return snapshot.plan_stage in stages if stages else snapshot.group == "mlir"

    def run(self) -> Bisection:
        """Search, then judge both sides of the result a second time."""
        search, judge = self._search, self._judge
        kept: Off = frozenset()
        if not (self._plan or search.only_compiles or search.partial):
            kept = needed_passes(self._compiles, len(self._passes))
        look = absent_passes if search.mode == "off" else first_passes
        flip = look(judge, len(self._passes), kept)
        steps = tuple(map(self._step, judge.questions))
        sides = (flip.left, flip.right) if flip.guilty else ()
        return Bisection(
            base=self._base,
            check=search.words,
            mode=search.mode,
            passes=tuple(self._passes),
            is_planned=bool(self._plan),
            fixed=tuple(self._fixed),
            kept=self._labels(kept),
            tries=self._tries,
            steps=steps,
            left=self._step(flip.left),
            right=self._step(flip.right),
            guilty=self._labels(flip.guilty),
            is_steady=all(self._verdict(side.off).judgement == side.judgement for side in sides),
        )

    def _plan_of(self, off: Off) -> PassPlan:
        """The shortest plan with these passes off, and with those of other stages that the given plan switches off."""
        return short_plan({*self._labels(off), *self._fixed}, self._every)

    def _compiles(self, off: Off) -> bool:
        self._progress(f"which passes does it need? {len(off)} of {len(self._passes)} off")
        self._tries += 1
        return self._variants.compile(self._plan_of(off)).has_compiled

    def _verdict(self, off: Off) -> BisectVerdict:
        step = len(self._judge.questions) + 1
        self._progress(f"step {step}: {len(off)} of {len(self._passes)} passes off")
        plan = self._plan_of(off)
        capture = self._variants.compile(plan)
        if capture.failure is not None and not capture.has_compiled and not self._search.partial:
            return BisectVerdict("bad" if self._search.only_compiles else "skip", f"fails in {capture.failure.where}")
        path = self._variants.path_of(plan)
        if not path.is_file():
            raise RecordingError(f"the variant {str(path)!r} is gone: another irscope call dropped it. Try again.")
        return self._search.check(capture, path)

    def _step(self, question: BisectQuestion) -> BisectStep:
        return BisectStep(self._labels(question.off), str(self._plan_of(question.off)), question.verdict)

    def _labels(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._passes[number] for number in sorted(numbers))


def _guilty_diff(pool: VariantPool, capture: Capture, found: Bisection) -> TextDiff | None:
    """What the guilty pass changed where it ran; None if there are several, or if there is no IR after it."""
    if len(found.guilty) != 1:
        return None
    of_llvm = PassRule.parse(found.guilty[0]).stage == LLVM
    requests = [variant_request(capture, PassPlan.parse(found.left.plan), snapshots=level) for level in _LEVELS]
    if of_llvm:
        requests = [replace(requests[-1], llvm_passes=True)]
    for request in requests:
        ran = pool.compile_one(request)
        snapshot = next((one for one in ran.snapshots if one.label == found.guilty[0]), None)
        if snapshot is None:
            return None
        before, after = ran.text_before(snapshot), ran.text_after(snapshot)
        if before is not None and after is not None:
            return diff_texts(before, after, snapshot.group, ignore=frozenset({"locations"}))
    return None
