"""SASS: functions and instructions, and the normal form that irscope writes them in.

nvdisasm spreads an instruction over two lines and 160 columns. The normal form has one line per instruction, which
`irscope.ir.asm.sass_reader` reads back:

    .target sm_90a
    .section .text.add_kernel  // 42 instructions
    //## File "add.py", line 7
            0010  B------:R-:W0:-:S07  G002:P0:U00  S2R R0, SR_TID.X
    .L_x_0:
            0020  B------:R-:W-:Y:S00  G002:P0:U00  BRA `(.L_x_0)

that is: offset, control fields (see `irscope.ir.asm.control`), live registers where they were counted (general,
predicate, uniform, uniform predicate) and the instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from irscope.ir.asm.control import ControlInfo
from irscope.ir.asm.instructions import Function, Instruction
from irscope.ir.locations.model import Chain


@dataclass(frozen=True, slots=True)
class LiveRegisters:
    """How many registers hold a value at an instruction. As text `G013:P2:U04:Q0`."""

    general: int = 0
    predicate: int = 0
    uniform: int = 0
    uniform_predicate: int = 0

    @staticmethod
    def parse(text: str) -> LiveRegisters:
        """Read `G013:P2:U04:Q0`; a part that is not there is 0."""
        parts = {part[0]: int(part[1:]) for part in text.split(":")}
        return LiveRegisters(parts.get("G", 0), parts.get("P", 0), parts.get("U", 0), parts.get("Q", 0))

    def __str__(self) -> str:
        return f"G{self.general:03}:P{self.predicate}:U{self.uniform:02}:Q{self.uniform_predicate}"


@dataclass(frozen=True, slots=True)
class SassInstruction(Instruction):
    """One instruction of machine code."""

    offset: int = 0
    """Bytes from the start of its section."""
    control: ControlInfo | None = None
    location: Chain = ()
    live: LiveRegisters | None = None
    encoding: tuple[int, int] | None = field(default=None, compare=False)
    """Its low and its high 64 bits; None in irscope's normal form, which has the control fields only."""


@dataclass(frozen=True, slots=True)
class OpaqueLine:
    """A line of a function that the reader does not know, kept as it is."""

    text: str
    index: int
    """0-based index of the instruction it stands before."""


@dataclass(frozen=True, slots=True)
class SassFunction(Function):
    """The code of one section: a kernel, with the subroutines that were placed behind it."""

    instructions: tuple[SassInstruction, ...] = ()
    opaque: tuple[OpaqueLine, ...] = ()
    target: str = ""
    """`sm_90a`, or an empty string."""

    @property
    def padding(self) -> int:
        """The number of instructions at the end that only fill: NOPs, and before them a branch to itself."""
        end = len(self.instructions)
        while end and self.instructions[end - 1].opcode == "NOP":
            end -= 1
        names = {label.name for label in self.labels if label.index == end - 1}
        if end and self.instructions[end - 1].text in {f"BRA `({name})" for name in names}:
            end -= 1
        return len(self.instructions) - end

    def without_padding(self) -> SassFunction:
        """The function without its padding, and without the labels that only the padding used."""
        end = len(self.instructions) - self.padding
        kept = self.instructions[:end]
        operands = "\n".join(operand for instruction in kept for operand in instruction.operands)
        labels = tuple(label for label in self.labels if label.index < end or f"({label.name})" in operands)
        labels = tuple(replace(label, index=min(label.index, end)) for label in labels)
        return replace(self, instructions=kept, labels=labels, opaque=tuple(o for o in self.opaque if o.index <= end))


def format_sass(functions: Iterable[SassFunction]) -> str:
    """Write the normal form, which `parse_sass` reads back to equal functions."""
    lines: list[str] = []
    target = ""
    for function in functions:
        if function.target != target:
            target = function.target
            lines.append(f".target {target or 'sm_unknown'}")
        lines.append(f".section .text.{function.name}  // {len(function.instructions)} instructions")
        lines.extend(_format_body(function))
    return "".join(f"{line}\n" for line in lines)


def with_live_registers(functions: Iterable[SassFunction], counted: Iterable[SassFunction]) -> tuple[SassFunction, ...]:
    """Add the live registers that a second run of nvdisasm counted: it does not print them along with locations."""
    counts = {(function.name, item.offset): item.live for function in counted for item in function.instructions}
    return tuple(
        replace(
            function,
            instructions=tuple(
                replace(item, live=counts.get((function.name, item.offset), item.live))
                for item in function.instructions
            ),
        )
        for function in functions
    )


def _format_body(function: SassFunction) -> Iterator[str]:
    labels, opaque = list(function.labels), list(function.opaque)
    location: Chain = ()
    for index in range(len(function.instructions) + 1):
        while labels and labels[0].index <= index:
            yield f"{labels.pop(0).name}:"
        while opaque and opaque[0].index <= index:
            yield opaque.pop(0).text
        if index == len(function.instructions):
            return
        item = function.instructions[index]
        if item.location != location:
            yield from _format_location(item.location)
            location = item.location
        live = f"  {item.live}" if item.live else ""
        yield f"        {item.offset:04x}  {item.control or '-'}{live}  {item.text}"


def _format_location(location: Chain) -> Iterator[str]:
    if not location:
        yield '//## File "", line 0'
        return
    for frame, caller in zip(location, (*location[1:], None), strict=True):
        at = f' inlined at "{caller.file}", line {caller.line}' if caller else ""
        yield f'//## File "{frame.file}", line {frame.line}{at}'
