"""`irscope diff`: two compilations compared, or one before and after a pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from irscope.cli import app, options
from irscope.cli.output import colored, emit, emit_json, width
from irscope.cli.recording import recorded
from irscope.cli.subject import How, failure_text
from irscope.cli.talk import say
from irscope.errors import UsageError

if TYPE_CHECKING:
    from irscope.analysis.compare import Comparison

_COMPARE = "Comparison"
_IGNORABLE = ("locations", "names", "attributes")


@app.command(rich_help_panel="Compare")
@recorded(without=("llvm",))
def diff(
    left: options.Subject = None,
    right: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|CAPTURE|FOLDER]", help="The other side, where it is not a variant.", show_default=False
        ),
    ] = None,
    versus: Annotated[
        list[str] | None,
        typer.Option(
            "--vs",
            metavar="KEY=VALUE",
            help="A variant that differs in one thing: target=cuda:80, num_warps=8, BLOCK_K=32 (a tl.constexpr), "
            "config=3, kernel=OTHER, triton=PATH of another interpreter; repeatable.",
            rich_help_panel=_COMPARE,
            show_default=False,
        ),
    ] = None,
    one_pass: Annotated[
        str | None,
        typer.Option("--pass", metavar="PASS[#N]", help="Before and after this pass.", rich_help_panel=_COMPARE),
    ] = None,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--between",
            metavar="PASS PASS",
            help="The IR after one pass against after another.",
            rich_help_panel=_COMPARE,
        ),
    ] = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Diff these stages' texts; by default the first that differs.",
            rich_help_panel=_COMPARE,
        ),
    ] = None,
    schedule: Annotated[
        bool,
        typer.Option(
            "--schedule",
            help="How the SASS is scheduled on both sides: stall, yield, barriers, waits, reuse.",
            rich_help_panel=_COMPARE,
        ),
    ] = False,
    side_by_side: Annotated[bool, typer.Option("--side-by-side", "-y", rich_help_panel=_COMPARE)] = False,
    stat: Annotated[bool, typer.Option("--stat", help="Tables only.", rich_help_panel=_COMPARE)] = False,
    context: Annotated[
        int, typer.Option("--context", "-U", min=0, help="Equal lines around a change.", rich_help_panel=_COMPARE)
    ] = 3,
    ignore: Annotated[
        str, typer.Option("--ignore", metavar="locations,names,attributes", rich_help_panel=_COMPARE)
    ] = "locations",
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="1 where there is a difference, as git's.", rich_help_panel=_COMPARE)
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page of its own.", rich_help_panel="Output")
    ] = None,
    output: options.Output = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
    *,
    asked: How,
) -> int:
    """Compare two compilations, structurally: names, locations and the order of independent operations don't count.

    irscope diff --disable-pass combine compares the launch recorded last with the same one without that pass.
    """
    if output is not None and output.suffix.lower() in (".html", ".htm") and not as_json and html is None:
        output, html = None, output
    ignored = [word.strip() for word in ignore.split(",") if word.strip()]
    if unknown := [word for word in ignored if word not in _IGNORABLE]:
        raise UsageError(f"--ignore {unknown[0]!r}: it takes {', '.join(_IGNORABLE)}.")
    stages = [name.strip() for text in stage or () for name in text.split(",") if name.strip()]
    paint = colored(color) and output is None and html is None

    if one_pass is not None or between is not None:
        from irscope.cli.diff_passes import diff_around_passes

        if one_pass is not None and between is not None:
            raise UsageError("--pass and --between do not go together: ask for one.")
        if right is not None:
            raise UsageError("--pass and --between look into one capture: give one.")
        if schedule:
            raise UsageError("--schedule compares machine code, --pass and --between compare IR: ask for one.")
        text, differs = diff_around_passes(
            left, asked, one_pass, between, cast("Any", ignored), side_by_side, context, paint
        )
        emit(text, output, painted=paint)
        return int(exit_code and differs)

    from irscope.analysis.compare import diff as compare
    from irscope.cli.diff_sides import nothing_to_compare, pairs_of, stages_shown
    from irscope.render.compare import comparison_json, render_comparison

    pairs = pairs_of(left, right, asked, versus or [])
    comparisons: list[tuple[Comparison, list[str]]] = []
    texts: list[str] = []
    for one, other in pairs:
        shown = stages_shown(one, other, stages)
        wanted = None if stages == ["all"] or not shown else [*shown, *(["sass"] if schedule else [])]
        comparison = compare(one, other, ignore=cast("Any", ignored), stages=wanted)
        shown = (
            shown
            or [
                stage.stage for stage in comparison.stages if stage.state == "differs" and comparison.diff(stage.stage)
            ][:1]
        )
        comparisons.append((comparison, shown))
        if comparison.is_same_compile and (versus or asked.plan):
            note = nothing_to_compare(one, versus or [], asked.plan)
            texts.append(f"{note}\n")
            if as_json or html is not None:
                say(note)
            continue
        texts.append(
            render_comparison(
                comparison,
                stages=shown,
                width=width(),
                color=paint,
                side_by_side=side_by_side,
                stat=stat,
                context=context,
                schedule=schedule,
            )
        )
    if html is not None:
        from irscope.cli.diff_html import write_html

        write_html([comparison for comparison, _ in comparisons], html)
    elif as_json:
        emit_json([comparison_json(comparison, shown) for comparison, shown in comparisons], output)
    else:
        emit("\n".join(texts), output, painted=paint)
    failed = [capture for pair in pairs for capture in pair if capture.status == "failed"]
    for capture in failed:
        say(failure_text(capture))
    differs = any(
        not comparison.is_empty or (schedule and comparison.schedule is not None and not comparison.schedule.is_empty)
        for comparison, _ in comparisons
    )
    return 1 if failed or (exit_code and differs) else 0
