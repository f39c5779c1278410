"""Puts operations that only changed places among independent ones back to where the left side has them.

Two operations of one block are independent where neither makes what the other reads and their effects may come in
either order: that order is a matter of printing, as names are. What left its block, or passed a barrier, a write (of a
read) or any other effect, stays where it is, and counts as moved. Of SASS and AMD GPU assembly the order is the
schedule that the hardware runs: there every move counts.
"""

from __future__ import annotations

from dataclasses import replace

from irscope.analysis.diff.align import region_ends
from irscope.analysis.diff.matching import Matching
from irscope.ir.syntax import ANY, NONE, READS, Body, effect_of

_KINDS = ("mlir", "llvm", "ptx")
_SSA = ("mlir", "llvm")
_ROUNDS = 3


def matched(left: Body, right: Body) -> Matching:
    """The matching of two bodies, the right one in the left one's order where the order has no meaning."""
    matching = Matching(left, right)
    if left.kind in _SSA and not _is_even(matching) and (order := _same_graph(left, right)) is not None:
        even = Matching(left, _permuted(right, order))
        if _is_even(even):
            return even
    for _ in range(_ROUNDS):
        order = _Reordering(matching).order() if left.kind in _KINDS and matching.moved else None
        if order is None:
            break
        matching = Matching(left, _permuted(matching.right, order))
    return matching


def _is_even(matching: Matching) -> bool:
    return not matching.moved and all(matching.equal) and -1 not in matching.to_right


def _same_graph(left: Body, right: Body) -> list[int] | None:
    """The right lines in the left one's order, where both are one graph of operations; None where they are not.

    What keeps its place is paired in its order, and then what each pair reads: so of equal computations each gets the
    partner that its readers have.
    """
    if sorted(left.keys) != sorted(right.keys):
        return None
    partner, taken = [-1] * len(left.lines), [False] * len(right.lines)
    ours, theirs = _fixed(left), _fixed(right)
    unread: dict[int, list[int]] = {}
    for line, key in enumerate(right.deep_keys):
        unread.setdefault(key, []).append(line)
    waiting = list(zip(ours, theirs, strict=False)) if len(ours) == len(theirs) else []

    def agrees(line: int, other: int) -> bool:
        sources = zip(left.uses[line], right.uses[other], strict=False)
        pairs = [(left.definers[one], right.definers[two]) for one, two in sources]
        return all(one < 0 or two < 0 or partner[one] == (two if taken[two] else -1) for one, two in pairs)

    for last in range(len(left.lines) - 1, -2, -1):
        while waiting:
            line, other = waiting.pop()
            if partner[line] == other:
                continue
            if partner[line] >= 0 or taken[other] or left.keys[line] != right.keys[other]:
                return None
            partner[line], taken[other] = other, True
            for one, two in zip(left.uses[line], right.uses[other], strict=False):
                if left.definers[one] >= 0 <= right.definers[two]:
                    waiting.append((left.definers[one], right.definers[two]))
        if last >= 0 > partner[last]:
            # Of equal operations that nothing reads, the one that reads the partners of what this one reads.
            others = unread.get(left.deep_keys[last], [])
            other = next((one for one in reversed(others) if not taken[one] and agrees(last, one)), -1)
            if other < 0:
                return None
            others.remove(other)
            waiting.append((last, other))
    return None if -1 in partner or not _keeps_places(left, right, partner) else partner


def _fixed(body: Body) -> list[int]:
    return [
        line
        for line, shape in enumerate(body.shapes)
        if shape.opens or shape.closes or shape.name == "^" or effect_of(shape, body.kind) == ANY
    ]


def _keeps_places(left: Body, right: Body, partner: list[int]) -> bool:
    """Whether each line stays in its block, and each read of memory between the same effects."""
    ours, theirs = _blocks(left, READS), _blocks(right, READS)
    return all(
        (partner[one] if one >= 0 else -1) == other
        for line, block in enumerate(ours)
        for one, other in zip(block, theirs[partner[line]], strict=True)
    )


class _Reordering:
    def __init__(self, matching: Matching) -> None:
        self.matching = matching
        self.left = matching.left
        self.to_right = matching.to_right
        self.ends = region_ends(matching.left)
        self.right_ends = region_ends(matching.right)
        self.blocks = _blocks(matching.left)
        self.right_blocks = _blocks(matching.right)
        self.definers: dict[int, list[int]] = {}
        self.readers: dict[int, list[int]] = {}
        self.effects: dict[int, list[tuple[int, int]]] = {}
        """Line that opens a region -> (line, effect) of the operations in it that have one."""

    def order(self) -> list[int] | None:
        """The right lines in their new order; None where that is the present one."""
        moves = [line for line in sorted(self.matching.moved) if self._may_move(line)]
        if not moves:
            return None
        self._index()
        free = {line for line in moves if self._is_free(line)}
        return self._spliced(free) if free else None

    def _may_move(self, line: int) -> bool:
        partner = self.to_right[line]
        shape = self.left.shapes[line]
        if shape.closes or shape.name == "^" or not self.matching.equal[partner] or not self._same_block(line):
            return False
        closed = self.ends.get(line, line) < len(self.left.lines)
        return closed and self.right_ends.get(partner, partner) < len(self.matching.right.lines)

    def _same_block(self, line: int) -> bool:
        ours, theirs = self.blocks[line], self.right_blocks[self.to_right[line]]
        return all(
            other < 0 if one < 0 else self.to_right[one] == other for one, other in zip(ours, theirs, strict=True)
        )

    def _index(self) -> None:
        left = self.left
        for line, shape in enumerate(left.shapes):
            for place in shape.defines:
                self.definers.setdefault(left.values[line][place], []).append(line)
            for value in left.uses[line]:
                self.readers.setdefault(value, []).append(line)
            if not shape.closes and (effect := self._effect(line)) != NONE:
                self.effects.setdefault(left.parents[line], []).append((line, effect))

    def _effect(self, line: int) -> int:
        shape = self.left.shapes[line]
        if shape.is_function or not shape.opens:
            return effect_of(shape, self.left.kind)
        end = self.ends.get(line, line)
        inside = (one for one in self.left.shapes[line:end] if not one.closes and one.name != "^")
        return max((effect_of(one, self.left.kind) for one in inside), default=ANY)

    def _is_free(self, line: int) -> bool:
        """Whether nothing that a line changed places with depends on it, or it on that."""
        left = self.left
        for one in range(line, self.ends.get(line, line) + 1):
            for place in left.shapes[one].defines:
                value = left.values[one][place]
                if any(self._passed(line, other) for other in (*self.definers[value], *self.readers.get(value, ()))):
                    return False
            if any(self._passed(line, other) for value in left.uses[one] for other in self.definers.get(value, ())):
                return False
        effect = self._effect(line)
        return effect == NONE or not any(
            ANY in (effect, theirs) and self._passed(line, other)
            for other, theirs in self.effects.get(left.parents[line], ())
        )

    def _passed(self, line: int, other: int) -> bool:
        """Whether a line stands on the other side of another one, or of what holds that one in the same region."""
        parents = self.left.parents
        while other >= 0 and parents[other] != parents[line]:
            other = parents[other]
        if other < 0 or self.to_right[other] < 0:
            return False
        return (other < line) != (self.to_right[other] < self.to_right[line])

    def _spliced(self, free: set[int]) -> list[int] | None:
        count = len(self.matching.right.lines)
        after = [*range(1, count + 1), 0]
        before = [count, *range(count)]
        # The last item is the ring's own end, and its beginning.
        last: dict[tuple[int, int], int] = {}
        for line, partner in enumerate(self.to_right):
            if partner < 0 or self.left.shapes[line].closes:
                continue
            block, end = self.blocks[line], self.right_ends.get(partner, partner)
            if line in free:
                parent, label = block
                start = self.to_right[label] if label >= 0 else self.to_right[parent] if parent >= 0 else count
                place = last.get(block, start)
                if before[partner] != place:
                    after[before[partner]], before[after[end]] = after[end], before[partner]
                    after[end], before[after[place]] = after[place], end
                    after[place], before[partner] = partner, place
            elif line in self.matching.moved or end >= count or not self._same_block(line):
                continue
            last[block] = end
        order: list[int] = []
        line = after[count]
        while line != count:
            order.append(line)
            line = after[line]
        return order if order != list(range(count)) else None


def _blocks(body: Body, reads: int = NONE) -> list[tuple[int, int]]:
    """For each line, what opened the region it stands in, and the label of its block; -1 for none.

    With `reads`, what reads memory has the last effect before it in place of the label.
    """
    labels: dict[int, int] = {}
    effects: dict[int, int] = {}
    blocks: list[tuple[int, int]] = []
    for line, (parent, shape) in enumerate(zip(body.parents, body.shapes, strict=True)):
        effect = effect_of(shape, body.kind) if reads else NONE
        last = effects if effect == READS else labels
        blocks.append((parent, last.get(parent, -1)))
        if shape.name == "^":
            labels[parent] = line
        if shape.name == "^" or shape.opens or effect == ANY:
            effects[parent] = line
    return blocks


def _permuted(body: Body, order: list[int]) -> Body:
    place = {line: index for index, line in enumerate(order)} | {-1: -1}
    columns = ("lines", "numbers", "shapes", "keys", "deep_keys", "values", "uses")
    return replace(
        body,
        **{column: [getattr(body, column)[line] for line in order] for column in columns},
        parents=[place[body.parents[line]] for line in order],
        openers=[place[body.openers[line]] for line in order],
        definers=[place[line] for line in body.definers],
    )
