"""Aligns two sequences of operations: rare keys first, then looser keys in the gaps, then similarity in what is left.

Cost: each level walks each gap once, so a level is linear in the lines that no level before it paired; only the last,
`_by_similarity`, is quadratic, and it takes gaps of at most `_LARGEST_TABLE` cells.
"""

from __future__ import annotations

from functools import lru_cache

from irscope.analysis.diff.anchors import WINDOW, Keys, LineKey, keys_of_windows, keys_with_operands, rare_pairs
from irscope.analysis.diff.regions import Ends, Gap, pair_regions, region_ends
from irscope.ir.body.reader import Body

_LARGEST_TABLE = 6000
_ROUNDS = 3


class Aligner:
    """Pairs the lines of two bodies; `to_right` and `to_left` hold each line's partner, -1 for none."""

    def __init__(self, left: Body, right: Body) -> None:
        self.left = left
        self.right = right
        self.to_right = [-1] * len(left.lines)
        self.to_left = [-1] * len(right.lines)
        self.moved: set[int] = set()
        """Left lines whose partner stands elsewhere in the order."""
        self._ends: Ends = region_ends(left), region_ends(right)
        self._overlaps: dict[tuple[str, str], float] = {}

    def pair(self, left_line: int, right_line: int) -> None:
        """Make two lines partners."""
        self.to_right[left_line] = right_line
        self.to_left[right_line] = left_line

    def part(self, left_line: int) -> None:
        """Undo a pair."""
        self.to_left[self.to_right[left_line]] = -1
        self.to_right[left_line] = -1
        self.moved.discard(left_line)

    def align(self, gap: Gap) -> None:
        """Pair what can be paired in a gap, by keys that say less and less."""
        left, right = self.left, self.right
        gaps = self.prune(self.anchor([gap], left.deep_keys, right.deep_keys, keep_moves=True))
        if not gaps:
            return
        pairs, gaps = pair_regions(left, right, self._ends, gaps)
        for one, other in pairs:
            self.pair(one, other)
        gaps = self.anchor(gaps, *self._near(gaps, lambda body, line: body.keys[line]))
        gaps = self.anchor(gaps, *self._windows(gaps, lambda body, line: body.keys[line]), trim=False)
        gaps = self.anchor(gaps, left.keys, right.keys)
        gaps = self._finish(gaps)
        if not gaps:
            return
        gaps = self.anchor(gaps, *self._near(gaps, _name), trim=False)
        gaps = self.anchor(gaps, *self._windows(gaps, _name), trim=False)
        gaps = self._finish(gaps)
        gaps = self._finish(self.anchor(gaps, *self._windows(gaps, _name, 1)))
        for rest in gaps:
            self._by_order(rest)

    def prune(self, gaps: list[Gap]) -> list[Gap]:
        """The gaps without operations that the other side of the gap has none of: nothing could be their partner."""
        pruned: list[Gap] = []
        for lefts, rights in gaps:
            ours = [self.left.shapes[line].name for line in lefts]
            theirs = [self.right.shapes[line].name for line in rights]
            common = {*ours}.intersection(theirs)
            if common:
                pruned.append(
                    (
                        [line for line, name in zip(lefts, ours, strict=True) if name in common],
                        [line for line, name in zip(rights, theirs, strict=True) if name in common],
                    )
                )
        return pruned

    # ── levels ────────────────────────────────────────────────────────────────────────────────────────────────

    def anchor(
        self, gaps: list[Gap], left_keys: Keys, right_keys: Keys, *, trim: bool = True, keep_moves: bool = False
    ) -> list[Gap]:
        """Pair lines whose key is unique in a gap on both sides, in rounds, since each gap makes more keys unique.

        Returns the gaps that are left.
        """
        done: list[Gap] = []
        for _ in range(_ROUNDS):
            work: list[Gap] = []
            for gap in gaps:
                lefts, rights = self._trim(gap, left_keys, right_keys) if trim else gap
                if not lefts or not rights:
                    continue
                weight = self._weight if keep_moves else None
                anchors, moves = rare_pairs(lefts, rights, left_keys, right_keys, repeats=keep_moves, weight=weight)
                for at_left, at_right in moves if keep_moves else ():
                    self.pair(lefts[at_left], rights[at_right])
                    self.moved.add(lefts[at_left])
                if not anchors:
                    done.append(self._free((lefts, rights)) if moves else (lefts, rights))
                    continue
                work.extend(self._split(lefts, rights, anchors))
            gaps = work
            if not gaps:
                break
        return [gap for gap in (*done, *gaps) if gap[0] and gap[1]]

    def _weight(self, left_line: int) -> int:
        # A loop moves with all that it holds.
        return self._ends[0].get(left_line, left_line) - left_line + 1

    def _free(self, gap: Gap) -> Gap:
        return [line for line in gap[0] if self.to_right[line] < 0], [line for line in gap[1] if self.to_left[line] < 0]

    def _split(self, lefts: list[int], rights: list[int], anchors: list[tuple[int, int]]) -> list[Gap]:
        gaps: list[Gap] = []
        last_left = last_right = 0
        for at_left, at_right in anchors:
            self.pair(lefts[at_left], rights[at_right])
            if at_left > last_left and at_right > last_right:
                gaps.append(self._free((lefts[last_left:at_left], rights[last_right:at_right])))
            last_left, last_right = at_left + 1, at_right + 1
        if last_left < len(lefts) and last_right < len(rights):
            gaps.append(self._free((lefts[last_left:], rights[last_right:])))
        return gaps

    def _trim(self, gap: Gap, left_keys: Keys, right_keys: Keys) -> Gap:
        lefts, rights = gap
        most = min(len(lefts), len(rights))
        start = 0
        while start < most and left_keys[lefts[start]] == right_keys[rights[start]]:
            self.pair(lefts[start], rights[start])
            start += 1
        most -= start
        end = 0
        while end < most and left_keys[lefts[-1 - end]] == right_keys[rights[-1 - end]]:
            end += 1
            self.pair(lefts[-end], rights[-end])
        return lefts[start : len(lefts) - end], rights[start : len(rights) - end]

    def _near(self, gaps: list[Gap], key: LineKey) -> tuple[dict[int, int], dict[int, int]]:
        """Keys of a line and of the lines that define its operands."""
        return (
            keys_with_operands(self.left, (line for gap in gaps for line in gap[0]), key),
            keys_with_operands(self.right, (line for gap in gaps for line in gap[1]), key),
        )

    def _windows(self, gaps: list[Gap], key: LineKey, length: int = WINDOW) -> tuple[dict[int, int], dict[int, int]]:
        """Keys of a line and the next ones of its gap."""
        return (
            keys_of_windows(self.left, [gap[0] for gap in gaps], key, length),
            keys_of_windows(self.right, [gap[1] for gap in gaps], key, length),
        )

    # ── what keys cannot tell ─────────────────────────────────────────────────────────────────────────────────

    def _finish(self, gaps: list[Gap]) -> list[Gap]:
        """Pair the small gaps by similarity; returns the large ones."""
        large: list[Gap] = []
        for gap in sorted(gaps):
            if len(gap[0]) * len(gap[1]) <= _LARGEST_TABLE:
                self._by_similarity(gap)
            else:
                large.append(gap)
        return large

    def _by_similarity(self, gap: Gap) -> None:
        # The heaviest alignment that keeps the order, by dynamic programming.
        lefts, rights = gap
        width = len(rights) + 1
        table = [[0.0] * width for _ in range(len(lefts) + 1)]
        for row in range(len(lefts) - 1, -1, -1):
            below, current = table[row + 1], table[row]
            line = lefts[row]
            for column in range(len(rights) - 1, -1, -1):
                best = below[column] if below[column] >= current[column + 1] else current[column + 1]
                score = self.similarity(line, rights[column])
                if score and score + below[column + 1] > best:
                    best = score + below[column + 1]
                current[column] = best
        row = column = 0
        while row < len(lefts) and column < len(rights):
            best = table[row][column]
            if best == table[row + 1][column]:
                row += 1
            elif best == table[row][column + 1]:
                column += 1
            else:
                self.pair(lefts[row], rights[column])
                row += 1
                column += 1

    def _by_order(self, gap: Gap) -> None:
        # A gap too large for a table: each line takes the next similar one within reach.
        lefts, rights = gap
        at_right = 0
        for line in lefts:
            for ahead in range(at_right, min(at_right + 12, len(rights))):
                if self.similarity(line, rights[ahead]) >= 6:
                    self.pair(line, rights[ahead])
                    at_right = ahead + 1
                    break

    def similarity(self, left_line: int, right_line: int) -> float:
        """How much two lines look like one operation before and after a change; 0 where they are not one."""
        one, other = self.left.shapes[left_line], self.right.shapes[right_line]
        if one.name != other.name or one.opens != other.opens or not one.name:
            return 0.0
        agreeing = self._agreeing(left_line, right_line)
        if self.left.keys[left_line] == self.right.keys[right_line]:
            return 8.0 + agreeing
        pair = (one.template, other.template)
        overlap = self._overlaps.get(pair)
        if overlap is None:
            overlap = self._overlaps[pair] = _overlap(self._bare(one.template), self._bare(other.template))
        if overlap < 0.5 and not agreeing and not one.opens:
            return 0.0
        return 3.0 + 2 * overlap + agreeing

    def _bare(self, template: str) -> str:
        # Aliases are named anew by every pass: their names say nothing.
        alias = self.left.syntax.alias
        return alias.sub("#", template) if alias is not None else template

    def _agreeing(self, left_line: int, right_line: int) -> int:
        """How many operands come from lines that are partners, and whether the results' names have one stem."""
        left, right = self.left, self.right
        agreeing = 0
        defines = left.shapes[left_line].defines
        for place, (one, other) in enumerate(zip(left.values[left_line], right.values[right_line], strict=False)):
            if place in defines:
                agreeing += place == 0 and stem(left.names[one]) == stem(right.names[other]) != ""
                continue
            definer, other_definer = left.definers[one], right.definers[other]
            agreeing += definer >= 0 and other_definer >= 0 and self.to_right[definer] == other_definer
        return min(agreeing, 4)


@lru_cache(maxsize=1 << 16)
def stem(name: str) -> str:
    """What a value is called without its number: "acc" of "%acc_69", "" of "%12"."""
    base, _, number = name.lstrip("%^").rpartition("_")
    base = base if number.isdigit() and base else name.lstrip("%^")
    return "" if not base or base.isdigit() or (base[0] == "c" and base[1:2].isdigit()) else base


def _name(body: Body, line: int) -> str:
    return body.shapes[line].name


def _overlap(one: str, other: str) -> float:
    """How much of the longer of two templates is a common beginning or end, 0 to 1."""
    shorter = min(len(one), len(other))
    start = 0
    while start < shorter and one[start] == other[start]:
        start += 1
    end = 0
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return (start + end) / max(len(one), len(other), 1)
