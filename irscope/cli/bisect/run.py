"""Runs a bisection: chooses the passes to search, compiles the variants and judges them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Annotated, cast

from irscope.analysis.diff.texts import diff_texts
from irscope.analysis.passes.bisected import Bisection, GuiltyDiff, Mode, Step, Verdict, short_plan
from irscope.analysis.passes.bisection import Judge, Judgement, Off, absent_passes, first_passes, needed_passes
from irscope.cli.bisect.checks import Check, command_check, compiles_check, count_check, result_check, time_check
from irscope.cli.options import in_panel
from irscope.cli.subject.device import launch_on_gpu, why_no_gpu
from irscope.cli.subject.keeping import kept_captures
from irscope.cli.subject.variants import baseline_of, check_stages, one_capture, split_stages
from irscope.errors import NoDevice, PlanError, RecordingError, UsageError
from irscope.model.capture import Capture, PassSnapshot
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.variants.pool import VariantPool, variant_request
from irscope.record.variants.store import Variants
from irscope.store.file import SUFFIX

_check = in_panel("What is good (one of)")
_search = in_panel("Search")
_CHECKS = ("check", "check_result", "check_time", "check_regs", "check_spills", "check_compiles")
_ON_A_GPU = ("--check-result", "--check-time")


@dataclass(frozen=True, slots=True)
class BisectionOptions:
    """The options of one bisection, beside those of the recording."""

    check: Annotated[
        str | None,
        _check(
            "--check",
            metavar="CMD",
            help="This shell command exits with 0. 125, or no end within --timeout, means that it cannot judge; 1 to "
            "124 is bad. {capture} and $IRSCOPE_CAPTURE are the variant's file, $IRSCOPE_PLAN its plan, "
            "$IRSCOPE_PASSES_OFF the passes that are off. To see a stage: "
            "irscope show {capture} --stage ptx | grep -q wgmma",
        ),
    ] = None
    check_result: Annotated[
        bool, _check("--check-result", help="The launch writes what it writes with every pass on (GPU, FILE).")
    ] = False
    check_time: Annotated[
        float | None,
        _check(
            "--check-time",
            metavar="RATIO",
            min=0.0,
            help="It takes at most this many times the time with every pass on, such as 1.05 (GPU, FILE).",
        ),
    ] = None
    check_regs: Annotated[
        int | None, _check("--check-regs", metavar="N", min=0, help="It uses at most N registers per thread.")
    ] = None
    check_spills: Annotated[
        int | None, _check("--check-spills", metavar="N", min=0, help="It spills at most N bytes per thread.")
    ] = None
    check_compiles: Annotated[bool, _check("--check-compiles", help="It compiles.")] = False
    mode: Annotated[
        str,
        _search(
            "--mode",
            metavar="off|first",
            help="off: find the fewest passes that flip the check when they are off and all others on. first: find "
            "the pass that flips it when the passes before it are on and those after it off.",
        ),
    ] = "off"
    stage: Annotated[
        list[str] | None,
        _search(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Only the passes of this stage; repeatable. all includes the optimisers of LLVM and ptxas, which "
            "otherwise stay on.",
        ),
    ] = None
    partial: Annotated[
        bool,
        _search("--partial", help="--check: also judge failed compiles, by the stages they reached; keep no pass on."),
    ] = False
    rounds: Annotated[int, _search("--rounds", metavar="N", min=6, help="--check-time: how many launches to time.")] = (
        50
    )
    fresh: Annotated[bool, _search("--fresh", help="Compile again what an earlier call compiled.")] = False
    context: Annotated[int, in_panel("Output")("--context", "-U", min=0, help="Unchanged lines around a change.")] = 3

    def __post_init__(self) -> None:
        """Raises UsageError for none or several checks, and for what does not go with the one."""
        if (chosen := self.chosen) != "--check" and self.partial:
            raise UsageError(
                f"--partial goes with --check CMD: {chosen} judges complete compiles, or whether there is one."
            )
        if self.mode not in ("off", "first"):
            raise UsageError(f"--mode {self.mode!r}: write off or first.")

    @property
    def chosen(self) -> str:
        """The option of the one check that was given; raises UsageError for none or several."""
        every = {f"--{name.replace('_', '-')}": getattr(self, name) for name in _CHECKS}
        given = [name for name, value in every.items() if value is not None and value is not False]
        if not given:
            raise UsageError(f"what is good? Give one of {', '.join(every)}.")
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} are several checks: give one.")
        return given[0]

    @property
    def most(self) -> float:
        """The limit of the check that has one."""
        limits = (self.check_time, self.check_regs, self.check_spills)
        return next((limit for limit in limits if limit is not None), 0)

    @property
    def stages(self) -> tuple[str, ...] | None:
        """The stages whose passes are searched; empty for all, None for all except the optimisers of LLVM and ptxas."""
        return None if self.stage is None else split_stages(self.stage)


def run_bisection(
    subject: str | None,
    record_options: RecordingOptions,
    wanted: BisectionOptions,
    progress: Callable[[str], None],
    echo: Callable[[str], None] | None,
) -> Bisection:
    """Record or load the subject, and bisect it; raises NoDevice if the check needs a GPU and there is none."""
    recorded = replace(record_options, plan=PassPlan(), disassemble=False)
    with ExitStack() as stack:
        # Each step depends on the judgement of the previous one, so only one variant is compiled at a time.
        pool = stack.enter_context(VariantPool(jobs=1, timeout_s=record_options.timeout_s))
        capture, number = one_capture(subject, recorded)
        variants = Variants(pool, capture, fresh=wanted.fresh)
        base = baseline_of(variants, PassPlan())
        check_stages(base, wanted.stages or ())
        if wanted.chosen in _ON_A_GPU:
            if reason := why_no_gpu(subject, recorded, capture):
                raise NoDevice(f"{wanted.chosen} runs the kernel. {reason} --check and --check-regs need no GPU.")
            session = stack.enter_context(launch_on_gpu(subject, recorded, capture, number))
            timed = wanted.chosen == "--check-time"
            check = time_check(session, wanted.most, wanted.rounds) if timed else result_check(session)
        elif wanted.check is not None:
            check = command_check(wanted.check, tuple(base.passes()), record_options.timeout_s, echo)
        elif wanted.check_compiles:
            check = compiles_check
        else:
            check = count_check("spills" if wanted.check_regs is None else "registers", int(wanted.most))
        run = _BisectionRun(variants, base, check, record_options.plan or capture.plan, wanted, progress)
        found = run.run(_in_words(wanted))
        return replace(
            found, subject=_subject(subject, record_options, capture, base), diff=_guilty_diff(pool, capture, found)
        )


def _in_words(wanted: BisectionOptions) -> str:
    return {
        "--check": wanted.check or "",
        "--check-result": "the result is the same",
        "--check-time": f"at most {wanted.most:g} times the time",
        "--check-regs": f"registers ≤ {wanted.most:g}",
        "--check-spills": f"spilled bytes ≤ {wanted.most:g}",
        "--check-compiles": "it compiles",
    }[wanted.chosen]


def _subject(subject: str | None, record_options: RecordingOptions, capture: Capture, base: Capture) -> str:
    """The argument that names the capture with every pass on in a command."""
    if not capture.plan:
        is_file = subject and subject.endswith(SUFFIX) and not (record_options.targets or record_options.options)
        return shlex.quote(subject) if subject and is_file else capture.id
    with kept_captures(becomes_last=False) as keep:
        keep(base)
    return base.id


def _guilty_diff(pool: VariantPool, capture: Capture, found: Bisection) -> GuiltyDiff | None:
    """What the guilty pass changed where it ran; None if there are several, or if it does not work on MLIR."""
    if len(found.guilty) != 1:
        return None
    for level in ("triton", "all"):
        ran = pool.compile_one(variant_request(capture, PassPlan.parse(found.left.plan), snapshots=level))
        snapshot = next((one for one in ran.passes() if one.label == found.guilty[0]), None)
        if snapshot is None:
            return None
        before, after = ran.text_before(snapshot), ran.text_after(snapshot)
        if before is not None and after is not None:
            return GuiltyDiff(snapshot.label, diff_texts(before, after, "mlir", ignore=frozenset({"locations"})))
    return None


class _BisectionRun:
    """One bisection in progress."""

    def __init__(
        self,
        variants: Variants,
        base: Capture,
        check: Check,
        plan: PassPlan,
        wanted: BisectionOptions,
        progress: Callable[[str], None],
    ) -> None:
        """Search the passes that the options choose, or those of them that `plan` switches off; raises PlanError."""
        every = list(base.passes())
        plan.check(every)
        self._variants = variants
        self._base = base
        self._check = check
        self._wanted = wanted
        self._progress = progress
        self._plan = plan
        self._every = [snapshot.label for snapshot in every]
        self._passes = [snapshot.label for snapshot in every if self._is_searched(snapshot)]
        self._fixed = [one.label for one in every if plan.skips(one) and one.label not in self._passes]
        if not self._passes:
            raise PlanError(f"the plan {str(plan)!r} switches off no pass of {', '.join(wanted.stages or ())}.")
        self._verdicts: dict[Off, Verdict] = {}
        self._tries = 0

    def _is_searched(self, snapshot: PassSnapshot) -> bool:
        if self._plan and not self._plan.skips(snapshot):
            return False
        stages = self._wanted.stages
        if stages is None:
            # A pass without MLIR argument is an optimiser of LLVM or ptxas; without it every result differs.
            return bool(self._plan or snapshot.argument)
        return not stages or snapshot.stage in stages

    def run(self, check: str) -> Bisection:
        """Search, then judge both sides of the result a second time. `check` describes the check."""
        kept: Off = frozenset()
        if not (self._plan or self._wanted.check_compiles or self._wanted.partial):
            kept = needed_passes(self._compiles, len(self._passes))
        judge = Judge(self._ask)
        search = absent_passes if self._wanted.mode == "off" else first_passes
        flip = search(judge, len(self._passes), kept)
        guilty = flip.guilty
        return Bisection(
            base=self._base,
            check=check,
            mode=cast("Mode", self._wanted.mode),
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
        if capture.failure is not None and not capture.has_compiled and not self._wanted.partial:
            return Verdict("bad" if self._wanted.check_compiles else "skip", f"fails in {capture.failure.where}")
        path = self._variants.path_of(plan)
        if not path.is_file():
            raise RecordingError(f"the variant {str(path)!r} is gone: another irscope call dropped it. Try again.")
        return self._check(capture, path)

    def _step(self, off: Off) -> Step:
        return Step(self._labels(off), str(self.plan_of(off)), self._verdicts[off])

    def _labels(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._passes[number] for number in sorted(numbers))
