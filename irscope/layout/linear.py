"""Linear algebra over GF(2) on the bases of a LinearLayout: elimination, kernel, preimages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from irscope.errors import UsageError
from irscope.model.layout import LinearLayout

__all__ = ["Preimage", "combined", "eliminate", "is_surjective", "kernel", "solve", "span"]


def kernel(layout: LinearLayout) -> tuple[int, ...]:
    """A basis of the inputs that lead to element 0: combinations of input bits that change nothing."""
    return eliminate(layout.flat_bases())[1]


def is_surjective(layout: LinearLayout) -> bool:
    """Whether every element has an input that leads to it."""
    return len(eliminate(layout.flat_bases())[0]) == layout.out_bits


class Preimage:
    """For each element, by its row-major index, the least input that leads to it; -1 if none does.

    The least input is linear in the element too, so it is computed from the bases for the elements that are asked for,
    however large the tensor is.
    """

    def __init__(self, layout: LinearLayout) -> None:
        self._pivots, copies = eliminate(layout.flat_bases())
        same = eliminate(copies)[0]
        self._same = [same[bit][0] for bit in sorted(same, reverse=True)]
        self.size = 1 << layout.out_bits
        surjective = len(self._pivots) == layout.out_bits
        self._columns = [self._least(1 << bit) for bit in range(layout.out_bits)] if surjective else None

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, element: int) -> int:
        if not 0 <= element < self.size:
            raise IndexError(element)
        if self._columns is None:
            return self._least(element)
        return combined(self._columns, element)

    def _least(self, element: int) -> int:
        rest, place = _reduce(self._pivots, element, 0)
        if rest:
            return -1
        for vector in self._same:
            place = min(place, place ^ vector)
        return place


def eliminate(columns: Sequence[int]) -> tuple[dict[int, tuple[int, int]], tuple[int, ...]]:
    """Gaussian elimination over GF(2).

    Returns, for each pivot bit, (vector, the combination of columns that makes it), and a basis of the combinations
    that make 0. Bit i of a combination stands for column i.
    """
    pivots: dict[int, tuple[int, int]] = {}
    null: list[int] = []
    for number, column in enumerate(columns):
        vector, combination = _reduce(pivots, column, 1 << number)
        if vector:
            pivots[vector.bit_length() - 1] = (vector, combination)
        else:
            null.append(combination)
    return pivots, tuple(null)


def solve(pivots: Mapping[int, tuple[int, int]], vector: int) -> int:
    """The combination of columns that makes a vector; raises UsageError if there is none."""
    rest, combination = _reduce(pivots, vector, 0)
    if rest:
        raise UsageError(f"no input leads to element {vector}.")
    return combination


def _reduce(pivots: Mapping[int, tuple[int, int]], vector: int, combination: int) -> tuple[int, int]:
    while vector and (found := pivots.get(vector.bit_length() - 1)) is not None:
        vector ^= found[0]
        combination ^= found[1]
    return vector, combination


def combined(vectors: Iterable[int], choice: int) -> int:
    """The exclusive or of the chosen vectors: bit i of `choice` stands for the i-th."""
    result = 0
    for vector in vectors:
        if choice & 1:
            result ^= vector
        choice >>= 1
    return result


def span(vectors: Iterable[int]) -> list[int]:
    """Every combination of the vectors, the first vector varying fastest."""
    values = [0]
    for vector in vectors:
        values += [value ^ vector for value in values]
    return values
