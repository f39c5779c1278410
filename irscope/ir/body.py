"""A text as the comparison reads it: lines, values, nesting, and keys that no renaming changes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import cast

from irscope.capture import StageKind
from irscope.ir.aliases import Definition, Resolver, split_definitions
from irscope.ir.body_registers import RegisterReader, register_templates
from irscope.ir.clean import Ignored, clean
from irscope.ir.tokens import LABEL, VALUE, Shape, Syntax, shape_of, syntax_of

_FIRST = (0,)
# What stands in these sees no value of the text around, so its names say nothing of that; functions are such too.
_ISOLATED = frozenset({"builtin.module", "gpu.module", "ttg.warp_specialize.partitions"})
# "partition0(%a: i32) num_warps(4) {"
_PARTITION = re.compile(r"partition\d+$")


@dataclass(frozen=True, slots=True)
class Body:
    """One side of a comparison, column by column; every list has one item a line, unless said otherwise."""

    kind: StageKind
    lines: list[str]
    """As they are shown."""
    numbers: list[int]
    """1-based line numbers in the text."""
    head: list[Definition]
    """The alias definitions that stand before the lines."""
    tail: list[Definition]
    """Those that stand behind them."""
    shapes: list[Shape]
    keys: list[int]
    """Of the line alone: its template, aliases resolved."""
    deep_keys: list[int]
    """Of the line and all that its operands come from."""
    values: list[tuple[int, ...]]
    """The values in the line's holes, then those of registers it does not name; a value is its index in `names`."""
    uses: list[tuple[int, ...]]
    """Those that the line does not define."""
    parents: list[int]
    """The line that opened the region this line stands in; -1 at the top."""
    openers: list[int]
    """For a line that closes a region, the line that opened it; otherwise -1."""
    names: list[str]
    """One item a value: how it is written."""
    definers: list[int]
    """One item a value: the first line that defines it; -1 where none does."""
    entries: dict[int, int]
    """LLVM IR: line of a function -> the value that is its entry block, which has a number but no label."""
    resolver: Resolver

    @property
    def syntax(self) -> Syntax:
        """How its names are written."""
        return syntax_of(self.kind)


@lru_cache(maxsize=8)
def read_body(text: str, kind: StageKind, ignore: frozenset[Ignored]) -> Body:
    """Read a text. Never raises on any text; what it cannot read is a line without values.

    The last few texts are kept: along a pipeline each is the right side once and the left side once.
    """
    lines, numbers = clean(_without_holes(text), kind, ignore)
    syntax = syntax_of(kind)
    head, tail, rest = split_definitions(lines, syntax)
    all_numbers = numbers
    if len(rest) != len(lines):
        lines, numbers = [lines[index] for index in rest], [numbers[index] for index in rest]
    resolver = Resolver(kind, (*head, *tail), ignore)
    templates, found = _templates(lines, syntax, kind)
    reader = _Reader(syntax, kind, resolver, found) if syntax.is_virtual else RegisterReader(kind, resolver, found)
    reader.read(templates)
    # Triton prints aliases that nothing names; without locations, those of locations are of that kind.
    used = resolver.used() if "locations" in ignore else None
    head = [replace(one, number=all_numbers[one.number]) for one in head if used is None or one.name in used]
    tail = [replace(one, number=all_numbers[one.number]) for one in tail if used is None or one.name in used]
    return Body(
        kind,
        lines,
        numbers,
        head,
        tail,
        reader.shapes,
        reader.keys,
        reader.deep_keys,
        reader.values,
        reader.uses,
        reader.parents,
        reader.openers,
        reader.names,
        reader.definers,
        reader.entries,
        resolver,
    )


def _without_holes(text: str) -> str:
    for character in (VALUE, LABEL, "\r"):
        if character in text:
            text = text.replace(character, "")
    return text


def _templates(lines: list[str], syntax: Syntax, kind: StageKind) -> tuple[list[str], list[str]]:
    # All lines at once: three passes of the regex engine are many times faster than a loop in Python.
    joined = "\n".join(lines)
    found = syntax.name.findall(joined)
    template = syntax.value.sub(VALUE, joined) if syntax.is_virtual else register_templates(joined, kind)
    if syntax.label is not None:
        template = syntax.label.sub(LABEL, template)
    return template.split("\n") if lines else [], found


@dataclass(slots=True)
class _Region:
    """A region that is still open, and what its end gives back to the text around."""

    opener: int
    is_isolated: bool
    outer: dict[str, int]
    """The names of the text around; of a region that is not isolated from it, they are the region's too."""
    first: int
    """The first value that is named within."""
    hidden: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Names of the text around that stand for something else within."""
    labels: list[str] = field(default_factory=list[str])
    """Labels of the region's own blocks: a branch names no others."""


class _Reader:
    """Walks the templates once; `names` and the like are columns of Body.

    Names of MLIR are told apart as MLIR does: what a region defines is unknown behind it, so that the region beside may
    define it again; labels are the region's own; a region that is isolated from above sees no name of the text around.
    """

    __slots__ = (
        "deep_keys",
        "definers",
        "entries",
        "found",
        "is_llvm",
        "is_mlir",
        "keys",
        "kind",
        "names",
        "openers",
        "parents",
        "regions",
        "resolver",
        "scope",
        "shapes",
        "syntax",
        "uses",
        "values",
    )

    def __init__(self, syntax: Syntax, kind: StageKind, resolver: Resolver, found: list[str]) -> None:
        self.syntax = syntax
        self.is_llvm = kind == "llvm"
        self.is_mlir = kind == "mlir"
        self.kind: StageKind = kind
        self.resolver = resolver
        # In LLVM IR the label "12:" and the value "%12" are one name.
        self.found = [name if name[0] == "%" else "%" + name for name in found] if self.is_llvm else found
        self.shapes: list[Shape] = []
        self.keys: list[int] = []
        self.deep_keys: list[int] = []
        self.values: list[tuple[int, ...]] = []
        self.uses: list[tuple[int, ...]] = []
        self.parents: list[int] = []
        self.openers: list[int] = []
        self.names: list[str] = []
        self.definers: list[int] = []
        self.entries: dict[int, int] = {}
        self.scope: dict[str, int] = {}
        """What each name stands for at the line that is being read."""
        self.regions = [_Region(-1, True, self.scope, 0)]

    def read(self, templates: list[str]) -> None:
        known: dict[str, tuple[Shape, int, bool]] = {}
        found, names, definers = self.found, self.names, self.definers
        shapes, keys, deep_keys, values, uses = self.shapes, self.keys, self.deep_keys, self.values, self.uses
        parents, openers, regions, is_mlir = self.parents, self.openers, self.regions, self.is_mlir
        has_versions = self.syntax.has_versions
        value_keys: list[int] = []
        scope = self.scope
        position = 0
        for line, template in enumerate(templates):
            template = template.lstrip()
            entry = known.get(template)
            if entry is None:
                shape = shape_of(template, self.kind)
                is_plain = shape.defines == _FIRST and not (shape.is_function or shape.opens or shape.name == "^")
                entry = known[template] = (shape, self.resolver.key(shape), is_plain)
            shape, key, is_plain = entry
            shapes.append(shape)
            keys.append(key)
            closed = None
            if shape.closes and len(regions) > 1:
                closed = self._close()
                scope = self.scope
            elif shape.is_function and not is_mlir:
                scope = self.scope = {}
            openers.append(closed.opener if closed is not None else -1)
            parents.append(regions[-1].opener)
            if not shape.holes:
                deep_keys.append(key)
                values.append(())
                uses.append(())
                if shape.opens:
                    scope = self._open(line, shape, closed)
                continue
            end = position + shape.holes
            own = found[position:end]
            position = end
            if is_plain:
                # Nearly every line: one result, operands that stand above. The loop below would do the same, slower.
                known_values = [scope.get(name) for name in own]
                result = known_values[0]
                if None not in known_values[1:] and (result is None or (has_versions and definers[result] >= 0)):
                    operands = cast(tuple[int, ...], tuple(known_values[1:]))
                    deep = hash((key, *[value_keys[value] for value in operands]))
                    if result is not None and result < regions[-1].first:
                        regions[-1].hidden.append((own[0], result))
                    result = scope[own[0]] = len(names)
                    names.append(own[0])
                    definers.append(line)
                    value_keys.append(deep)
                    deep_keys.append(deep)
                    values.append((result, *operands))
                    uses.append(operands)
                    continue
            slots: list[int] = []
            used: list[int] = []
            defines = shape.defines
            for index, name in enumerate(own):
                if index in defines:
                    slots.append(-1)
                    continue
                value = scope.get(name)
                if value is None:
                    # Used before it is defined (a label, a phi), or never defined.
                    value = scope[name] = len(names)
                    names.append(name)
                    definers.append(-1)
                    value_keys.append(0)
                    if name[0] == "^":
                        regions[-1].labels.append(name)
                slots.append(value)
                used.append(value)
            deep = hash((key, *[value_keys[value] for value in used]))
            # "%r:2 = scf.for %i = … iter_args(%a = …) {": the results belong to the text around, the others within.
            results = _results(shape.template) if shape.opens else len(defines)
            for place, index in enumerate(defines):
                if place == results:
                    scope = self._open(line, shape, closed)
                name = own[index]
                value = scope.get(name)
                if value is None:
                    is_new = True
                elif definers[value] < 0:
                    # A label may be named before it stands; a register that was read held something else.
                    is_new = False
                else:
                    is_new = has_versions
                if value is None or is_new:
                    if value is not None and value < regions[-1].first:
                        regions[-1].hidden.append((name, value))
                    value = scope[name] = len(names)
                    names.append(name)
                    definers.append(line)
                    value_keys.append(deep + place)
                    if name[0] == "^":
                        regions[-1].labels.append(name)
                else:
                    definers[value] = line if definers[value] < 0 else definers[value]
                    value_keys[value] = deep + place
                slots[index] = value
            if shape.opens and results >= len(defines):
                scope = self._open(line, shape, closed)
            deep_keys.append(deep)
            values.append(tuple(slots))
            uses.append(tuple(used))
            if shape.is_function and self.is_llvm:
                self._name_entry(own, line, scope, value_keys)

    def _open(self, line: int, shape: Shape, before: _Region | None) -> dict[str, int]:
        """Begin a region; `before` is the one that the same line ended. Returns the names that are known within."""
        region = _Region(line, False, self.scope, len(self.names))
        if self.is_mlir:
            region.is_isolated = (
                before.is_isolated
                if before is not None
                else shape.is_function or shape.name in _ISOLATED or _PARTITION.match(shape.name) is not None
            )
            if region.is_isolated:
                self.scope = {}
            else:
                for label in self.regions[-1].labels:
                    if (value := self.scope.pop(label, None)) is not None:
                        region.hidden.append((label, value))
        self.regions.append(region)
        return self.scope

    def _close(self) -> _Region:
        """End the innermost region: its names are forgotten."""
        region = self.regions.pop()
        scope = self.scope
        if region.is_isolated:
            self.scope = region.outer
        elif self.is_mlir:
            for value in range(region.first, len(self.names)):
                name = self.names[value]
                # What was used and not defined may be defined further on, in the text around.
                if scope.get(name) == value and (self.definers[value] >= 0 or name[0] == "^"):
                    del scope[name]
            scope.update(region.hidden)
        return region

    def _name_entry(self, arguments: list[str], line: int, scope: dict[str, int], value_keys: list[int]) -> None:
        # "define void @f(ptr %0, i32 %1) {" has an entry block that is called %2 without a label.
        name = f"%{sum(argument[1:].isdigit() for argument in arguments)}"
        self.entries[line] = len(self.names)
        scope[name] = len(self.names)
        self.names.append(name)
        self.definers.append(line)
        value_keys.append(0)


def _results(template: str) -> int:
    """How many results the operation of a line has."""
    return template.count(VALUE, 0, template.find(" = ")) if template.startswith(VALUE) and " = " in template else 0
