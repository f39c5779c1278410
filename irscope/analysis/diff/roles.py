"""Which value of the right side plays the part of which value of the left one."""

from __future__ import annotations

from irscope.analysis.diff.align import Aligner, stem
from irscope.ir.body.tokens import VALUE


class Roles:
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
        """Match all values anew, by the present partners of lines."""
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
