"""Runs an ablation: compiles the variants, reuses those of an interrupted run, and measures them on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from irscope.analysis.passes.ablation import (
    Ablation,
    Variant,
    measure_variant,
    pairs_worth_trying,
    passes_to_ablate,
    plan_without,
)
from irscope.cli.options import in_panel
from irscope.cli.output.talk import say
from irscope.cli.subject.device import launch_on_gpu, why_no_gpu
from irscope.cli.subject.variants import baseline_of, check_rules, check_stages, one_capture, progress_bar, split_stages
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassRule
from irscope.record.variants.measure import measure_programs
from irscope.record.variants.pool import VariantPool
from irscope.record.variants.store import Variants

_option = in_panel("Ablation")
_Off = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AblationOptions:
    """The options of one ablation, beside those of the recording."""

    stage: Annotated[
        list[str] | None,
        _option(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Whose passes: ttir, ttgir (the default without --pass), llir, cubin, or all; repeatable.",
        ),
    ] = None
    one_pass: Annotated[
        list[str] | None, _option("--pass", metavar="[STAGE:]NAME[#N]", help="Only these passes; repeatable.")
    ] = None
    pairs: Annotated[
        bool,
        _option(
            "--pairs", help="Also two at a time: the passes that each change the binary, or those that --pass names."
        ),
    ] = False
    sort: Annotated[
        str | None,
        _option(
            "--sort",
            metavar="KEY",
            help="effect, time, pass, instructions, registers, spills, shared, occupancy or convert_layouts. "
            "Default: time if it was measured, else effect.",
        ),
    ] = None
    every: Annotated[bool, _option("--all", help="Also show the passes that change nothing.")] = False
    jobs: Annotated[
        int | None, _option("--jobs", "-j", metavar="N", min=1, help="Compiles at a time. Default: one per core.")
    ] = None
    fresh: Annotated[bool, _option("--fresh", help="Compile again what an earlier call compiled.")] = False
    no_gpu: Annotated[bool, _option("--no-gpu", help="Only compile, even if there is a GPU.")] = False
    rounds: Annotated[
        int, _option("--rounds", metavar="N", min=6, help="On a GPU: how many launches of each to time.")
    ] = 50


class AblationRun:
    """One ablation in progress; `ablation` holds the results so far, also after an interruption."""

    def __init__(self, subject: str | None, record_options: RecordingOptions, wanted: AblationOptions) -> None:
        self._subject = subject
        self._asked = record_options
        self._wanted = wanted
        self._stages = split_stages(wanted.stage or ([] if wanted.one_pass else ["ttgir"]))
        self._rules = tuple(PassRule.parse(text) for text in wanted.one_pass or ())
        self.ablation: Ablation | None = None
        self.baseline: Capture | None = None
        """The compile with every pass on, once it is there."""
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
            self.ablation = self._begun(capture, baseline)
            singles: list[_Off] = [(label,) for label in passes_to_ablate(baseline, self._stages, self._rules)]
            ablation = self._compile(variants, baseline, self.ablation, singles, pool.jobs)
            if wanted.pairs:
                pairs = list(pairs_worth_trying(ablation, named=bool(self._rules)))
                ablation = self._compile(variants, baseline, ablation, pairs, pool.jobs)
        if wanted.no_gpu or self._asked.virtual:
            return ablation
        if reason := why_no_gpu(self._subject, self._asked, capture):
            say(reason)
            return ablation
        return self._measure(capture, number, ablation)

    def _begun(self, capture: Capture, baseline: Capture) -> Ablation:
        check_stages(baseline, self._stages)
        check_rules(baseline, self._stages, self._rules)
        self.baseline = baseline
        row = measure_variant(baseline, baseline)
        self._captures[row.program] = baseline
        return Ablation(
            kernel=capture.name,
            target=str(capture.target),
            stages=self._stages or tuple(dict.fromkeys(snapshot.stage for snapshot in baseline.passes())),
            baseline=row,
            variants=(),
            capture=capture.id,
            triton_version=baseline.environment.triton_version,
            irscope_version=baseline.environment.irscope_version,
        )

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
