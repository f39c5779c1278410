"""Locations of MLIR: every form of `loc(...)`, through aliases and nested to any depth."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from irscope.ir.locations.model import MAX_FRAMES, Chain, ChainTable, Frame, TextLocations, count, cut, text_lines
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.tokens import definitions, location_spans
from irscope.ir.quoted import unescape_ir

# the words of a location: "kernel.py":20:14   "kernel.py":20:14 to :30   callsite(   fused<   [   #loc3   unknown
_WORD = re.compile(
    # A string that does not end is one to the end of the text: it is not looked for again at each quote in it.
    r'"(?P<text>(?:[^"\\]|\\[\s\S]?)*)(?:"(?P<place>:(?P<line>\d+):(?P<column>\d+)(?: to (?:\d+)?:\d+)?)?|\Z)'
    r"|(?P<alias>#[\w.$-]+)|(?P<open>callsite\(|fused|\(|\[|<)|(?P<close>[)\]>])|(?P<other>\w+|.)"
)


@lru_cache(maxsize=8)
def read_mlir(text: str) -> TextLocations:
    """The locations of each line of a module; those of the last few are kept."""
    lines = text_lines(text)
    aliases = definitions(text)
    chains = _Chains({name: value[4:-1] for name, value in aliases.items() if value[:4] == "loc(" and value[-1] == ")"})
    table = ChainTable()
    known: dict[str, int] = {}

    def number_of(location: str) -> int:
        if location not in known:
            known[location] = table.add(chains.of(location))
        return known[location]

    by_line = [-1] * len(lines)
    for operation in parse_mlir(text).walk():
        location = operation.location
        if location:
            number = number_of(location)
            for line in operation.lines:
                by_line[line - 1] = number
    for index, line in enumerate(lines):
        # A block has the location of its first argument.
        if "loc(" in line and line.lstrip()[:1] == "^":
            start, end = next(location_spans(line), (0, 0))
            by_line[index] = number_of(line[start + 4 : end - 1]) if end else -1
    return table.locations(by_line)


def read_location(location: str) -> Chain:
    """The chain of the text within one `loc(...)` that uses no alias; empty if it cannot be read."""
    return _read(location, {})


class _Chains:
    """Resolves locations to chains, through aliases; each alias is read once."""

    def __init__(self, aliases: dict[str, str]) -> None:
        self.aliases = aliases
        self.done: dict[str, Chain] = {}

    def of(self, location: str) -> Chain:
        """The chain of the text within a `loc(...)`; empty if it cannot be read."""
        self._resolve(_aliases_in(location))
        return self.done[location] if location in self.done else _read(location, self.done)

    def _resolve(self, names: list[str]) -> None:
        """Read aliases, each after those that it uses; a cycle ends at its first alias."""
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
                self.done[name] = _read(text, self.done) if "#" in text else _read_without_aliases(text)


@lru_cache(maxsize=4096)
def _read_without_aliases(text: str) -> Chain:
    # From pass to pass the same places have other aliases.
    return _read(text, {})


def _aliases_in(text: str) -> list[str]:
    return [match["alias"] for match in _WORD.finditer(text) if match["alias"]] if "#" in text else []


@dataclass(slots=True)
class _OpenLocation:
    """A location being read: its kind, and the chains of its parts."""

    kind: str
    name: str = ""
    parts: list[Chain] = field(default_factory=list[Chain])

    def chain(self) -> Chain:
        if self.kind == "callsite":
            return cut(frame for part in self.parts for frame in part)
        if self.kind == "name":
            inner = self.parts[0] if self.parts else ()
            return (_named(inner[0], self.name), *inner[1:]) if inner else ()
        return _merged(self.parts)


def _named(frame: Frame, name: str) -> Frame:
    # Five times as fast as `replace`, and there is one for each value.
    return Frame(frame.file, frame.line, frame.column, frame.function, name)


def _merged(parts: list[Chain]) -> Chain:
    first = next((part for part in parts if part), ())
    known = set(first)
    others = dict.fromkeys(frame for part in parts if part is not first for frame in part if frame not in known)
    return (*first, *others)[:MAX_FRAMES] if others else first


def _read(text: str, aliases: dict[str, Chain]) -> Chain:
    """Read one location with its aliases; with an explicit stack, since a hostile text may nest to any depth."""
    stack = [_OpenLocation("all")]
    fused = False
    skipping = 0  # open brackets of the metadata of a fused location
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
            stack.append(_OpenLocation("fused"))
            fused = False
        elif opened == "callsite(":
            stack.append(_OpenLocation("callsite"))
        elif opened == "(":
            stack.append(_OpenLocation("name", named) if named is not None else _OpenLocation("all"))
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
