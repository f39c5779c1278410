"""The search for the smallest case: of many small edits, as many as can be made together, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from irscope.analysis.reduce.program import Program, write_program
from irscope.analysis.reduce.steps import Edit, Step
from irscope.model.capture import PassSnapshot, stage_rank
from irscope.plan import PassPlan, PassRule

_FEW = 3
"""Passes that are named rather than those that are off: a pass that the failure keeps from running is not known."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The passes that may run on a text: those of the stages from the one that it is for."""

    every: tuple[str, ...]
    """The labels of all passes of these stages, as far as they are known, in their order."""
    kept: frozenset[str]
    """The labels of those that run."""

    @staticmethod
    def of(passes: Sequence[PassSnapshot], stages: Sequence[str], first: str = "") -> Pipeline:
        """Those that ran in some stages, from the pass `first` on; empty for the first of all."""
        every = [one for one in passes if one.stage in stages]
        labels = [one.label for one in every]
        begin = labels.index(first) if first in labels else 0
        return Pipeline(tuple(labels), frozenset(one.label for one in every[begin:] if one.outcome != "skipped"))

    @property
    def running(self) -> tuple[str, ...]:
        """The labels of the passes that run, in their order."""
        return tuple(label for label in self.every if label in self.kept)

    def without(self, labels: frozenset[str]) -> Pipeline:
        """The same without some passes."""
        return Pipeline(self.every, self.kept - labels)

    def up_to(self, stage: str) -> Pipeline:
        """The same without the passes of later stages, which then run as they do; all for an empty `stage`."""
        if not stage:
            return self
        every = tuple(label for label in self.every if stage_rank(label.partition(":")[0]) <= stage_rank(stage))
        return Pipeline(every, self.kept & {*every})

    @property
    def plan(self) -> PassPlan:
        """The plan under which these passes run, and no others of their stages; the shorter of both ways to say it."""
        disabled: list[PassRule] = []
        only: list[PassRule] = []
        for stage in dict.fromkeys(label.partition(":")[0] for label in self.every):
            of_stage = [label for label in self.every if label.startswith(f"{stage}:")]
            kept = [label for label in of_stage if label in self.kept]
            gone = [label for label in of_stage if label not in self.kept]
            if not kept:
                disabled.append(PassRule("*", stage))
            elif not gone or len(kept) > max(len(gone), _FEW):
                disabled += map(PassRule.parse, gone)
            else:
                only += map(PassRule.parse, kept)
        return PassPlan(tuple(disabled), tuple(only))


@dataclass(frozen=True, slots=True)
class Case:
    """One candidate."""

    text: str
    pipeline: Pipeline
    options: tuple[tuple[str, Any], ...] = ()
    """Those that differ from the target's defaults."""


_Edit = TypeVar("_Edit")
_Case = TypeVar("_Case")
First = Callable[[Iterable[_Case]], "int | None"]
"""The place of the first of some cases that is interesting; None if none is."""


def halved(
    edits: Sequence[_Edit],
    shrunk: Callable[[frozenset[_Edit]], _Case],
    first: First[_Case],
    taken: Callable[[frozenset[_Edit], _Case], None],
    parts: int | None = None,
) -> None:
    """Make as many edits as can be: all at once, else halves, quarters, and so on down to each alone.

    Args:
        edits: in an order in which neighbours go together.
        shrunk: the case with some more edits than those that were taken.
        first: the place of the first of some cases that is interesting, or None. What is taken is always the first, so
            that the result does not depend on how many are tried at a time.
        taken: called with the edits that were made, and the case with them.
        parts: how many parts the edits are cut into at most; None for down to each alone.
    """
    left = [*edits]
    size = len(left)
    least = 1 if parts is None else -(-size // parts)
    while size >= max(least, 1):
        done = 0
        while done < len(left):
            chunks = [frozenset(left[start : start + size]) for start in range(done, len(left), size)]
            cases: list[_Case] = []

            def lazily(chunks: list[frozenset[_Edit]] = chunks, cases: list[_Case] = cases) -> Iterator[_Case]:
                for chosen in chunks:
                    cases.append(shrunk(chosen))
                    yield cases[-1]

            if (found := first(lazily())) is None:
                break
            taken(chunks[found], cases[found])
            # Those before it were tried; what follows is tried on what is left.
            done += found * size
            left = [one for one in left if one not in chunks[found]]
        size = 0 if size == 1 else (min(size, len(left)) + 1) // 2


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
