"""What a conversion between two layouts must move: nothing, registers, lanes, warps or CTAs.

Whether the thread, warp or CTA that needs an element holds it in the source already follows from the bases alone: both
maps are linear, so it holds for all inputs if it holds for each basis vector.
Source: "Linear Layouts" (Zhou et al., 2025, arXiv:2505.23819), section on layout conversions.
"""

from __future__ import annotations

from typing import Literal

from irscope.errors import UsageError
from irscope.layout.linear import Preimage, eliminate, is_surjective, kernel
from irscope.layout.thread_map import IN_DIMS, ThreadMap

_Movement = Literal["nothing", "registers", "lanes", "warps", "CTAs"]

_LEVELS: tuple[tuple[int, _Movement], ...] = ((3, "CTAs"), (2, "warps"), (1, "lanes"))


def what_moves(source: ThreadMap, destination: ThreadMap) -> _Movement:
    """The smallest unit within which every element stays; raises UsageError for different shapes."""
    if source.shape != destination.shape:
        raise UsageError(
            f"a {'×'.join(map(str, source.shape))} tensor can't be converted to "
            f"{'×'.join(map(str, destination.shape))}: a conversion keeps the shape."
        )
    for level, name in _LEVELS:
        if _new_directions(source, destination, level):
            return name
    same = all(source.layout.vectors(name) == destination.layout.vectors(name) for name in IN_DIMS)
    return "nothing" if same else "registers"


class Moves:
    """Which elements of a tensor have no holder in common in two layouts.

    The threads that hold an element are a coset of the kernel. Two cosets meet if their difference is a combination of
    both kernels, and that difference is linear in the element.
    """

    def __init__(self, first: ThreadMap, second: ThreadMap) -> None:
        """Raises UsageError if the shapes differ, or a layout leaves elements out."""
        what_moves(first, second)
        copies: list[int] = []
        owners: list[Preimage] = []
        for threads in (first, second):
            if not is_surjective(threads.layout):
                raise UsageError("one of the layouts leaves elements out, so what moves is not defined.")
            shift = threads.registers.bit_length() - 1
            copies += [place >> shift for place in kernel(threads.layout)]
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


def _new_directions(source: ThreadMap, destination: ThreadMap, level: int) -> int:
    """The codimension of the places in the destination whose holder has the element in the source already.

    A holder is counted from `IN_DIMS[level]` outwards. Those places are a subspace: their element differs from one the
    holder has by a combination of the inner bases.
    """
    pivots, _ = eliminate([base for name in IN_DIMS[:level] for base in source.layout.flat_vectors(name)])
    columns = [vector for vector, _ in pivots.values()]
    beyond = 0
    for index, name in enumerate(IN_DIMS):
        wanted, held = destination.layout.flat_vectors(name), source.layout.flat_vectors(name)
        if index >= level:
            # A holder that only the destination has held nothing in the source.
            beyond += max(0, len(wanted) - len(held))
            wanted = tuple(a ^ b for a, b in zip(wanted, held, strict=False))
        columns += wanted
    return len(eliminate(columns)[0]) - len(pivots) + beyond


def moved_share(source: ThreadMap, destination: ThreadMap) -> float:
    """The share of the destination's registers whose element the same thread did not hold in the source, 0 to 1."""
    return 1 - 0.5 ** _new_directions(source, destination, 1)
