"""What a conversion between two layouts must move: nothing, registers, lanes, warps or CTAs.

A register of the destination needs an element; whether the same thread, warp or CTA holds it at the source
follows from the bases alone, both maps being linear: it does for all inputs if it does for each basis vector.
Source: "Linear Layouts" (Zhou et al., 2025, arXiv:2505.23819), section on layout conversions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from irscope.errors import UsageError
from irscope.layout.linear import Preimage, eliminate
from irscope.layout.thread_map import IN_DIMS, ThreadMap

Movement = Literal["nothing", "registers", "lanes", "warps", "CTAs"]

_LEVELS: tuple[tuple[int, Movement], ...] = ((3, "CTAs"), (2, "warps"), (1, "lanes"))


def what_moves(source: ThreadMap, destination: ThreadMap) -> Movement:
    """The least that must be crossed to go from one layout to the other; raises UsageError for different shapes."""
    if source.shape != destination.shape:
        raise UsageError(
            f"a {'×'.join(map(str, source.shape))} tensor can't be converted to "
            f"{'×'.join(map(str, destination.shape))}: a conversion keeps the shape."
        )
    for level, name in _LEVELS:
        if not _stays_within(source, destination, level):
            return name
    same = all(source.layout.vectors(name) == destination.layout.vectors(name) for name in IN_DIMS)
    return "nothing" if same else "registers"


class Moves:
    """Which elements of a tensor are held by no thread that holds them in another layout of it.

    The threads that hold an element are a coset: one of them, and all that differ from it by what holds copies. Two
    cosets meet where their difference is a combination of the copies of both, and the difference is linear in the
    element.
    """

    def __init__(self, first: ThreadMap, second: ThreadMap) -> None:
        """Raises UsageError where the shapes differ, or a layout leaves elements out."""
        what_moves(first, second)
        copies: list[int] = []
        owners: list[Preimage] = []
        for threads in (first, second):
            if not threads.layout.is_surjective:
                raise UsageError("one of the layouts leaves elements out: what moves can't be told.")
            shift = threads.registers.bit_length() - 1
            copies += [place >> shift for place in threads.layout.kernel()]
            owners.append(threads.first_owners)
        self._owners = tuple(owners)
        self._shifts = tuple(threads.registers.bit_length() - 1 for threads in (first, second))
        pivots = eliminate(copies)[0]
        self._same = [pivots[bit][0] for bit in sorted(pivots, reverse=True)]
        self._rank = len(eliminate([self._difference(1 << bit) for bit in range(first.layout.out_bits)])[0])

    @property
    def share(self) -> float:
        """The share of the elements that moved, 0 to 1."""
        return 1 - 0.5**self._rank

    def __getitem__(self, element: int) -> bool:
        return self._difference(element) != 0

    def _difference(self, element: int) -> int:
        ours, theirs = (owners[element] >> shift for owners, shift in zip(self._owners, self._shifts, strict=True))
        difference = ours ^ theirs
        for vector in self._same:
            difference = min(difference, difference ^ vector)
        return difference


def _stays_within(source: ThreadMap, destination: ThreadMap, level: int) -> bool:
    """Whether every element is had by the same holder, counted from `IN_DIMS[level]` outwards."""
    return not _new_directions(source, destination, level)


def _new_directions(source: ThreadMap, destination: ThreadMap, level: int) -> int:
    """How many bits of the destination's places decide whether the same holder had the element; all must be so.

    The places whose holder had it are a subspace: those whose element differs from what the holder has by a
    combination of the inner bases. This is its codimension.
    """
    pivots, _ = eliminate([base for name in IN_DIMS[:level] for base in _flat(source, name)])
    columns = [vector for vector, _ in pivots.values()]
    beyond = 0
    for index, name in enumerate(IN_DIMS):
        wanted, held = _flat(destination, name), _flat(source, name)
        if index >= level:
            # A holder that the source does not have held nothing.
            beyond += max(0, len(wanted) - len(held))
            wanted = [a ^ b for a, b in zip(wanted, held, strict=False)]
        columns += wanted
    return len(eliminate(columns)[0]) - len(pivots) + beyond


def _flat(threads: ThreadMap, name: str) -> Sequence[int]:
    return [threads.layout.flatten(vector) for vector in threads.layout.vectors(name)]


def moved_share(source: ThreadMap, destination: ThreadMap) -> float:
    """The share of a CTA's destination registers whose element another thread holds, 0 to 1."""
    return 1 - 0.5 ** _new_directions(source, destination, 1)
