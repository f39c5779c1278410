"""Structural differences for the page: entries, and how its right lines are made from what the page holds already.

The page holds the lines of both texts without locations. A right line that has an equal partner reads as that one; any
other is the text's own under other names. What that does not give is held in full.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.analysis.diff.texts import DiffEntry, TextDiff
from irscope.render.report.columns import TOKEN

__all__ = ["packed_difference"]

EQUAL, ADDED, REMOVED, CHANGED, REWIRED, MOVED_LEFT, MOVED_RIGHT = range(7)
_OPS = {"equal": EQUAL, "added": ADDED, "removed": REMOVED}
_INDENT = re.compile("[ \t]*")


def packed_difference(diff: TextDiff, left: Mapping[int, str], right: Mapping[int, str]) -> dict[str, Any]:
    """A comparison of two texts; `left` and `right` are their lines without locations, by their 1-based numbers.

    `entries`: (kind, lines, for a move where its partner begins) again and again. `left` and `right`: the numbers of
    the lines in the texts, as (step from the number before, lines) again and again. `names`: (name in the right text,
    name that is shown) again and again. `leftOther` and `rightOther`: (line, text) of lines that are held in full.
    `spaced`: whether lines are indented by four blanks or none, and tabs are blanks.
    """
    spaced = diff.kind in ("ptx", "sass", "amdgcn")
    ours = [_trimmed(left.get(number, ""), spaced) for number in diff.left_numbers]
    own = [_trimmed(right.get(number, ""), spaced) for number in diff.right_numbers]
    partners = {
        other: one
        for entry in diff.entries
        if entry.op == "equal"
        for one, other in zip(entry.left, entry.right, strict=True)
    }
    made = [*own]
    for line, partner in partners.items():
        made[line] = _indented(diff.left_lines[partner], own[line])
    names = _rename(made, [line for line in range(len(own)) if line not in partners], diff.right_lines)
    return {
        "kind": diff.kind,
        "summary": diff.summary,
        "fallback": diff.fallback,
        "spaced": spaced,
        "entries": _entries(diff.entries),
        "left": _runs(diff.left_numbers),
        "right": _runs(diff.right_numbers),
        "names": [name for pair in names.items() for name in pair],
        "leftOther": _others(ours, diff.left_lines),
        "rightOther": _others(made, diff.right_lines),
    }


def _trimmed(line: str, spaced: bool) -> str:
    """A line as the page makes it: `frontend/src/data/diff.ts` does the same."""
    if not spaced:
        return line.rstrip(" \t")
    bare = line.strip(" \t").replace(" \t", " ").replace("\t", " ")
    return f"    {bare}" if bare and line[0] in " \t" else bare


def _indented(line: str, like: str) -> str:
    if line == like:
        return line
    indent = _INDENT.match(like)
    return (indent[0] if indent else "") + line.lstrip(" \t")


def _rename(lines: list[str], places: Sequence[int], shown: Sequence[str]) -> dict[str, str]:
    """Rename the tokens of some lines: each becomes the one that stands in its place most often. Returns the names."""
    different = [line for line in places if lines[line] != shown[line]]
    if not different:
        return {}
    tokens = {line: TOKEN.findall(lines[line]) for line in places}
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in different:
        ours, theirs = tokens[line], TOKEN.findall(shown[line])
        if len(ours) == len(theirs):
            for one, other in zip(ours, theirs, strict=True):
                votes[one][other] += 1
    for line in places:
        if lines[line] == shown[line]:
            for name in tokens[line]:
                if name in votes:
                    votes[name][name] += 1
    chosen = {name: counts.most_common(1)[0][0] for name, counts in votes.items()}
    names = {name: other for name, other in chosen.items() if name != other}
    for line in places:
        if not names.keys().isdisjoint(tokens[line]):
            lines[line] = TOKEN.sub(lambda match: names.get(match[0], match[0]), lines[line])
    return names


def _others(made: Sequence[str], wanted: Sequence[str]) -> list[int | str]:
    others: list[int | str] = []
    for line, (one, other) in enumerate(zip(made, wanted, strict=True)):
        if one != other:
            others += [line, other]
    return others


def _entries(entries: Sequence[DiffEntry]) -> list[int]:
    packed: list[int] = []
    last = -1
    for entry in entries:
        if entry.partner is not None:
            packed += [
                MOVED_LEFT if entry.left else MOVED_RIGHT,
                len(entry.left) or len(entry.right),
                entry.partner.start,
            ]
            last = -1
        elif entry.op == "changed" and last == (REWIRED if entry.is_rewired else CHANGED):
            packed[-1] += 1
        else:
            last = (REWIRED if entry.is_rewired else CHANGED) if entry.op == "changed" else _OPS[entry.op]
            packed += [last, len(entry.left) or len(entry.right)]
    return packed


def _runs(numbers: Sequence[int]) -> list[int]:
    runs: list[int] = []
    before = 0
    for number in numbers:
        if runs and number == before + 1:
            runs[-1] += 1
        else:
            runs += [number - before, 1]
        before = number
    return runs
