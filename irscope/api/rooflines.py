"""The roofline of a launch: what it computes and moves, against the peaks of a part."""

from __future__ import annotations

from irscope.analysis.roofline import Roofline, roofline_of
from irscope.device.parts import PEAKS, peaks_of_device, peaks_of_target
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.record.variants.completing import with_layouts
from irscope.store.baseline import load_ceilings


def counted_roofline(capture: Capture, part: str | None = None) -> Roofline:
    """Count what a launch computes and moves.

    Args:
        capture: a launch.
        part: whose peaks, such as `h100`; None for the GPU that was measured, or the first of the target.

    Raises UsageError for a part that is unknown, or of another target.
    """
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
