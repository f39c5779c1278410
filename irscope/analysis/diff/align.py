"""Aligns two sequences of operations: rare keys first, then looser keys in the gaps, then similarity in the rest.

Cost: each level walks each gap once, so a level is linear in the lines that no level before it paired; only the last,
`_by_similarity`, is quadratic, and it takes gaps of at most `_LARGEST_TABLE` cells.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from irscope.ir.syntax import Body

# ── Keys of lines, and the lines whose keys are rare enough to hold an alignment together ───────────────────────────

Keys = Sequence[int] | Mapping[int, int]

_LineKey = Callable[[Body, int], int | str]

_WINDOW = 4
"""Lines that the key of a window takes in."""


def _keys_with_operands(body: Body, lines: Iterable[int], key: _LineKey) -> dict[int, int]:
    definers, uses = body.definers, body.uses
    keys: dict[int, int] = {}
    for line in lines:
        sources = [definers[value] for value in uses[line]]
        keys[line] = hash((key(body, line), *[key(body, source) if source >= 0 else "" for source in sources]))
    return keys


def _keys_of_windows(body: Body, runs: list[list[int]], key: _LineKey, length: int) -> dict[int, int]:
    """Keys of each line and of those after it in its run, `length` lines in all."""
    keys: dict[int, int] = {}
    for run in runs:
        own = [key(body, line) for line in run]
        for index, line in enumerate(run):
            keys[line] = hash(tuple(own[index : index + length]))
    return keys


def _rare_pairs(
    lefts: list[int],
    rights: list[int],
    left_keys: Keys,
    right_keys: Keys,
    *,
    repeats: bool,
    weight: Callable[[int], int] | None = None,
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Places whose keys are unique on both sides: the longest run of them in one order, and those out of order.

    With `repeats`, a key that occurs equally often on both sides counts too, first to first, second to second. Where
    some are out of order, `weight` says how much it would take to call a left line moved.
    """
    places, again = _occurrences(rights, right_keys)
    seen, repeated = _occurrences(lefts, left_keys)
    pairs: list[tuple[int, int]] = []
    for key, place in seen.items():
        if key not in places:
            continue
        ours, theirs = repeated.get(key), again.get(key)
        if ours is None and theirs is None:
            pairs.append((place, places[key]))
        elif repeats and ours is not None and theirs is not None and len(ours) == len(theirs):
            pairs.append((place, places[key]))
            pairs.extend(zip(ours, theirs, strict=True))
    if repeated:
        pairs.sort()
    weights = [1 if weight is None else weight(lefts[place]) for place, _ in pairs]
    chain = heaviest_ascending([other for _, other in pairs], weights)
    kept = set(chain)
    return [pairs[index] for index in chain], [pair for index, pair in enumerate(pairs) if index not in kept]


def _occurrences(lines: list[int], keys: Keys) -> tuple[dict[int, int], dict[int, list[int]]]:
    first: dict[int, int] = {}
    others: dict[int, list[int]] = {}
    for place, line in enumerate(lines):
        if first.setdefault(keys[line], place) != place:
            others.setdefault(keys[line], []).append(place)
    return first, others


def heaviest_ascending(numbers: Sequence[int], weights: Sequence[int]) -> list[int]:
    """The indices of the heaviest ascending subsequence; weights are positive, and if all are 1 it is a longest one."""
    # Of the subsequences those that end below all heavier ones: their last numbers, weights and last indices.
    ends: list[int] = []
    sums: list[int] = []
    indices: list[int] = []
    previous = [-1] * len(numbers)
    for index, (number, weight) in enumerate(zip(numbers, weights, strict=True)):
        place = bisect_left(ends, number)
        if place:
            previous[index] = indices[place - 1]
        total = weight + (sums[place - 1] if place else 0)
        outweighed = slice(place, bisect_right(sums, total, place))
        if ends[place : place + 1] != [number] or sums[place] <= total:
            ends[outweighed], sums[outweighed], indices[outweighed] = [number], [total], [index]
    chain = indices[-1:]
    while chain and previous[chain[-1]] >= 0:
        chain.append(previous[chain[-1]])
    return chain[::-1]


def heaviest_pairs(
    rows: int, columns: int, score: Callable[[int, int], float], *, late: bool = False
) -> list[tuple[int, int]]:
    """The pairs, in one order, with the greatest sum of scores, by dynamic programming.

    `score`: 0 for what is no pair. `late`: whether of equally heavy ones those are taken that pair as late as they can.
    """
    table = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        below, current = table[row + 1], table[row]
        for column in range(columns - 1, -1, -1):
            best = below[column] if below[column] >= current[column + 1] else current[column + 1]
            found = score(row, column)
            if found and found + below[column + 1] > best:
                best = found + below[column + 1]
            current[column] = best
    pairs: list[tuple[int, int]] = []
    row = column = 0
    while row < rows and column < columns:
        best, found = table[row][column], score(row, column)
        can_wait = best in (table[row + 1][column], table[row][column + 1])
        if found and best == found + table[row + 1][column + 1] and not (late and can_wait):
            pairs.append((row, column))
            row, column = row + 1, column + 1
        elif best == table[row + 1][column]:
            row += 1
        else:
            column += 1
    return pairs


# ── Pairs loops and other large regions before their lines are: what stands in a loop is looked for in that loop ────

Gap = tuple[list[int], list[int]]
"""Lines of the left and of the right side that are still to be paired, each in ascending order."""
Ends = tuple[dict[int, int], dict[int, int]]
"""`region_ends` of the left and of the right side."""

# A region of a reduction has two lines, which every other reduction has too: only what is larger tells itself apart.
_SMALLEST = 6
_MOST_PAIRS = 900
_LEAST_LIKENESS = 0.25
_DEEPEST = 12


def _pair_regions(left: Body, right: Body, ends: Ends, gaps: list[Gap]) -> tuple[list[tuple[int, int]], list[Gap]]:
    """The pairs of large regions that are alike in each gap, and the gaps split along them."""
    paired: list[tuple[int, int]] = []
    done: list[Gap] = []
    waiting = [(gap, 0) for gap in reversed(gaps)]
    while waiting:
        gap, depth = waiting.pop()
        pairs = _alike(left, right, gap, ends) if depth < _DEEPEST else []
        if not pairs:
            done.append(gap)
            continue
        lefts, rights = gap
        for one, other in pairs:
            paired.append((one, other))
            # Before, inside; what is behind stays for the next pair.
            waiting.append((_between((lefts, rights), (-1, one), (-1, other)), _DEEPEST))
            inside = _between((lefts, rights), (one, ends[0][one]), (other, ends[1][other]))
            last, other_last = ends[0][one] - 1, ends[1][other] - 1
            ends_both = inside[0][-1:] == [last] and inside[1][-1:] == [other_last]
            if ends_both and left.shapes[last].name == right.shapes[other_last].name:
                paired.append((last, other_last))
                inside = inside[0][:-1], inside[1][:-1]
            waiting.append((inside, depth + 1))
            lefts = [line for line in lefts if line > ends[0][one]]
            rights = [line for line in rights if line > ends[1][other]]
        waiting.append(((lefts, rights), _DEEPEST))
    return paired, sorted(gap for gap in done if gap[0] and gap[1])


def region_ends(body: Body) -> dict[int, int]:
    """Line that opens regions -> line that closes the last of them (the end of the text, where none does)."""
    ends: dict[int, int] = {}
    roots: dict[int, int] = {}
    for line, shape in enumerate(body.shapes):
        root = roots.get(body.openers[line], body.openers[line]) if shape.closes else -1
        if root >= 0:
            ends[root] = line
        if shape.opens:
            # "} else {" goes on with the operation that it closes a region of.
            roots[line] = root if root >= 0 else line
            ends[roots[line]] = len(body.lines)
    return ends


def _between(gap: Gap, left: tuple[int, int], right: tuple[int, int]) -> Gap:
    return [line for line in gap[0] if left[0] < line < left[1]], [
        line for line in gap[1] if right[0] < line < right[1]
    ]


def _alike(left: Body, right: Body, gap: Gap, ends: Ends) -> list[tuple[int, int]]:
    """The outermost large regions of a gap, paired in order by how much of what they hold is the same."""
    ours, theirs = _outermost(left, gap[0], ends[0]), _outermost(right, gap[1], ends[1])
    if not ours or not theirs or len(ours) * len(theirs) > _MOST_PAIRS:
        return []
    contents = [_content(left, line, ends[0][line]) for line in ours]
    other_contents = [_content(right, line, ends[1][line]) for line in theirs]

    def score(row: int, column: int) -> float:
        if left.shapes[ours[row]].name != right.shapes[theirs[column]].name:
            return 0.0
        likeness = _likeness(contents[row], other_contents[column])
        return likeness if likeness >= _LEAST_LIKENESS else 0.0

    return [(ours[row], theirs[column]) for row, column in heaviest_pairs(len(ours), len(theirs), score)]


def _outermost(body: Body, lines: list[int], ends: dict[int, int]) -> list[int]:
    found: list[int] = []
    last = -1
    for line in lines:
        if line > last and body.shapes[line].opens and not body.shapes[line].closes and ends[line] - line > _SMALLEST:
            found.append(line)
            last = ends[line]
    return found


def _content(body: Body, start: int, end: int) -> tuple[Counter[int], Counter[str]]:
    inside = range(start + 1, min(end, len(body.lines)))
    return Counter(body.keys[line] for line in inside), Counter(body.shapes[line].name for line in inside)


def _likeness(one: tuple[Counter[int], Counter[str]], other: tuple[Counter[int], Counter[str]]) -> float:
    # Whole lines count twice as much as names of operations; of the smaller one, since loops grow when pipelined.
    smaller = max(1, min(one[0].total(), other[0].total()))
    return (2 * (one[0] & other[0]).total() + (one[1] & other[1]).total()) / (3 * smaller)


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
        self.to_right[left_line] = right_line
        self.to_left[right_line] = left_line

    def part(self, left_line: int) -> None:
        self.to_left[self.to_right[left_line]] = -1
        self.to_right[left_line] = -1
        self.moved.discard(left_line)

    def align(self, gap: Gap) -> None:
        """Pair what can be paired in a gap, by keys that say less and less."""
        left, right = self.left, self.right
        gaps = self.prune(self.anchor([gap], left.deep_keys, right.deep_keys, keep_moves=True))
        if not gaps:
            return
        pairs, gaps = _pair_regions(left, right, self._ends, gaps)
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
                anchors, moves = _rare_pairs(lefts, rights, left_keys, right_keys, repeats=keep_moves, weight=weight)
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

    def _near(self, gaps: list[Gap], key: _LineKey) -> tuple[dict[int, int], dict[int, int]]:
        return (
            _keys_with_operands(self.left, (line for gap in gaps for line in gap[0]), key),
            _keys_with_operands(self.right, (line for gap in gaps for line in gap[1]), key),
        )

    def _windows(self, gaps: list[Gap], key: _LineKey, length: int = _WINDOW) -> tuple[dict[int, int], dict[int, int]]:
        return (
            _keys_of_windows(self.left, [gap[0] for gap in gaps], key, length),
            _keys_of_windows(self.right, [gap[1] for gap in gaps], key, length),
        )

    # ── what keys cannot tell ─────────────────────────────────────────────────────────────────────────────────

    def _finish(self, gaps: list[Gap]) -> list[Gap]:
        large: list[Gap] = []
        for gap in sorted(gaps):
            if len(gap[0]) * len(gap[1]) <= _LARGEST_TABLE:
                self._by_similarity(gap)
            else:
                large.append(gap)
        return large

    def _by_similarity(self, gap: Gap) -> None:
        lefts, rights = gap

        def score(row: int, column: int) -> float:
            return self.similarity(lefts[row], rights[column])

        for row, column in heaviest_pairs(len(lefts), len(rights), score, late=True):
            self.pair(lefts[row], rights[column])

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
    """The name of a value without its number: "acc" of "%acc_69", "" of "%12"."""
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
