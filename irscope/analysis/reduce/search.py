"""The search for the smallest case: of many small edits, as many as can be made together, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, cast

_Edit = TypeVar("_Edit")
_Case = TypeVar("_Case")
_Self = TypeVar("_Self")
First = Callable[[Iterable[_Case]], "int | None"]
"""The place of the first of some cases that is interesting; None if none is."""
Edit = int | str | tuple[int | str, ...]
"""One place that a step may shrink; it names what is there by numbers, which copies of a program keep."""


class _Shrinkable(Protocol):
    def copy(self: _Self) -> _Self:
        """A copy that can be edited on its own."""
        ...

    def case(self) -> object: ...


_Program = TypeVar("_Program", bound=_Shrinkable)


@dataclass(frozen=True, slots=True)
class ReductionStep(Generic[_Program]):
    """One way to shrink a program."""

    name: str
    """In the plural, as a report counts them: `operations`."""
    edits: Callable[[_Program], Sequence[Edit]]
    """All places, those first that should go first; neighbours are tried together."""
    apply: Callable[[_Program, frozenset[Edit]], None]
    """Shrinks a program in place at the chosen places; one that is gone by then is passed over."""


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
class Search(Generic[_Program, _Case]):
    """A reduction under way. `best`, the case of `program`, is interesting at any moment."""

    program: _Program
    best: _Case
    first: First[_Case]
    steps: Sequence[ReductionStep[_Program]]
    told: Callable[[str, _Case], None] = lambda step, case: None
    """Called when a smaller case was found."""
    taken: dict[str, int] = field(default_factory=dict[str, int])
    """How many places each step shrank, in the order in which they first helped."""

    def run(self) -> None:
        """Make it as small as the steps can."""
        for parts in (_FEW_PARTS, None):
            # One step may undo what another does, at no loss.
            seen: set[_Case] = set()
            while self.best not in seen and len(seen) < _MOST_ROUNDS:
                seen.add(self.best)
                for step in self.steps:
                    self._step(step, parts)

    def _step(self, step: ReductionStep[_Program], parts: int | None) -> None:
        programs: dict[frozenset[Edit], _Program] = {}

        def shrunk(chosen: frozenset[Edit]) -> _Case:
            programs[chosen] = program = self.program.copy()
            step.apply(program, chosen)
            return cast("_Case", program.case())

        def taken(chosen: frozenset[Edit], case: _Case) -> None:
            if case != self.best:
                self.program, self.best = programs[chosen], case
                programs.clear()
                self.taken[step.name] = self.taken.get(step.name, 0) + len(chosen)
                self.told(step.name, case)

        halved(step.edits(self.program), shrunk, self.first, taken, parts)
