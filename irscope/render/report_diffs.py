"""A structural diff as a report holds it: its entries, and only those lines that the texts do not give already.

A line that a diff shows is, as a rule, the line of the text without its location, or on the right the left line that it
equals. `plain` is that rule, and the page has the same one; the lines that follow neither are stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from irscope.analysis.entries import DiffEntry, TextDiff

_OP_NUMBERS = {"equal": 0, "added": 1, "removed": 2, "changed": 3, "moved": 4}

# "%0 = tt.load %p : !tt.ptr<f32> loc(#loc12)"        "  %1 = add i32 %0, 1, !dbg !12"
_LOCATION = re.compile(r" loc\((?:#loc\d*|unknown)\)|,? !dbg !\d+")


def plain(line: str) -> str:
    """A line without its simple locations; the page has the same rule."""
    return _LOCATION.sub("", line).rstrip(" ")


@lru_cache(maxsize=2)
def plain_lines(text: str) -> list[str]:
    """All lines of a text, plain; what one pass left is what the next one found, so the last ones are kept."""
    return [line.rstrip(" ") for line in _LOCATION.sub("", text).split("\n")]


def packed_diff(diff: TextDiff, left_text: str, right_text: str) -> dict[str, Any]:
    """A diff of two texts, as small as the texts allow.

    Returns `e`, the entries: (op, lines) each, (op, rewired) for a changed line, and (op, left lines, right lines,
    partner) for moved ones; `ln` and `rn`, the line numbers of both sides as runs; `lx` and `rx`, the lines that do
    not follow from the texts.
    """
    left_plain, right_plain = plain_lines(left_text), plain_lines(right_text)
    left_base = [left_plain[number - 1] for number in diff.left_numbers]
    right_base = [right_plain[number - 1] for number in diff.right_numbers]
    for entry in diff.entries:
        if entry.op == "equal":
            for one, other in zip(entry.left, entry.right, strict=True):
                right_base[other] = diff.left_lines[one]
    return {
        "k": diff.kind,
        "s": diff.summary,
        "f": diff.fallback,
        "e": [number for entry in diff.entries for number in _entry(entry)],
        "ln": _runs(diff.left_numbers),
        "rn": _runs(diff.right_numbers),
        "lx": _exceptions(left_base, diff.left_lines),
        "rx": _exceptions(right_base, diff.right_lines),
    }


def _entry(entry: DiffEntry) -> Iterable[int]:
    op = _OP_NUMBERS[entry.op]
    if entry.op == "moved" and entry.partner is not None:
        # The side it stands on, and where the other one stands.
        return (op, len(entry.left), len(entry.right), entry.partner.start)
    if entry.op == "changed":
        return (op, int(entry.is_rewired))
    return (op, len(entry.left) or len(entry.right))


def _runs(numbers: Sequence[int]) -> list[int]:
    """Ascending stretches, as (step from the end of the last one, length)."""
    runs: list[int] = []
    end = 1
    for number in numbers:
        if runs and number == end:
            runs[-1] += 1
        else:
            runs += [number - end, 1]
        end = number + 1
    return runs


def _exceptions(base: Sequence[str], lines: Sequence[str]) -> list[Any]:
    places = [index for index, (one, other) in enumerate(zip(base, lines, strict=True)) if one != other]
    steps = [after - before for before, after in pairwise([0, *places])]
    return [steps, [lines[index] for index in places]]


def read_diff(packed: Mapping[str, Any], left: Sequence[str], right: Sequence[str]) -> tuple[list[str], list[str]]:
    """The left and the right lines of a packed diff; what the page does too."""
    left_lines = _filled([plain(left[number - 1]) for number in _numbers(packed["ln"])], packed["lx"])
    right_base = [plain(right[number - 1]) for number in _numbers(packed["rn"])]
    entries: list[int] = packed["e"]
    index = one = other = 0
    while index < len(entries):
        op, count = entries[index : index + 2]
        if op == 4:
            one, other, index = one + count, other + entries[index + 2], index + 4
            continue
        count = 1 if op == 3 else count
        if op == 0:
            right_base[other : other + count] = left_lines[one : one + count]
        one += count if op != 1 else 0
        other += count if op != 2 else 0
        index += 2
    return left_lines, _filled(right_base, packed["rx"])


def _numbers(runs: Sequence[int]) -> list[int]:
    numbers: list[int] = []
    end = 1
    for index in range(0, len(runs), 2):
        start = end + runs[index]
        end = start + runs[index + 1]
        numbers += range(start, end)
    return numbers


def _filled(lines: list[str], exceptions: Sequence[Any]) -> list[str]:
    at = 0
    for step, line in zip(*exceptions, strict=True):
        at += step
        lines[at] = line
    return lines
