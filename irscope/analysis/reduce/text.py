"""Programs from MLIR's generic form, and back: `"tt.load"(%0) <{…}> {…} : (…) -> …`."""

from __future__ import annotations

import re

from irscope.analysis.reduce.program import Block, Op, Program
from irscope.errors import ParseError
from irscope.ir.mlir.attributes import parse_entries
from irscope.ir.mlir.reader import Operation, Value, parse_mlir
from irscope.ir.mlir.tokens import ALIAS, closing, marks, reachable, split_commas

__all__ = ["read_program", "write_program"]

_LOCATION_ALIAS = re.compile(r"#loc\d*$")
_INDENT = "  "


def read_program(text: str) -> Program:
    """Read a module that MLIR printed in its generic form; raises ParseError for any other form.

    Locations of operations are kept, those of arguments are not.
    """
    return _Reader(text).program


class _Reader:
    def __init__(self, text: str) -> None:
        self.module = module = parse_mlir(text)
        self.values: dict[tuple[int, int], int] = {}
        self.types: dict[int, str] = {}
        self.argument_attributes: dict[int, dict[str, str]] = {}
        self.next = 1
        operations = [self._operation(one, {}) for one in module.operations]
        self.program = Program(operations, self.types, dict(module.aliases), self.argument_attributes, self.next)

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
                self.types.update((self._value(one), str(self.module.type_of(one))) for one in block.arguments)
                rows = [self._operation(one, inner) for one in block.operations]
                made.regions[-1].append(Block(inner[block.label], arguments, rows))
        if made.is_function:
            rows = split_commas(made.properties.pop("arg_attrs", "[]")[1:-1])
            for value, row in zip(made.regions[0][0].arguments, rows, strict=False):
                self.argument_attributes[value] = parse_entries(row[1:-1])
        return made


def write_program(program: Program) -> str:
    """The program in MLIR's generic form, with values, blocks and arguments numbered as they appear."""
    return _Writer(program).text()


class _Writer:
    def __init__(self, program: Program) -> None:
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
        head = [
            f"{name} = {text}" for name, text in aliases.items() if name in used and not _LOCATION_ALIAS.match(name)
        ]
        tail = [f"{name} = {text}" for name, text in aliases.items() if name in used and _LOCATION_ALIAS.match(name)]
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
        is_plain = len(outputs) == 1 and not _is_function_type(outputs[0])
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

    def _region(self, region: list[Block], indent: str) -> None:
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


def _written(entries: dict[str, str]) -> str:
    names = {name: name if name.replace(".", "").replace("_", "").isalnum() else f'"{name}"' for name in entries}
    return ", ".join(f"{names[name]} = {value}" if value else names[name] for name, value in entries.items())


def _function_type(text: str, inputs: list[str]) -> str:
    """The type of a function with other inputs, in either dialect."""
    if text.startswith("!llvm.func<"):
        # !llvm.func<void (i32, ptr<1>)>
        opening = next((place for token, place, depth in marks(text) if token == "(" and depth == 1), -1)
        return f"{text[: opening + 1]}{', '.join(inputs)})>" if opening >= 0 else text
    return f"({', '.join(inputs)}){text[closing(text, 0) + 1 :]}"


def _is_function_type(text: str) -> bool:
    return text.startswith("(")
