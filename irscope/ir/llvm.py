"""LLVM IR as functions, basic blocks and instructions, with definitions and uses; metadata is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from irscope.ir.body import Body, read_body
from irscope.ir.tokens import STRING

# "define ptx_kernel void @matmul(ptr addrspace(1) %0, i32 %1) {"
_FUNCTION = re.compile(r'@(?P<name>"[^"\n]*"|[\w$.-]+)\(')


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction."""

    opcode: str
    """`add`, `call`, `getelementptr`, …"""
    result: str
    """`%12`; empty where it has none."""
    operands: tuple[str, ...]
    """The values and labels it reads, in the order they are written; constants are not among them."""
    callee: str
    """For a call of a symbol, its name with the sign: `@llvm.nvvm.barrier0`; otherwise empty."""
    line: int
    """1-based."""
    text: str
    """Without indentation and debug attachments."""


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions up to a terminator."""

    label: str
    """`%12`, as branches name it."""
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A function with a body."""

    name: str
    """Without the sign."""
    arguments: tuple[str, ...]
    blocks: tuple[BasicBlock, ...]
    line: int
    """1-based."""

    @property
    def instructions(self) -> Iterator[Instruction]:
        """All instructions, in the order of the text."""
        return (instruction for block in self.blocks for instruction in block.instructions)

    def definition(self, value: str) -> Instruction | None:
        """The instruction that defines a value such as `%12`; None for an argument or an unknown name."""
        return next((instruction for instruction in self.instructions if instruction.result == value), None)

    def uses(self, value: str) -> tuple[Instruction, ...]:
        """The instructions that read a value."""
        return tuple(instruction for instruction in self.instructions if value in instruction.operands)


@dataclass(frozen=True, slots=True)
class LlvmModule:
    """The functions of a module that have a body."""

    functions: tuple[Function, ...]

    @property
    def instructions(self) -> Iterator[Instruction]:
        """All instructions of all functions."""
        return (instruction for function in self.functions for instruction in function.instructions)


def parse_llvm(text: str) -> LlvmModule:
    """Read LLVM IR. Never raises: a line that it cannot read is an instruction without opcode."""
    body = read_body(text, "llvm", frozenset({"locations"}))
    functions: list[Function] = []
    line = 0
    while line < len(body.lines):
        if body.shapes[line].is_function:
            line = _function(body, line, functions)
        else:
            line += 1
    return LlvmModule(tuple(functions))


def _function(body: Body, start: int, functions: list[Function]) -> int:
    blocks: list[BasicBlock] = []
    instructions: list[Instruction] = []
    label = body.names[body.entries[start]] if start in body.entries else ""
    line = start + 1
    while line < len(body.lines) and not body.shapes[line].is_function and not body.shapes[line].closes:
        if body.shapes[line].name == "^":
            if instructions or blocks:
                blocks.append(BasicBlock(label, tuple(instructions)))
            instructions, label = [], body.names[body.values[line][0]]
        else:
            instructions.append(_instruction(body, line))
        line += 1
    blocks.append(BasicBlock(label, tuple(instructions)))
    match = _FUNCTION.search(body.lines[start])
    name = match["name"].strip('"') if match else ""
    arguments = tuple(body.names[value] for value in body.values[start])
    functions.append(Function(name, arguments, tuple(blocks), body.numbers[start]))
    return line


def _instruction(body: Body, line: int) -> Instruction:
    shape, names, text = body.shapes[line], body.names, body.lines[line].strip()
    values = body.values[line]
    result = names[values[0]] if shape.defines == (0,) else ""
    callee = _FUNCTION.search(STRING.sub('""', text)) if shape.name in ("call", "invoke") else None
    return Instruction(
        shape.name,
        result,
        tuple(names[value] for value in body.uses[line]),
        f"@{callee['name']}" if callee else "",
        body.numbers[line],
        text,
    )
