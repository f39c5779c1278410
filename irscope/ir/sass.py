"""SASS: functions and instructions, and the normal form that irscope writes them in.

nvdisasm spreads an instruction over two lines and 160 columns. The normal form has one line an instruction, which
`irscope.ir.sass_reader` reads back:

    .target sm_90a
    .section .text.add_kernel  // 42 instructions
    //## File "add.py", line 7
            0010  B------:R-:W0:-:S07  G002:P0:U00  S2R R0, SR_TID.X
    .L_x_0:
            0020  B------:R-:W-:Y:S00  G002:P0:U00  BRA `(.L_x_0)

that is: offset, control fields (see `irscope.ir.control`), live registers where they were counted (general, predicate,
uniform, uniform predicate), the instruction, and, where it was asked for, its encoding as a trailing comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from irscope.ir.control import ControlInfo
from irscope.ir.instructions import Label, OpaqueLine, join_instruction
from irscope.ir.locations_model import Chain


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
class SassInstruction:
    """One instruction of machine code."""

    offset: int
    """Bytes from the start of its section."""
    opcode: str
    """With every suffix: `LDG.E.128`."""
    operands: tuple[str, ...] = ()
    predicate: str = ""
    """`@P0`, `@!UP1`; empty for none."""
    control: ControlInfo | None = None
    location: Chain = ()
    live: LiveRegisters | None = None
    encoding: tuple[int, int] | None = None
    """Its low and its high 64 bits."""
    line: int = field(default=0, compare=False)
    """1-based line of the text it begins on."""

    @property
    def text(self) -> str:
        """The instruction as nvdisasm writes it, predicate included, blanks normalised."""
        return join_instruction(self.predicate, self.opcode, self.operands)

    @property
    def reused(self) -> tuple[str, ...]:
        """The operands that are kept in the operand cache for the next instruction."""
        return tuple(operand.removesuffix(".reuse") for operand in self.operands if operand.endswith(".reuse"))


@dataclass(frozen=True, slots=True)
class SassFunction:
    """The code of one section: a kernel, with the subroutines that were placed behind it."""

    name: str
    instructions: tuple[SassInstruction, ...] = ()
    labels: tuple[Label, ...] = ()
    opaque: tuple[OpaqueLine, ...] = ()
    target: str = ""
    """`sm_90a`; empty where the text does not say."""
    line: int = field(default=0, compare=False)

    @property
    def padding(self) -> int:
        """How many instructions at the end are only there to fill: NOPs, and before them a branch to itself."""
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

    def without_encodings(self) -> SassFunction:
        """The function without the bits of its instructions; the control fields stay."""
        return replace(self, instructions=tuple(replace(item, encoding=None) for item in self.instructions))


def format_sass(functions: Iterable[SassFunction], encodings: bool = False) -> str:
    """Write the normal form, which `parse_sass` reads back to equal functions.

    Args:
        functions: what to write.
        encodings: whether to add the 128 bits of each instruction as a comment; without them they are lost.
    """
    lines: list[str] = []
    target = ""
    for function in functions:
        if function.target != target:
            target = function.target
            lines.append(f".target {target or 'sm_unknown'}")
        lines.append(f".section .text.{function.name}  // {len(function.instructions)} instructions")
        lines.extend(_format_body(function, encodings))
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


def _format_body(function: SassFunction, encodings: bool) -> Iterator[str]:
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
        bits = f"  /* 0x{item.encoding[0]:016x} 0x{item.encoding[1]:016x} */" if encodings and item.encoding else ""
        yield f"        {item.offset:04x}  {item.control or '-'}{live}  {item.text}{bits}"


def _format_location(location: Chain) -> Iterator[str]:
    if not location:
        yield '//## File "", line 0'
        return
    for frame, caller in zip(location, (*location[1:], None), strict=True):
        at = f' inlined at "{caller.file}", line {caller.line}' if caller else ""
        yield f'//## File "{frame.file}", line {frame.line}{at}'
