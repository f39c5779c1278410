"""Reads the locations of MLIR: alias tables, and every form of `loc(...)`, nested to any depth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from irscope.ir.locations_model import MAX_FRAMES, Chain, ChainTable, Frame, TextLocations, count, cut, text_lines
from irscope.ir.quoted import unescape_ir

# #loc12 = loc(callsite(#loc9 at #loc10))
_ALIAS = re.compile(r"(#loc[\w.$-]*) = loc\((.*)\)\s*$")
# the words of a location: "kernel.py":20:14   "kernel.py":20:14 to :30   callsite(   fused<   [   #loc3   unknown
_WORD = re.compile(
    r'"(?P<text>(?:[^"\\]|\\.)*)"(?P<place>:(?P<line>\d+):(?P<column>\d+)(?: to (?:\d+)?:\d+)?)?'
    r"|(?P<alias>#[\w.$-]+)|(?P<open>callsite\(|fused|\(|\[|<)|(?P<close>[)\]>])|(?P<other>\w+|.)"
)
# what matters to brackets: a string, the start of a location, a bracket
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.$@%#!-])loc\(|[()]')
# default {      partition0(%a: i32) num_warps(4) {      case 2 {      7: ^bb3,      default: ^bb1,      ] loc(#loc)
_CONTINUES = re.compile(r"(?:default\b|partition\d+\b|case\b|-?\d+:|\]|\)|do\b|else\b)")


@dataclass(slots=True)
class Operation:
    """The lines of one operation: its own, and which operation's region it stands in."""

    parent: int
    """Index of the operation whose region it is in; -1 at the top."""
    lines: list[int] = field(default_factory=list[int])
    """0-based text lines that are its own."""
    location: str | None = None
    """The text between the brackets of its `loc(...)`."""


def read_operations(lines: list[str]) -> tuple[list[Operation], list[int], list[int]]:
    """Tell the operations of a module apart, by the brackets of their regions.

    Returns the operations; for each line the index of the operation that it belongs to; and for each line the index
    of the operation whose region it stands in. Both are -1 where there is none: aliases and comments, the top.
    """
    operations: list[Operation] = []
    owner, region = [-1] * len(lines), [-1] * len(lines)
    stack: list[int] = []  # the operations whose regions are open
    current = -1  # the operation that the next line may continue, at this depth
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "//", "!")):
            continue
        if stripped[0] == "}":
            current = stack.pop() if stack else -1
        region[number] = stack[-1] if stack else -1
        if stripped[0] == "^":
            current = -1
            continue
        if stripped[0] != "}" and (current < 0 or not _CONTINUES.match(stripped)):
            operations.append(Operation(region[number]))
            current = len(operations) - 1
        if current < 0:
            continue
        owner[number] = current
        operations[current].lines.append(number)
        if stripped[-1] == "{":
            stack.append(current)
            current = -1
            continue
        if stripped[-1] == ")":
            location = trailing_location(stripped)
            if location is not None:
                operations[current].location = location
                current = -1
    return operations, owner, region


def trailing_location(line: str) -> str | None:
    """What stands in the `loc(...)` that ends a line; None where none does."""
    start = line.rfind("loc(")
    if start < 0:
        return None
    inner = line[start + 4 : -1]
    if line[start - 1] in " \t" and '"' not in inner and inner.count("(") == inner.count(")"):
        return inner
    last = None
    for last in location_spans(line):  # noqa: B007 (the last one is wanted)
        pass
    return line[last[0] + 4 : -1] if last is not None and last[1] == len(line) else None


def location_spans(line: str) -> Iterator[tuple[int, int]]:
    """Where each outermost `loc(...)` of a line begins and ends; one that is not closed is passed over."""
    start, depth = -1, 0
    for match in _BRACKET.finditer(line):
        word = match[0]
        if start < 0:
            if word == "loc(":
                start, depth = match.start(), 1
        elif word == ")":
            depth -= 1
            if depth == 0:
                yield start, match.end()
                start = -1
        elif word[0] != '"':
            depth += 1


def first_location(line: str) -> str | None:
    """What stands in the first `loc(...)` of a line: that of a block's first argument."""
    for start, end in location_spans(line):
        return line[start + 4 : end - 1]
    return None


def read_mlir(text: str) -> TextLocations:
    """The locations of each line of a module."""
    lines = text_lines(text)
    aliases = {match[1]: match[2] for line in lines if line[:4] == "#loc" and (match := _ALIAS.match(line))}
    chains = _Chains(aliases)
    table = ChainTable()
    known: dict[str, int] = {}

    def number_of(location: str | None) -> int:
        if location is None:
            return -1
        if location not in known:
            known[location] = table.add(chains.of(location))
        return known[location]

    operations, owner, _ = read_operations(lines)
    of_operation = [number_of(operation.location) for operation in operations]
    by_line = [of_operation[index] if index >= 0 else -1 for index in owner]
    for number, line in enumerate(lines):
        if by_line[number] < 0 and "loc(" in line and line.lstrip()[:1] == "^":
            by_line[number] = number_of(first_location(line))
    return table.locations(by_line)


class _Chains:
    """Turns the text of a location into its chain, following aliases; each is read once."""

    def __init__(self, aliases: dict[str, str]) -> None:
        self.aliases = aliases
        self.done: dict[str, Chain] = {}

    def of(self, location: str) -> Chain:
        """The chain of the text between the brackets of a `loc(...)`; what cannot be read is no location."""
        self._resolve(_aliases_in(location))
        return _read(location, self.done)

    def _resolve(self, names: list[str]) -> None:
        """Read aliases, each after those that it names; one that names itself ends there."""
        waiting, begun = names, set[str]()
        while waiting:
            name = waiting[-1]
            text = self.aliases.get(name, "")
            if name not in self.done and name not in begun:
                begun.add(name)
                waiting.extend(other for other in _aliases_in(text) if other not in self.done and other not in begun)
                continue
            waiting.pop()
            if name not in self.done:
                self.done[name] = _read(text, self.done)


def _aliases_in(text: str) -> list[str]:
    return [match["alias"] for match in _WORD.finditer(text) if match["alias"]] if "#" in text else []


@dataclass(slots=True)
class _Open:
    """A location that is being read: what it is, and the chains of what stands in it."""

    kind: str
    name: str = ""
    parts: list[Chain] = field(default_factory=list[Chain])

    def chain(self) -> Chain:
        if self.kind == "callsite":
            return cut(frame for part in self.parts for frame in part)
        if self.kind == "name":
            inner = self.parts[0] if self.parts else ()
            return (replace(inner[0], name=self.name), *inner[1:]) if inner else ()
        return _merged(self.parts)


def _merged(parts: list[Chain]) -> Chain:
    """The first chain, then the frames that only the others have."""
    first = next((part for part in parts if part), ())
    known = set(first)
    others = dict.fromkeys(frame for part in parts if part is not first for frame in part if frame not in known)
    return (*first, *others)[:MAX_FRAMES] if others else first


def _read(text: str, aliases: dict[str, Chain]) -> Chain:
    """Read one location, its aliases being known; the stack is its own: hostile texts nest deeper than Python may."""
    stack = [_Open("all")]
    fused = False
    skipping = 0  # open brackets of the metadata of a fused location, which is no location
    name: str | None = None
    for match in _WORD.finditer(text):
        if skipping:
            skipping += {"<": 1, ">": -1}.get(match[0], 0)
            continue
        opened, named, name = match["open"], name, None
        if opened == "fused":
            fused = True
        elif opened == "<" and fused:
            skipping = 1
        elif opened == "[":
            stack.append(_Open("fused"))
            fused = False
        elif opened == "callsite(":
            stack.append(_Open("callsite"))
        elif opened == "(":
            stack.append(_Open("name", named) if named is not None else _Open("all"))
        elif match["close"]:
            if len(stack) > 1:
                chain = stack.pop().chain()
                stack[-1].parts.append(chain)
        elif match["alias"]:
            stack[-1].parts.append(aliases.get(match["alias"], ()))
        elif match["place"]:
            frame = Frame(unescape_ir(match["text"]), count(match["line"]), count(match["column"]))
            stack[-1].parts.append(cut((frame,)))
        elif match["text"] is not None:
            name = unescape_ir(match["text"])
    while len(stack) > 1:
        chain = stack.pop().chain()
        stack[-1].parts.append(chain)
    return _merged(stack[0].parts)
