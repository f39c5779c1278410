"""Where the lines of a report's stages come from, and how long warps waited there."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from irscope.analysis.counters.operations import counted_launch
from irscope.errors import DAMAGE
from irscope.ir.locations.model import Chain, Frame
from irscope.ir.locations.stages import capture_locations
from irscope.ir.logs.source_page import Counters
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Capture, stage_named
from irscope.render.text.profile import stall_text


def heat_of(capture: Capture) -> dict[str, Any] | None:
    """`stalled`: samples of warps that waited, in all; `lines`: stage, or file of Python → (line, samples, tip).

    None for a capture without a profile, or with one that is not of its code.
    """
    if capture.profile is None:
        return None
    try:
        counted = counted_launch(capture)
    except DAMAGE:
        # It comes from the capture's file, which may say anything.
        return None
    parts: dict[tuple[str, int], list[Counters]] = {}
    for row in counted.operations:
        file, _, line = row.place.rpartition(":")
        if file:
            parts.setdefault((file, int(line)), []).append(row.counters)
        if row.line:
            parts.setdefault(("ttgir", row.line), []).append(row.counters)
        for one in row.instructions:
            parts.setdefault(("sass", one.line), []).append(one.counters)
    lines: dict[str, list[tuple[int, int, str]]] = {}
    for (stage, line), found in sorted(parts.items()):
        total = Counters.sum(found)
        lines.setdefault(stage, []).append((line, total.stalled, _tip(total)))
    return {"stalled": counted.counters.stalled, "lines": lines}


def _tip(counters: Counters) -> str:
    stalls = f"{counters.stalled} samples of warps that waited for {stall_text(counters)}" if counters.stalled else ""
    executed = f"executed {counters.executed} times by warps" if counters.executed is not None else ""
    sectors = f"{counters.sectors} sectors in {counters.lines} lines" if counters.sectors else ""
    return "; ".join(filter(None, (stalls, executed, sectors)))


def stage_locations(capture: Capture) -> dict[str, Any]:
    """The locations of every text stage of a capture.

    `stages`: of each the chain of its lines, as (chain, lines) again and again, -1 for no chain. `files`; `frames` as
    (file, line, column, function, name); `chains` as numbers of frames, innermost first. `operations`: of assembly the
    operation of its lines where the capture holds it, as (first line in the TTGIR or 0, lines) again and again.
    `owners`: (line, first line of its operation) for the lines of the TTGIR that continue an operation.
    """
    files: dict[str, int] = {}
    frames: dict[Frame, int] = {}
    chains: dict[Chain, int] = {}
    stages: dict[str, list[int]] = {}
    for stage, text in capture.texts.items():
        locations = capture_locations(capture, text, stage_named(stage).kind)
        for frame in (frame for chain in locations.chains for frame in chain):
            files.setdefault(frame.file, len(files))
            frames.setdefault(frame, len(frames))
        numbers = [chains.setdefault(chain, len(chains)) for chain in locations.chains]
        lines = (numbers[index] if index >= 0 else -1 for index in locations.by_line)
        stages[stage] = [item for number, run in groupby(lines) for item in (number, sum(1 for _ in run))]
    return {
        "stages": stages,
        "files": list(files),
        "frames": [[files[one.file], one.line, one.column, one.function, one.name] for one in frames],
        "chains": [[frames[frame] for frame in chain] for chain in chains],
        "operations": {row.stage: [item for run in row.runs for item in run] for row in capture.operations if row.runs},
        "owners": _owners(capture) if any(row.runs for row in capture.operations) else [],
    }


def _owners(capture: Capture) -> list[tuple[int, int]]:
    operations = parse_mlir(capture.texts.get("ttgir", "")).walk()
    return sorted((line, one.first_line) for one in operations for line in one.lines if line != one.first_line)
