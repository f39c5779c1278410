"""Reads which values and operations of a TTGIR module have which layout."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.ir.locations import TextLocations, read_locations
from irscope.ir.locations_mlir import location_spans, read_operations
from irscope.layout.types import LayoutType, read_types, types_with_positions

# %a, %b:2 = "tt.reduce"(   %0 = tt.load   tt.store %a   scf.yield
_HEAD = re.compile(r'(?:(?P<results>%[^=]*?) = )?"?(?P<name>[A-Za-z_]\w*(?:\.\w+)+|module)"?')
# %largest_86:7   %acc   %12   %arg3#1
_VALUE = re.compile(r"%[\w.$-]+(?:#\d+)?")
# iter_args(%a = %b, %c = %d)
_ITER_ARGS = re.compile(r"iter_args\(([^)]*)\)")
# %x: tensor<…>, in the head of a function or a block
_TYPED = re.compile(r"(%[\w.$-]+): !?(?:\w+\.)?(?=tensor<|memdesc<)")

# %stride: i32 {tt.divisibility = 16 : i32}    %q_ptr: !tt.ptr<f16> {…}
_ARGUMENT = re.compile(r"(?P<name>%[\w.$-]+): (?:!tt\.ptr<[^>]*>|i\d+)(?: \{(?P<attributes>[^{}]*)\})?")
# tt.divisibility = 16 : i32
_DIVISIBILITY = re.compile(r"tt\.divisibility = (\d{1,9})")
# %a = scf.for %i = …      scf.while (…
_LOOP = re.compile(r"^(?:%[^=]*= )?scf\.(?:for|while)\b")

_GIVES_TOKEN = ("ttg.async_copy_global_to_local", "ttg.async_commit_group", "ttg.async_wait")


@dataclass(frozen=True, slots=True)
class OperationUse:
    """An operation that has to do with layouts."""

    line: int
    """1-based, in the text."""
    name: str
    """`tt.load`."""
    results: tuple[str, ...]
    """Its values, with the sign; one of several is `%a#1`."""
    result_types: tuple[LayoutType, ...]
    """Of the results that have a layout."""
    operands: tuple[str, ...]
    types: tuple[LayoutType, ...]
    """Every type with a layout that its text names, in order."""
    text: str
    """Its own lines, without the location."""
    loops: int = 0
    """How many loops it stands in."""


@dataclass(frozen=True)
class ModuleUses:
    """The operations of a module that have to do with layouts, and the type of each value."""

    operations: tuple[OperationUse, ...] = ()
    values: dict[str, LayoutType] = field(default_factory=dict[str, LayoutType])
    """Value → type; a name that several functions use has its first."""
    users: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Value → indices of the operations that take it."""
    locations: TextLocations = field(default_factory=TextLocations)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Value → the values it is made of, of every operation."""
    makers: dict[str, str] = field(default_factory=dict[str, str])
    """Value → the text of the operation that makes it; none for the argument of a loop."""
    divisibility: dict[str, int] = field(default_factory=dict[str, int])
    """Argument of a kernel → what it is known to be divisible by; 1 where nothing is known."""

    def type_of(self, value: str) -> LayoutType | None:
        """The type of a value, with or without its sign."""
        name = value if value.startswith("%") else f"%{value}"
        return self.values.get(name)

    def producer_of(self, value: str) -> OperationUse | None:
        """The operation that makes a value."""
        return next((operation for operation in self.operations if value in operation.results), None)


def read_uses(text: str) -> ModuleUses:
    """Read a module; what can't be read is passed over, nothing is raised."""
    lines = text.split("\n")
    locations = read_locations(text, "mlir")
    operations: list[OperationUse] = []
    values: dict[str, LayoutType] = {}
    inputs: dict[str, tuple[str, ...]] = {}
    makers: dict[str, str] = {}
    divisibility: dict[str, int] = {}
    depths: list[int] = []
    found = read_operations(lines)[0]
    for operation in found:
        own = " ".join(_without_location(lines[number]).strip() for number in operation.lines)
        outer = depths[operation.parent] if operation.parent >= 0 else 0
        depths.append(outer + bool(_LOOP.search(own)))
        _read_inputs(own, inputs, makers)
        if "tt.func " in own:
            _read_arguments(own, divisibility)
        use = _read_operation(own, operation.lines[0] + 1, outer)
        if use is None:
            continue
        _name_values(use, own, values)
        if use.types:
            operations.append(use)
    for line in lines:
        if line.lstrip().startswith("^"):
            _typed_names(_without_location(line), values)
    users: dict[str, list[int]] = {}
    for index, use in enumerate(operations):
        for operand in dict.fromkeys(use.operands):
            users.setdefault(operand, []).append(index)
    return ModuleUses(
        tuple(operations),
        values,
        {name: tuple(rows) for name, rows in users.items()},
        locations,
        inputs,
        makers,
        divisibility,
    )


def _without_location(line: str) -> str:
    if "loc(" not in line:
        return line
    kept, done = "", 0
    for start, end in location_spans(line):
        kept += line[done:start].rstrip()
        done = end
    return kept + line[done:]


def _read_operation(own: str, line: int, loops: int) -> OperationUse | None:
    match = _HEAD.match(own)
    if match is None or "<" not in own:
        return None
    tail = own[match.end() :]
    types = tuple(read_types(tail))
    results = tuple(_result_names(match["results"] or ""))
    operands = tuple(found[0] for found in _VALUE.finditer(tail))
    result_types = _result_types(match["name"], tail, types, len(results))
    return OperationUse(line, match["name"], results, result_types, operands, types, own, loops)


def _read_inputs(own: str, inputs: dict[str, tuple[str, ...]], makers: dict[str, str]) -> None:
    results, equals, rest = own.partition(" = ")
    if not equals or not results.startswith("%"):
        return
    operands = tuple(dict.fromkeys(_VALUE.findall(rest)))
    for name in _result_names(results):
        inputs.setdefault(name, operands)
        makers.setdefault(name, own)
    if (arguments := _ITER_ARGS.search(own)) is not None:
        for pair in arguments[1].split(","):
            name, _, first = pair.partition("=")
            inputs.setdefault(name.strip(), (first.strip(),))


def _read_arguments(own: str, divisibility: dict[str, int]) -> None:
    for match in _ARGUMENT.finditer(own):
        known = _DIVISIBILITY.search(match["attributes"] or "")
        divisibility.setdefault(match["name"], int(known[1]) if known else 1)


def _result_names(text: str) -> Iterable[str]:
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        if count.isdigit() and int(count) < 10_000:
            yield from (f"{name}#{index}" for index in range(int(count)))
        elif name:
            yield name


def _result_types(name: str, tail: str, types: tuple[LayoutType, ...], results: int) -> tuple[LayoutType, ...]:
    """The types of the results: those after the last arrow (or `to`), else the one that all operands share."""
    if not results or not types or name in _GIVES_TOKEN:
        return ()
    arrow = max(tail.rfind(" -> "), tail.rfind(" to "))
    if arrow >= 0:
        return tuple(read_types(tail[arrow:]))
    if name == "arith.select":
        return types[-1:]
    return types[:1]


def _name_values(use: OperationUse, own: str, values: dict[str, LayoutType]) -> None:
    if len(use.result_types) == len(use.results):
        named = dict(zip(use.results, use.result_types, strict=True))
    elif use.results:
        named = _by_position(use, own)
    else:
        named = {}
    for name, kind in named.items():
        values.setdefault(name, kind)
    if (arguments := _ITER_ARGS.search(own)) is not None:
        for index, pair in enumerate(arguments[1].split(",")):
            name = pair.partition("=")[0].strip()
            result = use.results[index] if index < len(use.results) else ""
            if name and result in values:
                values.setdefault(name, values[result])
    _typed_names(own, values)


def _by_position(use: OperationUse, own: str) -> dict[str, LayoutType]:
    """Results of which only some have a layout: the list after the arrow says which."""
    arrow = own.rfind(" -> (")
    if arrow < 0:
        return {}
    from irscope.layout.types import split_commas

    inside = own[arrow + 5 :]
    depth = 1
    for index, character in enumerate(inside):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            inside = inside[:index]
            break
    named: dict[str, LayoutType] = {}
    for name, text in zip(use.results, split_commas(inside), strict=False):
        kinds = read_types(text)
        if kinds:
            named[name] = kinds[0]
    return named


def _typed_names(text: str, values: dict[str, LayoutType]) -> None:
    if ": " not in text or "%" not in text:
        return
    kinds = dict(types_with_positions(text))
    for match in _TYPED.finditer(text):
        kind = next((kinds[at] for at in sorted(kinds) if at >= match.end()), None)
        if kind is not None:
            values.setdefault(match[1], kind)
