"""Matches two bodies: partner lines, corresponding values, and differences."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from irscope.analysis.diff.align import Aligner, Gap, heaviest_ascending, stem
from irscope.ir.syntax import VALUE, Body

# ── Which value of the right side plays the part of which value of the left one ─────────────────────────────────────


class _Roles:
    """Pairs of values, by the lines that define and use them.

    A value of the right side plays the part of a left one where their definitions are partners, or, where neither
    definition has a partner, where partners use them in the same place.
    """

    def __init__(self, aligner: Aligner) -> None:
        self._aligner = aligner
        self.left = aligner.left
        self.right = aligner.right
        self.value_of: list[int] = []
        """Per right value, the left one whose part it plays; -1 for none."""
        self.role_of: list[int] = []
        """Per left value, the right one that plays its part; -1 for none."""
        self._exposed: set[int] = set()
        """Left values of physical registers whose writer stands in for the readers that lost it."""

    def match(self) -> None:
        left, right = self.left, self.right
        value_of = self.value_of = [-1] * len(right.names)
        role_of = self.role_of = [-1] * len(left.names)
        self._exposed = set()
        left_values, right_values = left.values, right.values
        left_shapes, right_shapes = left.shapes, right.shapes
        for right_line, left_line in enumerate(self._aligner.to_left):
            if left_line < 0:
                continue
            defines = right_shapes[right_line].defines
            if not defines:
                continue
            if defines == (0,) == left_shapes[left_line].defines:
                one, other = left_values[left_line][0], right_values[right_line][0]
                if value_of[other] < 0 and role_of[one] < 0:
                    value_of[other] = one
                    role_of[one] = other
                continue
            self._by_definitions(left_line, right_line)
        if -1 not in value_of:
            return
        for right_line, left_line in enumerate(self._aligner.to_left):
            if left_line >= 0:
                for value in right_values[right_line]:
                    if value_of[value] < 0:
                        self._by_uses(left_line, right_line)
                        break
        # Nothing defines it (a string that looks like a value, a truncated text): it is matched by name.
        if right.syntax.keeps_unknown:
            loose: dict[str, list[int]] = {}
            for value in range(len(left.names) - 1, -1, -1):
                if left.definers[value] < 0 and role_of[value] < 0:
                    loose.setdefault(left.names[value], []).append(value)
            for value, definer in enumerate(right.definers):
                if definer < 0 and value_of[value] < 0 and (named := loose.get(right.names[value])):
                    self._pair(named.pop(), value)

    def blame_writers(self) -> None:
        """Where readers of one register read different values, part the values that moved to another register.

        `s_mov_b32 s23` became `s_mov_b32 s99`: the instruction that changed is that one, not what reads s23. Only for
        physical registers, and only what makes a difference elsewhere makes readers the same.
        """
        left, right = self.left, self.right
        value_of, role_of = self.value_of, self.role_of
        parted: set[tuple[int, int]] = set()
        blamed: list[tuple[int, int]] = []
        for right_line, left_line in enumerate(self._aligner.to_left):
            if left_line < 0 or left.keys[left_line] != right.keys[right_line]:
                continue
            for one, other in zip(left.values[left_line], right.values[right_line], strict=False):
                if value_of[other] == one or left.names[one] != right.names[other]:
                    continue
                moved = [(one, role_of[one]), (value_of[other], other)]
                moved = [(a, b) for a, b in moved if a >= 0 <= b and left.names[a] != right.names[b]]
                if any(right.definers[b] >= 0 for _, b in moved):
                    parted.update(moved)
                    blamed.append((one, other))
        for one, other in parted:
            role_of[one] = value_of[other] = -1
        for one, other in blamed:
            self._pair(one, other)
            self._exposed.add(one)

    def is_same(self, one: int, other: int) -> bool:
        """Whether a right value plays the part of a left one, or the writer of either shows that it does not."""
        if self.value_of[other] == one:
            return True
        return one in self._exposed and self.left.names[one] == self.right.names[other]

    def _pair(self, left_value: int, right_value: int) -> None:
        if left_value >= 0 and self.value_of[right_value] < 0 and self.role_of[left_value] < 0:
            self.value_of[right_value] = left_value
            self.role_of[left_value] = right_value

    def _by_definitions(self, left_line: int, right_line: int) -> None:
        left, right = self.left, self.right
        one, other = left.shapes[left_line].defines, right.shapes[right_line].defines
        if not one or not other:
            return
        ours, theirs = left.values[left_line], right.values[right_line]
        if len(one) == len(other):
            for place, other_place in zip(one, other, strict=True):
                self._pair(ours[place], theirs[other_place])
            return
        # Loop-carried values came or went: results first, then what the loop counts, then those of one stem, in order.
        settled = 1 + (left.shapes[left_line].name == "scf.for" and left.shapes[left_line].template[0] == VALUE)
        for place, other_place in zip(one[:settled], other[:settled], strict=False):
            self._pair(ours[place], theirs[other_place])
        start = settled
        for place in one[settled:]:
            wanted = stem(left.names[ours[place]])
            for index in range(start, len(other)):
                if wanted and stem(right.names[theirs[other[index]]]) == wanted:
                    self._pair(ours[place], theirs[other[index]])
                    start = index + 1
                    break

    def _by_uses(self, left_line: int, right_line: int) -> None:
        left, right = self.left, self.right
        ours, theirs = left.values[left_line], right.values[right_line]
        if len(ours) != len(theirs):
            return
        value_of, role_of = self.value_of, self.role_of
        for one, other in zip(ours, theirs, strict=True):
            if value_of[other] >= 0 or role_of[one] >= 0:
                continue
            definer, other_definer = left.definers[one], right.definers[other]
            if right.syntax.keeps_unknown and (definer < 0 or other_definer < 0):
                continue
            if left.names[one][:1] != right.names[other][:1] and left.kind == "mlir":
                continue
            # Both definitions went their own way: what takes the place of a value takes its part.
            if self._is_loose(definer, self._aligner.to_right, other_definer) and self._is_loose(
                other_definer, self._aligner.to_left, definer
            ):
                value_of[other] = one
                role_of[one] = other

    @staticmethod
    def _is_loose(definer: int, partners: list[int], other_definer: int) -> bool:
        return definer < 0 or partners[definer] < 0 or partners[definer] == other_definer


# ── Tells apart operations that compute the same from the same: only who reads their results says which is which ────


class _Twins:
    """Pairs equal computations anew, by the votes of the lines that read them.

    Where one of four equal constants went, keys cannot tell which; the readers of the other three can.
    """

    def __init__(self, aligner: Aligner, value_of: list[int]) -> None:
        self._aligner = aligner
        self._left = aligner.left
        self._right = aligner.right
        self._value_of = value_of

    def sort_out(self) -> bool:
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
        self._roles = _Roles(self.aligner)
        self.equal: list[bool] = []
        """Per right line, whether it has a partner with the same text."""
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
        if _Twins(self.aligner, self.value_of).sort_out():
            self._roles.match()
        for _ in range(_MOVE_ROUNDS):
            if not self._find_moves(lefts, rights):
                break
            self._roles.match()
        for with_operands in (True, False):
            if self._find_altered_moves(lefts, rights, with_operands=with_operands):
                self._roles.match()
        self._close_regions()
        # Call moved whatever is out of order after all (regions that a text cut short never closes).
        pairs = [(line, other) for line, other in enumerate(self.to_right) if other >= 0 and line not in self.moved]
        kept = heaviest_ascending([other for _, other in pairs], [1] * len(pairs))
        if len(kept) < len(pairs):
            in_order = set(kept)
            self.moved.update(line for index, (line, _) in enumerate(pairs) if index not in in_order)

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
            at_left = bisect_left(wanting_left, end_left, at_left)
            at_right = bisect_left(wanting_right, end_right, at_right)
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
        left, right = self.left, self.right
        closers = {opener: line for line, opener in enumerate(right.openers) if opener >= 0}
        for line, opener in enumerate(left.openers):
            partner = self.to_right[opener] if opener >= 0 else -1
            if partner >= 0 and partner in closers:
                self.aligner.pair(line, closers[partner])
                if opener in self.moved:
                    self.moved.add(line)


def _around(parents: list[int], line: int, partners: list[int]) -> int:
    """The nearest line around one that has a partner; -1 for none."""
    line = parents[line]
    while line >= 0 and partners[line] < 0:
        line = parents[line]
    return line
