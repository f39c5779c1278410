"""Alias definitions (`#blocked = …`, `attributes #0 = …`, `!3 = …`) and what the aliases stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from irscope.capture import StageKind
from irscope.ir.clean import Ignored
from irscope.ir.tokens import SYMBOL, Shape, Syntax, syntax_of

_DEEPEST = 40
# ".reg .b32 %r<108>;": how many registers PTX declares is a matter of numbering.
REGISTER_COUNT = re.compile(r"<\d+>")


@dataclass(frozen=True, slots=True)
class Definition:
    """A line that gives an attribute, a type or a location a name."""

    name: str
    """With its sign: `#blocked1`."""
    value: str
    line: str
    number: int
    """Of the line, as the reader counts."""


def split_definitions(lines: list[str], syntax: Syntax) -> tuple[list[Definition], list[Definition], list[int]]:
    """The definitions before the first other line, those behind it, and which lines are none."""
    if syntax.definition is None:
        return [], [], list(range(len(lines)))
    head: list[Definition] = []
    tail: list[Definition] = []
    rest: list[int] = []
    for number, line in enumerate(lines):
        match = syntax.definition.match(line) if line[0] in "#!a" else None
        if match is None:
            rest.append(number)
            continue
        definition = Definition(match["name"], match["value"] or "", line, number)
        (tail if rest else head).append(definition)
    return head, tail, rest


class Resolver:
    """Says what an alias stands for, and keys templates by it."""

    def __init__(self, kind: StageKind, definitions: Iterable[Definition], ignore: frozenset[Ignored]) -> None:
        self._alias = syntax_of(kind).alias
        self._kind = kind
        self._definitions = {definition.name: definition for definition in definitions}
        self._resolved: dict[str, str] = {}
        self._named: set[str] = set()
        self._without_names = "names" in ignore
        self._without_attributes = "attributes" in ignore

    def resolve(self, name: str) -> str:
        """The text an alias stands for, its own aliases resolved; the name itself where nothing defines it."""
        return self._resolve(name, ())

    def _resolve(self, name: str, within: tuple[str, ...]) -> str:
        known = self._resolved.get(name)
        if known is not None:
            return known
        definition = self._definitions.get(name)
        if definition is None or self._alias is None:
            return name
        if name in within or len(within) > _DEEPEST:
            # Metadata may name itself: how far up is what says which.
            return f"{name[0]}<{len(within) - within.index(name) if name in within else 'deep'}>"
        inner = (*within, name)
        resolved = self._alias.sub(lambda match: self._resolve(match[0], inner), definition.value)
        if not within:
            self._resolved[name] = resolved
        return resolved

    def key(self, shape: Shape) -> int:
        """The key of all lines of that shape: equal where only names differ."""
        template = shape.template
        if self._kind == "ptx" and template.startswith(".reg"):
            template = REGISTER_COUNT.sub("<>", template)
        if self._without_attributes:
            template = without_attributes(template, self._kind)
        if self._alias is not None and ("#" in template or "!" in template):
            template = self._alias.sub(self._replace, template)
        if self._without_names and "@" in template:
            template = SYMBOL.sub("@", template)
        return hash(template)

    def _replace(self, match: re.Match[str]) -> str:
        self._named.add(match[0])
        return self.resolve(match[0])

    def used(self) -> frozenset[str]:
        """The aliases that the keyed shapes name, and those that these name in turn."""
        waiting = [name for name in self._named if name in self._definitions]
        found = set(waiting)
        while waiting and self._alias is not None:
            for name in self._alias.findall(self._definitions[waiting.pop()].value):
                if name in self._definitions and name not in found:
                    found.add(name)
                    waiting.append(name)
        return frozenset(found)


# " {a = 1 : i32}"   " <{axis = 0}>"   " attributes {b}"
_GROUP = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}]')


def without_attributes(template: str, kind: StageKind) -> str:
    """A template without its attribute dictionaries (MLIR) or attribute groups (LLVM IR)."""
    if kind == "llvm":
        return re.sub(r" #\d+\b|, ![\w.]+ !\d+\b", "", template)
    if kind != "mlir" or "{" not in template:
        return template
    kept: list[str] = []
    depth = done = 0
    for match in _GROUP.finditer(template):
        if match[0] == "{" and match.end() < len(template):
            if not depth:
                kept.append(template[done : match.start()])
            depth += 1
        elif match[0] == "}" and depth:
            depth -= 1
            done = match.end()
    return "".join(kept) + template[done:] if not depth else template

