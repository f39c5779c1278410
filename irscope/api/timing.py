"""The predicted time of a launch, as recorded or with stated sizes, and its roofline, without a GPU."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from irscope.analysis.roofline import Roofline, roofline_of
from irscope.api.notebook import display_as_text
from irscope.device.clocks import CLOCKS, Clock, clock_of
from irscope.device.occupancy import occupancy_of
from irscope.device.parts import PEAKS, Peaks, peaks_of_device, peaks_of_target
from irscope.errors import IrscopeError, MissingTool, NoDevice, RecordingError, UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.evidence import Ceilings
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.model.telling import divisor_of
from irscope.record.variants.completing import with_layouts, with_sass
from irscope.store.baseline import load_ceilings, load_clocks, save_clock
from irscope.target import Target
from irscope.timing.execution import timed_grid
from irscope.timing.predict import Prediction, predict_with, predicted_from_work
from irscope.timing.walk import NotFollowed

_MOST_DIGITS = 18
_MOST_PROGRAMS = (1 << 31) - 1


def read_sizes(texts: Iterable[str]) -> dict[str, int]:
    """`NAME=VALUE`, several of them with commas between; raises UsageError for anything else."""
    sizes: dict[str, int] = {}
    for text in (part for whole in texts for part in whole.split(",")):
        name, _, value = text.strip().partition("=")
        if not name or not _is_integer(value):
            raise UsageError(f"--size {text!r} is not a size: write NAME=INTEGER, such as n=4096.")
        sizes[name] = int(value)
    return sizes


def read_grid(text: str) -> tuple[int, int, int]:
    """`X`, `X,Y` or `X,Y,Z`; raises UsageError for anything else."""
    parts = text.replace("x", ",").split(",")
    numbers = [int(part) for part in parts if part.isdecimal() and len(part) < 11]
    if len(numbers) != len(parts) or not 1 <= len(parts) <= 3 or not all(0 < one <= _MOST_PROGRAMS for one in numbers):
        raise UsageError(f"--grid {text!r} is not a grid: write one to three positive integers, such as 128 or 64,64.")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS


def with_launch(
    capture: Capture, sizes: Mapping[str, int], grid: tuple[int, int, int] | None, *, must_fit: bool = True
) -> Capture:
    """The capture with stated sizes and grid in place of those of its launch.

    `must_fit`: whether a size that it was not compiled for is refused.
    Raises UsageError for a name that is no integer argument, and for a size that does not fit.
    """
    launch = capture.launch
    integers = [name for name, kind in launch.signature if kind[:1] in ("i", "u") and kind[1:].isdecimal()]
    divisors = {name: divisor_of(text) for name, text in launch.attributes}
    for name, value in sizes.items():
        if name not in integers:
            known = did_you_mean(name, integers) or " It has none at all."
            raise UsageError(f"--size {name}: {capture.name} has no integer argument {name!r}.{known}")
        if must_fit and value % divisors.get(name, 1):
            raise UsageError(
                f"--size {name}={value}: {capture.name} was compiled for multiples of {divisors[name]}. State another "
                "size, or record a launch with this one."
            )
    rows = launch.record.arguments if launch.record is not None else ()
    stated = {name: Argument(name, "scalar", "int", value) for name, value in sizes.items()}
    record = LaunchRecord((*(row for row in rows if row.path not in stated), *stated.values()))
    return replace(capture, launch=replace(launch, grid=grid or launch.grid, record=record))


@contextmanager
def _without_collection() -> Iterator[None]:
    """Let Python collect no cycles meanwhile: a prediction makes none, and looking for them is 7 % of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def time(
    capture: Capture,
    *,
    part: str | None = None,
    sizes: Mapping[str, int] | None = None,
    grid: tuple[int, int, int] | None = None,
    what_if: bool = False,
    must_fit: bool = True,
) -> Prediction:
    """Predict the time of a launch; `irscope.predict` is the same function.

    On CUDA the SASS of a CTA is walked and one multiprocessor simulated. Where there is no SASS (AMD, no nvdisasm), or
    it jumps to an unknown target, the prediction comes from the bytes and the arithmetic of the TTGIR, with a wider
    interval.

    Args:
        capture: a launch.
        part: `h100`, `h200`, …; None for the GPU that `doctor --gpu` measured, or the first of the target.
        sizes: values of integer arguments that the launch lacks, or in place of its own.
        grid: CTAs, likewise.
        what_if: whether to predict the launch with perfect coalescing, no bank conflicts, twice the warps.
        must_fit: whether to refuse a size that needs another compile, since it is not divisible by 16.

    >>> time(capture, grid=(64, 1, 1)).bound
    'launch overhead'

    Returns its seconds, the interval, the bound and the share of each line.
    Raises UsageError where a size or the grid is not known, or no constants of the part are.
    """
    from irscope.render.timing import prediction_text

    display_as_text(Prediction, prediction_text)
    if capture.failure is not None:
        raise UsageError(f"{capture.name} did not compile: there is nothing to time.")
    if sizes or grid:
        capture = _stated(capture, sizes or {}, grid, must_fit)
    if part is None:
        _, peaks = _measured_peaks(capture)
        part = peaks.part if peaks is not None and peaks.part in CLOCKS else None
    if capture.target.backend == "cuda":
        full = with_sass(capture)
        if "sass" in full.stages:
            try:
                with _without_collection():
                    return predict_with(full, clock=_calibrated_clock(full.target, part), what_if=what_if)
            except NotFollowed as error:
                return _analytic(capture, part, f"its SASS was not followed ({str(error).rstrip('.')})")
    why = "no SASS" if capture.target.backend == "cuda" else f"the machine code of {capture.target} is not modelled"
    return _analytic(capture, part, why)


predict = time


def _calibrated_clock(target: Target, part: str | None) -> Clock:
    """The constants of a part, those among them that `calibrate` measured here; raises UsageError."""
    clock = clock_of(target, part)
    return clock.calibrated(load_clocks().get(clock.part, {}))


def calibrate(interpreter: str, measure: Callable[[str], Mapping[str, Any]] | None = None) -> tuple[str, str, Path]:
    """Measure the timing constants of the GPU that is there, for all predictions from now on.

    Args:
        interpreter: a Python with Triton and torch; irscope is imported into it.
        measure: what runs the microbenchmarks in it; another one in tests.

    Returns the part, the device's name and the file in the user's folder.
    Raises NoDevice where there is no GPU or it cannot be measured, and UsageError for a part without constants.
    """
    measured = (measure or _measured_constants)(interpreter)
    device = str(measured["device"])
    parts = {row.target: peaks_of_device(device, Target.parse(row.target)) for row in CLOCKS.values()}
    part = next((peaks.part for peaks in parts.values() if peaks is not None and peaks.part in CLOCKS), None)
    if part is None:
        raise UsageError(f"{device!r} is not a part with timing constants: {', '.join(CLOCKS)}.")
    return part, device, save_clock(part, measured["constants"])


def _measured_constants(interpreter: str) -> Mapping[str, Any]:
    from irscope.record.process.child import ask_child

    try:
        return ask_child("irscope.record.gpu.microbench", interpreter=interpreter, timeout_s=300)
    except (MissingTool, RecordingError) as error:
        raise NoDevice(f"The GPU could not be measured: {error}") from error


def _stated(capture: Capture, sizes: Mapping[str, int], grid: tuple[int, int, int] | None, must_fit: bool) -> Capture:
    """The capture as if launched otherwise: its tensors are no longer those that were recorded."""
    stated = with_launch(capture, sizes, grid, must_fit=must_fit)
    record = stated.launch.record
    if not sizes or record is None:
        return stated
    rows = tuple(replace(row, storage_bytes=None) for row in record.arguments)
    return replace(stated, launch=replace(stated.launch, record=LaunchRecord(rows)))


def _measured_peaks(capture: Capture) -> tuple[Ceilings | None, Peaks | None]:
    """What the GPU of a capture's target was measured to reach, and the peaks of its part; as far as they are known."""
    ceilings = next((one for one in load_ceilings() if one.target == str(capture.target)), None)
    return ceilings, peaks_of_device(ceilings.device, capture.target) if ceilings is not None else None


def _analytic(stated: Capture, part: str | None, why: str) -> Prediction:
    clock = _calibrated_clock(stated.target, part)
    grid = timed_grid(stated)
    roofline = counted_roofline(stated, None)
    units = {str(one.unit): one.time_s[0] for one in roofline.units if one.time_s is not None}
    held = occupancy_of(stated)
    notes = (f"{why}: predicted from the bytes and the arithmetic of the TTGIR alone.", *roofline.notes)
    return predicted_from_work(
        stated, clock, grid, held.ctas_per_sm if held is not None else 1, roofline.dram_bytes[0], units,
        notes,
    )  # fmt: skip


def predicted_for(capture: Capture, device: str) -> Prediction | None:
    """The prediction of a launch for the GPU of a name, next to what was measured there; None where there is none."""
    peaks = peaks_of_device(device, capture.target)
    if peaks is None or peaks.part not in CLOCKS or capture.target.backend != "cuda":
        return None
    try:
        return time(capture, part=peaks.part)
    except IrscopeError:
        return None


def with_floor(capture: Capture, prediction: Prediction) -> tuple[Roofline | None, float | None]:
    """The roofline of a launch, and its minimum time on the prediction's part; None where it cannot be told."""
    launch = replace(capture.launch, grid=prediction.grid)
    try:
        roofline = counted_roofline(replace(capture, launch=launch), prediction.part)
    except IrscopeError:
        return None, None
    floor = roofline.floor_s
    return roofline, floor[0] if floor is not None and floor[0] < inf else None


def counted_roofline(capture: Capture, part: str | None = None) -> Roofline:
    """Count what a launch computes and moves.

    Args:
        capture: a launch.
        part: whose peaks, such as `h100`; None for the GPU that was measured, or the first of the target.

    Raises UsageError for a part that is unknown, or of another target.
    """
    ceilings, measured = _measured_peaks(capture)
    known = peaks_of_target(capture.target)
    if part is None:
        return roofline_of(with_layouts(capture), measured or next(iter(known), None), ceilings)
    if (chosen := PEAKS.get(part.lower())) is None:
        raise UsageError(f"--part {part!r}: no peaks of it are known.{did_you_mean(part, [*PEAKS])}")
    if chosen not in known:
        names = ", ".join(one.part for one in known) or "none"
        raise UsageError(
            f"--part {part!r} is a {chosen.target}, and this launch was compiled for {capture.target}, with the parts "
            f"{names}. --target {chosen.target} compiles it for that."
        )
    return roofline_of(with_layouts(capture), chosen, ceilings if measured == chosen else None)
