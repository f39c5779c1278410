"""What the page knows of a text's lines, as columns: it reads no IR itself.

A text is held as its lines without locations, and as margins: what each of its own lines has besides. Names are tokens
of one pattern in every language; which of them a line defines is a column too, and so are live registers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Literal

from irscope.analysis.source.beside import MACHINE_CODE, Beside, BesideInstruction, beside
from irscope.analysis.source.map import source_map
from irscope.errors import DAMAGE
from irscope.ir.asm.control import column_meaning, columns_of, without_columns
from irscope.ir.body.reader import Body, read_body
from irscope.ir.locations.strip import lines_without_locations
from irscope.model.capture import Capture, StageKind
from irscope.render.text.source import BesideColumns

__all__ = [
    "TOKEN",
    "Kind",
    "MachineCode",
    "column_words",
    "packed_beside",
    "plain_by_number",
    "split_margins",
    "value_columns",
]

Kind = Literal["spill", "dot", "barrier"]


@dataclass(frozen=True, slots=True)
class MachineCode:
    """What stands beside the instructions of a stage."""

    stage: str
    registers: int | None
    """What a thread was given; None if it is not known."""
    said: str
    """What the columns are of, in words."""
    peak: int
    """The line with the most live registers; 0 if they are not known."""
    lines: tuple[int, ...]
    """Of the instructions, 1-based; each as the step from the one before."""
    live: tuple[int, ...]
    """Of each instruction; -1 where it is not known."""
    marks: tuple[tuple[int, Kind, str], ...]
    """(number of the instruction from 0, kind, what it is: `spill store`, `wgmma`)."""
    python: dict[str, tuple[tuple[int, str, str], ...]]
    """File -> (line, the most live registers of its instructions, their marks)."""


def packed_beside(capture: Capture) -> dict[str, Any] | None:
    """The machine code of a capture as JSON holds it; None if it holds none, or none that can be read."""
    stage = next((name for name in MACHINE_CODE if name in capture.texts), None)
    if stage is None:
        return None
    # Samples are in the page already: `irscope.render.report.facts`.
    alone = replace(capture, profile=None)
    try:
        found = beside(alone, stage)
        return asdict(_packed(alone, found)) if found.instructions else None
    except DAMAGE:
        # The text comes from the capture's file, which may say anything.
        return None


def _packed(capture: Capture, found: Beside) -> MachineCode:
    columns = BesideColumns(found, ("registers", "marks"))
    known = source_map(capture, [found.stage])
    the_map = known.stage(found.stage)
    own: dict[tuple[str, int], list[int]] = {}
    for line in the_map.operations.lines:
        for place in dict.fromkeys(known.places[at][0] for at in the_map.places_at(line)):
            own.setdefault(place, []).append(line)
    python: dict[str, list[tuple[int, str, str]]] = {}
    for (file, line), lines in sorted(own.items()):
        cells = columns.of_lines(lines)
        python.setdefault(file, []).append((line, cells["registers"], cells["marks"]))
    lines = [one.line for one in found.instructions]
    return MachineCode(
        found.stage,
        found.registers,
        columns.sentence(),
        found.peak.line if found.peak is not None else 0,
        tuple(line - before for before, line in zip([0, *lines], lines, strict=False)),
        tuple(-1 if one.live is None else one.live for one in found.instructions),
        tuple((at, *mark) for at, one in enumerate(found.instructions) for mark in _marks(one)),
        {file: tuple(rows) for file, rows in python.items()},
    )


def _marks(one: BesideInstruction) -> Iterator[tuple[Kind, str]]:
    if one.spill:
        yield "spill", f"spill {one.spill}"
    if one.tick:
        yield "dot" if one.is_matrix else "barrier", one.tick


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
