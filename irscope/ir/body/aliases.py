"""Alias definitions of a text (`#blocked = …`, `attributes #0 = …`), and keys of lines with aliases resolved."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from irscope.ir.body.clean import Ignored
from irscope.ir.body.tokens import SYMBOL, Shape, Syntax, syntax_of
from irscope.ir.mlir.alias_table import AliasTable, reachable
from irscope.ir.mlir.tokens import attribute_spans
from irscope.model.capture import StageKind

# ".reg .b32 %r<108>;": the number of declared registers depends on numbering alone.
_REGISTER_COUNT = re.compile(r"<\d+>")


@dataclass(frozen=True, slots=True)
class Definition:
    """A line that defines an alias of an attribute, a type or a location."""

    name: str
    """With its sign: `#blocked1`."""
    value: str
    line: str
    number: int
    """Index of the line, as the reader counts."""


def split_definitions(lines: list[str], syntax: Syntax) -> tuple[list[Definition], list[Definition], list[int]]:
    """The definitions before the first other line, those behind it, and the indices of the other lines."""
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
    """Resolves the aliases of a text, and computes the keys of its lines."""

    def __init__(self, kind: StageKind, definitions: Iterable[Definition], ignore: frozenset[Ignored]) -> None:
        self._alias = syntax_of(kind).alias
        self._kind: StageKind = kind
        self._values = {definition.name: definition.value for definition in definitions}
        self._table = None if self._alias is None else AliasTable(self._values, self._alias)
        self._named: set[str] = set()
        self._without_names = "names" in ignore
        self._without_attributes = "attributes" in ignore

    def key(self, shape: Shape) -> int:
        """The key of all lines of one shape: equal if only names differ."""
        template = shape.template
        if self._kind == "ptx" and template.startswith(".reg"):
            template = _REGISTER_COUNT.sub("<>", template)
        if self._without_attributes:
            template = _without_attributes(template, self._kind)
        if self._alias is not None and ("#" in template or "!" in template):
            template = self._alias.sub(self._replace, template)
        if self._without_names and "@" in template:
            template = SYMBOL.sub("@", template)
        return hash(template)

    def _replace(self, match: re.Match[str]) -> str:
        self._named.add(match[0])
        return self.resolve(match[0])

    def resolve(self, name: str) -> str:
        """The definition of an alias with its own aliases resolved; the name itself if it is not defined."""
        return name if self._table is None else self._table.resolve(name)

    def used(self) -> frozenset[str]:
        """The aliases that the keyed shapes use, directly or through other aliases."""
        return frozenset() if self._alias is None else frozenset(reachable(self._named, self._values, self._alias))


# " #3"   ", !range !7"
_LLVM_ATTRIBUTE = re.compile(r" #\d+\b|, ![\w.]+ !\d+\b")


def _without_attributes(template: str, kind: StageKind) -> str:
    """A line without its attribute dictionaries (MLIR) or attribute groups and metadata (LLVM IR)."""
    if kind == "llvm":
        return _LLVM_ATTRIBUTE.sub("", template)
    if kind != "mlir" or "{" not in template:
        return template
    kept: list[str] = []
    done = 0
    for start, end in attribute_spans(template):
        kept.append(template[done:start].removesuffix(" "))
        done = end
    return "".join(kept) + template[done:]
