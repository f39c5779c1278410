"""`irscope roofline`: what a launch computes and moves, against the peaks of its target, without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from irscope.cli import app, options
from irscope.cli.grouped import grouped
from irscope.cli.output.destination import Destination, under_titles, with_destination
from irscope.cli.output.pictures import Looks, write_picture
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, tell_incomplete
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

if TYPE_CHECKING:
    from irscope.analysis.roofline.roofline import Roofline

_roofline = options.in_panel("Output")


@app.command(rich_help_panel="Inspect")
@recorded(without=("snapshots", "llvm"))
@with_destination
@grouped("looks", Looks)
def roofline(
    subject: options.Subject = None,
    part: Annotated[
        str | None,
        _roofline(
            "--part",
            metavar="PART",
            help="Whose peaks: h100, h100-pcie, h200, … Default: the GPU that 'doctor --gpu' measured, or the first.",
        ),
    ] = None,
    *,
    to: Destination,
    looks: Looks,
    record_options: RecordingOptions,
) -> int:
    """Count what a launch computes and the bytes that it must move, and the least time that its target's peaks allow.

    Nothing is run: the counts come from the IR and what the launch was given. -o FILE.svg draws the chart.
    """
    from irscope.render.roofline import roofline_json, roofline_text

    captures = captures_of(subject, record_options)
    counted: Callable[[Capture], Roofline] = lambda capture: _counted(capture, part)  # noqa: E731
    if to.path is not None and to.path.suffix.lower() in (".svg", ".png"):
        if to.as_json:
            raise UsageError(f"-o {str(to.path)!r} is a picture: leave out --json, or write to another file.")
        if len(captures) > 1:
            say(f"{len(captures)} launches: this is the first. --launch N takes another.")
        _draw(counted(captures[0]), to.path, looks)
        return tell_incomplete(captures)
    to.emit(
        lambda: [roofline_json(counted(capture)) for capture in captures if capture.failure is None],
        lambda width, color: under_titles(
            captures, lambda one: roofline_text(counted(one), width=width, color=color) if one.failure is None else ""
        ),
    )
    return tell_incomplete(captures)


def _draw(found: Roofline, file: Path, looks: Looks) -> None:
    from irscope.render.roofline import roofline_svg

    write_picture(roofline_svg(found, looks.theme), file.suffix.lower().removeprefix("."), file, looks)


def _counted(capture: Capture, part: str | None) -> Roofline:
    from irscope.analysis.roofline.roofline import roofline_of
    from irscope.device.parts import PEAKS, peaks_of_device, peaks_of_target
    from irscope.record.variants.completing import with_layouts
    from irscope.store.baseline import load_ceilings

    ceilings = next((one for one in load_ceilings() if one.target == str(capture.target)), None)
    known = peaks_of_target(capture.target)
    if part is None:
        measured = peaks_of_device(ceilings.device, capture.target) if ceilings is not None else None
        return roofline_of(with_layouts(capture), measured or next(iter(known), None), ceilings)
    if (chosen := PEAKS.get(part.lower())) is None:
        raise UsageError(f"--part {part!r}: no peaks of it are known.{did_you_mean(part, [*PEAKS])}")
    if chosen not in known:
        names = ", ".join(one.part for one in known) or "none"
        raise UsageError(
            f"--part {part!r} is a {chosen.target}, and this launch was compiled for {capture.target}, with the parts "
            f"{names}. --target {chosen.target} compiles it for that."
        )
    mine = ceilings if ceilings is not None and peaks_of_device(ceilings.device, capture.target) == chosen else None
    return roofline_of(with_layouts(capture), chosen, mine)
