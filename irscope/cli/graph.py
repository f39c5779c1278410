"""`irscope graph`: dataflow and control flow, the pipeline of passes, and loop stages, as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from irscope.cli import app, options
from irscope.cli.recording import recorded
from irscope.cli.subject import How, captures_of, tell_failures
from irscope.cli.talk import say
from irscope.errors import UsageError

_PICTURE = "Picture"


@app.command(rich_help_panel="Look into it")
@recorded(without=("snapshots", "llvm"))
def graph(
    subject: options.Subject = None,
    stage: Annotated[
        str | None,
        typer.Option(
            "--stage",
            "-s",
            metavar="STAGE",
            help="By default the lowest that has layouts. ptx, sass and amdgcn give their control flow.",
            rich_help_panel=_PICTURE,
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--after", metavar="PASS[#N]", help="The IR after a pass.", rich_help_panel=_PICTURE, show_default=False
        ),
    ] = None,
    around: Annotated[
        str | None,
        typer.Option(
            "--around",
            metavar="VALUE",
            help="Only what stands near a value: acc_153; near a label or a register: .L_x_3, R24.",
            rich_help_panel=_PICTURE,
            show_default=False,
        ),
    ] = None,
    depth: Annotated[
        int,
        typer.Option("--depth", metavar="N", min=0, max=1000, help="Steps from that value.", rich_help_panel=_PICTURE),
    ] = 3,
    lines: Annotated[
        str | None,
        typer.Option(
            "--lines",
            metavar="23-31",
            help="Only what comes from these lines of the kernel's file.",
            rich_help_panel=_PICTURE,
            show_default=False,
        ),
    ] = None,
    cfg: Annotated[
        bool,
        typer.Option("--cfg", help="The control flow: basic blocks and jumps, of llir too.", rich_help_panel=_PICTURE),
    ] = False,
    fold: Annotated[
        int | None,
        typer.Option(
            "--fold",
            metavar="0-7",
            min=0,
            max=7,
            help="How hard to fold at least: 0 not at all, 1 chains (the default), 7 by region; a control flow to 4.",
            rich_help_panel=_PICTURE,
            show_default=False,
        ),
    ] = None,
    max_nodes: Annotated[
        int,
        typer.Option("--max-nodes", metavar="N", min=2, max=5000, help="Fold harder above.", rich_help_panel=_PICTURE),
    ] = 120,
    pipeline: Annotated[
        bool, typer.Option("--pipeline", help="The passes, those that changed the IR marked.", rich_help_panel=_PICTURE)
    ] = False,
    loops: Annotated[
        bool,
        typer.Option(
            "--loops", help="The stages of software-pipelined loops: what is in flight when.", rich_help_panel=_PICTURE
        ),
    ] = False,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="svg|png|pdf|gv",
            help="By default as -o says, else gv.",
            rich_help_panel=_PICTURE,
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
    output: options.Output = None,
    *,
    asked: How,
) -> int:
    """The dataflow of a kernel as a picture: layouts are colours; memory, dots and layout conversions stand out.

    Of ptx, sass and amdgcn, and with --cfg of llir, it is the control flow: basic blocks, jumps and loops.
    -o FILE.svg (.png, .pdf) draws it with Graphviz; without -o the graph's source is printed.
    """
    from irscope.cli.graph_pictures import Wanted, picture_json, picture_of, write_pictures

    kind = _kind(pipeline, loops, cfg, stage, after, around, lines)
    wanted = Wanted(kind, stage, after, around, depth, lines, fold, max_nodes)
    if pipeline and subject is None and asked.targets:
        from irscope.cli.pipeline import pipeline_captures

        captures = pipeline_captures(asked)
    else:
        captures = captures_of(subject, asked)
    if len(captures) > 1:
        names = ", ".join(dict.fromkeys(f"{one.name} ({one.target})" for one in captures))
        say(f"{len(captures)} launches: {names}; this is the first. --launch N takes another, -o DIR/ draws each.")
    if as_json:
        from irscope.cli.output import emit_json

        emit_json([picture_json(capture, wanted) for capture in captures], output)
    else:
        several = output is not None and not output.suffix
        chosen = captures if several else captures[:1]
        pictures = [(capture, picture_of(capture, wanted)) for capture in chosen]
        for _, picture in pictures:
            for note in picture.notes:
                say(note)
        write_pictures(pictures, output, _format(format_, output, several))
    return tell_failures(captures)


def _kind(
    pipeline: bool, loops: bool, cfg: bool, stage: str | None, after: str | None, around: str | None, lines: str | None
) -> Literal["dataflow", "blocks", "pipeline", "loops"]:
    given = [
        name
        for name, value in (("--stage", stage), ("--after", after), ("--around", around), ("--lines", lines))
        if value
    ]
    pictures = [name for name, asked in (("--pipeline", pipeline), ("--loops", loops), ("--cfg", cfg)) if asked]
    if len(pictures) > 1:
        raise UsageError(f"{' and '.join(pictures)} are {len(pictures)} pictures: ask for one.")
    if (pipeline or loops) and given:
        raise UsageError(f"{'--pipeline' if pipeline else '--loops'} and {given[0]} do not go together.")
    if stage and after:
        raise UsageError("--stage and --after do not go together: a pass has its stage, as in --after ttgir:pipeline.")
    return "pipeline" if pipeline else "loops" if loops else "blocks" if cfg else "dataflow"


def _format(asked: str | None, output: Path | None, several: bool) -> str:
    from irscope.render.dot_write import format_of

    if asked is not None:
        return format_of(asked)
    if several:
        return "svg"
    return format_of(output.suffix) if output is not None else "gv"
