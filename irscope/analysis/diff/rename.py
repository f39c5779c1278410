"""Gives the right side of a comparison the left side's names, and puts both into the lines that are shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from irscope.analysis.diff.matching import Matching
from irscope.ir.asm.operands import joined_name
from irscope.ir.body.aliases import Definition
from irscope.ir.body.reader import Body


@dataclass(frozen=True, slots=True)
class Display:
    """The lines of both sides as they are shown: alias definitions, the body, and the definitions behind it."""

    left_lines: tuple[str, ...]
    right_lines: tuple[str, ...]
    left_numbers: tuple[int, ...]
    """1-based lines of the text that was read."""
    right_numbers: tuple[int, ...]
    head: tuple[tuple[int, int], ...]
    """(left line, right line) of the definitions before the body, 0-based; -1 where a side has none."""
    tail: tuple[tuple[int, int], ...]
    left_start: int
    """Where the left body begins."""
    right_start: int


def renamed_right(matching: Matching) -> Display:
    """The display of a matching."""
    left, right = matching.left, matching.right
    names = _Names(matching)
    head, head_lines, head_numbers = _order(left.head, right.head, names, 0)
    left_start, right_start = len(left.head), len(head_lines)
    body = [names.line(line) for line in range(len(right.lines))]
    left_tail, right_tail = left_start + len(left.lines), right_start + len(body)
    tail, tail_lines, tail_numbers = _order(left.tail, right.tail, names, 1)
    return Display(
        (*(one.line for one in left.head), *left.lines, *(one.line for one in left.tail)),
        (*head_lines, *body, *tail_lines),
        (*(one.number for one in left.head), *left.numbers, *(one.number for one in left.tail)),
        (*head_numbers, *right.numbers, *tail_numbers),
        tuple(head),
        tuple((one + left_tail if one >= 0 else -1, other + right_tail if other >= 0 else -1) for one, other in tail),
        left_start,
        right_start,
    )


def _order(
    ours: list[Definition], theirs: list[Definition], names: _Names, block: int
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
    """What everything of the right side is called."""

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
        """Left alias -> the right definition that says the same."""
        self.matched: dict[str, str] = {}
        """Right alias -> the left one that says the same."""
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
        """A definition of the right side under its new name."""
        if self.syntax.alias is None:
            return definition.line
        return self.syntax.alias.sub(lambda match: self._alias_names.get(match[0], match[0]), definition.line)

    def line(self, number: int) -> str:
        """A line of the right body as it is shown."""
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
