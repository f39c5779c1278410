"""Which lines of a Python file to show around some of its lines: the functions that they stand in, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable

# def kernel(          async def f():
_DEF = re.compile(r"\s*(?:async )?def ")
_LONGEST_SIGNATURE = 80


def function_blocks(text: str, lines: Iterable[int]) -> list[tuple[int, int]]:
    """The functions that hold some lines, decorators included, as (first, last), 1-based; a line in none is by itself.

    Found by indentation: the text may be anything, so it is not given to Python's parser.
    """
    rows = text.split("\n")
    blocks: list[tuple[int, int]] = []
    for line in sorted(set(lines)):
        if any(first <= line <= last for first, last in blocks) or not 1 <= line <= len(rows):
            continue
        head = _head(rows, line - 1)
        blocks.append((line, line) if head < 0 else (_first(rows, head) + 1, max(_last(rows, head) + 1, line)))
    return blocks


def _head(rows: list[str], index: int) -> int:
    """The `def` that a line stands in, or is a decorator of; or -1."""
    indent = _indent(rows[index])
    if rows[index].lstrip().startswith("@"):
        below = range(index, min(index + _LONGEST_SIGNATURE, len(rows)))
        return next((number for number in below if _DEF.match(rows[number])), -1)
    for number in range(index, -1, -1):
        if _DEF.match(rows[number]) and (number == index or _indent(rows[number]) < indent):
            return number
    return -1


def _first(rows: list[str], head: int) -> int:
    indent = _indent(rows[head])
    first = head
    while first > 0 and rows[first - 1].strip() and _indent(rows[first - 1]) >= indent:
        if _indent(rows[first - 1]) == indent and rows[first - 1].lstrip()[:1] not in ("@", ")", "]", "}"):
            break
        first -= 1
    while first < head and not rows[first].lstrip().startswith("@"):
        first += 1
    return first


def _last(rows: list[str], head: int) -> int:
    indent = _indent(rows[head])
    last = head
    in_signature = True
    for number in range(head, len(rows)):
        row = rows[number]
        if in_signature:
            last = number
            in_signature = not row.split("#")[0].rstrip().endswith(":") and number - head < _LONGEST_SIGNATURE
        elif row.strip():
            if _indent(row) <= indent:
                break
            last = number
    return last


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())
