"""`irscope time`: the predicted time of a launch, what bounds it, and the share of each line, without a GPU."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from irscope.cli.captures import captures_of, tell_incomplete
from irscope.cli.output import Destination, Looks, under_titles, write_output, write_picture
from irscope.cli.parameters import Option, Subject
from irscope.cli.streams import say
from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.timing.predict import Prediction

Part = Annotated[
    str | None,
    Option(
        "--part",
        metavar="PART",
        help="Which part: h100, h100-pcie, h200, … Default: the GPU that doctor --gpu measured, or the first.",
    ),
]
Sizes = Annotated[
    list[str] | None,
    Option("--size", metavar="NAME=N", help="As if launched with this integer argument; repeatable."),
]
Grid = Annotated[str | None, Option("--grid", metavar="X[,Y[,Z]]", help="As if launched with so many CTAs.")]


def time(
    subject: Subject = None,
    part: Part = None,
    size: Sizes = None,
    grid: Grid = None,
    roofline: Annotated[
        bool,
        Option(
            "--roofline",
            help="Instead: what the launch computes and moves, and its minimum time at the part's peaks.",
        ),
    ] = False,
    calibrate: Annotated[
        bool,
        Option("--calibrate", help="Instead: measure this GPU's timing constants, for all predictions from now on."),
    ] = False,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Predict the time of a launch, what bounds it and the share of each line, next to its minimum time.

    Nothing is run. -o FILE.svg draws the lines and one CTA's timeline, -o FILE.trace.json writes it for Perfetto.
    """
    if calibrate:
        if subject is not None or roofline or size or grid or part is not None:
            raise UsageError("--calibrate measures the GPU that is there: it takes no capture and no other option.")
        from irscope.api.timing import calibrate as calibrated

        name, device, path = calibrated(record_options.interpreter or sys.executable)
        to.emit(
            lambda: {"part": name, "device": device, "file": str(path)}, lambda _, __: f"{device} is {name}: {path}\n"
        )
        return 0
    if roofline:
        if size or grid:
            raise UsageError("--roofline counts the launch as it was recorded: it takes no --size and no --grid.")
        return _roofline(captures_of(subject, record_options), part, to)
    from irscope.api.explain import read_grid, read_sizes
    from irscope.api.timing import predict, with_floor
    from irscope.render.timing import prediction_json, prediction_text

    sizes, programs = read_sizes(size or ()), read_grid(grid) if grid is not None else None
    captures = captures_of(subject, replace(record_options, disassemble=True))
    compiled = [one for one in captures if one.failure is None]
    predicted = {
        one.id: predict(one, part=part, sizes=sizes, grid=programs, what_if=not _is_picture(to.path))
        for one in compiled
    }
    if to.path is not None and _is_picture(to.path):
        _draw(list(predicted.values()), to.path)
        return tell_incomplete(captures)
    floors = {one.id: with_floor(one, predicted[one.id])[1] for one in compiled}
    to.emit(
        lambda: [prediction_json(predicted[one.id], floors[one.id]) for one in compiled],
        lambda width, color: under_titles(
            captures,
            lambda one: (
                prediction_text(predicted[one.id], floors[one.id], width=width, color=color)
                if one.id in predicted
                else ""
            ),
        ),
    )
    return tell_incomplete(captures)


def _roofline(captures: StoredCaptures, part: str | None, to: Destination) -> int:
    from irscope.api.rooflines import counted_roofline
    from irscope.render.roofline import roofline_json, roofline_text

    def text(one: Capture, width: int | None, color: bool) -> str:
        return roofline_text(counted_roofline(one, part), width=width, color=color) if not one.failure else ""

    to.emit(
        lambda: [roofline_json(counted_roofline(one, part)) for one in captures if one.failure is None],
        lambda width, color: under_titles(captures, lambda one: text(one, width, color)),
    )
    return tell_incomplete(captures)


def _is_picture(path: Path | None) -> bool:
    return path is not None and (path.suffix.lower() in (".svg", ".png") or path.name.endswith(".trace.json"))


def _draw(predicted: Sequence[Prediction], path: Path) -> None:
    from irscope.render.timing import prediction_svg, prediction_trace

    if len(predicted) != 1:
        raise UsageError(f"-o {str(path)!r} shows one launch, and there are {len(predicted)}: --launch N chooses one.")
    if path.name.endswith(".trace.json"):
        write_output(path, json.dumps(prediction_trace(predicted[0])).encode())
        say(f"wrote {path}")
        return
    write_picture(prediction_svg(predicted[0]), path.suffix[1:].lower(), path, Looks())
