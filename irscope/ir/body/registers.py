"""Reads assembly on physical registers for the comparison: a value is a set of writes that share readers."""

from __future__ import annotations

import re

from irscope.ir.asm.operands import Access
from irscope.ir.asm.register_flow import LineAccess, Webs, line_access, successors
from irscope.ir.body.columns import Body
from irscope.ir.body.tokens import Shape, shape_of

# CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64)
_FUNCTION = re.compile(r"`\((?P<name>[^)`]+)\)")
# More than any GPU has per thread; a hostile text may name any number.
_MOST_REGISTERS = 1000
_MOST_READS = 1_000_000
"""Of all unknown instructions of a text together."""


class RegisterReader:
    """Fills the columns of a `Body` from the templates of its lines."""

    def __init__(self, body: Body, found: list[str]) -> None:
        self._body = body
        self._found = found
        self._labels: dict[tuple[int, str], int] = {}
        """(function, label) -> line of the label."""
        self._functions: list[int] = []
        """Per line, the number of functions that began before it."""
        self._own: list[list[str]] = []
        """Per line, the registers and labels in its holes."""
        self._by_name: dict[str, int] = {}
        """Register that is never written -> value."""
        self._of_web: dict[int, int] = {}
        self._of_label: dict[tuple[int, str], int] = {}
        self._value_keys: list[int] = []
        self._first_writers: dict[int, int] = {}

    def read(self, templates: list[str]) -> None:
        """Fill the columns."""
        self._read_shapes(templates)
        accesses = [shape.access for shape in self._body.shapes]
        lines = self._registers(accesses)
        following = successors(accesses, self._targets(), sorted(self._labels.values()))
        self._body.following.extend(following)
        webs = Webs(accesses, lines, following)
        self._first_writers = webs.first_writers
        for line, shape in enumerate(self._body.shapes):
            self._read_line(line, shape, lines[line], webs.webs[line])
        self._body.parents.extend([-1] * len(templates))
        self._body.openers.extend([-1] * len(templates))

    def _read_shapes(self, templates: list[str]) -> None:
        known: dict[str, tuple[Shape, int]] = {}
        position = functions = 0
        for line, template in enumerate(templates):
            template = template.lstrip()
            entry = known.get(template)
            if entry is None:
                shape = shape_of(template, self._body.kind)
                entry = known[template] = (shape, self._body.resolver.key(shape))
            shape, key = entry
            functions += shape.is_function
            own = self._found[position : position + shape.holes]
            position += shape.holes
            if shape.access is not None and shape.access.is_unknown:
                key = hash((key, *own))
            if shape.defines and shape.access is None:
                self._labels.setdefault((functions, own[0]), line)
            self._body.shapes.append(shape)
            self._body.keys.append(key)
            self._functions.append(functions)
            self._own.append(own)

    def _registers(self, accesses: list[Access | None]) -> list[LineAccess | None]:
        lines = [access and line_access(access, own, ()) for access, own in zip(accesses, self._own, strict=True)]
        unknown = sum(access is not None and access.is_unknown for access in accesses)
        if not unknown:
            return lines
        named = {register for line in lines if line is not None for register in line.shown + line.more}
        everything = tuple(sorted(named)[: min(_MOST_REGISTERS, _MOST_READS // unknown)])
        return [
            access and line_access(access, own, everything) for access, own in zip(accesses, self._own, strict=True)
        ]

    def _targets(self) -> list[int | None]:
        """The line that each line branches to."""
        shapes = self._body.shapes
        functions = {shape.template[:-1]: line for line, shape in enumerate(shapes) if shape.template[-1:] == ":"}
        anywhere = {label: line for (_, label), line in reversed(self._labels.items())}
        targets: list[int | None] = []
        for line, shape in enumerate(shapes):
            flow = shape.access.flow if shape.access is not None else "next"
            target = None
            if flow == "call":
                called = _FUNCTION.search(shape.template)
                target = functions.get(called["name"]) if called else None
            elif flow in ("branch", "jump"):
                label = next((name for name in reversed(self._own[line]) if name[0] == "."), "")
                target = self._labels.get((self._functions[line], label), anywhere.get(label))
            targets.append(target)
        return targets

    def _read_line(self, line: int, shape: Shape, access: LineAccess | None, webs: list[int | str]) -> None:
        names = access.shown + access.more if access is not None else []
        registers = [self._value(name, web, line) for name, web in zip(names, webs, strict=True)]
        values: list[int] = []
        taken = 0
        for span, name in zip(shape.spans, self._own[line], strict=True):
            if name[0] == ".":
                values.append(self._label(line, name))
            elif access is None:
                values.append(self._unwritten(name))
            else:
                values += registers[taken : taken + span]
                taken += span
        values += registers[taken:]
        defines = shape.defines
        defined = set(defines)
        used = tuple([value for place, value in enumerate(values) if place not in defined])
        deep = hash((self._body.keys[line], *[self._value_keys[value] for value in used]))
        for place, index in enumerate(defines):
            self._value_keys[values[index]] = deep + place
        self._body.deep_keys.append(deep)
        self._body.values.append(tuple(values))
        self._body.uses.append(used)

    def _new(self, name: str, definer: int, key: int) -> int:
        self._body.names.append(name)
        self._body.definers.append(definer)
        self._value_keys.append(key)
        return len(self._body.names) - 1

    def _label(self, line: int, name: str) -> int:
        label = (self._functions[line], name)
        value = self._of_label.get(label)
        if value is None:
            value = self._of_label[label] = self._new(name, self._labels.get(label, -1), 0)
        return value

    def _unwritten(self, name: str) -> int:
        value = self._by_name.get(name)
        if value is None:
            value = self._by_name[name] = self._new(name, -1, hash(name))
        return value

    def _value(self, name: str, web: int | str, line: int) -> int:
        if isinstance(web, str):
            return self._unwritten(web)
        value = self._of_web.get(web)
        if value is None:
            value = self._of_web[web] = self._new(name, self._first_writers[web], 0)
        return value
