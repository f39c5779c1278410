"""Where the lines of a report's stages come from, packed: files, frames and chains numbered, lines as runs."""

from __future__ import annotations

from typing import Any

from irscope.ir.locations.operations import places_of_operations
from irscope.ir.locations.stages import Chain, Frame, TextLocations, read_locations
from irscope.model.capture import Capture, stage_named


class FrameTable:
    """Numbers the files, frames and chains of one capture."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._frames: dict[Frame, int] = {}
        self._chains: dict[Chain, int] = {}

    def chain(self, chain: Chain) -> int:
        """The number of a chain."""
        known = self._chains.get(chain)
        if known is None:
            for frame in chain:
                self._files.setdefault(frame.file, len(self._files))
                self._frames.setdefault(frame, len(self._frames))
            known = self._chains[chain] = len(self._chains)
        return known

    def packed(self) -> dict[str, Any]:
        """`files`; `frames` as (file, line, column, function, name); `chains` as numbers of frames, innermost first."""
        return {
            "files": list(self._files),
            "frames": [
                [self._files[frame.file], frame.line, frame.column, frame.function, frame.name]
                for frame in self._frames
            ],
            "chains": [[self._frames[frame] for frame in chain] for chain in self._chains],
        }


def _packed_lines(locations: TextLocations, table: FrameTable) -> list[int]:
    """The chain of each line, as (chain, lines) again and again; -1 for no chain."""
    numbers = [table.chain(chain) for chain in locations.chains]
    runs: list[int] = []
    for index in locations.by_line:
        number = numbers[index] if index >= 0 else -1
        if runs and runs[-2] == number:
            runs[-1] += 1
        else:
            runs += [number, 1]
    return runs


def stage_locations(capture: Capture) -> dict[str, Any]:
    """The locations of every text stage of a capture: a packed FrameTable, and `stages` with the lines of each."""
    table = FrameTable()
    texts = {item.stage: item.data for item in capture.artifacts if isinstance(item.data, str)}
    stages: dict[str, list[int]] = {}
    for stage, text in texts.items():
        locations = read_locations(text, stage_named(stage).kind, llir=texts.get("llir"), ptx=texts.get("ptx"))
        stages[stage] = _packed_lines(places_of_operations(capture, stage, locations), table)
    return {"stages": stages, **table.packed()}
