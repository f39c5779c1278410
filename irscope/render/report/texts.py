"""The texts of a report: each stored once, with columns of what stands in their lines, and differences of structure.

The lines of the other text that are copied nowhere are what the compressor may point back to. Numbers of names are
steps, `%12` after `%11` is `%+1`, so that a line inserted above changes no other line; the page reads them back.

A text is held as its lines without locations, and as margins: what each of its own lines has besides. Names are tokens
of one pattern in every language; which of them a line defines is a column too, and so are live registers.

The page holds the lines of both texts without locations. A right line that has an equal partner reads as that one; any
other is the text's own under other names. What that does not give is held in full.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import groupby
from typing import Any, Literal

from irscope.analysis.diff.texts import DiffEntry, TextDiff
from irscope.analysis.source.annotations import MACHINE_CODE, AnnotatedCode, AnnotatedInstruction, annotate
from irscope.analysis.source.map import source_map
from irscope.errors import undamaged
from irscope.ir.asm.instructions import column_meaning, columns_of, without_columns
from irscope.ir.columns import read_body
from irscope.ir.locations.strip import lines_without_locations
from irscope.ir.syntax import Body
from irscope.model.capture import Capture, StageKind
from irscope.render.text.source import AnnotationColumns, own_operations

_PREFIX = r"%[A-Za-z_]\w*_|%[a-z]{0,2}|!|#loc"
# "  %12", "%rd7", "%x_12", "!34", "#loc5"
_NUMBERED = re.compile(rf"(?m)(^ *)?({_PREFIX})(0|[1-9]\d{{0,8}})(?!\w)", re.ASCII)
# "%+1", "#loc-12"
_STEP = re.compile(rf"(?:{_PREFIX})[+-]\d+(?!\w)", re.ASCII)


def with_steps(text: str) -> str | None:
    """The text with steps; None if it has something that would be read as one.

    A step counts from the last number of its prefix: of what a line begins with; of metadata and locations the last one
    at all; of registers of PTX the highest. Names of MLIR with a number behind them (`%x_12`) share one count.
    """
    if _STEP.search(text):
        return None
    last: dict[str, int] = {}

    def step(match: re.Match[str]) -> str:
        start, prefix, digits = match.groups()
        kind = "_" if prefix[-1] == "_" else prefix
        number = int(digits)
        before = last.get(kind, 0)
        if start is not None or kind in ("!", "#loc") or (kind[-1].isalpha() and number > before):
            last[kind] = number
        return f"{start or ''}{prefix}{number - before:+d}"

    return _NUMBERED.sub(step, text)


_LEVEL = 9
WINDOW = 1 << zlib.MAX_WBITS
"""How far back compressed data may point."""
_PRINTED = str.maketrans("<>&", ",./")
"""The characters of base 85 that HTML reads as its own, and those that stand for them."""
_HALVES = re.compile("[\ud800-\udfff]")
_MOST_PLACES = 12
"""Places of a repeated line that are tried: more make braces and blank lines slow."""


class Blobs:
    """Values as JSON, deflated one by one and concatenated."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def append(self, data: bytes) -> tuple[int, int]:
        """Append what is compressed already; returns (offset, length)."""
        place = self._size, len(data)
        self._parts.append(data)
        self._size += len(data)
        return place

    def to_bytes(self) -> bytes:
        return b"".join(self._parts)


def pack(value: Any) -> bytes:
    """A value as JSON in ASCII, in raw deflate, as `DecompressionStream("deflate-raw")` reads it."""
    return deflated(as_bytes(value))


def as_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=str).encode("ascii")


def printed(data: bytes) -> str:
    """Data in base 85, as `base64.b85encode` has it, with no character that is special to HTML: 5 for 4 bytes."""
    return base64.b85encode(data).decode("ascii").translate(_PRINTED)


def deflated(data: bytes, likely: bytes = b"") -> bytes:
    """Data in raw deflate; `likely`: bytes much like it, which the reader has too."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=likely)
    return packer.compress(data) + packer.flush()


class TextTable:
    """Numbers the texts of a report, and packs them."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        """A text's (chunk, offset, length, length of the steps, base, whether its numbers are steps).

        Base is -1, and the length of the steps 0, for a text stored whole. Of a text that is stored in two parts (the
        text without locations, its margins).
        """
        self._known: dict[bytes, int] = {}
        self._joined: dict[tuple[int, int], int] = {}
        self._lines: dict[int, list[str]] = {}
        """Of the texts that others may be stored as differences to, as they are stored."""

    def add(self, text: str, chunk: int, blobs: Blobs, bases: Iterable[int] = ()) -> int:
        """The number of a text, new or known; it may be stored as a difference to a base that is not released."""
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(digest)
        if known is not None:
            return known
        stepped = with_steps(text)
        stored = text if stepped is None else stepped
        lines = stored.split("\n")
        base, best, size = -1, None, len(stored)
        for other in dict.fromkeys(bases):
            if other not in self._lines:
                continue
            found = difference(self._lines[other], lines)
            found_size = len(found["l"]) + 8 * len(found["o"])
            if found_size < size:
                base, best, size = other, found, found_size
        steps = b""
        if best is None:
            packed = deflated(_utf8(stored))
        else:
            steps = pack(best["o"])
            packed = deflated(_utf8(best["l"]), _utf8(_left_out(self._lines[base], best["o"]))[-WINDOW:])
        number = self._known[digest] = len(self.rows)
        offset, length = blobs.append(steps + packed)
        self.rows.append([chunk, offset, length, len(steps), base, int(stepped is not None)])
        self._lines[number] = lines
        return number

    def join(self, plain: int, margins: int) -> int:
        """The number of a text that is stored as its lines without locations and its margins."""
        known = self._joined.get((plain, margins))
        if known is None:
            known = self._joined[plain, margins] = len(self.rows)
            self.rows.append([plain, margins])
        return known

    def parts(self, number: int) -> tuple[int, ...]:
        row = self.rows[number]
        return tuple(row) if len(row) == 2 else (number,)

    def release(self, kept: Iterable[int]) -> None:
        """Forget the lines of all texts but these: no later text is stored as a difference to one of the others."""
        self._lines = {number: self._lines[number] for number in dict.fromkeys(kept) if number in self._lines}


def _utf8(text: str) -> bytes:
    # No encoding of the web has half a surrogate pair, and none is shown.
    return _HALVES.sub("\ufffd", text).encode()


def _left_out(base: Sequence[str], steps: Sequence[int]) -> str:
    """The lines of a base that are copied nowhere: what is new is often much like them."""
    copied = bytearray(len(base))
    end = 0
    for index in range(0, len(steps), 3):
        start = end + steps[index + 1]
        end = start + steps[index + 2]
        copied[start:end] = b"\1" * (end - start)
    return "\n".join(line for line, is_copied in zip(base, copied, strict=True) if not is_copied)


def difference(base: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    """How to make some lines from those of a base.

    Returns `o`, triples of (new lines before it, first line copied, lines copied), the second as a step from where the
    copy before it ended; and `l`, the new lines, each with a line feed. What stands behind the last copy is new.
    """
    places: dict[str, list[int]] = {}
    for number, line in enumerate(base):
        found = places.get(line)
        if found is None:
            places[line] = [number]
        elif len(found) < _MOST_PLACES:
            found.append(number)
    steps: list[int] = []
    fresh: list[str] = []
    new = at = end = 0
    while at < len(lines):
        found = places.get(lines[at])
        if found is None:
            fresh.append(lines[at])
            new += 1
            at += 1
            continue
        start, count = _longest(base, lines, at, found, end)
        steps += [new, start - end, count]
        new = 0
        end = start + count
        at += count
    return {"o": steps, "l": "".join(f"{line}\n" for line in fresh)}


def _longest(base: Sequence[str], lines: Sequence[str], at: int, places: list[int], end: int) -> tuple[int, int]:
    """The longest stretch of the base that stands at a line; where the last copy ended is tried first."""
    best, best_count = 0, 0
    for place in (end, *places):
        count = _common(base, place, lines, at)
        if count > best_count:
            best, best_count = place, count
        if place == end and count > 1:
            break
    return best, best_count


def _common(base: Sequence[str], place: int, lines: Sequence[str], at: int) -> int:
    """How many lines two stretches have in common at their beginning, by slices that double while they are equal."""
    most = min(len(base) - place, len(lines) - at)
    count, step = 0, 1
    while count < most:
        step = min(step, most - count)
        if base[place + count : place + count + step] == lines[at + count : at + count + step]:
            count += step
            step *= 2
        elif step == 1:
            break
        else:
            step = max(1, step // 4)
    return count


Kind = Literal["spill", "dot", "barrier"]


@dataclass(frozen=True, slots=True)
class MachineCode:
    """What stands beside the instructions of a stage."""

    stage: str
    registers: int | None
    """What a thread was given; None if it is not known."""
    said: str
    peak: int
    lines: tuple[int, ...]
    """Of the instructions, 1-based; each as the step from the one before."""
    live: tuple[int, ...]
    """Of each instruction; -1 where it is not known."""
    marks: tuple[tuple[int, Kind, str], ...]
    """(number of the instruction from 0, kind, what it is: `spill store`, `wgmma`)."""
    python: dict[str, tuple[tuple[int, str, str], ...]]
    """File -> (line, the most live registers of its instructions, their marks)."""


def packed_annotations(capture: Capture) -> dict[str, Any] | None:
    """The machine code of a capture as JSON holds it; None if it holds none, or none that can be read."""
    stage = next((name for name in MACHINE_CODE if name in capture.texts), None)
    if stage is None:
        return None
    # Samples are in the page already: `irscope.render.report.facts`.
    alone = replace(capture, profile=None)
    packed = undamaged(lambda: _packed(alone, annotate(alone, stage)), None)
    return asdict(packed) if packed is not None and packed.lines else None


def _packed(capture: Capture, found: AnnotatedCode) -> MachineCode:
    columns = AnnotationColumns(found, ("registers", "marks"))
    known = source_map(capture, [found.stage])
    own = own_operations(known, known.stage(found.stage))
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


def _marks(one: AnnotatedInstruction) -> Iterator[tuple[Kind, str]]:
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
