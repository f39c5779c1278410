"""Finds which of many passes a result depends on, with as few questions as possible.

A question is a set of passes to switch off; the answer says how a compile without them is judged. Nothing here
compiles anything. Every search rests on one fact: where the two ends of a row of questions are judged differently,
there is a place in the row where the judgement flips, and halving finds one, whatever lies between. So what is found is
always true; that it is the only such place holds where the answers are monotone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Judgement = Literal["good", "bad", "skip"]
"""`skip`: it cannot be judged (it does not compile)."""

Off = frozenset[int]
"""Passes to switch off, by their place in the pipeline, 0-based."""


@dataclass(frozen=True, slots=True)
class _Question:
    """One question that was asked, and its answer."""

    off: Off
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Flip:
    """Two sets of passes off; the passes in which they differ are found if the two are judged differently."""

    left: _Question
    """With fewer passes off."""
    right: _Question
    """With more."""

    @property
    def guilty(self) -> tuple[int, ...]:
        """The passes that are on on the left and off on the right: one, or where some could not be judged several.

        Empty if both sides are judged alike, or one of them cannot be judged: there is nothing to find between them.
        """
        judgements = {self.left.judgement, self.right.judgement}
        return tuple(sorted(self.right.off - self.left.off)) if judgements == {"good", "bad"} else ()


class Judge:
    """Asks each question once, and keeps what was asked, in order."""

    def __init__(self, ask: Callable[[Off], Judgement]) -> None:
        self._ask = ask
        self._known: dict[Off, _Question] = {}

    def __call__(self, off: Off) -> _Question:
        """The question with its answer."""
        if off not in self._known:
            self._known[off] = _Question(off, self._ask(off))
        return self._known[off]

    @property
    def questions(self) -> tuple[_Question, ...]:
        """What was asked so far."""
        return tuple(self._known.values())


def first_passes(judge: Judge, count: int, kept: Off = frozenset()) -> Flip:
    """The pass whose presence flips the judgement, counted from the front: the first N on, and one less.

    Args:
        judge: asks.
        count: how many passes there are.
        kept: passes that are never switched off.

    Asks 2 + log2(count) questions, rounded up, where each can be judged.
    """
    return _halve(judge, _growing(frozenset(), frozenset(range(count)) - kept))


def absent_passes(judge: Judge, count: int, kept: Off = frozenset()) -> Flip:
    """The fewest passes whose absence flips the judgement, with every other pass on.

    The first is found as `first_passes` does. Where its absence alone does not do, the search goes on for what must be
    absent with it. On the right side of the flip only what is needed for it is off; on the left one of those less. Only
    where what is found so far cannot be judged by itself, other passes are off on both sides.

    Asks 3 + log2(count) questions for one pass, rounded up, and about as many again for each further one.
    """
    found = flip = first_passes(judge, count, kept)
    needed: Off = frozenset()
    while flip.guilty:
        found = flip
        needed = needed | set(flip.guilty)
        if judge(needed).judgement == flip.right.judgement:
            return _smallest(judge, needed)
        # Alone these do not flip it, with what else was off they did: the next is among that.
        flip = _halve(judge, _growing(needed, flip.right.off - needed))
    return found


def _smallest(judge: Judge, needed: Off) -> Flip:
    """Leave out what is not needed, until each that is left is."""
    wanted = judge(needed).judgement
    while len(needed) > 1:
        idle = next((one for one in sorted(needed) if judge(needed - {one}).judgement == wanted), None)
        if idle is None:
            break
        needed = needed - {idle}
    sides = [judge(needed - {one}) for one in sorted(needed)]
    left = next((side for side in sides if side.judgement != "skip"), judge(frozenset()))
    return Flip(left, judge(needed))


def needed_passes(compiles: Callable[[Off], bool], count: int) -> Off:
    """The passes that a compile cannot do without: with all the others off it goes through.

    Runs of passes are switched off as one, where that fails by halves. So with few of them needed it takes about
    2 · needed · log2(count / needed) tries, and fewer than 2 · count at the most.
    """
    off: Off = frozenset()
    needed: Off = frozenset()
    tried: dict[Off, bool] = {}
    waiting = [range(count)]
    while waiting:
        run = waiting.pop()
        without = off | set(run)
        if without not in tried:
            tried[without] = compiles(without)
        if tried[without]:
            off = without
        elif len(run) == 1:
            needed = needed | set(run)
        else:
            middle = len(run) // 2
            waiting += [run[middle:], run[:middle]]
    return needed


def _growing(start: Off, more: Off) -> list[Off]:
    """`start`, then with one more pass off each time, the last of the pipeline first."""
    order = sorted(more, reverse=True)
    return [start | set(order[:size]) for size in range(len(order) + 1)]


def _halve(judge: Judge, row: Sequence[Off]) -> Flip:
    """The place in a row of ever larger sets where the judgement flips."""
    low, high = 0, len(row) - 1
    left, right = judge(row[low]), judge(row[high])
    if "skip" in (left.judgement, right.judgement) or left.judgement == right.judgement:
        return Flip(left, right)
    while high - low > 1:
        for middle in _halves(low, high):
            question = judge(row[middle])
            if question.judgement != "skip":
                break
        else:
            # Nothing between the two can be judged.
            break
        if question.judgement == left.judgement:
            low = middle
        else:
            high = middle
    return Flip(judge(row[low]), judge(row[high]))


def _halves(low: int, high: int) -> Iterator[int]:
    """Every place between two, the middle first, then the middles of what is left."""
    spans = deque([(low, high)])
    while spans:
        start, end = spans.popleft()
        middle = (start + end) // 2
        if start < middle < end:
            yield middle
            spans.extend(((start, middle), (middle, end)))
