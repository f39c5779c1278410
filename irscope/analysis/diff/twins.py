"""Tells apart operations that compute the same from the same: only who reads their results says which is which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from irscope.analysis.diff.align import Aligner


class Twins:
    """Pairs equal computations anew, by the votes of the lines that read them.

    Where one of four equal constants went, keys cannot tell which; the readers of the other three can.
    """

    def __init__(self, aligner: Aligner, value_of: list[int]) -> None:
        self._aligner = aligner
        self._left = aligner.left
        self._right = aligner.right
        self._value_of = value_of

    def sort_out(self) -> bool:
        """Pair anew what the readers disagree about; returns whether any pair changed."""
        # Right values that some partner reads where the left side reads an equal computation, but another one.
        contested = {other for one, other in self._read() if self._value_of[other] != one}
        if not contested:
            return False
        wanted = self._elected(contested)
        changed = [(line, partner) for line, partner in wanted.items() if self._aligner.to_left[line] != partner]
        if not changed:
            return False
        before = {line: self._aligner.to_left[line] for line, _ in changed}
        for line, partner in changed:
            for left_line in (before[line], partner):
                if left_line >= 0 and self._aligner.to_right[left_line] >= 0:
                    self._aligner.part(left_line)
        self._pair_in_order(dict(changed), before)
        return True

    def _pair_in_order(self, wanted: dict[int, int], before: dict[int, int]) -> None:
        # Each takes its new partner, or else its old one, where that is free and keeps the order.
        to_left, to_right, moved = self._aligner.to_left, self._aligner.to_right, self._aligner.moved
        bounds = [len(to_right)] * (len(to_left) + 1)
        for line in range(len(to_left) - 1, -1, -1):
            partner = to_left[line]
            bounds[line] = partner if partner >= 0 and partner not in moved else bounds[line + 1]
        last = -1
        for line in range(len(to_left)):
            if line in wanted and to_left[line] < 0:
                for candidate in (wanted[line], before[line]):
                    if last < candidate < bounds[line] and to_right[candidate] < 0:
                        self._aligner.pair(candidate, line)
                        break
            if to_left[line] >= 0 and to_left[line] not in moved:
                last = to_left[line]

    def _read(self) -> Iterator[tuple[int, int]]:
        """The values that partners read in the same place, left and right, where equal computations make them."""
        left, right = self._left, self._right
        for right_line, left_line in enumerate(self._aligner.to_left):
            if left_line >= 0:
                for one, other in zip(left.uses[left_line], right.uses[right_line], strict=False):
                    maker, twin = left.definers[one], right.definers[other]
                    if maker >= 0 <= twin and left.deep_keys[maker] == right.deep_keys[twin]:
                        yield one, other

    def _elected(self, contested: set[int]) -> dict[int, int]:
        """Right line -> the left twin that most readers of its results want."""
        votes: dict[int, Counter[int]] = {}
        for one, other in self._read():
            if other in contested:
                votes.setdefault(self._right.definers[other], Counter())[self._left.definers[one]] += 1
        elected: dict[int, int] = {}
        taken: set[int] = set()
        for right_line, counts in sorted(votes.items()):
            # Among equals the present partner stays.
            present = self._aligner.to_left[right_line]
            for left_line, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0] != present)):
                if left_line not in taken:
                    taken.add(left_line)
                    elected[right_line] = left_line
                    break
        return elected
