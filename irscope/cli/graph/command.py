"""`irscope graph`: draws dataflow, control flow, the pass pipeline and loop stages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from irscope.cli import app, options
from irscope.cli.output.destination import emit_json
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, tell_failures
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions

_picture = options.in_panel("Picture")


@app.command(rich_help_panel="Inspect")
@recorded(without=("snapshots", "llvm"))
def graph(
    subject: options.Subject = None,
    stage: Annotated[
        str | None,
        _picture(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Default: the lowest one that has layouts. ptx, sass and amdgcn give the control flow.",
        ),
    ] = None,
    after: Annotated[str | None, _picture("--after", metavar="PASS[#N]", help="The IR after a pass.")] = None,
    around: Annotated[
        str | None,
        _picture(
            "--around",
            metavar="VALUE",
            help="Only what is near a value (acc_153), a label (.L_x_3) or a register (R24).",
        ),
    ] = None,
    depth: Annotated[
        int, _picture("--depth", metavar="N", min=0, max=1000, help="Steps from the value of --around.")
    ] = 3,
    lines: Annotated[
        str | None,
        _picture("--lines", metavar="23-31", help="Only what comes from these lines of the kernel's file."),
    ] = None,
    cfg: Annotated[bool, _picture("--cfg", help="The control flow, of llir too: basic blocks and jumps.")] = False,
    fold: Annotated[
        int | None,
        _picture(
            "--fold",
            metavar="0-7",
            min=0,
            max=7,
            help="Fold at least this much: 0 nothing, 1 chains (the default), up to 7 whole regions; control flow: 0 "
            "to 4.",
        ),
    ] = None,
    max_nodes: Annotated[
        int, _picture("--max-nodes", metavar="N", min=2, max=5000, help="Fold more above this many nodes.")
    ] = 120,
    pipeline: Annotated[
        bool, _picture("--pipeline", help="The passes, with those that changed the IR marked.")
    ] = False,
    loops: Annotated[
        bool, _picture("--loops", help="The stages of software-pipelined loops, and what is in flight in each.")
    ] = False,
    format_: Annotated[
        str | None,
        _picture("--format", metavar="svg|png|pdf|gv", help="Default: the suffix of -o, or gv."),
    ] = None,
    as_json: options.AsJson = False,
    output: options.Output = None,
    *,
    asked: RecordingOptions,
) -> int:
    """Draw the dataflow of a kernel: layouts are colours; memory, dots and layout conversions stand out.

    For ptx, sass and amdgcn, and for llir with --cfg, draw the control flow: basic blocks, jumps and loops.
    -o FILE.svg (.png, .pdf) runs Graphviz; without -o the graph's source is printed.
    """
    from irscope.cli.graph.pictures import GraphOptions, picture_json, picture_of, write_pictures

    kind = _kind(pipeline, loops, cfg, stage, after, around, lines)
    wanted = GraphOptions(kind, stage, after, around, depth, lines, fold, max_nodes)
    if pipeline and subject is None and asked.targets:
        from irscope.cli.subject.pipeline import pipeline_captures

        captures = pipeline_captures(asked)
    else:
        captures = captures_of(subject, asked)
    if len(captures) > 1:
        names = ", ".join(dict.fromkeys(f"{one.name} ({one.target})" for one in captures.files))
        say(f"{len(captures)} launches: {names}; this is the first. --launch N takes another, -o DIR/ draws each.")
    if as_json:
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
        raise UsageError(f"{' and '.join(pictures)} are {len(pictures)} pictures: give one.")
    if (pipeline or loops) and given:
        raise UsageError(f"{'--pipeline' if pipeline else '--loops'} and {given[0]} do not go together.")
    if stage and after:
        raise UsageError("--stage and --after do not go together: a pass has its stage, as in --after ttgir:pipeline.")
    return "pipeline" if pipeline else "loops" if loops else "blocks" if cfg else "dataflow"


def _format(asked: str | None, output: Path | None, several: bool) -> str:
    from irscope.render.dot.write import format_of

    if asked is not None:
        return format_of(asked)
    if several:
        return "svg"
    return format_of(output.suffix) if output is not None else "gv"
