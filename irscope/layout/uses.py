"""Reads which values and operations of a TTGIR module have which layout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from irscope.ir.locations import Chain, TextLocations, read_locations
from irscope.ir.locations_user import Place, place_of
from irscope.ir.mlir import Block, MlirModule, Operation, Value, parse_mlir
from irscope.layout.types import LayoutType, read_types, split_commas, types_with_positions

# %stride: i32 {tt.divisibility = 16 : i32}    %q_ptr: !tt.ptr<f16> {…}
_ARGUMENT = re.compile(r"(?P<name>%[\w.$-]+): (?:!tt\.ptr<[^>]*>|i\d+)(?: \{(?P<attributes>[^{}]*)\})?")
# tt.divisibility = 16 : i32
_DIVISIBILITY = re.compile(r"tt\.divisibility = (\d{1,9})")
# %x: tensor<…>, in the head of a function or a block
_TYPED = re.compile(r"(%[\w.$-]+): !?(?:\w+\.)?(?=tensor<|memdesc<)")

_LOOPS = ("scf.for", "scf.while")
_GIVES_TOKEN = ("ttg.async_copy_global_to_local", "ttg.async_commit_group", "ttg.async_wait")


@dataclass(frozen=True, slots=True)
class OperationUse:
    """An operation that has to do with layouts."""

    line: int
    """1-based, in the text."""
    name: str
    """`tt.load`."""
    results: tuple[Value, ...]
    result_types: tuple[LayoutType, ...]
    """Of the results that have a layout."""
    operands: tuple[Value, ...]
    types: tuple[LayoutType, ...]
    """Every type with a layout that its text names, in order."""
    text: str
    """Its own lines, without the location."""
    loops: int = 0
    """How many loops it stands in."""


@dataclass(frozen=True)
class ModuleUses:
    """The operations of a module that have to do with layouts, and the type of each value."""

    module: MlirModule
    operations: tuple[OperationUse, ...] = ()
    values: dict[Value, LayoutType] = field(default_factory=dict[Value, LayoutType])
    """Value → type, of those that have a layout."""
    users: dict[Value, tuple[int, ...]] = field(default_factory=dict[Value, tuple[int, ...]])
    """Value → indices of the operations that take it."""
    locations: TextLocations = field(default_factory=TextLocations)
    first_values: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """Argument of a loop → what it is in the first turn."""
    divisibility: dict[Value, int] = field(default_factory=dict[Value, int])
    """Argument of a kernel → what it is known to be divisible by; 1 where nothing is known."""

    def chain_of(self, use: OperationUse) -> Chain:
        """Where an operation comes from."""
        return self.locations.chain_at(use.line)

    def place_of(self, use: OperationUse) -> Place:
        """The user's lines that an operation comes from, innermost first."""
        kernel = self.module.kernel
        own = self.locations.chain_at(kernel.first_line) if kernel is not None else ()
        return place_of(self.chain_of(use), own[0].file if own else "")

    def maker_of(self, value: Value) -> Operation | None:
        """The operation that a value is a result of; None for the argument of a block."""
        operation = self.module.definition(value)
        return operation if operation is not None and value in operation.results else None


def read_uses(text: str) -> ModuleUses:
    """Read a module; what can't be read is passed over, nothing is raised."""
    module = parse_mlir(text)
    operations: list[OperationUse] = []
    values: dict[Value, LayoutType] = {}
    first_values: dict[Value, Value] = {}
    for operation, loops in _with_loops(module):
        own = f"{operation.text} {operation.closing}".rstrip()
        first_values.update(operation.carried)
        use = _read_operation(operation, own, loops) if "<" in own else None
        if use is not None:
            values.update(_named(use, own))
            if operation.name == "scf.for":
                for (argument, _), result in zip(operation.carried, operation.results, strict=False):
                    if result in values:
                        values[argument] = values[result]
            if use.types:
                operations.append(use)
        for region in operation.regions:
            for block in region.blocks:
                values.update(_argument_types(block))
    users: dict[Value, list[int]] = {}
    for index, use in enumerate(operations):
        for operand in dict.fromkeys(use.operands):
            users.setdefault(operand, []).append(index)
    return ModuleUses(
        module,
        tuple(operations),
        values,
        {value: tuple(rows) for value, rows in users.items()},
        read_locations(text, "mlir"),
        first_values,
        dict(_divisibility(module.kernel)) if module.kernel is not None else {},
    )


def _with_loops(module: MlirModule) -> Iterator[tuple[Operation, int]]:
    """Every operation with the number of loops it stands in, each before what it holds."""
    waiting = [(operation, 0) for operation in reversed(module.operations)]
    while waiting:
        operation, loops = waiting.pop()
        yield operation, loops
        inner = loops + (operation.name in _LOOPS)
        waiting.extend(
            (one, inner)
            for region in reversed(operation.regions)
            for block in reversed(region.blocks)
            for one in reversed(block.operations)
        )


def _read_operation(operation: Operation, own: str, loops: int) -> OperationUse:
    tail = own.partition(" = ")[2] if operation.results else own
    types = tuple(read_types(tail))
    return OperationUse(
        operation.first_line,
        operation.name,
        operation.results,
        _result_types(operation.name, tail, types, len(operation.results)),
        operation.operands,
        types,
        own,
        loops,
    )


def _divisibility(function: Operation) -> Iterator[tuple[Value, int]]:
    arguments = {one.name: one for block in function.regions[0].blocks[:1] for one in block.arguments}
    for match in _ARGUMENT.finditer(function.text):
        if (argument := arguments.get(match["name"])) is not None:
            known = _DIVISIBILITY.search(match["attributes"] or "")
            yield argument, int(known[1]) if known else 1


def _argument_types(block: Block) -> Iterator[tuple[Value, LayoutType]]:
    """The types of a block's arguments that have a layout, where its header says them."""
    if not block.arguments or "<" not in block.header:
        return
    kinds = list(types_with_positions(block.header))
    arguments = {one.name: one for one in block.arguments}
    for match in _TYPED.finditer(block.header):
        kind = next((kind for at, kind in kinds if at >= match.end()), None)
        if kind is not None and match[1] in arguments:
            yield arguments[match[1]], kind


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


def _named(use: OperationUse, own: str) -> dict[Value, LayoutType]:
    """The types of the results, where they can be told."""
    if len(use.result_types) == len(use.results):
        return dict(zip(use.results, use.result_types, strict=True))
    return _by_position(use, own) if use.results else {}


def _by_position(use: OperationUse, own: str) -> dict[Value, LayoutType]:
    """Results of which only some have a layout: the list after the arrow says which."""
    arrow = own.rfind(" -> (")
    if arrow < 0:
        return {}
    inside = own[arrow + 5 :]
    depth = 1
    for index, character in enumerate(inside):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            inside = inside[:index]
            break
    named: dict[Value, LayoutType] = {}
    for name, text in zip(use.results, split_commas(inside), strict=False):
        kinds = read_types(text)
        if kinds:
            named[name] = kinds[0]
    return named
