"""Applies a unified diff, strictly, as a check on those that irscope makes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from irscope.analysis.diff.texts import TextDiff

_HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@$")


def apply_patch(patch: str, lines: Sequence[str]) -> list[str]:
    """The lines after the patch; AssertionError where it does not fit to the letter."""
    if not patch:
        return list(lines)
    rows = patch.removesuffix("\n").split("\n")
    assert rows[0].startswith("--- ")
    assert rows[1].startswith("+++ ")
    result: list[str] = []
    at = row = 0
    row = 2
    while row < len(rows):
        hunk = _HUNK.match(rows[row])
        assert hunk, rows[row]
        left_start, left_count, right_start, right_count = map(int, hunk.groups())
        start = left_start - 1 if left_count else left_start
        result.extend(lines[at:start])
        at = start
        assert len(result) == (right_start - 1 if right_count else right_start)
        row += 1
        while left_count or right_count:
            sign, text = rows[row][0], rows[row][1:]
            if sign in " -":
                assert lines[at] == text
                at += 1
                left_count -= 1
            if sign in " +":
                result.append(text)
                right_count -= 1
            row += 1
    return [*result, *lines[at:]]


def check(diff: TextDiff) -> TextDiff:
    """What must hold of every diff."""
    for context in (0, 3):
        assert apply_patch(diff.unified(context), diff.left_lines) == list(diff.right_lines)
    assert [line for entry in diff.entries for line in entry.left] == list(range(len(diff.left_lines)))
    assert [line for entry in diff.entries for line in entry.right] == list(range(len(diff.right_lines)))
    assert len(diff.left_numbers) == len(diff.left_lines)
    assert len(diff.right_numbers) == len(diff.right_lines)
    for entry in diff.entries:
        assert entry.left or entry.right
        if entry.op == "changed":
            assert len(entry.left) == len(entry.right) == 1
        for marks, line in zip(diff.marks(entry), (entry.left, entry.right), strict=True):
            text = (diff.left_lines if line is entry.left else diff.right_lines)[line.start] if marks else ""
            assert all(0 <= start < end <= len(text) for start, end in marks)
        if entry.op == "moved":
            assert entry.partner is not None
            assert len(entry.partner) == len(entry.left) + len(entry.right)
    if diff.is_empty:
        # What only moved into or out of a region is indented otherwise.
        assert [line.lstrip() for line in diff.left_lines] == [line.lstrip() for line in diff.right_lines]
    return diff
