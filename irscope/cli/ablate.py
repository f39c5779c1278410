"""`irscope ablate`: switches passes off, each in turn or until the one is found that a check depends on."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from irscope.analysis.passes.ablation import SORT_KEYS, Ablation, SortKey, passes_that_may_be_off
from irscope.analysis.passes.bisection import (
    Bisection,
    BisectSearch,
    Mode,
    command_check,
    compiles_check,
    count_check,
    result_check,
    time_check,
)
from irscope.api.passes import AblationRun, AblationSearch, bisected
from irscope.cli.command import Context, Subject
from irscope.cli.keeping import kept_captures
from irscope.cli.launches import one_capture, program_request, session_without_gpu, split_stages, why_no_gpu
from irscope.cli.output import STANDARD_OUTPUT, Destination, emit_report, is_page
from irscope.cli.streams import counted, echo, progress, say
from irscope.device.measurement import Session
from irscope.errors import NoDevice, UsageError
from irscope.interruption import Interrupted, exit_code
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan, PassRule
from irscope.record.variants.pool import VariantPool
from irscope.render.text.searches import bisection_json, bisection_text, render_ablation
from irscope.store.file import SUFFIX

_LIMITED = ("registers", "spills", "time")


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of an ablation, next to those of the recording.

    Options:
        --stage, -s STAGE: Whose passes: ttir, ttgir (default without --pass and --check), llir, llvm, cubin, or all;
            repeatable. all includes the optimisers of LLVM and ptxas, which --check otherwise leaves on.
        one_pass = --pass [STAGE:]NAME[#N]: Only these passes; repeatable.
        --pairs: Also two at a time: the passes that each change the binary, or those that --pass names.
        --sort KEY: effect, time, pass, instructions, registers, spills, shared, occupancy or convert_layouts. Default:
            time if it was measured, else effect.
        every = --all: Also show the passes that change nothing.
        --check CHECK: Bisect for the pass that flips this: registers=N or spills=N (at most), compiles, result (as
            with every pass on), on a GPU time=RATIO (at most), or else a shell command that exits with 0. 125, or no
            end within --timeout, means undecided; 1 to 124 means bad. {capture} and $IRSCOPE_CAPTURE are the
            variant's file, $IRSCOPE_PLAN its plan, $IRSCOPE_PASSES_OFF the passes that are off: 'irscope show {capture}
            --stage ptx | grep -q wgmma'.
        --mode off|first: With --check. off: find the fewest passes that flip it when they are off and all others on.
            first: find the pass that flips it when the passes before it are on and those after it off.
        --partial: With --check CMD: also judge failed compiles, by the stages they reached; keep no pass on.
        --fresh: Compile again what an earlier call compiled.
        --rounds (6..): On a GPU: how many launches of each to time.
    """

    stage: list[str] | None = None
    one_pass: list[str] | None = None
    pairs: bool = False
    sort: str | None = None
    every: bool = False
    check: str | None = None
    mode: str = "off"
    partial: bool = False
    fresh: bool = False
    rounds: int = 50
    context: Context = 3

    def __post_init__(self) -> None:
        if self.mode not in ("off", "first"):
            raise UsageError(f"--mode {self.mode!r}: write off or first.")
        if self.check is None and (self.partial or self.mode != "off"):
            raise UsageError("--mode and --partial go with --check.")
        if self.partial and self.kind != "command":
            raise UsageError(f"--partial goes with --check CMD: --check {self.check} judges complete compiles only.")
        given = {"--pass": self.one_pass, "--pairs": self.pairs, "--sort": self.sort, "--all": self.every}
        if self.check is not None and (others := [name for name, value in given.items() if value]):
            raise UsageError(f"{others[0]} is of the table of all passes, and does not go with --check.")

    @property
    def kind(self) -> str:
        name, _, limit = (self.check or "").partition("=")
        if name in _LIMITED and limit.replace(".", "", 1).isdecimal():
            return name
        return name if self.check in ("result", "compiles") else "command"

    @property
    def limit(self) -> float:
        return float((self.check or "").partition("=")[2]) if self.kind in _LIMITED else 0.0

    @property
    def stages(self) -> tuple[str, ...] | None:
        """The stages whose passes are searched; empty for all, None for all except the optimisers of LLVM and ptxas."""
        return None if self.stage is None else split_stages(self.stage)

    @property
    def search(self) -> AblationSearch:
        """Which passes are switched off in turn; raises PlanError for a name that is none."""
        stages = split_stages(self.stage or ([] if self.one_pass else ["ttgir"]))
        return AblationSearch(stages, tuple(PassRule.parse(text) for text in self.one_pass or ()), self.pairs)

    @property
    def sort_key(self) -> SortKey | None:
        if self.sort is None:
            return None
        key = self.sort.replace("-", "_")
        if key not in SORT_KEYS:
            raise UsageError(f"--sort {self.sort!r}: write one of {', '.join(SORT_KEYS)}.")
        return key


def ablate(subject: Subject = None, *, asked: _Options, to: Destination, record_options: RecordingOptions) -> int:
    """Switch passes off: each in turn, tabulated; or, with --check, until the pass that decides a check is found.

    The table shows what fails, what differs, the resources used, and whether the result is the same: the CPU
    executes the TTGIR, or for a script the GPU if there is one, which also gives the time (--virtual only compiles).
    Compiled variants are kept: the same command resumes an interrupted run. -o FILE.html writes a page, -o FILE.json
    JSON.

    With --check, the passes are bisected, which takes few compiles; passes without which the compile fails stay on.
    With a plan (--disable-pass, --plan, or the capture's own) only the passes that it switches off are searched.
    """
    if asked.check is None:
        return _tabulated(subject, asked, to, record_options)
    with progress("bisect") as tell:
        bisection = _bisected(subject, record_options, asked, tell or (lambda text: None))
    to.emit(partial(bisection_json, bisection), partial(bisection_text, bisection, context=asked.context))
    return 0 if bisection.guilty and bisection.is_steady else 1


def _tabulated(subject: str | None, asked: _Options, to: Destination, record_options: RecordingOptions) -> int:
    key = asked.sort_key
    run = AblationRun(asked.search, progress=counted)
    try:
        ablation = _ablated(run, subject, replace(record_options, disassemble=False), asked)
    except (KeyboardInterrupt, Interrupted) as stop:
        if run.ablation is None:
            raise
        _write(run, run.ablation, key, asked.every, to)
        to_go = f" with {run.ablation.missing} variants to go" if run.ablation.missing else ""
        say(f"interrupted{to_go}; the same command resumes.")
        return exit_code(stop)
    _write(run, ablation, key, asked.every, to)
    return 0


def _ablated(run: AblationRun, subject: str | None, record_options: RecordingOptions, asked: _Options) -> Ablation:
    # The pool imports Triton while the script runs.
    with VariantPool(jobs=record_options.jobs, timeout_s=record_options.timeout_s) as pool:
        capture, number = one_capture(subject, record_options)
        ablation = run.compile(capture, pool, fresh=asked.fresh)
    if record_options.virtual:
        return ablation
    if why_no_gpu(subject, record_options, capture):
        assert run.baseline is not None
        try:
            on_cpu = session_without_gpu(run.baseline)
        except NoDevice as error:
            say(str(error))
            return ablation
        return run.measure(on_cpu, ablation, on_cpu.name, asked.rounds)
    from irscope.api.gpu import launch_on_gpu

    with launch_on_gpu(program_request(subject, record_options), capture, number) as session:
        return run.measure(session, ablation, capture.environment.gpu, asked.rounds)


def _write(run: AblationRun, ablation: Ablation, sort: SortKey | None, every: bool, to: Destination) -> None:
    suffix = to.path.suffix if to.path is not None else ""
    if is_page(to.path) and not to.as_json and run.baseline is not None:
        from irscope.render.report.results import ablation_results

        emit_report([run.baseline], {"tab": "results"}, to.path, results=ablation_results(ablation, run.baseline, sort))
    else:
        to = replace(to, as_json=to.as_json or suffix == ".json")
        to.emit(ablation.as_json, partial(render_ablation, ablation, sort=sort, every=every))
    if to.path is not None and to.path != STANDARD_OUTPUT:
        say(f"wrote {to.path}")


def _bisected(
    subject: str | None, record_options: RecordingOptions, asked: _Options, told: Callable[[str], None]
) -> Bisection:
    recorded = replace(record_options, plan=PassPlan(), disassemble=False)
    with ExitStack() as stack:
        # Each step depends on the judgement of the previous one, so only one variant is compiled at a time.
        pool = stack.enter_context(VariantPool(jobs=1, timeout_s=record_options.timeout_s))
        capture, number = one_capture(subject, recorded)

        def search(base: Capture) -> BisectSearch:
            check = compiles_check
            if asked.kind in ("result", "time"):
                is_timed, reason = asked.kind == "time", why_no_gpu(subject, recorded, capture)
                if is_timed and reason:
                    raise NoDevice(
                        f"--check {asked.check} times the kernel. {reason} --check result, registers=N and CMD need no "
                        "GPU."
                    )
                if reason:
                    session: Session = session_without_gpu(base)
                else:
                    from irscope.api.gpu import launch_on_gpu

                    session = stack.enter_context(launch_on_gpu(program_request(subject, recorded), capture, number))
                check = time_check(session, asked.limit, asked.rounds) if is_timed else result_check(session)
            elif asked.kind == "command":
                shown = echo if record_options.verbose else None
                check = command_check(asked.check or "", passes_that_may_be_off(base), record_options.timeout_s, shown)
            elif asked.kind in ("registers", "spills"):
                check = count_check(asked.kind, int(asked.limit))
            return BisectSearch(check, _in_words(asked), cast("Mode", asked.mode), asked.stages, asked.partial)

        bisection = bisected(
            capture,
            search,
            pool,
            stages=asked.stages or (),
            plan=record_options.plan,
            fresh=asked.fresh,
            progress=told,
        )
    return replace(bisection, subject=_subject(subject, record_options, capture, bisection.base))


def _in_words(asked: _Options) -> str:
    return {
        "command": asked.check or "",
        "result": "the result is the same",
        "time": f"at most {asked.limit:g} times the time",
        "registers": f"registers ≤ {asked.limit:g}",
        "spills": f"spilled bytes ≤ {asked.limit:g}",
        "compiles": "it compiles",
    }[asked.kind]


def _subject(subject: str | None, record_options: RecordingOptions, capture: Capture, base: Capture) -> str:
    """The argument that names the capture with every pass on in a command."""
    if not capture.plan:
        is_file = subject and subject.endswith(SUFFIX) and not (record_options.targets or record_options.options)
        return shlex.quote(subject) if subject and is_file else capture.id
    with kept_captures(becomes_last=False) as keep:
        keep(base)
    return base.id
