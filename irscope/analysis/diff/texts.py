"""The structural comparison of two texts of one kind: operations by their kind, names by their role.

How names are shown. Left lines stand as they are in the text, without what is ignored. Right lines are renamed: a
value, label, register or alias that plays the part of a left one takes its name; any other keeps its own, or takes a
new one ("%new_12", "%acc_new") where its own would be mistaken for a left one. Alias definitions go in the order of the
left text, and so do operations that only changed places among independent ones of their block. So a line that did not
change looks the same on both sides, and `TextDiff.unified` is a patch in the strict sense: applied to `left_lines` it
gives `right_lines`. What is ignored reads on the right as it does on the left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from irscope.analysis.diff.align import heaviest_pairs
from irscope.analysis.diff.matching import Matching
from irscope.analysis.diff.reorder import matched
from irscope.ir.asm.operands import joined_name
from irscope.ir.columns import read_body
from irscope.ir.syntax import Body, Definition, Ignored
from irscope.model.capture import StageKind

# ── Which words of two versions of a line differ ────────────────────────────────────────────────────────────────────

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
            pairs = _longest(ours[left:left_end], theirs[right:right_end])
            found.extend((left + row, right + column) for row, column in pairs)
            continue
        anchors = _rare(ours, theirs, left, left_end, right, right_end)
        found.extend(anchors)
        for one, other in [*anchors, (left_end, right_end)] if anchors else []:
            waiting.append((left, one, right, other))
            left, right = one + 1, other + 1
    return found


def _longest(ours: list[str], theirs: list[str]) -> list[tuple[int, int]]:
    return heaviest_pairs(len(ours), len(theirs), lambda row, column: ours[row] == theirs[column])


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


# ── Gives the right side of a comparison the left side's names, and puts both into the lines that are shown ─────────


def _order(
    ours: list[Definition], theirs: list[Definition], names: _Names
) -> tuple[list[tuple[int, int]], list[str], list[int]]:
    # The left text's order, then what only the right text has. A definition may change blocks (MLIR prints some
    # locations first, others last): it counts where the left text has it.
    rows: list[tuple[int, int]] = []
    lines: list[str] = []
    numbers: list[int] = []
    for index, definition in enumerate(ours):
        partner = names.definition_of.get(definition.name)
        if partner is None:
            rows.append((index, -1))
            continue
        rows.append((index, len(lines)))
        lines.append(definition.line)
        numbers.append(partner.number)
    for definition in theirs:
        if definition.name in names.matched:
            continue
        rows.append((-1, len(lines)))
        lines.append(names.definition(definition))
        numbers.append(definition.number)
    return rows, lines, numbers


class _Names:
    """The name of each symbol of the right side."""

    def __init__(self, matching: Matching) -> None:
        self.matching: Matching = matching
        left, right = matching.left, matching.right
        self.syntax = right.syntax
        self._of_value: dict[int, str] = {}
        self._taken = {left.names[value] for value in matching.value_of if value >= 0}
        self._own = set(right.names)
        self._fresh: dict[str, int] = {}
        """How many new names were made of a name."""
        alias = self.syntax.alias.pattern if self.syntax.alias is not None else "(?!)"
        self._pattern = re.compile(f"(?P<alias>{alias})|(?P<value>{self.syntax.name.pattern})", re.MULTILINE)
        self.definition_of: dict[str, Definition] = {}
        """Left alias -> the equal right definition."""
        self.matched: dict[str, str] = {}
        """Right alias -> the equal left one."""
        self._match_aliases(left, right)
        self._alias_names = dict(self.matched)
        self._name_aliases(left, right)
        self._renames_aliases = any(old != new for old, new in self._alias_names.items())

    def _match_aliases(self, left: Body, right: Body) -> None:
        waiting: dict[str, list[str]] = {}
        for definition in reversed((*left.head, *left.tail)):
            waiting.setdefault(definition.name[0] + left.resolver.resolve(definition.name), []).append(definition.name)
        for definition in (*right.head, *right.tail):
            names = waiting.get(definition.name[0] + right.resolver.resolve(definition.name))
            if names:
                self.matched[definition.name] = names[-1]
                self.definition_of[names.pop()] = definition

    def _name_aliases(self, left: Body, right: Body) -> None:
        taken = {definition.name for definition in (*left.head, *left.tail)}
        for definition in (*right.head, *right.tail):
            if definition.name in self._alias_names:
                continue
            name = definition.name
            stem = name.rstrip("0123456789")
            while name in taken:
                self._fresh[stem] = self._fresh.get(stem, 0) + 1
                name = f"{stem}{self._fresh[stem]}"
            taken.add(name)
            self._alias_names[definition.name] = name

    def definition(self, definition: Definition) -> str:
        if self.syntax.alias is None:
            return definition.line
        return self.syntax.alias.sub(lambda match: self._alias_names.get(match[0], match[0]), definition.line)

    def line(self, number: int) -> str:
        matching = self.matching
        right = matching.right
        own = right.lines[number]
        partner = matching.to_left[number]
        if partner >= 0 and matching.equal[number]:
            other = matching.left.lines[partner]
            if own == other:
                return other
            bare = other.lstrip()
            indent = len(own) - len(own.lstrip())
            return other if len(other) - len(bare) == indent else own[:indent] + bare
        own_names, values = right.names, right.values[number]
        renamed = any(self._value(value) is not own_names[value] for value in values)
        if not renamed and not (self._renames_aliases and ("#" in own or "!" in own)):
            return own
        rest = iter(values)
        spans = iter(right.shapes[number].spans)

        def replace(match: re.Match[str]) -> str:
            if match["alias"] is not None:
                return self._alias_names.get(match[0], match[0])
            names = tuple([self._value(value) for value in islice(rest, next(spans, 0))])
            if not names:
                return match[0]
            name = names[0] if self.syntax.is_virtual else joined_name(names, match[0])
            # In LLVM IR a label stands without the sign where it is defined.
            return name if match[0][0] == name[0] or name[0] != "%" else name[1:]

        return self._pattern.sub(replace, own)

    def _value(self, value: int) -> str:
        name = self._of_value.get(value)
        if name is None:
            name = self._of_value[value] = self._named(value)
        return name

    def _named(self, value: int) -> str:
        partner = self.matching.value_of[value]
        if partner >= 0:
            return self.matching.left.names[partner]
        name = self.matching.right.names[value]
        if name not in self._taken or not self.syntax.is_virtual:
            return name
        sign, rest = (name[0], name[1:]) if not name[0].isalnum() else ("", name)
        while True:
            count = self._fresh[name] = self._fresh.get(name, 0) + 1
            number = "" if count == 1 else count
            fresh = f"{sign}new{number}_{rest}" if rest[:1].isdigit() else f"{name}_new{number}"
            if fresh not in self._taken and fresh not in self._own:
                self._taken.add(fresh)
                return fresh


# ── The outcome of a comparison as a plain value: entries over the lines of both sides, and the patch they make ─────

DiffOp = Literal["equal", "added", "removed", "changed", "moved"]


@dataclass(frozen=True, slots=True)
class DiffEntry:
    """Consecutive lines of one or both sides with the same kind of difference."""

    op: DiffOp
    left: range
    """Lines of `TextDiff.left_lines`, 0-based; empty if the left side has none."""
    right: range
    is_rewired: bool = False
    """For a changed line: it only reads another of several equal computations (two equal constants became one)."""
    partner: range | None = None
    """For moved lines: where they stand on the other side. A move makes two entries, one on each side; what moved may
    have changed on the way."""


@dataclass(frozen=True, slots=True)
class TextDiff:
    """How two texts differ."""

    entries: tuple[DiffEntry, ...]
    """In the order of both sides; together they cover every line of each once."""
    kind: StageKind
    fallback: str | None
    """Why the texts were compared line by line; None where their structure was."""
    left_lines: tuple[str, ...]
    """The left text, without what is ignored."""
    right_lines: tuple[str, ...]
    """The right text, without what is ignored, under the left one's names."""
    left_numbers: tuple[int, ...] = ()
    """1-based line of the left text that each left line is."""
    right_numbers: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the texts are equal but for what is ignored."""
        return all(entry.op == "equal" for entry in self.entries)

    @property
    def counts(self) -> Counter[DiffOp]:
        """Lines by operation; a line that changed or moved counts once."""
        counts: Counter[DiffOp] = Counter()
        for entry in self.entries:
            if entry.op != "moved" or entry.left:
                counts[entry.op] += len(entry.left) or len(entry.right)
        return counts

    @property
    def is_unrelated(self) -> bool:
        """Whether the texts have almost nothing in common."""
        counts = self.counts
        larger = max(len(self.left_lines), len(self.right_lines))
        return larger > 8 and (counts["equal"] + counts["moved"] + counts["changed"]) * 10 < larger

    @property
    def summary(self) -> str:
        return self._sentence(self.counts)

    @property
    def reversed_summary(self) -> str:
        """The sentence of the comparison the other way round."""
        counts = self.counts
        counts["added"], counts["removed"] = counts["removed"], counts["added"]
        return self._sentence(counts)

    def _sentence(self, counts: Counter[DiffOp]) -> str:
        if self.is_empty:
            return "No difference."
        parts = [f"{counts[op]} {op}" for op in ("added", "removed", "changed", "moved") if counts[op]]
        unrelated = "The texts have almost nothing in common: " if self.is_unrelated else ""
        return f"{unrelated}{', '.join(parts)}; {counts['equal']} equal."

    def marks(self, entry: DiffEntry) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
        """For a changed line, the columns of its left and of its right version that differ; else nothing."""
        if entry.op != "changed":
            return (), ()
        return word_marks(self.left_lines[entry.left.start], self.right_lines[entry.right.start])

    def unified(self, context: int = 3, left_name: str = "left", right_name: str = "right") -> str:
        """A unified diff of the shown lines, or an empty string if they are equal.

        Applied to `left_lines` it gives `right_lines`. Lines that only moved into or out of a region differ by their
        indentation, so here they are removed and added, though their entries are equal.
        """
        rows = list(self._rows())
        hunks = [_hunk(rows[start:end]) for start, end in _hunk_bounds([row[0] == " " for row in rows], context)]
        if not hunks:
            return ""
        return f"--- {left_name}\n+++ {right_name}\n" + "".join(hunks)

    def _rows(self) -> Iterator[tuple[str, str, int, int]]:
        # (sign, line, left lines before, right lines before)
        removed: list[int] = []
        added: list[int] = []
        for entry in self.entries:
            if entry.op == "equal":
                for one, other in zip(entry.left, entry.right, strict=True):
                    if self.left_lines[one] == self.right_lines[other]:
                        yield from self._changes(removed, added, one, other)
                        removed, added = [], []
                        yield " ", self.left_lines[one], one, other
                    else:
                        removed.append(one)
                        added.append(other)
            else:
                removed.extend(entry.left)
                added.extend(entry.right)
        yield from self._changes(removed, added, len(self.left_lines), len(self.right_lines))

    def _changes(
        self, removed: list[int], added: list[int], end_left: int, end_right: int
    ) -> Iterator[tuple[str, str, int, int]]:
        start_right = end_right - len(added)
        for line in removed:
            yield "-", self.left_lines[line], line, start_right
        for line in added:
            yield "+", self.right_lines[line], end_left, line


def _hunk_bounds(is_context: list[bool], context: int) -> list[tuple[int, int]]:
    bounds: list[tuple[int, int]] = []
    for index, same in enumerate(is_context):
        if same:
            continue
        start, end = max(0, index - context), min(len(is_context), index + context + 1)
        if bounds and start <= bounds[-1][1]:
            bounds[-1] = bounds[-1][0], end
        else:
            bounds.append((start, end))
    return bounds


def _hunk(rows: list[tuple[str, str, int, int]]) -> str:
    left_count = sum(row[0] in " -" for row in rows)
    right_count = sum(row[0] in " +" for row in rows)
    # A range of no lines names the line before it.
    left_start = rows[0][2] + (1 if left_count else 0)
    right_start = rows[0][3] + (1 if right_count else 0)
    body = "".join(f"{sign}{line}\n" for sign, line, _, _ in rows)
    return f"@@ -{left_start},{left_count} +{right_start},{right_count} @@\n{body}"


def _shown(matching: Matching, kind: StageKind, fallback: str | None) -> TextDiff:
    """The comparison with both sides as they are shown: alias definitions, the body, and the definitions behind it."""
    left, right = matching.left, matching.right
    names = _Names(matching)
    head, head_lines, head_numbers = _order(left.head, right.head, names)
    tail, tail_lines, tail_numbers = _order(left.tail, right.tail, names)
    left_start, right_start = len(left.head), len(head_lines)
    left_tail, right_tail = left_start + len(left.lines), right_start + len(right.lines)
    entries: list[DiffEntry] = []
    for one, other in head:
        _append(entries, _definition_entry(one, other, entries))
    for entry in _body_entries(matching, left_start, right_start):
        _append(entries, entry)
    for one, other in tail:
        one, other = one + left_tail if one >= 0 else -1, other + right_tail if other >= 0 else -1
        _append(entries, _definition_entry(one, other, entries))
    return TextDiff(
        entries=tuple(entries),
        kind=kind,
        fallback=fallback,
        left_lines=(*(one.line for one in left.head), *left.lines, *(one.line for one in left.tail)),
        right_lines=(*head_lines, *map(names.line, range(len(right.lines))), *tail_lines),
        left_numbers=(*(one.number for one in left.head), *left.numbers, *(one.number for one in left.tail)),
        right_numbers=(*head_numbers, *right.numbers, *tail_numbers),
    )


def _definition_entry(one: int, other: int, entries: list[DiffEntry]) -> DiffEntry:
    left_end = entries[-1].left.stop if entries else 0
    right_end = entries[-1].right.stop if entries else 0
    if one < 0:
        return DiffEntry("added", range(left_end, left_end), range(other, other + 1))
    if other < 0:
        return DiffEntry("removed", range(one, one + 1), range(right_end, right_end))
    return DiffEntry("equal", range(one, one + 1), range(other, other + 1))


def _body_entries(matching: Matching, left_start: int, right_start: int) -> Iterator[DiffEntry]:
    to_left, to_right, moved = matching.to_left, matching.to_right, matching.moved
    left_end, right_end = len(to_right), len(to_left)
    at_left = at_right = 0
    while at_left < left_end or at_right < right_end:
        one, other = left_start + at_left, right_start + at_right
        if at_left < left_end and to_right[at_left] < 0:
            start = at_left
            while at_left < left_end and to_right[at_left] < 0:
                at_left += 1
            yield DiffEntry("removed", range(one, one + at_left - start), range(other, other))
        elif at_left < left_end and at_left in moved:
            partner = to_right[at_left] + right_start
            yield DiffEntry("moved", range(one, one + 1), range(other, other), partner=range(partner, partner + 1))
            at_left += 1
        elif at_right < right_end and to_left[at_right] < 0:
            start = at_right
            while at_right < right_end and to_left[at_right] < 0:
                at_right += 1
            yield DiffEntry("added", range(one, one), range(other, other + at_right - start))
        elif at_right < right_end and to_left[at_right] in moved:
            partner = to_left[at_right] + left_start
            yield DiffEntry("moved", range(one, one), range(other, other + 1), partner=range(partner, partner + 1))
            at_right += 1
        elif matching.equal[at_right]:
            length = _equal_run(matching, at_left, at_right)
            yield DiffEntry("equal", range(one, one + length), range(other, other + length))
            at_left += length
            at_right += length
        else:
            rewired = matching.is_rewired(at_left, at_right)
            yield DiffEntry("changed", range(one, one + 1), range(other, other + 1), rewired)
            at_left += 1
            at_right += 1


def _equal_run(matching: Matching, at_left: int, at_right: int) -> int:
    to_left, equal, moved = matching.to_left, matching.equal, matching.moved
    length = 1
    while (
        at_right + length < len(to_left)
        and to_left[at_right + length] == at_left + length
        and equal[at_right + length]
        and at_left + length not in moved
    ):
        length += 1
    return length


def _append(entries: list[DiffEntry], entry: DiffEntry) -> None:
    # Neighbours that share a fate are one entry; a changed line always is its own.
    last = entries[-1] if entries else None
    if (
        last is None
        or last.op != entry.op
        or entry.op == "changed"
        or bool(last.left) != bool(entry.left)
        or bool(last.right) != bool(entry.right)
        or (last.partner and entry.partner and last.partner.stop != entry.partner.start)
    ):
        entries.append(entry)
        return
    partner = range(last.partner.start, entry.partner.stop) if last.partner and entry.partner else None
    entries[-1] = DiffEntry(
        last.op, range(last.left.start, entry.left.stop), range(last.right.start, entry.right.stop), partner=partner
    )


_KIND_TITLES: dict[StageKind, str] = {
    "mlir": "MLIR",
    "llvm": "LLVM IR",
    "ptx": "PTX",
    "sass": "SASS",
    "amdgcn": "AMD GPU assembly",
    "binary": "text",
}


def diff_texts(
    left: str, right: str, kind: StageKind, *, ignore: frozenset[Ignored] = frozenset({"locations"})
) -> TextDiff:
    """Compare two texts of one kind.

    `ignore` names what does not count: `locations` (and debug information), `names` (of symbols such as `@matmul`; the
    names of values, labels, aliases and virtual registers never count) and `attributes` (dictionaries of MLIR, groups
    and metadata of LLVM IR). Returns a TextDiff, which says so where it had to compare line by line. Never raises.
    """
    ours, theirs = read_body(left, kind, ignore), read_body(right, kind, ignore)
    fallback = _unreadable(ours, theirs)
    if fallback is not None:
        ours, theirs = read_body(left, "binary", ignore), read_body(right, "binary", ignore)
    return _shown(matched(ours, theirs), kind, fallback)


def _unreadable(left: Body, right: Body) -> str | None:
    if left.kind == "binary":
        return "This kind of text has no structure that irscope reads: compared line by line."
    for side, body in (("left", left), ("right", right)):
        opaque = sum(not shape.name for shape in body.shapes)
        if opaque * 2 > len(body.shapes):
            return f"The {side} text cannot be parsed as {_KIND_TITLES[body.kind]}: compared line by line."
    return None
