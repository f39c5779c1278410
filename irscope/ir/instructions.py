"""What the readers of PTX, SASS and AMDGCN share: instructions, labels, operand lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of PTX or AMDGCN text; `irscope.ir.locations` says where its line comes from."""

    opcode: str
    """With every suffix: `ld.global.v4.b32`, `v_add_f32_e32`."""
    operands: tuple[str, ...] = ()
    predicate: str = ""
    """`@%p1`, `@!%p1`; empty for none."""
    line: int = field(default=0, compare=False)
    """1-based line of the text it begins on."""
    inline_assembly: bool = False
    """Whether it stands between `begin inline asm` and `end inline asm`."""

    @property
    def text(self) -> str:
        """The instruction on one line, blanks normalised."""
        return join_instruction(self.predicate, self.opcode, self.operands)


@dataclass(frozen=True, slots=True)
class Label:
    """A name for a place in a function's code."""

    name: str
    index: int
    """0-based index of the instruction it stands before; the number of instructions for one at the end."""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class OpaqueLine:
    """A line of a function that the reader does not know, kept as it is."""

    text: str
    index: int
    """0-based index of the instruction it stands before."""
    line: int = field(default=0, compare=False)


class AnyInstruction(Protocol):
    """What instructions of every assembly have."""

    @property
    def opcode(self) -> str: ...
    @property
    def operands(self) -> tuple[str, ...]: ...
    @property
    def predicate(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def text(self) -> str: ...


class AnyFunction(Protocol):
    """What functions of every assembly have."""

    @property
    def name(self) -> str: ...
    @property
    def instructions(self) -> tuple[AnyInstruction, ...]: ...
    @property
    def labels(self) -> tuple[Label, ...]: ...


def join_instruction(predicate: str, opcode: str, operands: Iterable[str]) -> str:
    """The text of an instruction: predicate, opcode, operands with a comma and a blank between them."""
    return " ".join(part for part in (predicate, opcode, ", ".join(operands)) if part)


def split_operands(text: str) -> tuple[str, ...]:
    """Split an operand list at the commas that stand in no bracket, and normalise blanks.

    `{%r1, %r2}, [%rd1 + 0]` has two operands. An empty text has none.
    """
    text = " ".join(text.split())
    if not text:
        return ()
    parts: list[str] = []
    depth = start = 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return (*parts, text[start:].strip())
