"""`irscope bisect`: finds the pass that decides whether a check passes."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Annotated, cast

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
from irscope.api.passes import bisected
from irscope.cli import app, options
from irscope.cli.grouped import grouped
from irscope.cli.options import in_panel
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.talk import echo, progress, say
from irscope.cli.subject.device import launch_on_gpu, why_no_gpu
from irscope.cli.subject.keeping import kept_captures
from irscope.cli.subject.recording import recorded
from irscope.cli.subject.variants import one_capture, split_stages
from irscope.errors import NoDevice, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.variants.pool import VariantPool
from irscope.render.text.searches import bisection_json, bisection_text
from irscope.store.file import SUFFIX

_check = in_panel("What is good (one of)")
_search = in_panel("BisectSearch")
_CHECKS = ("check", "check_result", "check_time", "check_regs", "check_spills", "check_compiles")
_ON_A_GPU = ("--check-result", "--check-time")


@dataclass(frozen=True, slots=True)
class _BisectionOptions:
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


@app.command(rich_help_panel="Effect of passes")
@recorded(without=("snapshots", "llvm"))
@with_destination
@grouped("wanted", _BisectionOptions)
def bisect(
    subject: options.Subject = None, *, wanted: _BisectionOptions, to: Destination, record_options: RecordingOptions
) -> int:
    """Find the pass that a result depends on: the one whose absence, or presence, flips a check.

    Passes are switched off by halves, so that few compiles are needed; passes that the compile cannot do without stay
    on. With a plan (--disable-pass, --plan, or the capture's own) the search is among the passes that it switches off;
    those in other stages than --stage names stay off.
    """
    with progress("bisect") as tell:
        found = _bisected(subject, record_options, wanted, tell or (lambda text: None))
    to.emit(
        lambda: bisection_json(found),
        lambda width, color: bisection_text(found, context=wanted.context, width=width, color=color),
    )
    return 0 if found.guilty and found.is_steady else 1


def _bisected(
    subject: str | None, record_options: RecordingOptions, wanted: _BisectionOptions, progress: Callable[[str], None]
) -> Bisection:
    """Record or load the subject, and bisect it; raises NoDevice if the check needs a GPU and there is none."""
    recorded = replace(record_options, plan=PassPlan(), disassemble=False)
    with ExitStack() as held:
        # Each step depends on the judgement of the previous one, so only one variant is compiled at a time.
        pool = held.enter_context(VariantPool(jobs=1, timeout_s=record_options.timeout_s))
        capture, number = one_capture(subject, recorded)

        def search(base: Capture) -> BisectSearch:
            check = compiles_check
            if wanted.chosen in _ON_A_GPU:
                if reason := why_no_gpu(subject, recorded, capture):
                    raise NoDevice(f"{wanted.chosen} runs the kernel. {reason} --check and --check-regs need no GPU.")
                session = held.enter_context(launch_on_gpu(subject, recorded, capture, number))
                is_timed = wanted.chosen == "--check-time"
                check = time_check(session, wanted.most, wanted.rounds) if is_timed else result_check(session)
            elif wanted.check is not None:
                shown = echo if record_options.verbose else None
                check = command_check(wanted.check, tuple(base.passes()), record_options.timeout_s, shown)
            elif not wanted.check_compiles:
                check = count_check("spills" if wanted.check_regs is None else "registers", int(wanted.most))
            return BisectSearch(check, _in_words(wanted), cast("Mode", wanted.mode), wanted.stages, wanted.partial)

        found = bisected(
            capture,
            search,
            pool,
            stages=wanted.stages or (),
            plan=record_options.plan,
            fresh=wanted.fresh,
            progress=progress,
            tell=say,
        )
    return replace(found, subject=_subject(subject, record_options, capture, found.base))


def _in_words(wanted: _BisectionOptions) -> str:
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
