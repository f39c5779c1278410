"""Follows the operations that give main values from step to step, and never guesses which is which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from irscope.analysis.lives.identity import Compared, Lot, Place
from irscope.analysis.lives.operations import Lives, operation_lives
from irscope.analysis.movie.roles import Family, family_of
from irscope.model.capture import Capture

__all__ = ["Followed", "Sight", "follow"]

_LOWERED = ("llvm", "nvvm", "rocdl", "builtin")
"""Dialects whose operations are not followed: they are many, and their passes name none for a reader to look for."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The operations of a text that stand for one that is followed."""

    lines: tuple[int, ...] = ()
    """1-based; empty where there are none."""
    is_certain: bool = True
    """Whether all of them do; else it is one of them, or several."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A capture's operations followed through its passes."""

    lives: Lives
    links: dict[int, list[Lot]] = field(default_factory=dict[int, list[Lot]])
    """Step -> which operations of loads, stores and dots become which."""

    def sights(self, at: int, line: int) -> list[Sight]:
        """What stands for the operation on a line of the text after a step: before the first step, and after each."""
        before: list[Sight] = []
        sight = Sight((line,))
        for step in range(at, -1, -1):
            sight = self._before(step, sight)
            before.append(sight)
        after: list[Sight] = []
        sight = Sight((line,))
        for step in range(at + 1, len(self.lives.trail.steps)):
            sight = self._after(step, sight)
            after.append(sight)
        return [*reversed(before), Sight((line,)), *after]

    def _after(self, step: int, sight: Sight) -> Sight:
        lots = [lot for lot in self.links.get(step, ()) if not set(lot.lefts).isdisjoint(sight.lines)]
        own = set(sight.lines)
        is_certain = sight.is_certain and all(own.issuperset(lot.lefts) for lot in lots)
        return Sight(tuple(sorted({line for lot in lots for line in lot.rights})), is_certain)

    def _before(self, step: int, sight: Sight) -> Sight:
        lots = [lot for lot in self.links.get(step, ()) if not set(lot.rights).isdisjoint(sight.lines)]
        lefts = tuple(sorted({line for lot in lots for line in lot.lefts}))
        # Of several before, it is not known which one became it.
        return Sight(lefts, sight.is_certain and len(lefts) <= 1)


def follow(capture: Capture) -> Followed:
    """Follow a capture's operations, but those of the LLVM dialects, through the passes of MLIR."""
    links: dict[int, list[Lot]] = {}

    def watch(step: int, compared: Compared, lots: list[Lot]) -> None:
        links[step] = _links(compared, lots)

    lives = operation_lives(capture, lambda name: name.partition(".")[0] not in _LOWERED, explains=False, watch=watch)
    return Followed(lives, links)


def _links(compared: Compared, lots: Sequence[Lot]) -> list[Lot]:
    """The lots of loads, stores and dots.

    Those that are alone on either side are one lot where they come from one line and column of Python, by the same
    calls, and do the same: a copy to shared memory is a load.
    """
    found: list[Lot] = []
    alone: dict[tuple[Family, Place], tuple[list[int], list[int]]] = {}
    for lot in lots:
        name, place = compared.sign((lot.lefts or lot.rights)[0], is_right=not lot.lefts)
        if (family := family_of(name)) is None:
            continue
        if lot.lefts and lot.rights:
            found.append(lot)
        elif place:
            lefts, rights = alone.setdefault((family, place), ([], []))
            lefts += lot.lefts
            rights += lot.rights
    return found + [Lot(tuple(lefts), tuple(rights)) for lefts, rights in alone.values() if lefts and rights]
