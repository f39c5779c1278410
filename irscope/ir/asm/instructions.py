"""The model that the readers of PTX, SASS, AMDGCN and LLVM IR share: functions, instructions, labels, operand lists."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `irscope.ir.locations.stages` says where its line comes from."""

    opcode: str
    """With every suffix: `ld.global.v4.b32`, `v_add_f32_e32`, `LDG.E.128`."""
    operands: tuple[str, ...] = ()
    predicate: str = ""
    """`@%p1`, `@!UP1`, or an empty string."""
    line: int = field(default=0, compare=False)
    """1-based line of the text it begins on."""

    @property
    def text(self) -> str:
        """The instruction on one line, predicate included, blanks normalised."""
        return " ".join(part for part in (self.predicate, self.opcode, ", ".join(self.operands)) if part)


@dataclass(frozen=True, slots=True)
class Label:
    """A name for a place in a function's code."""

    name: str
    index: int
    """0-based index of the instruction it stands before; the number of instructions for one at the end."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function with its code."""

    name: str
    instructions: tuple[Instruction, ...] = ()
    labels: tuple[Label, ...] = ()


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
