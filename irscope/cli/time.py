"""`irscope time`: the predicted time of a launch, what bounds it, and the share of each line, without a GPU."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from irscope.cli.captures import captures_of, tell_incomplete
from irscope.cli.command import Part, Subject
from irscope.cli.output import TRACE, Destination, draw_or_trace, draws_or_traces, write_output
from irscope.cli.streams import say
from irscope.errors import IrscopeError, ParseError, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.ir.logs.proton import MeasuredKernel

_MOST_BYTES = 1 << 30
_Row = TypeVar("_Row")


def time(
    subject: Subject = None,
    part: Part = None,
    size: list[str] | None = None,
    grid: str | None = None,
    roofline: bool = False,
    calibrate: bool = False,
    proton: Path | None = None,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Predict the time of a launch, what bounds it and the share of each line, next to its minimum time.

    Nothing is run. -o FILE.svg draws the lines and one CTA's timeline, -o FILE.trace.json writes it for Perfetto.

    Options:
        --size NAME=N: Predict for another integer argument of the launch; repeatable.
        --grid X[,Y[,Z]]: Predict for another grid, in CTAs.
        --roofline: Instead: what the launch computes and moves, and its minimum time at the part's peaks.
        --calibrate: Instead: measure this GPU's timing constants, for all predictions from now on.
        --proton FILE: Next to what Proton measured of the same kernels and lines; with -o FILE.trace.json, in one
            trace with the compile.
    """
    if proton is not None and (roofline or calibrate):
        raise UsageError("--proton is compared with a predicted time: leave out --roofline and --calibrate.")
    if calibrate:
        if subject is not None or roofline or size or grid or part is not None:
            raise UsageError("--calibrate measures the GPU that is there: it takes no capture and no other option.")
        from irscope.api.timing import calibrate as calibrated

        name, device, path = calibrated(record_options.interpreter or sys.executable)
        answer = {"part": name, "device": device, "file": str(path)}
        to.emit(lambda: answer, lambda width, color: f"{device} is {name}: {path}\n")
        return 0
    if roofline:
        if size or grid:
            raise UsageError("--roofline counts the launch as it was recorded: it takes no --size and no --grid.")
        return _roofline(captures_of(subject, record_options), part, to)
    from irscope.api.timing import read_grid, read_sizes, with_floor
    from irscope.api.timing import time as predict
    from irscope.render.timing import measured_json, measured_text, prediction_json, prediction_text

    sizes, programs = read_sizes(size or ()), read_grid(grid) if grid is not None else None
    measured = _measured(proton) if proton is not None else None
    captures = captures_of(subject, replace(record_options, disassemble=True))
    compiled, predictions = _each(
        captures,
        lambda one: predict(one, part=part, sizes=sizes, grid=programs, what_if=not draws_or_traces(to.path)),
    )
    predicted = {one.id: row for one, row in zip(compiled, predictions, strict=True)}
    if to.path is not None and measured is not None and to.path.name.endswith(TRACE):
        from irscope.render.traces import joined_trace

        write_output(to.path, json.dumps(joined_trace(compiled, predicted, measured)).encode())
        say(f"wrote {to.path}")
        return tell_incomplete(captures)
    if to.path is not None and draws_or_traces(to.path):
        from irscope.render.timing import prediction_svg
        from irscope.render.traces import prediction_trace

        if predicted:
            draw_or_trace(list(predicted.values()), to.path, prediction_svg, prediction_trace)
        return tell_incomplete(captures)
    floors = {one.id: with_floor(one, predicted[one.id])[1] for one in compiled}

    def as_json(one: Capture) -> dict[str, Any]:
        found = next((item for item in measured or () if item.is_of(one.name)), None)
        row = prediction_json(predicted[one.id], floors[one.id])
        return row | {"measured": measured_json(predicted[one.id], found)}

    def text(one: Capture, width: int | None, color: bool) -> str:
        found = prediction_text(predicted[one.id], floors[one.id], width=width, color=color)
        if measured is None:
            return found
        kernel = next((item for item in measured if item.is_of(one.name)), None)
        return f"{found}\n{measured_text(predicted[one.id], kernel, width=width, color=color)}"

    to.emit_each(compiled, as_json, text)
    return tell_incomplete(captures)


def _measured(path: Path) -> Sequence[MeasuredKernel]:
    from irscope.ir.logs.files import FileRefused, read_regular
    from irscope.ir.logs.proton import read_proton

    try:
        data = read_regular(path, _MOST_BYTES)
    except FileRefused as error:
        raise ParseError(f"--proton {str(path)!r} {error}.") from error
    kernels, damaged = read_proton(data.decode("utf-8", "replace"), path.name)
    if damaged:
        say(f"{damaged} lines of {path.name} are not complete objects and were skipped.")
    return kernels


def _roofline(captures: StoredCaptures, part: str | None, to: Destination) -> int:
    from irscope.api.timing import counted_roofline
    from irscope.render.roofline import roofline_json, roofline_text

    compiled, counted = _each(captures, lambda one: counted_roofline(one, part))
    rooflines = {one.id: row for one, row in zip(compiled, counted, strict=True)}
    to.emit_each(
        compiled,
        lambda one: roofline_json(rooflines[one.id]),
        lambda one, width, color: roofline_text(rooflines[one.id], width=width, color=color),
    )
    return tell_incomplete(captures)


def _each(captures: StoredCaptures, make: Callable[[Capture], _Row]) -> tuple[list[Capture], list[_Row]]:
    """What is made of each compiled capture; one of several that fails is named, and left out."""
    compiled = [one for one in captures if one.failure is None]
    made: list[Capture] = []
    rows: list[_Row] = []
    for number, one in enumerate(compiled, 1):
        try:
            rows.append(make(one))
        except IrscopeError as error:
            if number == len(compiled) and not rows:
                raise
            say(f"{one.name} ({one.id[:8]}): {error}")
        else:
            made.append(one)
    return made, rows
