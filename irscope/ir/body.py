"""A text as the comparison reads it: lines, values, nesting, and keys that no renaming changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from irscope.capture import StageKind
from irscope.ir.aliases import Definition, Resolver, split_definitions
from irscope.ir.body_registers import RegisterReader, register_templates
from irscope.ir.clean import Ignored, clean
from irscope.ir.tokens import LABEL, VALUE, Shape, Syntax, shape_of, syntax_of

_FIRST = (0,)


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


class _Reader:
    """Walks the templates once; `names` and the like are columns of Body."""

    __slots__ = (
        "deep_keys",
        "definers",
        "entries",
        "found",
        "is_llvm",
        "keys",
        "kind",
        "names",
        "openers",
        "parents",
        "resolver",
        "shapes",
        "syntax",
        "uses",
        "values",
    )

    def __init__(self, syntax: Syntax, kind: StageKind, resolver: Resolver, found: list[str]) -> None:
        self.syntax = syntax
        self.is_llvm = kind == "llvm"
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

    def read(self, templates: list[str]) -> None:
        known: dict[str, tuple[Shape, int]] = {}
        found, names, definers = self.found, self.names, self.definers
        shapes, keys, deep_keys, values, uses = self.shapes, self.keys, self.deep_keys, self.values, self.uses
        parents, openers = self.parents, self.openers
        has_versions = self.syntax.has_versions
        value_keys: list[int] = []
        scope: dict[str, int] = {}
        stack: list[int] = []
        position = 0
        for line, template in enumerate(templates):
            template = template.lstrip()
            entry = known.get(template)
            if entry is None:
                shape = shape_of(template, self.kind)
                entry = known[template] = (shape, self.resolver.key(shape))
            shape, key = entry
            shapes.append(shape)
            keys.append(key)
            if shape.is_function:
                scope = {}
            openers.append(stack.pop() if shape.closes and stack else -1)
            parents.append(stack[-1] if stack else -1)
            if shape.opens:
                stack.append(line)
            if not shape.holes:
                deep_keys.append(key)
                values.append(())
                uses.append(())
                continue
            end = position + shape.holes
            own = found[position:end]
            position = end
            defines = shape.defines
            if defines == _FIRST and not shape.is_function:
                # Nearly every line: one result, operands that stand above. The loop below would do the same, slower.
                known_values = [scope.get(name) for name in own]
                result = known_values[0]
                if None not in known_values[1:] and (result is None or (has_versions and definers[result] >= 0)):
                    operands = cast(tuple[int, ...], tuple(known_values[1:]))
                    deep = hash((key, *[value_keys[value] for value in operands]))
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
                slots.append(value)
                used.append(value)
            deep = hash((key, *[value_keys[value] for value in used]))
            for place, index in enumerate(defines):
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
                    value = scope[name] = len(names)
                    names.append(name)
                    definers.append(line)
                    value_keys.append(deep + place)
                else:
                    definers[value] = line if definers[value] < 0 else definers[value]
                    value_keys[value] = deep + place
                slots[index] = value
            deep_keys.append(deep)
            values.append(tuple(slots))
            uses.append(tuple(used))
            if shape.is_function and self.is_llvm:
                self._name_entry(own, line, scope, value_keys)

    def _name_entry(self, arguments: list[str], line: int, scope: dict[str, int], value_keys: list[int]) -> None:
        # "define void @f(ptr %0, i32 %1) {" has an entry block that is called %2 without a label.
        name = f"%{sum(argument[1:].isdigit() for argument in arguments)}"
        self.entries[line] = len(self.names)
        scope[name] = len(self.names)
        self.names.append(name)
        self.definers.append(line)
        value_keys.append(0)
