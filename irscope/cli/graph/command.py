"""`irscope graph`: draws dataflow, control flow, the pass pipeline and loop stages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from irscope.cli import app, options
from irscope.cli.graph.options import GraphOptions, picture
from irscope.cli.grouped import grouped
from irscope.cli.output.destination import emit_json
from irscope.cli.output.page import emit_report, is_page
from irscope.cli.output.pictures import Looks
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, captures_with_passes, tell_incomplete
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions


@app.command(rich_help_panel="Inspect")
@recorded(without=("snapshots", "llvm"))
@grouped("wanted", GraphOptions)
@grouped("looks", Looks)
def graph(
    subject: options.Subject = None,
    *,
    wanted: GraphOptions,
    format_: Annotated[
        str | None,
        picture("--format", metavar="svg|png|pdf|gv|html", help="Default: the suffix of -o, or gv; of --warps svg."),
    ] = None,
    as_json: options.AsJson = False,
    output: options.Output = None,
    looks: Looks,
    record_options: RecordingOptions,
) -> int:
    """Draw the dataflow of a kernel: layouts are colours; memory, dots and layout conversions stand out.

    --warps draws the partitions of a warp-specialised kernel, with what they hand over, as an SVG or a PNG.
    For ptx, sass and amdgcn, and for llir with --cfg, draw the control flow: basic blocks, jumps and loops.
    -o FILE.svg (.png, .pdf) runs Graphviz; without -o the graph's source is printed.
    """
    from irscope.cli.graph.pictures import picture_json, picture_of
    from irscope.cli.graph.writing import write_pictures

    captures = (captures_with_passes if wanted.pipeline else captures_of)(subject, record_options)
    if len(captures) > 1:
        names = ", ".join(dict.fromkeys(f"{one.name} ({one.target})" for one in captures.files))
        say(f"{len(captures)} launches: {names}; this is the first. --launch N takes another, -o DIR/ draws each.")
    if format_ == "html" or (format_ is None and is_page(output)):
        emit_report(captures, _view(wanted), output)
        return tell_incomplete(captures)
    if as_json:
        emit_json([picture_json(capture, wanted) for capture in captures], output)
    else:
        several = output is not None and not output.suffix
        chosen = captures if several else captures[:1]
        pictures = [(capture, picture_of(capture, wanted, looks.theme)) for capture in chosen]
        for _, one in pictures:
            for note in one.notes:
                say(note)
        write_pictures(pictures, output, _format(format_, output, several, wanted), looks)
    return tell_incomplete(captures)


def _view(wanted: GraphOptions) -> dict[str, object]:
    """The view of the page that shows a graph; raises UsageError for a part of one, which it does not show."""
    parts = {"--after": wanted.after, "--around": wanted.around, "--lines": wanted.lines, "--fold": wanted.fold}
    if given := [name for name, value in parts.items() if value]:
        raise UsageError(f"{given[0]} does not go with a page, which shows whole stages: write -o FILE.svg.")
    kinds = {"passes": wanted.pipeline, "loops": wanted.loops, "warps": wanted.warps}
    stage = next((of for of, chosen in kinds.items() if chosen), None)
    stage = stage or wanted.stage or ("llir" if wanted.cfg else None)
    return {"tab": "graph", "of": stage} if stage else {"tab": "graph"}


def _format(asked: str | None, output: Path | None, several: bool, wanted: GraphOptions) -> str:
    from irscope.render.dot.graph import format_of

    if asked is not None:
        return format_of(asked)
    if several or (output is None and wanted.warps):
        return "svg"
    return format_of(output.suffix) if output is not None else "gv"
