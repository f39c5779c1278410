"""`irscope poster`: draws a kernel at a glance, for a talk or a design review."""

from __future__ import annotations

from typing import Annotated, Any

from irscope.cli import app, options
from irscope.cli.grouped import grouped
from irscope.cli.output.destination import emit_json
from irscope.cli.output.pictures import Looks, is_folder, write_picture, write_pictures
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, tell_incomplete
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

_FORMATS = ("svg", "png")
_output = options.in_panel("Output")


@app.command(rich_help_panel="Inspect")
@recorded(without=("snapshots", "llvm"))
@grouped("looks", Looks)
def poster(
    subject: options.Subject = None,
    output: options.Output = None,
    form: Annotated[
        str | None,
        _output("--format", "-f", metavar="|".join(_FORMATS), help="Default: as -o's suffix says, else svg."),
    ] = None,
    as_json: options.AsJson = False,
    *,
    looks: Looks,
    record_options: RecordingOptions,
) -> int:
    """Draw a kernel at a glance: its loop turn by turn, shared memory, registers, limits and worst findings.

    One picture of 1280×720 for each launch: -o FILE.svg or .png takes the first, -o DIR/ each. --json prints what other
    commands do not have: the steps of each turn, and the registers that are live at each instruction.
    """
    from irscope.cli.dump.stages import file_names

    if as_json:
        captures = captures_of(subject, record_options)
        emit_json([_as_json(capture) for capture in captures], output)
        return tell_incomplete(captures)
    suffix = output.suffix.removeprefix(".").lower() if output is not None and not is_folder(output) else ""
    form = form or (suffix if suffix in _FORMATS else "svg")
    if form not in _FORMATS:
        raise UsageError(f"--format {form!r}: write {' or '.join(_FORMATS)}.{did_you_mean(form, _FORMATS)}")
    if suffix and suffix != form:
        raise UsageError(f"-o {str(output)!r}: a poster is an .svg or a .png, or a folder of them: -o posters/.")
    captures = captures_of(subject, record_options)
    if output is not None and is_folder(output):
        names = file_names(list(captures))
        drawn = ((name, _drawn(capture, looks)) for name, capture in zip(names, captures, strict=True))
        write_pictures(drawn, form, output, looks)
    else:
        if len(captures) > 1:
            say(f"{len(captures)} launches: this is the first. --launch N takes another, -o DIR/ draws each.")
        write_picture(_drawn(captures[0], looks), form, output, looks)
    return tell_incomplete(captures)


def _as_json(capture: Capture) -> dict[str, Any]:
    from irscope.analysis.in_flight.find import as_json, in_flight
    from irscope.render.poster.facts import live_registers

    flight, live = in_flight(capture), live_registers(capture)
    return {
        "id": capture.id,
        "kernel": capture.name,
        "target": str(capture.target),
        "loop": flight and as_json(flight),
        "registers": live and {"stage": live.stage, "live": live.live},
    }


def _drawn(capture: Capture, looks: Looks) -> str:
    from irscope.record.variants.completing import with_layouts
    from irscope.render.poster.poster import poster_svg

    return poster_svg(with_layouts(capture), looks.theme or "light")
