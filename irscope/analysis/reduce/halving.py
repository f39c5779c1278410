"""Delta debugging: of many small edits, the most that can be made together, found by halves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

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
