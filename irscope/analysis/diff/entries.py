"""The outcome of a comparison as a plain value: entries over the lines of both sides, and the patch they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from irscope.analysis.diff.marks import Span, word_marks
from irscope.analysis.diff.matching import Matching
from irscope.analysis.diff.rename import Display
from irscope.model.capture import StageKind

DiffOp = Literal["equal", "added", "removed", "changed", "moved"]


@dataclass(frozen=True, slots=True)
class DiffEntry:
    """Lines of one or both sides that share a fate."""

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
        """One sentence."""
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
        unrelated = "The texts have next to nothing in common: " if self.is_unrelated else ""
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


def entries_of(matching: Matching, display: Display) -> tuple[DiffEntry, ...]:
    """The entries of a matching, over the lines of its display."""
    entries: list[DiffEntry] = []
    for one, other in display.head:
        _append(entries, _definition_entry(one, other, entries))
    for entry in _body_entries(matching, display):
        _append(entries, entry)
    for one, other in display.tail:
        _append(entries, _definition_entry(one, other, entries))
    return tuple(entries)


def _definition_entry(one: int, other: int, entries: list[DiffEntry]) -> DiffEntry:
    left_end = entries[-1].left.stop if entries else 0
    right_end = entries[-1].right.stop if entries else 0
    if one < 0:
        return DiffEntry("added", range(left_end, left_end), range(other, other + 1))
    if other < 0:
        return DiffEntry("removed", range(one, one + 1), range(right_end, right_end))
    return DiffEntry("equal", range(one, one + 1), range(other, other + 1))


def _body_entries(matching: Matching, display: Display) -> Iterator[DiffEntry]:
    to_left, to_right, moved = matching.to_left, matching.to_right, matching.moved
    left_start, right_start = display.left_start, display.right_start
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
