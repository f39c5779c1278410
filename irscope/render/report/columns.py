"""What the page knows of a text's lines, as columns: it reads no IR itself.

A text is held as its lines without locations, and as margins: what each of its own lines has besides. Names are tokens
of one pattern in every language; which of them a line defines is a column too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from irscope.ir.asm.control import column_meaning, columns_of, without_columns
from irscope.ir.body.reader import Body, read_body
from irscope.ir.locations.strip import lines_without_locations
from irscope.model.capture import StageKind

__all__ = ["TOKEN", "column_words", "plain_by_number", "split_margins", "value_columns"]

# %acc_69   ^bb3   #blocked1   @matmul   $L__BB0_2   .L_x_3   R12   v[4:7]
TOKEN = re.compile(r"[%^#!@$.]?\w[\w$-]*(?:\[\d+:\d+\])?", re.ASCII)
"""A name, in every language; `frontend/src/data/columns.ts` has the same pattern."""
BESIDE, HIDDEN, OTHER = "\1", "\2", "\3"
"""In a margin: between what stands before the line and what behind it; before a line that is left out, or in full."""
_NONE = -1


def split_margins(text: str, kind: StageKind) -> tuple[list[str], list[str]]:
    """The lines of a text without locations, and the margins of all its lines; no margins where nothing is left out."""
    lines = text.split("\n")
    if any(sign in text for sign in (BESIDE, HIDDEN, OTHER)):
        return lines, []
    plain: list[str] = []
    margins: list[str] = []
    for line, bare in zip(lines, lines_without_locations(text, kind), strict=True):
        if bare is None:
            margins.append(HIDDEN + line)
            continue
        if kind == "sass":
            bare = without_columns(bare)
        plain.append(bare)
        if line.startswith(bare):
            margins.append(line[len(bare) :])
        elif line.endswith(bare):
            margins.append(line[: len(line) - len(bare)] + BESIDE)
        else:
            margins.append(OTHER + line)
    return plain, margins if any(margins) else []


def plain_by_number(plain: Sequence[str], margins: Sequence[str]) -> dict[int, str]:
    """The lines without locations by their 1-based line in the text."""
    if not margins:
        return dict(enumerate(plain, 1))
    rest = iter(plain)
    return {number: next(rest) for number, margin in enumerate(margins, 1) if not margin.startswith(HIDDEN)}


def column_words(texts: Iterable[str]) -> dict[str, str]:
    """What the columns before the instructions of SASS texts mean."""
    columns = {column for text in texts for line in text.split("\n") for column in columns_of(line)}
    return {column: column_meaning(column) for column in sorted(columns)}


def value_columns(text: str, kind: StageKind, plain: Mapping[int, str]) -> dict[str, Any]:
    """Where the values, registers, labels and aliases of a text are defined.

    `definitions`: for each line without locations the tokens of it that are defined there, as (tokens, lines) again and
    again: the number of one, a list of several, -1 for none. `scopes`: (name, for each value of that name its lines of
    definition and its lines of use) of names that stand for several values; any other stands for one.
    """
    body = read_body(text, kind, frozenset({"locations"}))
    names: dict[int, set[str]] = {one.number: {one.name} for one in (*body.head, *body.tail)}
    for line, number in enumerate(body.numbers):
        if body.shapes[line].defines:
            names[number] = _defined(body, line)
    columns = [_tokens(own, names.get(number, set())) for number, own in plain.items()]
    return {
        "definitions": [item for tokens, run in groupby(columns) for item in (tokens, sum(1 for _ in run))],
        "scopes": _scopes(body) if body.syntax.is_virtual else [],
    }


def _defined(body: Body, line: int) -> set[str]:
    """The names that a line defines, as it spells them: one may stand for several registers."""
    shape = body.shapes[line]
    defines = set(shape.defines)
    names: set[str] = set()
    start = 0
    for name, count in zip(body.syntax.name.findall(body.lines[line]), shape.spans, strict=False):
        if not defines.isdisjoint(range(start, start + count)):
            names.add(name)
        start += count
    return names


def _tokens(line: str, names: set[str]) -> int | list[int]:
    if not names:
        return _NONE
    tokens: list[int] = []
    waiting = set(names)
    for place, match in enumerate(TOKEN.finditer(line)):
        if match[0] in waiting:
            waiting.remove(match[0])
            tokens.append(place)
    if len(tokens) == 1:
        return tokens[0]
    return tokens or _NONE


def _scopes(body: Body) -> list[tuple[str, list[tuple[list[int], list[int]]]]]:
    counts = Counter(body.names)
    places: dict[int, tuple[list[int], list[int]]] = {
        value: ([body.numbers[definer]] if definer >= 0 else [], [])
        for value, (name, definer) in enumerate(zip(body.names, body.definers, strict=True))
        if counts[name] > 1
    }
    for line, number in enumerate(body.numbers):
        for value in dict.fromkeys(body.uses[line]):
            if value in places:
                places[value][1].append(number)
    values: dict[str, list[tuple[list[int], list[int]]]] = {}
    for value, lines in places.items():
        values.setdefault(body.names[value], []).append(lines)
    return list(values.items())
