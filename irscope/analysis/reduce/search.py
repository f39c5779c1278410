"""The search for the smallest case: steps are tried in halves, big ones first, until none makes it smaller.

Delta debugging: of the places that a step may shrink, all are tried at once, then halves, quarters, and so on down to
each alone. What is accepted is the first in that order that is still interesting, so that the result does not depend on
how many are tried at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from irscope.analysis.reduce.case import Case
from irscope.analysis.reduce.program import Program
from irscope.analysis.reduce.steps.step import Edit, Step
from irscope.analysis.reduce.text import write_program

__all__ = ["First", "Search", "Taken"]

First = Callable[[Iterable[Case]], int | None]
"""The place of the first of some cases that is interesting; None if none is."""
_MOST_ROUNDS = 12


@dataclass(slots=True)
class Taken:
    """What one step made of a case, in all rounds."""

    name: str
    count: int = 0
    """Places that were shrunk."""


@dataclass(slots=True)
class Search:
    """A reduction under way. `best` is interesting at any moment."""

    program: Program
    best: Case
    first: First
    steps: Sequence[Step]
    told: Callable[[str, Case], None] = lambda step, case: None
    """Called when a smaller case was found."""
    taken: dict[str, Taken] = field(default_factory=dict[str, Taken])
    """By the name of the step, in the order in which they first helped."""

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
        taken: Callable[[frozenset[Edit]], None] = lambda chosen: None,
    ) -> None:
        left = [*edits]
        size = len(left)
        while size:
            done = 0
            while done < len(left):
                chunks = [frozenset(left[start : start + size]) for start in range(done, len(left), size)]
                cases: list[Case] = []

                def lazily(chunks: list[frozenset[Edit]] = chunks, cases: list[Case] = cases) -> Iterator[Case]:
                    for chosen in chunks:
                        cases.append(shrunk(chosen))
                        yield cases[-1]

                found = self.first(lazily())
                if found is None:
                    break
                if cases[found] != self.best:
                    self.best = cases[found]
                    taken(chunks[found])
                    row = self.taken.setdefault(name, Taken(name))
                    row.count += len(chunks[found])
                    self.told(name, self.best)
                # Those before it were tried; what follows is tried on what is left.
                done += found * size
                left = [one for one in left if one not in chunks[found]]
            size = 0 if size == 1 else (min(size, len(left)) + 1) // 2
