"""Which lines of a stage's text begin an operation or an instruction, its kind, and the live registers there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.llvm import symbol_of
from irscope.ir.locations.model import text_lines
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import StageKind


@dataclass(frozen=True)
class Operations:
    """The operations of one text, column by column: every tuple has one item per operation unless it says otherwise."""

    lines: tuple[int, ...] = ()
    """The text line it begins on, 1-based."""
    kinds: tuple[int, ...] = ()
    """An index into `kind_names`."""
    names: tuple[int, ...] = ()
    """An index into `full_names`."""
    kind_names: tuple[str, ...] = ()
    """What is counted: `tt.load`, `fadd`, and for instructions the family with its width, `ld.global.128`."""
    full_names: tuple[str, ...] = ()
    """Operations and opcodes as they are written."""
    live: tuple[int, ...] = ()
    """General registers that hold a value; empty if the text does not state them."""
    text: Sequence[str] = field(default=(), repr=False)
    """The lines of the text, one item per line."""

    def matching(self, pattern: re.Pattern[str]) -> tuple[int, ...]:
        """The operations whose text, name or family a pattern is found in, as indices."""
        by_kind = [pattern.search(name) is not None for name in self.kind_names]
        return tuple(
            index
            for index, line in enumerate(self.lines)
            if by_kind[self.kinds[index]] or pattern.search(without_location(self.text[line - 1]))
        )


def without_location(line: str) -> str:
    """A line without the location at its end, so that names of files are not searched."""
    for mark in (" loc(", ", !dbg "):
        line = line.partition(mark)[0]
    return line


def read_stage_operations(text: str, kind: StageKind) -> Operations:
    """Find the operations of a text. Never raises: lines that cannot be read are skipped."""
    found = _mlir(text) if kind == "mlir" else _assembly(text, kind)
    numbers: list[int] = []
    kinds: list[int] = []
    names: list[int] = []
    live: list[int] = []
    kind_names: dict[str, int] = {}
    full_names: dict[str, int] = {}
    for number, name, family, registers in found:
        numbers.append(number)
        kinds.append(kind_names.setdefault(family or name, len(kind_names)))
        names.append(full_names.setdefault(name, len(full_names)))
        live.append(registers)
    known = tuple(live) if any(count >= 0 for count in live) else ()
    columns = tuple(numbers), tuple(kinds), tuple(names), tuple(kind_names), tuple(full_names), known
    return Operations(*columns, text_lines(text))


_Found = tuple[int, str, str | None, int]
"""Line, name as it is written, family, and live registers or -1."""


def _mlir(text: str) -> Iterator[_Found]:
    for operation in parse_mlir(text).walk():
        if "." in operation.name:
            # As it is written, which is how people search for it.
            yield operation.first_line, operation.name.replace("builtin.module", "module"), None, -1


def _assembly(text: str, kind: StageKind) -> Iterator[_Found]:
    for item in read_instructions(text, kind):
        live = item.live.general if item.live is not None else -1
        yield item.line, _llvm_name(item) if kind == "llvm" else item.opcode, item.family, live


def _llvm_name(item: Instruction) -> str:
    """`fadd`, `call llvm.exp2.f32`, `call asm`."""
    called = symbol_of(item.text) if item.opcode in ("call", "invoke") else ""
    if called:
        return f"call {called}"
    return "call asm" if item.opcode == "call" and " asm " in item.text else item.opcode
