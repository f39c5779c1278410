"""Where the lines of a report's stages come from, packed: files, frames and chains numbered, lines as runs."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from irscope.ir.locations.model import Chain, Frame
from irscope.ir.locations.stages import capture_locations
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Capture, stage_named


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
