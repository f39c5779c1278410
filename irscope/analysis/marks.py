"""Which words of two versions of a line differ."""

from __future__ import annotations

import re

Span = tuple[int, int]
"""Columns of a line, 0-based, the end excluded."""

# "%acc_69"   "#blocked1"   "128x64xf16"   "->"
_WORD = re.compile(r"[%#^!@$]?[\w.$]+(?:-[\w.$]+)*|\s+|->|.")
_LARGEST_TABLE = 4096


def word_marks(left: str, right: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The spans of the left and of the right line that the other one has not."""
    ours, theirs = _WORD.findall(left), _WORD.findall(right)
    most = min(len(ours), len(theirs))
    start = 0
    while start < most and ours[start] == theirs[start]:
        start += 1
    end = 0
    while end < most - start and ours[-1 - end] == theirs[-1 - end]:
        end += 1
    kept_left, kept_right = _common(ours[start : len(ours) - end], theirs[start : len(theirs) - end])
    offset_left, offset_right = len("".join(ours[:start])), len("".join(theirs[:start]))
    return (
        _spans(ours[start : len(ours) - end], kept_left, offset_left),
        _spans(theirs[start : len(theirs) - end], kept_right, offset_right),
    )


def _common(ours: list[str], theirs: list[str]) -> tuple[set[int], set[int]]:
    # A longest common subsequence of words; where the table would be large, of the words that occur once.
    if not ours or not theirs:
        return set(), set()
    if len(ours) * len(theirs) > _LARGEST_TABLE:
        return _common_rare(ours, theirs)
    table = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for row in range(len(ours) - 1, -1, -1):
        below, current, word = table[row + 1], table[row], ours[row]
        for column in range(len(theirs) - 1, -1, -1):
            if word == theirs[column]:
                current[column] = below[column + 1] + 1
            else:
                current[column] = below[column] if below[column] > current[column + 1] else current[column + 1]
    left: set[int] = set()
    right: set[int] = set()
    row = column = 0
    while row < len(ours) and column < len(theirs):
        if ours[row] == theirs[column]:
            left.add(row)
            right.add(column)
            row, column = row + 1, column + 1
        elif table[row + 1][column] >= table[row][column + 1]:
            row += 1
        else:
            column += 1
    return left, right


def _common_rare(ours: list[str], theirs: list[str]) -> tuple[set[int], set[int]]:
    places = {word: place for place, word in enumerate(theirs) if theirs.count(word) == 1}
    left: set[int] = set()
    right: set[int] = set()
    last = -1
    for place, word in enumerate(ours):
        other = places.get(word, -1)
        if other > last:
            left.add(place)
            right.add(other)
            last = other
    return left, right


def _spans(words: list[str], kept: set[int], offset: int) -> tuple[Span, ...]:
    spans: list[Span] = []
    open_at = -1
    column = offset
    for index, word in enumerate(words):
        if index not in kept:
            open_at = column if open_at < 0 else open_at
        elif open_at >= 0 and not _is_glue(words, kept, index):
            spans.append((open_at, column))
            open_at = -1
        column += len(word)
    if open_at >= 0:
        spans.append((open_at, column))
    return tuple(spans)


def _is_glue(words: list[str], kept: set[int], index: int) -> bool:
    # One common blank between two changed words would only tear the mark apart.
    return words[index].isspace() and index + 1 < len(words) and index + 1 not in kept
