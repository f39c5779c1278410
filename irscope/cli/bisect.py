"""`irscope bisect`: finds the pass that a judgement hangs on."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from irscope.cli import app, options
from irscope.cli.bisect_checks import one_asked
from irscope.cli.bisection_run import Wanted, run_bisection
from irscope.cli.output import colored, emit, emit_json, width
from irscope.cli.recording import recorded
from irscope.cli.subject import How
from irscope.cli.variants import progress_line, split_stages
from irscope.errors import UsageError
from irscope.render.bisection import bisection_json, bisection_text

_CHECK = "What is good (one of)"
_SEARCH = "Search"


@app.command(rich_help_panel="What a pass is worth")
@recorded(without=("snapshots", "llvm"))
def bisect(
    subject: options.Subject = None,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="CMD",
            help="This shell command ends with 0. 125 means that it cannot be judged, as does the --timeout; 1 to 124 "
            "is bad. In it {capture} is the variant's file, as is $IRSCOPE_CAPTURE; $IRSCOPE_PLAN is its plan, "
            "$IRSCOPE_PASSES_OFF names each pass that is off. Stages: "
            "irscope show {capture} --stage ptx | grep -q wgmma",
            rich_help_panel=_CHECK,
            show_default=False,
        ),
    ] = None,
    check_result: Annotated[
        bool,
        typer.Option(
            "--check-result",
            help="The launch writes what it writes with every pass on (GPU, FILE).",
            rich_help_panel=_CHECK,
        ),
    ] = False,
    check_time: Annotated[
        float | None,
        typer.Option(
            "--check-time",
            metavar="RATIO",
            min=0.0,
            help="It takes no more than this times the time with every pass on, such as 1.05 (GPU, FILE).",
            rich_help_panel=_CHECK,
            show_default=False,
        ),
    ] = None,
    check_regs: Annotated[
        int | None,
        typer.Option(
            "--check-regs",
            metavar="N",
            min=0,
            help="It takes no more than N registers a thread.",
            rich_help_panel=_CHECK,
            show_default=False,
        ),
    ] = None,
    check_spills: Annotated[
        int | None,
        typer.Option(
            "--check-spills",
            metavar="N",
            min=0,
            help="It spills no more than N bytes a thread.",
            rich_help_panel=_CHECK,
            show_default=False,
        ),
    ] = None,
    check_compiles: Annotated[
        bool, typer.Option("--check-compiles", help="It compiles.", rich_help_panel=_CHECK)
    ] = False,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="off|first",
            help="off: the fewest passes whose absence flips the check, all others on. first: the pass whose presence "
            "does, with those before it on and those behind it off.",
            rich_help_panel=_SEARCH,
        ),
    ] = "off",
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Only the passes of this stage; repeatable. all takes LLVM's and ptxas's optimisers too, which by "
            "default stay on.",
            rich_help_panel=_SEARCH,
            show_default=False,
        ),
    ] = None,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial",
            help="--check: judge failed compiles too, by the stages they got to, and keep no pass on.",
            rich_help_panel=_SEARCH,
        ),
    ] = False,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=6, help="--check-time: launches timed.", rich_help_panel=_SEARCH)
    ] = 50,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Compile again what an earlier call did.", rich_help_panel=_SEARCH)
    ] = False,
    context: Annotated[
        int, typer.Option("--context", "-U", min=0, help="Equal lines around a change.", rich_help_panel="Output")
    ] = 3,
    as_json: options.AsJson = False,
    color: options.Color = None,
    output: options.Output = None,
    *,
    asked: How,
) -> int:
    """Find the pass that a result hangs on: the one whose absence, or presence, makes a check come out otherwise.

    Passes are switched off by halves, so that few compiles are needed; those that the compile cannot do without stay
    on. With a plan (--disable-pass, --plan, or a capture's own) only the passes that it switches off are looked at:
    which of them is it? Those of other stages than --stage names stay off.
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
        raise UsageError(f"--partial goes with --check CMD: {chosen} asks for a whole compile, or none.")
    if mode not in ("off", "first"):
        raise UsageError(f"--mode {mode!r}: it takes off or first.")
    wanted = Wanted(
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
        found = run_bisection(subject, asked, wanted, progress, _echo if asked.verbose else None)
    if as_json:
        emit_json(bisection_json(found), output)
    else:
        paint = colored(color) and output is None
        emit(bisection_text(found, context=context, width=width(), color=paint), output, painted=paint)
    return 0 if found.guilty and found.is_steady else 1


def _echo(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
