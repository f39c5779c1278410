"""`irscope bisect`: finds the pass that decides whether a check passes."""

from __future__ import annotations

from typing import Annotated

import typer

from irscope.cli import app, options
from irscope.cli.bisect.checks import one_asked
from irscope.cli.bisect.run import BisectionOptions, run_bisection
from irscope.cli.output.destination import WIDE, Destination, with_destination
from irscope.cli.output.talk import echo
from irscope.cli.subject.recording import recorded
from irscope.cli.subject.variants import progress_line, split_stages
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.render.text.bisection import bisection_json, bisection_text

_check = options.in_panel("What is good (one of)")
_search = options.in_panel("Search")


@app.command(rich_help_panel="Effect of passes")
@recorded(without=("snapshots", "llvm"))
@with_destination
def bisect(
    subject: options.Subject = None,
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
    ] = None,
    check_result: Annotated[
        bool, _check("--check-result", help="The launch writes what it writes with every pass on (GPU, FILE).")
    ] = False,
    check_time: Annotated[
        float | None,
        _check(
            "--check-time",
            metavar="RATIO",
            min=0.0,
            help="It takes at most this many times the time with every pass on, such as 1.05 (GPU, FILE).",
        ),
    ] = None,
    check_regs: Annotated[
        int | None, _check("--check-regs", metavar="N", min=0, help="It uses at most N registers per thread.")
    ] = None,
    check_spills: Annotated[
        int | None, _check("--check-spills", metavar="N", min=0, help="It spills at most N bytes per thread.")
    ] = None,
    check_compiles: Annotated[bool, _check("--check-compiles", help="It compiles.")] = False,
    mode: Annotated[
        str,
        _search(
            "--mode",
            metavar="off|first",
            help="off: find the fewest passes that flip the check when they are off and all others on. first: find "
            "the pass that flips it when the passes before it are on and those after it off.",
        ),
    ] = "off",
    stage: Annotated[
        list[str] | None,
        _search(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Only the passes of this stage; repeatable. all includes the optimisers of LLVM and ptxas, which "
            "otherwise stay on.",
        ),
    ] = None,
    partial: Annotated[
        bool,
        _search("--partial", help="--check: also judge failed compiles, by the stages they reached; keep no pass on."),
    ] = False,
    rounds: Annotated[
        int, _search("--rounds", metavar="N", min=6, help="--check-time: how many launches to time.")
    ] = 50,
    fresh: Annotated[bool, _search("--fresh", help="Compile again what an earlier call compiled.")] = False,
    context: Annotated[
        int,
        typer.Option("--context", "-U", min=0, help="Unchanged lines around a change.", rich_help_panel="Output"),
    ] = 3,
    *,
    to: Destination,
    asked: RecordingOptions,
) -> int:
    """Find the pass that a result depends on: the one whose absence, or presence, flips a check.

    Passes are switched off by halves, so that few compiles are needed; passes that the compile cannot do without stay
    on. With a plan (--disable-pass, --plan, or the capture's own) the search is among the passes that it switches off;
    those in other stages than --stage names stay off.
    """
    chosen = one_asked(
        check=check,
        check_result=check_result,
        check_time=check_time,
        check_regs=check_regs,
        check_spills=check_spills,
        check_compiles=check_compiles,
    )
    if partial and check is None:
        raise UsageError(
            f"--partial goes with --check CMD: {chosen} judges complete compiles, or whether there is one."
        )
    if mode not in ("off", "first"):
        raise UsageError(f"--mode {mode!r}: write off or first.")
    wanted = BisectionOptions(
        check=chosen,
        command=check or "",
        most=next((value for value in (check_time, check_regs, check_spills) if value is not None), 0),
        mode=mode,
        stages=None if stage is None else split_stages(stage),
        partial=partial,
        rounds=rounds,
        fresh=fresh,
    )
    with progress_line("bisect") as progress:
        found = run_bisection(subject, asked, wanted, progress, echo if asked.verbose else None)
    to.emit(
        lambda: bisection_json(found),
        lambda width, color: bisection_text(found, context=context, width=width or WIDE, color=color),
    )
    return 0 if found.guilty and found.is_steady else 1
