"""The search for the smallest case: steps are tried one after another, until none makes it smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from irscope.analysis.reduce.case import Case
from irscope.analysis.reduce.halving import First, halved
from irscope.analysis.reduce.program import Program
from irscope.analysis.reduce.steps.step import Edit, Step
from irscope.analysis.reduce.text import write_program

__all__ = ["Search"]

_MOST_ROUNDS = 12


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
        for _ in range(_MOST_ROUNDS):
            before = self.best
            self._halved("passes", self._passes(), self._without_passes)
            self._halved("options", [name for name, _ in self.best.options], self._without_options)
            for step in self.steps:
                self._step(step)
            if self.best == before:
                return

    def _passes(self) -> list[Edit]:
        return [*reversed(self.best.pipeline.running)]

    def _without_passes(self, chosen: frozenset[Edit]) -> Case:
        return replace(self.best, pipeline=self.best.pipeline.without(frozenset(map(str, chosen))))

    def _without_options(self, chosen: frozenset[Edit]) -> Case:
        return replace(self.best, options=tuple(row for row in self.best.options if row[0] not in chosen))

    def _step(self, step: Step) -> None:
        programs: dict[frozenset[Edit], Program] = {}

        def shrunk(chosen: frozenset[Edit]) -> Case:
            program = self.program.copy()
            step.apply(program, chosen)
            programs[chosen] = program
            return replace(self.best, text=write_program(program))

        def taken(chosen: frozenset[Edit]) -> None:
            self.program = programs[chosen]
            programs.clear()

        self._halved(step.name, step.edits(self.program), shrunk, taken)

    def _halved(
        self,
        name: str,
        edits: Sequence[Edit],
        shrunk: Callable[[frozenset[Edit]], Case],
        made: Callable[[frozenset[Edit]], None] = lambda chosen: None,
    ) -> None:
        def taken(chosen: frozenset[Edit], case: Case) -> None:
            if case != self.best:
                self.best = case
                made(chosen)
                self.taken[name] = self.taken.get(name, 0) + len(chosen)
                self.told(name, case)

        halved(edits, shrunk, self.first, taken)
