"""A text under canonical names, so that two texts which differ in numbering alone become the same text."""

from __future__ import annotations

import re
from itertools import islice

from irscope.capture import StageKind
from irscope.ir.aliases import REGISTER_COUNT, Definition, Resolver, without_attributes
from irscope.ir.body import Body, read_body
from irscope.ir.clean import Ignored
from irscope.ir.tokens import SYMBOL, Syntax


def normalize(text: str, kind: StageKind, ignore: frozenset[Ignored] = frozenset({"locations"})) -> str:
    """The text with values, labels, aliases and virtual registers numbered in the order of their first use.

    Values become `%0`, `%1`, …, labels `^bb0`, …; aliases are called after what they stand for (`#blocked`,
    `#blocked1`), and their definitions stand in the order of their first use; two aliases for one thing become one.
    Symbols stay, and so do the physical registers of SASS and AMD GPU assembly. What `ignore` names is left out.
    Blank lines and comments always are. Never raises.
    """
    body = read_body(text, kind, ignore)
    names = _Names(body)
    lines = [_line(body, index, names) for index in range(len(body.lines))]
    if "attributes" in ignore:
        lines = [without_attributes(line, kind) for line in lines]
    if "names" in ignore:
        lines = [SYMBOL.sub("@_", line) for line in lines]
    definitions = names.definitions()
    first, last = (definitions, []) if kind == "mlir" else ([], definitions)
    return "\n".join([*first, *lines, *last, ""]) if lines or definitions else ""


def _line(body: Body, index: int, names: _Names) -> str:
    if body.shapes[index].is_function:
        names.begin_function()
    values = iter(body.values[index])
    spans = iter(body.shapes[index].spans)

    def replace(match: re.Match[str]) -> str:
        if match["alias"] is not None:
            return names.alias(match[0])
        own = tuple(islice(values, next(spans, 0)))
        return names.value(own[0], match[0]) if own else match[0]

    if body.kind == "ptx" and body.shapes[index].name == ".reg":
        return REGISTER_COUNT.sub("<>", body.lines[index])
    line = names.pattern.sub(replace, body.lines[index])
    if index in body.entries:
        # The entry block takes the number behind the arguments' ones.
        names.value(body.entries[index], "%")
    return line


class _Names:
    def __init__(self, body: Body) -> None:
        self._body = body
        self._syntax: Syntax = body.syntax
        self._resolver: Resolver = body.resolver
        self._known: dict[str, Definition] = {one.name: one for one in (*body.head, *body.tail)}
        self._values: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._of_content: dict[str, str] = {}
        self._named: list[tuple[str, Definition]] = []
        alias = self._syntax.alias.pattern if self._syntax.alias is not None else "(?!)"
        self.pattern = re.compile(f"(?P<alias>{alias})|(?P<value>{self._syntax.name.pattern})", re.MULTILINE)

    def value(self, value: int, written: str) -> str:
        """What a value or label is called."""
        if not self._syntax.is_virtual and written[0] != ".":
            return written
        name = self._values.get(value)
        if name is None:
            own = self._body.names[value]
            # What nothing defines keeps its name: it is no name of ours.
            defined = self._body.definers[value] >= 0 or not self._syntax.keeps_unknown
            name = self._values[value] = self._number(self._stem(value)) if defined else own
        return name if name[0] == written[0] or name[0] != "%" else name[1:]

    def begin_function(self) -> None:
        """Values and labels of a function are numbered from 0."""
        self._counts = {stem: count for stem, count in self._counts.items() if stem[0] in "#!"}

    def alias(self, name: str) -> str:
        """What an alias is called; its definition is kept for the end."""
        if name not in self._known:
            return name
        content = name[0] + self._resolver.resolve(name)
        known = self._of_content.get(content)
        if known is None:
            stem = name[0] if self._body.kind == "llvm" else _alias_stem(content)
            known = self._of_content[content] = self._number(stem)
            self._named.append((known, self._known[name]))
        return known

    def definitions(self) -> list[str]:
        """The definitions of all aliases that were named, and of those that they name."""
        lines: list[str] = []
        for fresh, definition in self._named:
            # The list grows while a definition names others.
            prefix = "attributes " if definition.line.startswith("attributes ") else ""
            value = definition.value
            if self._syntax.alias is not None:
                value = self._syntax.alias.sub(lambda match: self.alias(match[0]), value)
            lines.append(f"{prefix}{fresh} = {value}")
        return lines

    def _number(self, stem: str) -> str:
        count = self._counts.get(stem, -1) + 1
        self._counts[stem] = count
        # MLIR's own way with aliases: "#blocked", "#blocked1".
        return stem if not count and len(stem) > 1 and stem[0] in "#!" else f"{stem}{count}"

    def _stem(self, value: int) -> str:
        name = self._body.names[value]
        if self._body.kind == "ptx" and name[0] == "%":
            return name.rstrip("0123456789")
        return ".L_" if self._body.kind == "sass" else _STEMS.get(name[0], "%")


_STEMS = {"^": "^bb", "$": "$L", ".": ".L"}
# "#ttg.blocked<{…}>"   "!tt.ptr<f32>"   "loc("x.py":1:2)"
_MNEMONIC = re.compile(r"(?P<sign>[#!])(?:[#!]\w+\.)*(?P<name>[A-Za-z_]*)")


def _alias_stem(content: str) -> str:
    match = _MNEMONIC.match(content)
    return match["sign"] + match["name"] if match else "#"
