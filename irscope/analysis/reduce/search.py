"""The search for the smallest case: steps are tried one after another, until none makes it smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from irscope.analysis.reduce.case import Case
from irscope.analysis.reduce.halving import First, halved
from irscope.analysis.reduce.program import Program
from irscope.analysis.reduce.steps.step import Edit, Step
from irscope.analysis.reduce.text import write_program

_MOST_ROUNDS = 12
_FEW_PARTS = 8
"""What large cuts leave alone is tried only on what they leave: each compile of it takes less."""


@dataclass(slots=True)
class Search:
    """A reduction under way. `best` is interesting at any moment."""

    program: Program
    best: Case
    first: First[Case]
    steps: Sequence[Step]
    told: Callable[[str, Case], None] = lambda step, case: None
    """Called when a smaller case was found."""
    taken: dict[str, int] = field(default_factory=dict[str, int])
    """How many places each step shrank, in the order in which they first helped."""

    def run(self) -> None:
        """Make it as small as the steps can."""
        for parts in (_FEW_PARTS, None):
            # One step may undo what another does, at no loss.
            seen: set[Case] = set()
            while self.best not in seen and len(seen) < _MOST_ROUNDS:
                seen.add(self.best)
                self._round(parts)

    def _round(self, parts: int | None) -> None:
        self._halved("passes", self._passes(), self._without_passes, parts=parts)
        self._halved("options", [name for name, _ in self.best.options], self._without_options, parts=parts)
        for step in self.steps:
            self._step(step, parts)

    def _passes(self) -> list[Edit]:
        return [*reversed(self.best.pipeline.running)]

    def _without_passes(self, chosen: frozenset[Edit]) -> Case:
        return replace(self.best, pipeline=self.best.pipeline.without(frozenset(map(str, chosen))))

    def _without_options(self, chosen: frozenset[Edit]) -> Case:
        return replace(self.best, options=tuple(row for row in self.best.options if row[0] not in chosen))

    def _step(self, step: Step, parts: int | None) -> None:
        programs: dict[frozenset[Edit], Program] = {}

        def shrunk(chosen: frozenset[Edit]) -> Case:
            program = self.program.copy()
            step.apply(program, chosen)
            programs[chosen] = program
            return replace(self.best, text=write_program(program))

        def taken(chosen: frozenset[Edit]) -> None:
            self.program = programs[chosen]
            programs.clear()

        self._halved(step.name, step.edits(self.program), shrunk, taken, parts)

    def _halved(
        self,
        name: str,
        edits: Sequence[Edit],
        shrunk: Callable[[frozenset[Edit]], Case],
        made: Callable[[frozenset[Edit]], None] = lambda chosen: None,
        parts: int | None = None,
    ) -> None:
        def taken(chosen: frozenset[Edit], case: Case) -> None:
            if case != self.best:
                self.best = case
                made(chosen)
                self.taken[name] = self.taken.get(name, 0) + len(chosen)
                self.told(name, case)

        halved(edits, shrunk, self.first, taken, parts)
