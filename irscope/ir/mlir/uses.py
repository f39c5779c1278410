"""Reads the layout of each value and operation of a TTGIR module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from irscope.ir.locations.stages import Chain, TextLocations, read_locations
from irscope.ir.locations.user import Place, place_of
from irscope.ir.mlir.reader import Block, MlirModule, Operation, Value, parse_mlir
from irscope.ir.mlir.tokens import parameters_of
from irscope.ir.mlir.types import LayoutType, read_types, written_result_types
from irscope.ir.tables.operations import opcode_of


@dataclass(frozen=True, slots=True)
class OperationUse:
    """An operation whose text names at least one type with a layout."""

    line: int
    """1-based, in the text."""
    name: str
    """`tt.load`."""
    results: tuple[Value, ...]
    result_types: tuple[LayoutType, ...]
    """The types of the results that have a layout."""
    operands: tuple[Value, ...]
    types: tuple[LayoutType, ...]
    """Every type with a layout in its text, in order."""
    text: str
    """Its first and its closing line, without the location."""
    loops: int = 0
    """The number of loops around it."""

    @property
    def opcode(self) -> str:
        """The name, without the dialect for Triton's own dialects: `load`, `arith.addi`."""
        return opcode_of(self.name)


@dataclass(frozen=True)
class ModuleUses:
    """The operations of a module with layouts, and the type of each value."""

    module: MlirModule
    operations: tuple[OperationUse, ...] = ()
    values: dict[Value, LayoutType] = field(default_factory=dict[Value, LayoutType])
    """Value → type, for values with a layout."""
    users: dict[Value, tuple[int, ...]] = field(default_factory=dict[Value, tuple[int, ...]])
    """Value → indices of the operations that read it."""
    locations: TextLocations = field(default_factory=TextLocations)

    def chain_of(self, use: OperationUse) -> Chain:
        """The Python frames that an operation comes from."""
        return self.locations.chain_at(use.line)

    def place_of(self, use: OperationUse) -> Place:
        """The lines of the user's code that an operation comes from, innermost first."""
        return self.place_at(use.line)

    def place_at(self, line: int) -> Place:
        """The lines of the user's code that a line of the text comes from, innermost first."""
        return place_in(self.module, self.locations, line)

    def maker_of(self, value: Value) -> Operation | None:
        """The operation whose result a value is; None for the argument of a block."""
        return maker_in(self.module, value)


def place_in(module: MlirModule, locations: TextLocations, line: int) -> Place:
    """The lines of the user's code that a line of a module comes from, innermost first."""
    kernel = module.kernel
    own = locations.chain_at(kernel.first_line) if kernel is not None else ()
    return place_of(locations.chain_at(line), own[0].file if own else "")


def maker_in(module: MlirModule, value: Value) -> Operation | None:
    """The operation of a module whose result a value is; None for the argument of a block."""
    operation = module.definition(value)
    return operation if operation is not None and value in operation.results else None


@lru_cache(maxsize=4)
def read_uses(text: str) -> ModuleUses:
    """Read a module; never raises: anything unreadable is skipped."""
    module = parse_mlir(text)
    operations: list[OperationUse] = []
    values: dict[Value, LayoutType] = {}
    for operation, loops in with_loops(module):
        if "<" in operation.text or "<" in operation.closing:
            kinds = _result_types(operation)
            use = _read_operation(operation, tuple(kind for kind in kinds if kind is not None), loops)
            values.update((result, kind) for result, kind in zip(operation.results, kinds, strict=False) if kind)
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
    )


def with_loops(module: MlirModule) -> Iterator[tuple[Operation, int]]:
    """Every operation with the number of loops around it, in preorder."""
    waiting = [(operation, 0) for operation in reversed(module.operations)]
    while waiting:
        operation, loops = waiting.pop()
        yield operation, loops
        inner = loops + (operation.kind == "loop")
        waiting.extend(
            (one, inner)
            for region in reversed(operation.regions)
            for block in reversed(region.blocks)
            for one in reversed(block.operations)
        )


def _read_operation(operation: Operation, results: tuple[LayoutType, ...], loops: int) -> OperationUse:
    own = f"{operation.text} {operation.closing}".rstrip()
    types = tuple(read_types(own.partition(" = ")[2] if operation.results else own))
    return OperationUse(
        operation.first_line, operation.name, operation.results, results, operation.operands, types, own, loops
    )


def _result_types(operation: Operation) -> list[LayoutType | None]:
    """The type of each result; None for one without a layout."""
    text = f"{operation.text}\n{operation.closing}"
    written = written_result_types(operation.name, text, len(operation.results))
    return [next(iter(read_types(kind)), None) for kind in written]


def _argument_types(block: Block) -> Iterator[tuple[Value, LayoutType]]:
    """The types of a block's arguments that have a layout, as far as its header gives them."""
    if not block.arguments or "<" not in block.header:
        return
    written = parameters_of(block.header)
    for argument in block.arguments:
        for kind in read_types(written.get(argument.name, ("",))[0])[:1]:
            yield argument, kind
