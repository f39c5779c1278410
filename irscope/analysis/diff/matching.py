"""Matches two bodies: which lines are partners, which values play the same part, and what differs."""

from __future__ import annotations

from irscope.analysis.diff.align import Aligner
from irscope.analysis.diff.anchors import longest_ascending
from irscope.analysis.diff.regions import Gap
from irscope.analysis.diff.roles import Roles
from irscope.analysis.diff.twins import Twins
from irscope.ir.body.reader import Body

_REFINEMENTS = 2
_MOVE_ROUNDS = 3
_ALTERED = 4.5


class Matching:
    """The outcome: which lines are partners, which of them moved, and which say the same."""

    def __init__(self, left: Body, right: Body) -> None:
        self.left = left
        self.right = right
        self.aligner = Aligner(left, right)
        self.to_left = self.aligner.to_left
        self.to_right = self.aligner.to_right
        self.moved = self.aligner.moved
        self._roles = Roles(self.aligner)
        self.equal: list[bool] = []
        """Per right line, whether it has a partner that says the same."""
        self._compare()
        # The one place where equality is decided for good.
        if not left.syntax.is_virtual:
            self._roles.blame_writers()
        self.equal = [ours >= 0 and self.is_equal(ours, theirs) for theirs, ours in enumerate(self.to_left)]

    @property
    def value_of(self) -> list[int]:
        """Per right value, the left one whose part it plays; -1 for none."""
        return self._roles.value_of

    def is_equal(self, left_line: int, right_line: int) -> bool:
        """Whether two partners say the same, up to the names of values."""
        if self.left.keys[left_line] != self.right.keys[right_line]:
            return False
        value_of = self._roles.value_of
        ours, theirs = self.left.values[left_line], self.right.values[right_line]
        if [value_of[value] for value in theirs] == [*ours]:
            return True
        return len(ours) == len(theirs) and all(map(self._roles.is_same, ours, theirs))

    def is_rewired(self, left_line: int, right_line: int) -> bool:
        """Whether partners differ only in which of several equal computations they read."""
        return self.left.deep_keys[left_line] == self.right.deep_keys[right_line]

    def _compare(self) -> None:
        left, right = self.left, self.right
        if left.deep_keys == right.deep_keys:
            for line in range(len(left.lines)):
                self.aligner.pair(line, line)
            self._roles.match()
            if all(map(self.is_equal, range(len(left.lines)), range(len(left.lines)))):
                return
            for line in range(len(left.lines)):
                self.aligner.part(line)
        lefts = [line for line, shape in enumerate(left.shapes) if not shape.closes]
        rights = [line for line, shape in enumerate(right.shapes) if not shape.closes]
        self.aligner.align((lefts, rights))
        self._part_strangers()
        self._roles.match()
        before = len(lefts) + 1
        for _ in range(_REFINEMENTS):
            wanting = [line for line in lefts if self._is_wanting(line)]
            if len(wanting) >= before or not self._refine(wanting, rights):
                break
            before = len(wanting)
            self._part_strangers()
            self._roles.match()
        if Twins(self.aligner, self.value_of).sort_out():
            self._roles.match()
        for _ in range(_MOVE_ROUNDS):
            if not self._find_moves(lefts, rights):
                break
            self._roles.match()
        for with_operands in (True, False):
            if self._find_altered_moves(lefts, rights, with_operands=with_operands):
                self._roles.match()
        self._close_regions()
        self._keep_order()

    # ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _part_strangers(self) -> None:
        """Undo pairs across regions: where one line stands in a loop that the other stands outside of, it moved."""
        to_right, to_left = self.to_right, self.to_left
        parents, other_parents = self.left.parents, self.right.parents
        for line, partner in enumerate(to_right):
            if partner < 0:
                continue
            parent, other_parent = parents[line], other_parents[partner]
            if (to_right[parent] == other_parent if parent >= 0 else other_parent < 0) or line in self.moved:
                continue
            one = _around(parents, line, to_right)
            other = _around(other_parents, partner, to_left)
            if (to_right[one] if one >= 0 else -1) != other:
                self.aligner.part(line)

    def _mapped_keys(self, lefts: list[int], rights: list[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Keys of the line and its operands, where the right operands go by the left ones' numbers."""
        left, right, value_of = self.left, self.right, self.value_of
        left_keys = {line: hash((left.keys[line], *left.uses[line])) for line in lefts}
        right_keys: dict[int, int] = {}
        for line in rights:
            used = [value_of[value] for value in right.uses[line]]
            if -1 in used:
                used = [-2 - value if value_of[value] < 0 else value_of[value] for value in right.uses[line]]
            right_keys[line] = hash((right.keys[line], *used))
        return left_keys, right_keys

    def _refine(self, wanting_left: list[int], rights: list[int]) -> bool:
        """Align what is not equal anew, now that operands are known; returns whether there was anything to do."""
        if not wanting_left:
            return False
        wanting = set(wanting_left)
        wanting_right = [line for line in rights if self.to_left[line] < 0 or self.to_left[line] in wanting]
        if not wanting_right:
            return False
        gaps = self.aligner.prune(self._gaps(wanting_left, wanting_right))
        if not gaps:
            return False
        for ours, _ in gaps:
            for line in ours:
                if self.to_right[line] >= 0:
                    self.aligner.part(line)
        for gap in gaps:
            left_keys, right_keys = self._mapped_keys(*gap)
            for rest in self.aligner.anchor([gap], left_keys, right_keys, keep_moves=True):
                self.aligner.align(rest)
        return True

    def _is_wanting(self, left_line: int) -> bool:
        partner = self.to_right[left_line]
        return partner < 0 or (left_line not in self.moved and not self.is_equal(left_line, partner))

    def _gaps(self, wanting_left: list[int], wanting_right: list[int]) -> list[Gap]:
        """The lines that are not equal, in groups between those that are; groups with one pair only are settled."""
        loose = self.moved.union(wanting_left)
        bounds = [
            (line, partner)
            for line, partner in enumerate(self.to_right)
            if partner >= 0 and line not in loose and not self.left.shapes[line].closes
        ]
        bounds.append((len(self.to_right), len(self.to_left)))
        gaps: list[Gap] = []
        at_left = at_right = 0
        for end_left, end_right in bounds:
            start_left, start_right = at_left, at_right
            while at_left < len(wanting_left) and wanting_left[at_left] < end_left:
                at_left += 1
            while at_right < len(wanting_right) and wanting_right[at_right] < end_right:
                at_right += 1
            ours, theirs = wanting_left[start_left:at_left], wanting_right[start_right:at_right]
            settled = len(ours) == len(theirs) == 1 and self.to_right[ours[0]] == theirs[0]
            if ours and theirs and not settled:
                gaps.append((ours, theirs))
        return gaps

    def _unpaired(self, lefts: list[int], rights: list[int]) -> Gap:
        """Those of the lines that have no partner, and may find one among the others."""
        ours = [line for line in lefts if self.to_right[line] < 0]
        theirs = [line for line in rights if self.to_left[line] < 0]
        pruned = self.aligner.prune([(ours, theirs)])
        return pruned[0] if pruned else (list[int](), list[int]())

    def _find_moves(self, lefts: list[int], rights: list[int]) -> bool:
        """Pair lines that say the same in different places; returns whether there were any."""
        ours, theirs = self._unpaired(lefts, rights)
        left_keys, right_keys = self._mapped_keys(ours, theirs)
        waiting: dict[int, list[int]] = {}
        for line in reversed(theirs):
            waiting.setdefault(right_keys[line], []).append(line)
        found = False
        for line in ours:
            partners = waiting.get(left_keys[line])
            if partners:
                self.aligner.pair(line, partners.pop())
                self.moved.add(line)
                found = True
        return found

    def _find_altered_moves(self, lefts: list[int], rights: list[int], *, with_operands: bool) -> bool:
        """Pair what is left of operations that moved and changed on the way.

        They must be the only ones of their name in the same region on either side; `with_operands`, of their name
        and their operands.
        """
        left, right, to_right, to_left = self.left, self.right, self.to_right, self.to_left
        ours: dict[tuple[object, ...], int] = {}
        theirs: dict[tuple[object, ...], int] = {}
        lefts, rights = self._unpaired(lefts, rights)
        for line in lefts:
            if left.uses[line] or not with_operands:
                operands = left.uses[line] if with_operands else ()
                key = (_around(left.parents, line, to_right), left.shapes[line].name, *operands)
                ours[key] = line if key not in ours else -1
        for line in rights:
            if right.uses[line] or not with_operands:
                around = _around(right.parents, line, to_left)
                operands = tuple(self.value_of[value] for value in right.uses[line]) if with_operands else ()
                key = (to_left[around] if around >= 0 else -1, right.shapes[line].name, *operands)
                theirs[key] = line if key not in theirs else -1
        found = False
        for key, line in ours.items():
            other = theirs.get(key, -1)
            if line >= 0 <= other and self.aligner.similarity(line, other) >= _ALTERED:
                self.aligner.pair(line, other)
                self.moved.add(line)
                found = True
        return found

    def _close_regions(self) -> None:
        """The ends of regions are partners where the beginnings are."""
        left, right = self.left, self.right
        closers = {opener: line for line, opener in enumerate(right.openers) if opener >= 0}
        for line, opener in enumerate(left.openers):
            partner = self.to_right[opener] if opener >= 0 else -1
            if partner >= 0 and partner in closers:
                self.aligner.pair(line, closers[partner])
                if opener in self.moved:
                    self.moved.add(line)

    def _keep_order(self) -> None:
        """Call moved whatever is out of order after all (regions that a text cut short never closes)."""
        pairs = [(line, other) for line, other in enumerate(self.to_right) if other >= 0 and line not in self.moved]
        kept = longest_ascending([other for _, other in pairs])
        if len(kept) < len(pairs):
            in_order = set(kept)
            self.moved.update(line for index, (line, _) in enumerate(pairs) if index not in in_order)


def _around(parents: list[int], line: int, partners: list[int]) -> int:
    """The nearest line around one that has a partner; -1 for none."""
    line = parents[line]
    while line >= 0 and partners[line] < 0:
        line = parents[line]
    return line
