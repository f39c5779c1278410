"""An MLIR module that can be edited: read from the generic form, `"tt.load"(%0) <{…}> {…} : (…) -> …`, and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from irscope.errors import ParseError
from irscope.ir.mlir.attributes import parse_attribute, parse_entries
from irscope.ir.mlir.operations import OperationKind, operation_info
from irscope.ir.mlir.reader import Operation, Value, parse_mlir
from irscope.ir.mlir.tokens import ALIAS, closing, marks, reachable, split_commas

_SEGMENTS = "operandSegmentSizes"
_Module = TypeVar("_Module", bound="EditableModule")


@dataclass(slots=True)
class Op:
    """An operation. Values are numbers, whose types the module knows."""

    key: int
    """The same in every copy of the module."""
    name: str
    results: list[int] = field(default_factory=list[int])
    operands: list[int] = field(default_factory=list[int])
    successors: list[int] = field(default_factory=list[int])
    """The keys of the blocks it may branch to."""
    properties: dict[str, str] = field(default_factory=dict[str, str])
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    """The attributes that are no properties, which most operations can do without. A unit attribute is empty."""
    regions: list[list[OpBlock]] = field(default_factory=list[list["OpBlock"]])
    location: str = ""
    """The text within `loc(…)`."""

    @property
    def kind(self) -> OperationKind | None:
        """What it is; None for an operation that the table does not know."""
        info = operation_info(self.name)
        return info.kind if info is not None else None

    @property
    def is_function(self) -> bool:
        return self.kind == "function" and bool(self.regions) and bool(self.regions[0])

    @property
    def symbol(self) -> str:
        """A function as its calls name it; empty for what has no name."""
        name = self.properties.get("sym_name", "").strip('"')
        return f"@{name}" if name else ""

    @property
    def arguments(self) -> list[int]:
        """Those of a function with a body."""
        return self.regions[0][0].arguments

    @property
    def segments(self) -> list[int]:
        """How many operands each group of it has; empty if there are no groups. They may be set."""
        sizes = parse_attribute(self.properties.get(_SEGMENTS, ""))
        return [size for size in sizes if isinstance(size, int)] if isinstance(sizes, tuple) else []

    @segments.setter
    def segments(self, sizes: Sequence[int]) -> None:
        self.properties[_SEGMENTS] = f"array<i32: {', '.join(map(str, sizes))}>"

    @property
    def blocks(self) -> Iterator[OpBlock]:
        """The blocks of its regions, without those nested in them."""
        return (block for region in self.regions for block in region)

    def walk(self) -> Iterator[Op]:
        yield self
        for block in self.blocks:
            for operation in block.operations:
                yield from operation.walk()

    def copy(self) -> Op:
        return replace(
            self,
            results=[*self.results],
            operands=[*self.operands],
            successors=[*self.successors],
            properties={**self.properties},
            attributes={**self.attributes},
            regions=[[block.copy() for block in region] for region in self.regions],
        )


@dataclass(slots=True)
class OpBlock:
    key: int
    arguments: list[int]
    operations: list[Op]

    def copy(self) -> OpBlock:
        return OpBlock(self.key, [*self.arguments], [one.copy() for one in self.operations])


@dataclass(slots=True)
class EditableModule:
    operations: list[Op]
    """The top-level ones; usually `builtin.module` alone."""
    types: dict[int, str]
    """Value → type, as written: aliases stay."""
    aliases: dict[str, str]
    """Alias with its sign → its definition, in the order of the text."""
    argument_attributes: dict[int, dict[str, str]]
    """Argument of a function → its attributes."""
    next_number: int
    """Greater than every value and key."""

    def copy(self: _Module) -> _Module:
        return replace(
            self,
            operations=[one.copy() for one in self.operations],
            types={**self.types},
            aliases={**self.aliases},
            argument_attributes={value: {**rows} for value, rows in self.argument_attributes.items()},
        )

    def walk(self) -> Iterator[Op]:
        for operation in self.operations:
            yield from operation.walk()

    @property
    def count(self) -> int:
        """The number of operations, the module and its functions included."""
        return sum(1 for _ in self.walk())

    @property
    def functions(self) -> list[Op]:
        return [one for one in self.walk() if one.is_function]

    def new_key(self) -> int:
        self.next_number += 1
        return self.next_number - 1

    def new_value(self, kind: str) -> int:
        number = self.new_key()
        self.types[number] = kind
        return number

    def new_argument(self, function: Op, kind: str) -> int:
        value = self.new_value(kind)
        function.arguments.append(value)
        return value

    def replace_uses(self, table: dict[int, int]) -> None:
        """Have every operation use what a table has for a value in its place, through all replacements."""
        for operation in self.walk() if table else ():
            operation.operands = [_resolved(table, value) for value in operation.operands]

    def blocks(self) -> Iterator[tuple[Op, Op | None, OpBlock]]:
        """(the operation that a block is in, the function around it, the block), outer blocks first."""
        waiting: list[tuple[Op, Op | None]] = [(one, None) for one in reversed(self.operations)]
        while waiting:
            operation, function = waiting.pop()
            around = operation if operation.is_function else function
            for block in operation.blocks:
                yield operation, around, block
                waiting.extend((one, around) for one in reversed(block.operations) if one.regions)


def _resolved(table: dict[int, int], value: int) -> int:
    seen: set[int] = set()
    while value in table and value not in seen:
        seen.add(value)
        value = table[value]
    return value


_INDENT = "  "


def read_editable(text: str) -> EditableModule:
    """Read a module in MLIR's generic form, without locations of arguments; raises ParseError for any other form."""
    return _EditableReader(text).module


class _EditableReader:
    def __init__(self, text: str) -> None:
        self.source = module = parse_mlir(text)
        self.values: dict[tuple[int, int], int] = {}
        self.types: dict[int, str] = {}
        self.argument_attributes: dict[int, dict[str, str]] = {}
        self.next = 1
        operations = [self._operation(one, {}) for one in module.operations]
        self.module = EditableModule(operations, self.types, dict(module.aliases), self.argument_attributes, self.next)

    def _number(self) -> int:
        self.next += 1
        return self.next - 1

    def _value(self, value: Value) -> int:
        key = value.number, value.index
        if key not in self.values:
            self.values[key] = self._number()
        return self.values[key]

    def _operation(self, operation: Operation, labels: dict[str, int]) -> Op:
        form = operation.form
        if not form.is_generic:
            raise ParseError(f"line {operation.first_line}: {operation.text[:80]!r} is not MLIR's generic form.")
        properties = {name: text for name, text in form.attributes.items() if name in form.properties}
        attributes = {name: text for name, text in form.attributes.items() if name not in form.properties}
        results = [self._value(value) for value in operation.results]
        self.types.update(zip(results, map(str, operation.result_types), strict=True))
        operands = [self._value(value) for value in operation.operands]
        made = Op(
            self._number(), operation.name, results, operands, [labels[one] for one in operation.successors],
            properties, attributes, location=operation.location,
        )  # fmt: skip
        for region in operation.regions:
            inner = {block.label: self._number() for block in region.blocks}
            made.regions.append([])
            for block in region.blocks:
                arguments = [self._value(one) for one in block.arguments]
                self.types.update((self._value(one), str(self.source.type_of(one))) for one in block.arguments)
                rows = [self._operation(one, inner) for one in block.operations]
                made.regions[-1].append(OpBlock(inner[block.label], arguments, rows))
        if made.is_function:
            rows = split_commas(made.properties.pop("arg_attrs", "[]")[1:-1])
            for value, row in zip(made.regions[0][0].arguments, rows, strict=False):
                self.argument_attributes[value] = parse_entries(row[1:-1])
        return made


def write_editable(module: EditableModule) -> str:
    """The module in MLIR's generic form, with values, blocks and arguments numbered as they appear."""
    return _Writer(module).text()


class _Writer:
    def __init__(self, program: EditableModule) -> None:
        self.program = program
        self.names: dict[int, str] = {}
        self.labels: dict[int, str] = {}
        self.lines: list[str] = []

    def text(self) -> str:
        for operation in self.program.operations:
            self._operation(operation, "")
        body = "\n".join(self.lines)
        aliases = self.program.aliases
        used = reachable(ALIAS.findall(body), aliases)
        head = [f"{name} = {text}" for name, text in aliases.items() if name in used and not _is_location(name)]
        tail = [f"{name} = {text}" for name, text in aliases.items() if name in used and _is_location(name)]
        return "\n".join([*head, body, *tail]) + "\n"

    def _operation(self, operation: Op, indent: str) -> None:
        types = self.program.types
        results = ""
        for value in operation.results:
            self.names[value] = f"%{len(self.names)}"
            results += f"{', ' if results else ''}{self.names[value]}"
        operands = ", ".join(self.names.get(value, f"%undefined{value}") for value in operation.operands)
        successors = ", ".join(self.labels.get(block, "^missing") for block in operation.successors)
        line = f'{indent}{results}{" = " if results else ""}"{operation.name}"({operands})'
        line += f"[{successors}]" if successors else ""
        if properties := self._properties(operation):
            line += f" <{{{_written(properties)}}}>"
        inputs = ", ".join(types[value] for value in operation.operands)
        outputs = [types[value] for value in operation.results]
        is_plain = len(outputs) == 1 and outputs[0][:1] != "("
        kind = f"({inputs}) -> {outputs[0] if is_plain else '(' + ', '.join(outputs) + ')'}"
        ending = f" {{{_written(operation.attributes)}}}" if operation.attributes else ""
        ending += f" : {kind}" + (f" loc({operation.location})" if operation.location else "")
        if not operation.regions:
            self.lines.append(line + ending)
            return
        self.lines.append(f"{line} ({{")
        for number, region in enumerate(operation.regions):
            if number:
                self.lines.append(f"{indent}}}, {{")
            self._region(region, indent)
        self.lines.append(f"{indent}}}){ending}")

    def _region(self, region: list[OpBlock], indent: str) -> None:
        for block in region:
            self.labels[block.key] = f"^bb{len(self.labels)}"
        for number, block in enumerate(region):
            for value in block.arguments:
                self.names[value] = f"%{len(self.names)}"
            arguments = ", ".join(f"{self.names[value]}: {self.program.types[value]}" for value in block.arguments)
            if number or arguments:
                self.lines.append(f"{indent}{self.labels[block.key]}{f'({arguments})' if arguments else ''}:")
            for operation in block.operations:
                self._operation(operation, indent + _INDENT)

    def _properties(self, operation: Op) -> dict[str, str]:
        if not operation.is_function:
            return operation.properties
        properties = {**operation.properties}
        arguments = operation.regions[0][0].arguments
        properties["function_type"] = _function_type(
            properties.get("function_type", "() -> ()"), [self.program.types[value] for value in arguments]
        )
        rows = [self.program.argument_attributes.get(value, {}) for value in arguments]
        if any(rows):
            properties["arg_attrs"] = f"[{', '.join(f'{{{_written(row)}}}' for row in rows)}]"
        return properties


def _is_location(alias: str) -> bool:
    return alias.rstrip("0123456789") == "#loc"


def _written(entries: dict[str, str]) -> str:
    names = {name: name if name.replace(".", "").replace("_", "").isalnum() else f'"{name}"' for name in entries}
    return ", ".join(f"{names[name]} = {value}" if value else names[name] for name, value in entries.items())


def _function_type(text: str, inputs: list[str]) -> str:
    if text.startswith("!llvm.func<"):
        # !llvm.func<void (i32, ptr<1>)>
        opening = next((place for token, place, depth in marks(text) if token == "(" and depth == 1), -1)
        return f"{text[: opening + 1]}{', '.join(inputs)})>" if opening >= 0 else text
    return f"({', '.join(inputs)}){text[closing(text, 0) + 1 :]}"
