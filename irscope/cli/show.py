"""`irscope show`: read a capture, with neither Triton nor torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from irscope.cli import app, options
from irscope.cli.subject import failure_text, with_sass
from irscope.cli.talk import say
from irscope.recent import CaptureStore


@app.command(rich_help_panel="Record and read")
def show(
    captures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CAPTURE…]", help="Files, ids of stored captures, or 'last'.", show_default=False),
    ] = None,
    stage: Annotated[
        list[str] | None,
        typer.Option("--stage", "-s", metavar="STAGE[,STAGE]", help="Or all; repeatable.", show_default=False),
    ] = None,
    after: Annotated[str | None, typer.Option("--after", metavar="PASS[#N]", help="The IR after a pass.")] = None,
    before: Annotated[str | None, typer.Option("--before", metavar="PASS[#N]", help="The IR before a pass.")] = None,
    each: Annotated[Path | None, typer.Option("--each", metavar="DIR", help="One file a changed pass.")] = None,
    lines: Annotated[
        str | None,
        typer.Option("--lines", metavar="23-31", help="Only what comes from these lines of the kernel's file."),
    ] = None,
    loc: Annotated[bool, typer.Option("--loc", help="Show locations.")] = False,
    output: options.Output = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
) -> int:
    """Show a capture: its summary, a stage, or the IR around a pass. Runs anywhere."""
    from irscope.cli.dump import needs_no_sass, show_captures, wanted_stages

    store = CaptureStore()
    loaded = [store.load(text) for text in captures or ["last"]]
    if output is not None or as_json or not needs_no_sass(wanted_stages(stage), after or before or each):
        loaded = [with_sass(capture) for capture in loaded]
    code = show_captures(
        loaded,
        wanted_stages(stage),
        after=after,
        before=before,
        each=each,
        lines=lines,
        loc=loc,
        output=output,
        as_json=as_json,
        color=color,
    )
    for capture in loaded:
        if capture.status == "failed":
            say(failure_text(capture))
        summed_up = () if stage or after or before or each or as_json else capture.launch.assumption_notes
        for note in capture.notes:
            if note not in summed_up:
                say(note)
    return code
