"""The predicted time of a launch, and of a kernel's configurations, without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

from irscope.analysis.roofline import Roofline
from irscope.api.rooflines import counted_roofline
from irscope.device.clocks import CLOCKS, clock_of
from irscope.device.occupancy import occupancy_of
from irscope.errors import IrscopeError, UsageError
from irscope.model.capture import Capture
from irscope.model.launch_record import LaunchRecord
from irscope.record.variants.completing import warned, with_sass
from irscope.timing.predict import Prediction, predict_with, predicted_from_work

__all__ = ["predict", "predicted_for", "with_floor"]


def predict(
    capture: Capture,
    *,
    part: str | None = None,
    sizes: Mapping[str, int] | None = None,
    grid: tuple[int, int, int] | None = None,
    what_if: bool = False,
) -> Prediction:
    """Predict the time of a launch.

    On CUDA the SASS of a CTA is walked and one multiprocessor simulated. Where there is no SASS (AMD, no nvdisasm) the
    prediction comes from the bytes and the arithmetic of the TTGIR, with a wider interval.

    Args:
        capture: a launch.
        part: `h100`, `h200`, …; None for the GPU that `doctor --gpu` measured, or the first of the target.
        sizes: values of integer arguments, where the launch does not tell them, or instead of its own.
        grid: CTAs, likewise.
        what_if: whether to answer what perfect coalescing, no bank conflicts and twice the warps would bring.

    Returns its seconds, the interval, what bounds it and the share of each line.
    Raises UsageError where a size or the grid is not known, or no constants of the part are.
    """
    if capture.failure is not None:
        raise UsageError(f"{capture.name} did not compile: there is nothing to time.")
    if sizes or grid:
        capture = _stated(capture, sizes or {}, grid)
    if part is None:
        part = _measured_part(capture)
    if capture.target.backend == "cuda":
        full = with_sass(capture, tell=warned)
        if "sass" in full.stages:
            return predict_with(full, part=part, what_if=what_if)
    return _analytic(capture, part)


def _stated(capture: Capture, sizes: Mapping[str, int], grid: tuple[int, int, int] | None) -> Capture:
    """The capture as if launched otherwise: its tensors are no longer those that were recorded."""
    from irscope.api.explain import with_launch

    stated = with_launch(capture, sizes, grid)
    record = stated.launch.record
    if not sizes or record is None:
        return stated
    rows = tuple(replace(row, storage_bytes=None) for row in record.arguments)
    return replace(stated, launch=replace(stated.launch, record=LaunchRecord(rows)))


def _measured_part(capture: Capture) -> str | None:
    from irscope.device.parts import peaks_of_device
    from irscope.store.baseline import load_ceilings

    for one in load_ceilings():
        if one.target == str(capture.target):
            peaks = peaks_of_device(one.device, capture.target)
            return peaks.part if peaks is not None and peaks.part in CLOCKS else None
    return None


def _analytic(stated: Capture, part: str | None) -> Prediction:
    clock = clock_of(stated.target, part)
    if stated.launch.grid is None:
        raise UsageError("this kernel was compiled but not launched: --grid X,Y,Z says how many CTAs run.")
    roofline = counted_roofline(stated, None)
    units = {str(one.unit): one.time_s[0] for one in roofline.units if one.time_s is not None}
    held = occupancy_of(stated)
    why = "no SASS" if stated.target.backend == "cuda" else f"the machine code of {stated.target} is not modelled"
    notes = (f"{why}: predicted from the bytes and the arithmetic of the TTGIR alone.", *roofline.notes)
    return predicted_from_work(
        stated, clock, stated.launch.grid, held.blocks_per_sm if held is not None else 1, roofline.dram_bytes[0], units,
        notes,
    )  # fmt: skip


def predicted_for(capture: Capture, device: str) -> Prediction | None:
    """The prediction of a launch for the GPU of a name, next to what was measured there; None where there is none."""
    from irscope.device.parts import peaks_of_device

    peaks = peaks_of_device(device, capture.target)
    if peaks is None or peaks.part not in CLOCKS or capture.target.backend != "cuda":
        return None
    try:
        return predict(capture, part=peaks.part)
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
