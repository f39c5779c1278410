"""The picture of a capture's partitions, with the lines of TTGIR that its parts stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irscope.analysis.flow.partitions import most_specialised, read_partitions
from irscope.analysis.flow.warp_turns import events_of
from irscope.model.capture import Capture
from irscope.render.dot.stages import python_lines
from irscope.render.warps.picture import warps_svg
from irscope.render.warps.words import told

__all__ = ["WarpsPicture", "warps_picture"]


@dataclass(frozen=True, slots=True)
class WarpsPicture:
    """A picture of partitions."""

    svg: str
    lines: Mapping[str, tuple[int, ...]]
    """Name of an operation in it -> its line of the TTGIR, 1-based."""
    note: str
    """What is not in it; empty if all is."""


def warps_picture(capture: Capture, theme: str = "light") -> WarpsPicture | None:
    """The warp specialisation of a capture that hands over most; None for a kernel without one."""
    text = capture.texts.get("ttgir", "")
    found = read_partitions(text)
    if (one := most_specialised(found)) is None:
        return None
    version = capture.environment.triton_version
    place = f"{capture.target} · Triton {version}" if version else str(capture.target)
    note = f"1 of {len(found)} warp specialisations, that of line {one.line}" if len(found) > 1 else ""
    svg = warps_svg(one, (capture.name, place), theme, python_lines(capture, text, "mlir"))
    rings = {ring.line: ring for ring in (*one.buffers, *one.barriers)}
    return WarpsPicture(svg, {told(event, rings): (event.line,) for event in events_of(one)}, note)
