"""Runs an ablation: compiles the variants, reuses those of an interrupted run, and measures them on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irscope.analysis.passes.ablation import (
    Ablation,
    Variant,
    measure_variant,
    pairs_worth_trying,
    passes_to_ablate,
    plan_without,
)
from irscope.cli.output.talk import say
from irscope.cli.subject.device import launch_on_gpu, why_no_gpu
from irscope.cli.subject.variants import baseline_of, check_rules, check_stages, one_capture, progress_bar
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassRule
from irscope.record.variants.measure import measure_programs
from irscope.record.variants.pool import VariantPool
from irscope.record.variants.store import Variants

_Off = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AblationOptions:
    """The options of one ablation, beside those of the recording."""

    stages: tuple[str, ...] = ("ttgir",)
    """The stages whose passes are switched off; empty for all."""
    rules: tuple[PassRule, ...] = ()
    pairs: bool = False
    jobs: int | None = None
    fresh: bool = False
    gpu: bool = True
    rounds: int = 50


class AblationRun:
    """One ablation in progress; `ablation` holds the results so far, also after an interruption."""

    def __init__(self, subject: str | None, asked: RecordingOptions, wanted: AblationOptions) -> None:
        self._subject = subject
        self._asked = asked
        self._wanted = wanted
        self.ablation: Ablation | None = None
        self._captures: dict[str, Capture] = {}
        """One capture for each distinct program."""

    def run(self) -> Ablation:
        """Compile and measure everything; after a KeyboardInterrupt `ablation` holds what was done."""
        wanted = self._wanted
        # The pool imports Triton while the script runs.
        with VariantPool(jobs=wanted.jobs, timeout_s=self._asked.timeout_s) as pool:
            capture, number = one_capture(self._subject, self._asked)
            variants = Variants(pool, capture, fresh=wanted.fresh)
            baseline = baseline_of(variants, capture.plan)
            ablation = self._begin(capture, baseline)
            singles: list[_Off] = [(label,) for label in passes_to_ablate(baseline, wanted.stages, wanted.rules)]
            ablation = self._compile(variants, baseline, ablation, singles, pool.jobs)
            if wanted.pairs:
                pairs = list(pairs_worth_trying(ablation, named=bool(wanted.rules)))
                ablation = self._compile(variants, baseline, ablation, pairs, pool.jobs)
        if not wanted.gpu:
            return ablation
        if reason := why_no_gpu(self._subject, self._asked, capture):
            say(reason)
            return ablation
        return self._measure(capture, number, ablation)

    def _begin(self, capture: Capture, baseline: Capture) -> Ablation:
        wanted = self._wanted
        check_stages(baseline, wanted.stages)
        check_rules(baseline, wanted.stages, wanted.rules)
        row = measure_variant(baseline, baseline)
        self._captures[row.program] = baseline
        self.ablation = Ablation(
            kernel=capture.name,
            target=str(capture.target),
            stages=wanted.stages or tuple(dict.fromkeys(snapshot.stage for snapshot in baseline.passes())),
            baseline=row,
            variants=(),
            capture=capture.id,
            triton_version=baseline.environment.triton_version,
            irscope_version=baseline.environment.irscope_version,
        )
        return self.ablation

    def _compile(
        self, variants: Variants, baseline: Capture, ablation: Ablation, offs: Sequence[_Off], jobs: int
    ) -> Ablation:
        plans = [plan_without(baseline.plan, off) for off in offs]
        kept = sum(variants.path_of(plan).is_file() for plan in plans)
        what = "pairs" if any(len(off) > 1 for off in offs) else "variants"
        if kept:
            say(f"{kept} of {len(offs)} {what} were compiled before; --fresh compiles them again.")
        seconds = (len(offs) - kept) * (baseline.compile_us or 0) / 1e6 / jobs
        if what == "pairs" and kept < len(offs):
            say(f"{len(offs) - kept} pairs of passes to compile, {jobs} at a time: about {seconds:.0f} s.")
        rows: dict[int, Variant] = {}

        def so_far() -> Ablation:
            done = tuple(row for _, row in sorted(rows.items()))
            return replace(ablation, variants=(*ablation.variants, *done), missing=len(offs) - len(done))

        self.ablation = so_far()
        with progress_bar() as progress:
            task = progress.add_task(f"{baseline.name}: {what}", total=len(offs))
            for index, capture, _ in variants.compile_all(plans):
                rows[index] = measure_variant(capture, baseline, offs[index])
                if rows[index].program:
                    self._captures.setdefault(rows[index].program, capture)
                self.ablation = so_far()
                progress.advance(task)
        return self.ablation

    def _measure(self, capture: Capture, number: int, ablation: Ablation) -> Ablation:
        programs = self._captures
        with progress_bar() as progress, launch_on_gpu(self._subject, self._asked, capture, number) as session:
            task = progress.add_task(f"on {capture.environment.gpu}", total=len(programs))
            measured = measure_programs(
                session, programs, rounds=self._wanted.rounds, progress=lambda: progress.advance(task)
            )

        def with_measures(row: Variant) -> Variant:
            if row.program not in measured:
                return row
            agreement, timing, ratio = measured[row.program]
            return replace(row, agreement=agreement, timing=timing, ratio=ratio)

        self.ablation = replace(
            ablation,
            baseline=with_measures(ablation.baseline),
            variants=tuple(with_measures(row) for row in ablation.variants),
            gpu=capture.environment.gpu,
        )
        return self.ablation
