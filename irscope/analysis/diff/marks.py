"""Which words of two versions of a line differ."""

from __future__ import annotations

import re
from collections import Counter

Span = tuple[int, int]
"""Columns of a line, 0-based, the end excluded."""

# "%acc_69"   "#blocked1"   "128x64xf16"   "->"
_WORD = re.compile(r"[%#^!@$]?[\w.$]+(?:-[\w.$]+)*|\s+|->|.")
_LARGEST_TABLE = 4096


def word_marks(left: str, right: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The spans of the left and of the right line that the other one has not; indentation does not count."""
    bare_left, bare_right = left.lstrip(), right.lstrip()
    ours, theirs = _WORD.findall(bare_left), _WORD.findall(bare_right)
    kept_left: set[int] = set()
    kept_right: set[int] = set()
    for one, other in _common(ours, theirs):
        kept_left.add(one)
        kept_right.add(other)
    return (
        _spans(ours, kept_left, len(left) - len(bare_left)),
        _spans(theirs, kept_right, len(right) - len(bare_right)),
    )


def _common(ours: list[str], theirs: list[str]) -> list[tuple[int, int]]:
    """Places of the words that both have, in order: a longest common subsequence, or near to one in long lines."""
    found: list[tuple[int, int]] = []
    waiting = [(0, len(ours), 0, len(theirs))]
    while waiting:
        left, left_end, right, right_end = waiting.pop()
        while left < left_end and right < right_end and ours[left] == theirs[right]:
            found.append((left, right))
            left, right = left + 1, right + 1
        while left < left_end and right < right_end and ours[left_end - 1] == theirs[right_end - 1]:
            left_end, right_end = left_end - 1, right_end - 1
            found.append((left_end, right_end))
        if (left_end - left) * (right_end - right) <= _LARGEST_TABLE:
            found.extend(_longest(ours, theirs, left, left_end, right, right_end))
            continue
        anchors = _rare(ours, theirs, left, left_end, right, right_end)
        found.extend(anchors)
        for one, other in [*anchors, (left_end, right_end)] if anchors else []:
            waiting.append((left, one, right, other))
            left, right = one + 1, other + 1
    return found


def _longest(
    ours: list[str], theirs: list[str], left: int, left_end: int, right: int, right_end: int
) -> list[tuple[int, int]]:
    width = right_end - right
    if not width or left == left_end:
        return []
    table = [[0] * (width + 1) for _ in range(left_end - left + 1)]
    for row in range(left_end - left - 1, -1, -1):
        below, current, word = table[row + 1], table[row], ours[left + row]
        for column in range(width - 1, -1, -1):
            if word == theirs[right + column]:
                current[column] = below[column + 1] + 1
            else:
                current[column] = below[column] if below[column] > current[column + 1] else current[column + 1]
    found: list[tuple[int, int]] = []
    row = column = 0
    while left + row < left_end and column < width:
        if ours[left + row] == theirs[right + column]:
            found.append((left + row, right + column))
            row, column = row + 1, column + 1
        elif table[row + 1][column] >= table[row][column + 1]:
            row += 1
        else:
            column += 1
    return found


def _rare(
    ours: list[str], theirs: list[str], left: int, left_end: int, right: int, right_end: int
) -> list[tuple[int, int]]:
    # Words that both sides have once, in one order.
    counts = Counter(ours[left:left_end])
    other_counts = Counter(theirs[right:right_end])
    places = {word: place for place, word in enumerate(theirs[right:right_end], right) if other_counts[word] == 1}
    found: list[tuple[int, int]] = []
    last = -1
    for place, word in enumerate(ours[left:left_end], left):
        other = places.get(word, -1)
        if other > last and counts[word] == 1:
            found.append((place, other))
            last = other
    return found


def _spans(words: list[str], kept: set[int], offset: int) -> tuple[Span, ...]:
    spans: list[Span] = []
    open_at = -1
    column = offset
    for index, word in enumerate(words):
        if index not in kept:
            open_at = column if open_at < 0 else open_at
        # One common blank between two changed words would only tear the mark apart.
        elif open_at >= 0 and not (word.isspace() and index + 1 < len(words) and index + 1 not in kept):
            spans.append((open_at, column))
            open_at = -1
        column += len(word)
    if open_at >= 0:
        spans.append((open_at, column))
    return tuple(spans)
