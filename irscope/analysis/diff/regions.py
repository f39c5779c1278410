"""Pairs loops and other large regions before their lines are: what stands in a loop is looked for in that loop."""

from __future__ import annotations

from collections import Counter

from irscope.ir.body.reader import Body

Gap = tuple[list[int], list[int]]
"""Lines of the left and of the right side that are still to be paired, each in ascending order."""
Ends = tuple[dict[int, int], dict[int, int]]
"""`region_ends` of the left and of the right side."""

# A region of a reduction has two lines, which every other reduction has too: only what is larger tells itself apart.
_SMALLEST = 6
_LARGEST_TABLE = 900
_LEAST_LIKENESS = 0.25
_DEEPEST = 12


def pair_regions(left: Body, right: Body, ends: Ends, gaps: list[Gap]) -> tuple[list[tuple[int, int]], list[Gap]]:
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
    if not ours or not theirs or len(ours) * len(theirs) > _LARGEST_TABLE:
        return []
    contents = [_content(left, line, ends[0][line]) for line in ours]
    other_contents = [_content(right, line, ends[1][line]) for line in theirs]
    table = [[0.0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    scores: dict[tuple[int, int], float] = {}
    for row in range(len(ours) - 1, -1, -1):
        for column in range(len(theirs) - 1, -1, -1):
            best = max(table[row + 1][column], table[row][column + 1])
            if left.shapes[ours[row]].name == right.shapes[theirs[column]].name:
                score = _likeness(contents[row], other_contents[column])
                if score >= _LEAST_LIKENESS:
                    scores[row, column] = score
                    best = max(best, score + table[row + 1][column + 1])
            table[row][column] = best
    pairs: list[tuple[int, int]] = []
    row = column = 0
    while row < len(ours) and column < len(theirs):
        if (row, column) in scores and table[row][column] == scores[row, column] + table[row + 1][column + 1]:
            pairs.append((ours[row], theirs[column]))
            row, column = row + 1, column + 1
        elif table[row][column] == table[row + 1][column]:
            row += 1
        else:
            column += 1
    return pairs


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
