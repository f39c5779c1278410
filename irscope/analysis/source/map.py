"""The source map: any line of Python ↔ the operations of any stage, joined through the whole chain of calls.

What is stored is one number per text line, the place it comes from; everything else is joined on demand.
A place is the chain of calls without the lines of Triton's own library: those are rolled up to the line that called
them, so that two calls of `tl.sum` on two lines are two places, and so are two calls of one helper.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from irscope.analysis.source.calls import CallSites, read_call_sites
from irscope.analysis.source.operations import Operations, read_stage_operations
from irscope.errors import StageNotFound
from irscope.ir.locations.model import Chain, TextLocations
from irscope.ir.locations.stages import capture_locations
from irscope.ir.locations.user import Place, place_of
from irscope.model.capture import STAGES, Capture, stage_named

_MLIR_STAGES = frozenset(stage.name for stage in STAGES if stage.kind == "mlir")


def _places(chain: Chain, kernel_file: str, sites: CallSites) -> tuple[Place, ...]:
    """The places of a chain: as many as the function that it ends in has callers."""
    chains = [(*chain, *callers) for callers in sites.callers(chain[-1])] or [chain]
    return tuple(dict.fromkeys(place for one in chains if (place := place_of(one, kernel_file))))


@dataclass(frozen=True)
class StageMap:
    """Where the operations of one stage come from."""

    stage: str
    locations: TextLocations
    operations: Operations
    places_of_chain: tuple[tuple[int, ...], ...]
    """For each of the locations' chains, indices into the map's places: one, or one per call of a function that is
    not inlined."""

    def places_at(self, line: int) -> tuple[int, ...]:
        """The places of a text line, 1-based; none if it has no location, or only one in the library."""
        by_line = self.locations.by_line
        chain = by_line[line - 1] if 0 < line <= len(by_line) else -1
        return self.places_of_chain[chain] if chain >= 0 else ()

    @cached_property
    def at_place(self) -> dict[int, tuple[int, ...]]:
        """For each place that has some, the indices of its operations, in the order of the text."""
        found: dict[int, list[int]] = {}
        for index, line in enumerate(self.operations.lines):
            for place in self.places_at(line):
                found.setdefault(place, []).append(index)
        return {place: tuple(indices) for place, indices in found.items()}


@dataclass(frozen=True, slots=True)
class StageCount:
    """The operations of one line of Python at one stage."""

    stage: str
    own: int
    """Operations that the line itself wrote, those of the library that it called among them."""
    called: int
    """Operations of other lines of Python that this one called."""
    kinds: tuple[tuple[str, int], ...]
    """(kind, how many), the most frequent first: operations by name, instructions by family and width."""
    live_registers: int | None = None
    """The most general registers that hold a value at one of its instructions; None if that is not known."""

    @property
    def total(self) -> int:
        """All that became of the line."""
        return self.own + self.called


@dataclass(frozen=True)
class SourceMap:
    """Any line of Python ↔ any stage of one capture."""

    kernel_file: str
    places: tuple[Place, ...]
    stages: tuple[StageMap, ...]

    def stage(self, name: str) -> StageMap:
        """The map of one stage; raises StageNotFound."""
        if (found := next((one for one in self.stages if one.stage == name), None)) is not None:
            return found
        held = ", ".join(stage.stage for stage in self.stages) or "none"
        raise StageNotFound(f"stage {name!r} has no lines to map: choose one of {held}.")

    @cached_property
    def places_of_line(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """(file, line) -> the places that it stands in, as the line itself or as one that called."""
        found: dict[tuple[str, int], list[int]] = {}
        for index, place in enumerate(self.places):
            for frame in dict.fromkeys(place):
                found.setdefault(frame, []).append(index)
        return {frame: tuple(indices) for frame, indices in found.items()}

    @property
    def python_lines(self) -> tuple[tuple[str, int], ...]:
        """Every (file, line) outside of the library that something comes from, the kernel's file first."""
        return tuple(sorted(self.places_of_line, key=lambda frame: (frame[0] != self.kernel_file, *frame)))

    def counts(self, file: str, line: int) -> tuple[StageCount, ...]:
        """The operations of a line of Python at each stage."""
        places = self.places_of_line.get((file, line), ())
        return tuple(self._count(stage, places, (file, line)) for stage in self.stages)

    def matching(self, pattern: re.Pattern[str], stages: Iterable[str] = ()) -> dict[str, tuple[int, ...]]:
        """The operations that a pattern is found in, by stage, as indices: in their text, name or family."""
        wanted = set(stages)
        found: dict[str, tuple[int, ...]] = {}
        for stage in self.stages:
            if (not wanted or stage.stage in wanted) and (indices := stage.operations.matching(pattern)):
                found[stage.stage] = indices
        return found

    def line_counts(self, stage: str) -> Counter[tuple[str, int]]:
        """How many operations of a stage each line of Python wrote itself; each operation counts once."""
        found = self.stage(stage)
        counts: Counter[tuple[str, int]] = Counter()
        for line in found.operations.lines:
            counts.update({self.places[place][0] for place in found.places_at(line)})
        return counts

    def _count(self, stage: StageMap, places: Iterable[int], frame: tuple[str, int]) -> StageCount:
        own: set[int] = set()
        called: set[int] = set()
        for place in places:
            (own if self.places[place][0] == frame else called).update(stage.at_place.get(place, ()))
        called -= own
        operations = stage.operations
        kinds = Counter(operations.kind_names[operations.kinds[index]] for index in own | called)
        live = [operations.live[index] for index in own | called] if operations.live else []
        return StageCount(stage.stage, len(own), len(called), tuple(kinds.most_common()), max(live, default=None))


def source_map(capture: Capture, stages: Iterable[str] = ()) -> SourceMap:
    """The source map of a capture, in time and size linear in its texts.

    Args:
        capture: what was recorded.
        stages: only these; by default every stage that has a text.
    """
    wanted = set(stages)
    file = capture.launch.kernel.file
    index: dict[Place, int] = {}
    maps: list[StageMap] = []
    sites = CallSites()
    for stage, text in capture.texts.items():
        kind = stage_named(stage).kind
        if wanted and stage not in wanted and (kind != "mlir" or wanted <= _MLIR_STAGES):
            continue
        locations = capture_locations(capture, text, kind)
        # Assembly keeps the functions that the last MLIR stage has: only those that are not inlined.
        sites = read_call_sites(text, locations) if kind == "mlir" else sites
        if wanted and stage not in wanted:
            continue
        numbers = tuple(
            tuple(index.setdefault(place, len(index)) for place in _places(chain, file, sites))
            for chain in locations.chains
        )
        maps.append(StageMap(stage, locations, read_stage_operations(text, kind), numbers))
    return SourceMap(file, tuple(index), tuple(maps))
