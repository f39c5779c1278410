"""The passes of a stage by two compilers side by side: the IR of each after every one, from one beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from irscope.analysis.diff.texts import Ignored
from irscope.analysis.upgrade.model import Side
from irscope.analysis.upgrade.same import STRICT, alike, same_text
from irscope.model.capture import Capture, PassSnapshot

__all__ = ["Point", "differing_points", "points_of"]


@dataclass(frozen=True, slots=True)
class Point:
    """A pass of both, or one that a side lacks, and the IR of each side after it."""

    before: PassSnapshot | None
    after: PassSnapshot | None
    texts: tuple[str, str]
    """(before, after)."""
    behind: tuple[int, int]
    """How many passes of the stage are behind by then: (before, after)."""

    @property
    def label(self) -> str:
        """Of the pass: `ttgir:coalesce#1`."""
        one = self.after or self.before
        return "" if one is None else one.label

    @property
    def outcomes(self) -> tuple[str, str]:
        """(before, after): `ran`, `skipped`, `failed` or `absent`."""
        found = [one.outcome if one else "absent" for one in (self.before, self.after)]
        return found[0], found[1]

    @property
    def options(self) -> tuple[str, str]:
        """(before, after)."""
        found = [one.options if one else "" for one in (self.before, self.after)]
        return found[0], found[1]

    def text(self, side: Side) -> str:
        """The IR of a side."""
        return self.texts[side == "after"]


def points_of(before: Capture, after: Capture, stage: str, begun: str) -> list[Point]:
    """The passes of a stage in their order, where either side's IR changed; `begun`: the text that both began with."""
    sides = [[one for one in side.passes() if one.stage == stage] for side in (before, after)]
    names = [[one.name for one in side] for side in sides]
    matcher = SequenceMatcher(None, names[0], names[1], autojunk=False)
    found: list[Point] = []
    texts = [begun, begun]
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        left: list[tuple[int | None, int | None]] = [(i, None) for i in range(i1, i2)]
        right: list[tuple[int | None, int | None]] = [(None, j) for j in range(j1, j2)]
        rows = list(zip(range(i1, i2), range(j1, j2), strict=True)) if kind == "equal" else [*left, *right]
        at = [i1, j1]
        for pair in rows:
            changed = False
            for number, place in enumerate(pair):
                if place is None:
                    continue
                at[number] = place + 1
                if (text := sides[number][place].text) is not None:
                    changed = changed or text != texts[number]
                    texts[number] = text
            if changed:
                ours, theirs = (None if place is None else side[place] for side, place in zip(sides, pair, strict=True))
                found.append(Point(ours, theirs, (texts[0], texts[1]), (at[0], at[1])))
    return found


def differing_points(points: Sequence[Point], ignore: frozenset[Ignored]) -> Sequence[Point]:
    """Those after the last at which both have the same IR; none if they have at the end.

    `ignore`: what does not count; if that is the locations alone, the order of operations counts.
    """
    is_strict = ignore == STRICT
    for number in range(len(points) - 1, -1, -1):
        # The dialects of every one are MLIR's, whatever the stage makes in the end.
        left, right = points[number].texts
        if same_text(left, right, "ttgir") if is_strict else alike(left, right, ignore):
            return points[number + 1 :]
    return points
