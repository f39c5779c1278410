"""`irscope ablate`: switches each pass off in turn and tabulates the effect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from irscope.analysis.passes.ablation import SORT_KEYS, Ablation, SortKey
from irscope.api.passes import AblationRun, AblationSearch
from irscope.cli import app, options
from irscope.cli.grouped import grouped
from irscope.cli.options import in_panel
from irscope.cli.output.destination import STANDARD_OUTPUT, Destination, with_destination
from irscope.cli.output.page import emit_report, is_page
from irscope.cli.output.talk import say
from irscope.cli.subject.device import launch_on_gpu, why_no_gpu
from irscope.cli.subject.recording import recorded
from irscope.cli.subject.variants import counted, one_capture, split_stages
from irscope.errors import UsageError
from irscope.interruption import Interrupted, exit_code
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassRule
from irscope.record.variants.pool import VariantPool
from irscope.render.text.searches import render_ablation

_option = in_panel("Ablation")


@dataclass(frozen=True, slots=True)
class _AblationOptions:
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

    @property
    def search(self) -> AblationSearch:
        """Which passes are switched off; raises PlanError for a name that is none."""
        stages = split_stages(self.stage or ([] if self.one_pass else ["ttgir"]))
        return AblationSearch(stages, tuple(PassRule.parse(text) for text in self.one_pass or ()), self.pairs)


@app.command(rich_help_panel="Effect of passes")
@recorded(without=("snapshots", "llvm", "jobs"))
@with_destination
@grouped("wanted", _AblationOptions)
def ablate(
    subject: options.Subject = None, *, wanted: _AblationOptions, to: Destination, record_options: RecordingOptions
) -> int:
    """Switch each pass off in turn and tabulate the effect: what fails, what differs, and the resources used.

    For a script on a GPU, also whether the result is the same, and the time. Compiled variants are kept: after an
    interruption the same command continues. -o FILE.html writes a page, -o FILE.json JSON.
    """
    key = _sort_key(wanted.sort)
    run = AblationRun(wanted.search, progress=counted, tell=say)
    try:
        ablation = _ablated(run, subject, replace(record_options, disassemble=False), wanted)
    except (KeyboardInterrupt, Interrupted) as stop:
        if run.ablation is None:
            raise
        _write(run, run.ablation, key, wanted.every, to)
        to_go = f" with {run.ablation.missing} variants to go" if run.ablation.missing else ""
        say(f"interrupted{to_go}; the same command goes on from there.")
        return exit_code(stop)
    _write(run, ablation, key, wanted.every, to)
    return 0


def _ablated(
    run: AblationRun, subject: str | None, record_options: RecordingOptions, wanted: _AblationOptions
) -> Ablation:
    # The pool imports Triton while the script runs.
    with VariantPool(jobs=wanted.jobs, timeout_s=record_options.timeout_s) as pool:
        capture, number = one_capture(subject, record_options)
        ablation = run.compile(capture, pool, fresh=wanted.fresh)
    if wanted.no_gpu or record_options.virtual:
        return ablation
    if reason := why_no_gpu(subject, record_options, capture):
        say(reason)
        return ablation
    with launch_on_gpu(subject, record_options, capture, number) as session:
        return run.measure(session, ablation, capture.environment.gpu, wanted.rounds)


def _sort_key(text: str | None) -> SortKey | None:
    if text is None:
        return None
    key = text.replace("-", "_")
    if key not in SORT_KEYS:
        raise UsageError(f"--sort {text!r}: write one of {', '.join(SORT_KEYS)}.")
    return key


def _write(run: AblationRun, ablation: Ablation, sort: SortKey | None, every: bool, to: Destination) -> None:
    suffix = to.path.suffix if to.path is not None else ""
    if is_page(to.path) and not to.as_json and run.baseline is not None:
        from irscope.render.report.results import ablation_results

        emit_report([run.baseline], {"tab": "results"}, to.path, results=ablation_results(ablation, run.baseline, sort))
    else:
        replace(to, as_json=to.as_json or suffix == ".json").emit(
            ablation.as_json,
            lambda width, color: render_ablation(ablation, sort=sort, every=every, width=width, color=color),
        )
    if to.path is not None and to.path != STANDARD_OUTPUT:
        say(f"wrote {to.path}")
