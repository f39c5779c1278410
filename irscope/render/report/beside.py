"""Live registers, spills, dots and barriers beside the machine code of a report's capture, as `--beside` prints them.

The dataclass is the page's data: `frontend/src/data/beside.ts` has the same as a type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from irscope.analysis.source.beside import MACHINE_CODE, Beside, BesideInstruction, beside
from irscope.analysis.source.map import source_map
from irscope.errors import DAMAGE
from irscope.model.capture import Capture
from irscope.render.capture.beside import BesideColumns

__all__ = ["Kind", "MachineCode", "packed_beside"]


Kind = Literal["spill", "dot", "barrier"]


@dataclass(frozen=True, slots=True)
class MachineCode:
    """What stands beside the instructions of a stage."""

    stage: str
    registers: int | None
    """What a thread was given; None if it is not known."""
    said: str
    """What the columns are of, in words."""
    peak: int
    """The line with the most live registers; 0 if they are not known."""
    lines: tuple[int, ...]
    """Of the instructions, 1-based; each as the step from the one before."""
    live: tuple[int, ...]
    """Of each instruction; -1 where it is not known."""
    marks: tuple[tuple[int, Kind, str], ...]
    """(number of the instruction from 0, kind, what it is: `spill store`, `wgmma`)."""
    python: dict[str, tuple[tuple[int, str, str], ...]]
    """File -> (line, the most live registers of its instructions, their marks)."""


def packed_beside(capture: Capture) -> dict[str, Any] | None:
    """The machine code of a capture as JSON holds it; None if it holds none, or none that can be read."""
    stage = next((name for name in MACHINE_CODE if name in capture.texts), None)
    if stage is None:
        return None
    # Samples are in the page already: `irscope.render.report.heat`.
    alone = replace(capture, profile=None)
    try:
        found = beside(alone, stage)
        return asdict(_packed(alone, found)) if found.instructions else None
    except DAMAGE:
        # The text comes from the capture's file, which may say anything.
        return None


def _packed(capture: Capture, found: Beside) -> MachineCode:
    columns = BesideColumns(found, ("registers", "marks"))
    known = source_map(capture, [found.stage])
    the_map = known.stage(found.stage)
    own: dict[tuple[str, int], list[int]] = {}
    for line in the_map.operations.lines:
        for place in dict.fromkeys(known.places[at][0] for at in the_map.places_at(line)):
            own.setdefault(place, []).append(line)
    python: dict[str, list[tuple[int, str, str]]] = {}
    for (file, line), lines in sorted(own.items()):
        cells = columns.of_lines(lines)
        python.setdefault(file, []).append((line, cells["registers"], cells["marks"]))
    lines = [one.line for one in found.instructions]
    return MachineCode(
        found.stage,
        found.registers,
        columns.sentence(),
        found.peak.line if found.peak is not None else 0,
        tuple(line - before for before, line in zip([0, *lines], lines, strict=False)),
        tuple(-1 if one.live is None else one.live for one in found.instructions),
        tuple((at, *mark) for at, one in enumerate(found.instructions) for mark in _marks(one)),
        {file: tuple(rows) for file, rows in python.items()},
    )


def _marks(one: BesideInstruction) -> Iterator[tuple[Kind, str]]:
    if one.spill:
        yield "spill", f"spill {one.spill}"
    if one.tick:
        yield "dot" if one.is_matrix else "barrier", one.tick
