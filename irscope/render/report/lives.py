"""Which pass made, and which removed, the operations in the texts of a report's passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from irscope.analysis.lives.operations import OperationLife
from irscope.analysis.movie.follow import Followed, follow
from irscope.model.capture import Capture

NO_LIVES: dict[str, Any] = {"steps": [], "changes": [], "texts": {}}
"""Of a capture whose operations are not followed."""
_NONE, _FIRST, _UNCLEAR = -1, -2, -3


def packed_lives(capture: Capture, number_of: Callable[[str], int], followed: Followed | None = None) -> dict[str, Any]:
    """The lives of a capture's operations, but those of the LLVM dialects.

    `steps`: (first pass, last pass) by their places among the MLIR passes: one, or several whose texts between were not
    kept. `changes`: for each step (operation, made, removed). `texts`: by the number of a text, for its lines the step
    that made the operation and the one that removes it, each as (step, lines) again and again: -1 for none, -2 for what
    was there before the first step, -3 where it is one of several that cannot be told apart.

    Args:
        capture: the capture.
        number_of: the number of a text in the report.
        followed: the capture's operations, if they were followed already.
    """
    lives = (followed or follow(capture)).lives
    trail = lives.trail
    if trail.first is None:
        return NO_LIVES
    places = {one.label: place for place, one in enumerate(capture.passes())}
    changes: list[Counter[tuple[str, int]]] = [Counter() for _ in trail.steps]
    made: list[dict[int, int]] = [{} for _ in range(len(trail.steps) + 1)]
    gone: list[dict[int, int]] = [{} for _ in range(len(trail.steps) + 1)]
    for life in lives.lives:
        if life.counted_from >= 0:
            changes[life.counted_from][life.first.name, 1] += 1
        if life.removal is not None:
            changes[life.removal.step][life.last.name, 2] += 1
        for step, line in life.lines:
            made[step + 1][line] = _maker(life)
            gone[step + 1][line] = _remover(life)
    texts = [trail.first, *(step.right for step in trail.steps)]
    return {
        "steps": [[places[step.passes[0].label], places[step.passes[-1].label]] for step in trail.steps],
        "changes": [
            [[name, counts[name, 1], counts[name, 2]] for name in dict.fromkeys(name for name, _ in counts)]
            for counts in changes
        ],
        "texts": {
            number_of(text): [_runs(text, made[index]), _runs(text, gone[index])]
            for index, text in enumerate(texts)
            if made[index]
        },
    }


def _maker(life: OperationLife) -> int:
    (step, *others) = life.made_by
    return _UNCLEAR if others else _FIRST if step < 0 else step


def _remover(life: OperationLife) -> int:
    if life.removal is None:
        return _NONE
    return _UNCLEAR if life.removal.among > 1 else life.removal.step


def _runs(text: str, by_line: dict[int, int]) -> list[int]:
    steps: Iterable[int] = (by_line.get(line, _NONE) for line in range(1, text.count("\n") + 2))
    return [item for step, run in groupby(steps) for item in (step, sum(1 for _ in run))]
