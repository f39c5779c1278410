"""`irscope ablate`: each pass switched off in turn, and what comes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from irscope.analysis.ablation import SORT_KEYS, Ablation, SortKey
from irscope.cli import app, options
from irscope.cli.ablation_run import AblationRun, Wanted
from irscope.cli.output import STANDARD_OUTPUT, colored, emit, emit_json, emit_page, width
from irscope.cli.recording import recorded
from irscope.cli.subject import How
from irscope.cli.talk import say
from irscope.cli.variants import split_stages
from irscope.errors import UsageError
from irscope.interruption import Interrupted, exit_code
from irscope.plan import PassRule
from irscope.render.ablation import render_ablation

_ABLATION = "Ablation"


@app.command(rich_help_panel="What a pass is worth")
@recorded(without=("snapshots", "llvm"))
def ablate(
    subject: options.Subject = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Whose passes: ttir, ttgir (the default without --pass), llir, cubin, or all; repeatable.",
            rich_help_panel=_ABLATION,
            show_default=False,
        ),
    ] = None,
    one_pass: Annotated[
        list[str] | None,
        typer.Option(
            "--pass",
            metavar="[STAGE:]NAME[#N]",
            help="Only these passes; repeatable.",
            rich_help_panel=_ABLATION,
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="Two at a time as well: of the passes that change the binary alone, or of those --pass names.",
            rich_help_panel=_ABLATION,
        ),
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            metavar="KEY",
            help="effect, time, pass, instructions, registers, spills, shared, occupancy or convert_layouts. "
            "Default: time where it was taken, else effect.",
            rich_help_panel=_ABLATION,
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Rows for the passes that change nothing too.", rich_help_panel=_ABLATION)
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            help="Compiles at a time; by default one a core.",
            rich_help_panel=_ABLATION,
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Compile again what an earlier call did.", rich_help_panel=_ABLATION),
    ] = False,
    no_gpu: Annotated[
        bool,
        typer.Option("--no-gpu", help="Compile only, where there is a GPU too.", rich_help_panel=_ABLATION),
    ] = False,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", metavar="N", min=6, help="On a GPU: how often each is timed.", rich_help_panel=_ABLATION
        ),
    ] = 50,
    as_json: options.AsJson = False,
    color: options.Color = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write to a file: .html a page, .json JSON, else the table.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ] = None,
    *,
    asked: How,
) -> int:
    """Switch each pass off in turn, and tabulate what it was worth: what compiles, what differs, at what resources.

    On a GPU, given a script, also: does it still compute the same, and how fast. What was compiled is kept: after an
    interruption the same command goes on from there.
    """
    key = _sort_key(sort)
    wanted = Wanted(
        stages=split_stages(stage or ([] if one_pass else ["ttgir"])),
        rules=tuple(PassRule.parse(text) for text in one_pass or ()),
        pairs=pairs,
        jobs=jobs,
        fresh=fresh,
        gpu=not no_gpu and not asked.virtual,
        rounds=rounds,
    )
    run = AblationRun(subject, replace(asked, disassemble=False), wanted)
    try:
        run.run()
    except (KeyboardInterrupt, Interrupted) as stop:
        if run.ablation is None:
            raise
        _write(run.ablation, key, every, as_json, color, output)
        to_go = f" with {run.ablation.missing} variants to go" if run.ablation.missing else ""
        say(f"interrupted{to_go}; the same command goes on from there.")
        return exit_code(stop)
    if run.ablation is None:
        return 1
    _write(run.ablation, key, every, as_json, color, output)
    return 0


def _sort_key(text: str | None) -> SortKey | None:
    if text is None:
        return None
    key = text.replace("-", "_")
    if key not in SORT_KEYS:
        raise UsageError(f"--sort {text!r}: it takes {', '.join(SORT_KEYS)}.")
    return key


def _write(
    ablation: Ablation, sort: SortKey | None, every: bool, as_json: bool, color: bool | None, output: Path | None
) -> None:
    suffix = output.suffix if output is not None else ""
    if as_json or suffix == ".json":
        emit_json(ablation.as_json(), output)
    elif suffix == ".html":
        from irscope.render.ablation_html import render_ablation_html

        emit_page(render_ablation_html(ablation, sort=sort), output)
    else:
        paint = colored(color) and output is None
        emit(render_ablation(ablation, sort=sort, every=every, width=width(), color=paint), output, painted=paint)
    if output is not None and output != STANDARD_OUTPUT:
        say(f"wrote {output}")
